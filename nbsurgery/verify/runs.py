"""Running a model, or the parts of a split one after the other, without a trace."""

from __future__ import annotations

import contextlib
import inspect
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .compare import cloned, leaves
from .copy import structural_copy
from .still import still


@dataclass(frozen=True)
class Run:
    """One run: what came out, or what was raised; which modules were called."""

    output: Any = None
    error: Exception | None = None
    called: frozenset[int] = frozenset()
    crossing: tuple = field(default=())  # what each part of a split hands to the next


def run(
    parts: Sequence[nn.Module],
    args: tuple,
    kwargs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    grad: bool = False,
    then: Callable[[Any], None] | None = None,
) -> Run:
    """Call the first part with the example, each further one with what the one before returned.

    An error is handed back, not raised; `then` is called with the output and may raise as well.
    """
    args, kwargs = cloned(tuple(args)), cloned(dict(kwargs or {}))
    called: set[int] = set()
    crossing = []
    with still(seed), torch.set_grad_enabled(grad), _calls(called), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            output = parts[0](*args, **kwargs)
            for part in parts[1:]:
                crossing.append(cloned(output))  # the part may write into it
                output = part(*handed_on(part, output))
            if then is not None:
                then(output)
        except Exception as error:  # noqa: BLE001  the model's own, whatever it is
            return Run(None, error, frozenset(called), tuple(crossing))
    return Run(output, None, frozenset(called), tuple(crossing))


def handed_on(part: nn.Module, value: Any) -> tuple:
    """The arguments with which a part of a split takes what the part before returned."""
    if not isinstance(value, tuple):
        return (value,)
    try:
        found = list(inspect.signature(part.forward).parameters.values())
    except (TypeError, ValueError):
        return value
    places = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    many = len(places) >= len(value) or any(p.kind is p.VAR_POSITIONAL for p in found)
    return value if many else (value,)


@contextlib.contextmanager
def _calls(called: set[int]) -> Iterator[None]:
    handle = nn.modules.module.register_module_forward_pre_hook(lambda m, _: called.add(id(m)))
    try:
        yield
    finally:
        handle.remove()


_last: weakref.WeakKeyDictionary[Any, Trial] = weakref.WeakKeyDictionary()


class Trial:
    """Structural copies of modules and their one run on one example."""

    def __init__(self, modules: Sequence[nn.Module], args: tuple, kwargs: Mapping[str, Any]):
        self.example, self.versions = (args, kwargs), versions(modules)
        self.parts = tuple(map(structural_copy, modules))
        self.run = run(self.parts, args, kwargs)

    @classmethod
    def of(
        cls, key: Any, modules: Sequence[nn.Module], args: tuple, kwargs: Mapping[str, Any]
    ) -> Trial:
        """The trial of some modules on an example: one for capture and report, and for every step.

        It lasts as long as `key` lives, and until a weight is written or another example comes.
        """
        known = _last.get(key)
        if (
            known is None
            or not _same((args, kwargs), known.example)
            or known.versions != versions(modules)
        ):
            known = _last[key] = cls(modules, args, kwargs)
        return known


def versions(modules: Sequence[nn.Module]) -> tuple:
    """What changes when a weight is written, a mode is set or a module is exchanged."""
    found: list[Any] = []
    for root in modules:
        for module in root.modules():
            found.append((id(module), module.training))
        for tensor in (*root.parameters(), *root.buffers()):
            try:
                found.append(tensor._version)
            except (RuntimeError, ValueError):  # inference tensors keep no count
                found.append(None)
    return tuple(found)


def _same(one: Any, other: Any) -> bool:
    """Whether two examples are made of the same objects."""
    mine, theirs = list(leaves(one)), list(leaves(other))
    return len(mine) == len(theirs) and all(
        a is b and path == step for (path, a), (step, b) in zip(mine, theirs)
    )
