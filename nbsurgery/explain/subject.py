"""What an explanation may look at, how it is registered, and how it spells numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..graph import Graph, Node, Ref, Tensor, iter_refs

Words = Callable[["Subject"], "str | None"]


@dataclass(frozen=True)
class Subject:
    """One node, with its module where it calls one, and the tensors that met there."""

    graph: Graph
    node: Node
    module: nn.Module | None

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that went in, one for each argument: the first output of each value read."""
        read = [self.graph.by_id[ref.id] for ref in iter_refs((self.node.args, self.node.kwargs))]
        return tuple(node.outputs[0] for node in read if node.outputs)

    @property
    def x(self) -> tuple[int, ...]:
        """Shape of the first tensor that went in; empty where none did."""
        return self.inputs[0].shape if self.inputs else ()

    @property
    def y(self) -> tuple[int, ...]:
        """Shape of the first tensor that came out; empty where none did."""
        return self.node.shape or ()

    @property
    def params(self) -> int:
        """Parameters of the module, shared ones included."""
        if self.module is None:
            return 0
        sizes = {id(p): p for p in self.module.parameters()}
        return sum(
            p.numel()
            for p in sizes.values()
            if not isinstance(p, nn.parameter.UninitializedParameter)
        )

    def arg(self, name: str, position: int, default: Any = None) -> Any:
        """An argument of the call, by keyword or by position; a recorded value gives the default."""
        if name in self.node.kwargs:
            value = self.node.kwargs[name]
        elif position < len(self.node.args):
            value = self.node.args[position]
        else:
            value = default
        return default if isinstance(value, Ref) else value


REGISTERED: dict[Any, Words] = {}


def words(*of: type | str) -> Callable[[Words], Words]:
    """Register an explanation for module classes and for types of functions and methods.

    Raises:
        ValueError: One of them has an explanation already.
    """

    def register(function: Words) -> Words:
        for key in of:
            if key in REGISTERED:
                raise ValueError(f"{key!r} is explained twice, the second time by {function!r}")
            REGISTERED[key] = function
        return function

    return register


def find(subject: Subject) -> Words | None:
    """The explanation registered for the nearest class of the module, or for the node's type."""
    if subject.module is not None:
        return next((REGISTERED[c] for c in type(subject.module).__mro__ if c in REGISTERED), None)
    return REGISTERED.get(subject.node.type.removesuffix("_") or subject.node.type)


def number(value: float) -> str:
    """``9,408``; from ten millions on, three digits and a word."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size and value >= 1e7:
            return f"{value / size:.3g} {word}"
    return f"{value:,}"


def shape(sizes: tuple[int, ...], batch: bool = False) -> str:
    """``64×56×56``: without the batch axis unless asked for; a scalar is ``one number``."""
    shown = sizes if batch or len(sizes) < 2 else sizes[1:]
    return "×".join(map(str, shown)) or "one number"


def times(sizes: Any, dimensions: int) -> str:
    """A kernel size in words: ``3×3`` for 3 or (3, 3)."""
    return "×".join(map(str, tuple_of(sizes, dimensions)))


def tuple_of(value: Any, count: int) -> tuple[int, ...]:
    """A value for each dimension: 3 → (3, 3)."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def same(value: Any) -> bool:
    """Whether every dimension has the same value."""
    return not isinstance(value, (tuple, list)) or len(set(value)) == 1


def each(value: Any) -> str:
    """``2`` for (2, 2), ``2×1`` for (2, 1)."""
    if isinstance(value, (tuple, list)):
        return str(value[0]) if same(value) and value else "×".join(map(str, value))
    return str(value)


def plural(count: int, word: str) -> str:
    """``1 channel``, ``64 channels``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def product(sizes: tuple[int, ...]) -> int:
    """The number of elements of a shape."""
    return math.prod(sizes)


def sentences(*parts: str | None) -> str:
    """Join what there is to say, one sentence each, with full stops."""
    said = [part.strip() for part in parts if part and part.strip()]
    return " ".join(part if part.endswith((".", ":", "!")) else part + "." for part in said)


def known(facts: Mapping[str, Any], name: str) -> int:
    """A counted fact, 0 where it is not known."""
    return int(facts.get(name) or 0)
