"""What the checks look at: original and edited model, their runs, and who came from where."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..claims import Claim
from ..graph import Graph
from . import runs
from .execute import Built


@dataclass(eq=False)
class Subject:
    """One edit under examination; the runs that it needs are made once, when first asked for.

    Attributes:
        before: Graph of the original's run.
        original: The model before the edit; read only, runs happen on structural copies.
        built: What `execute` made of the emitted text.
        after: Graph of the built model's run, one per module of a split; without one, checks that need
            it are left out.
        edited: The draft's edited graph, for the oracle; ``None`` leaves the oracle out.
        args, kwargs: The example, as the edited model takes it.
        claims: What the operations promise.
        original_args, original_kwargs: The example as the original takes it; ``None``: the same one.
        entering: For a model that begins inside: gives what crosses into it when the original gets
            ``(args, kwargs)``.
    """

    before: Graph
    original: nn.Module
    built: Built
    after: tuple[Graph, ...] = ()
    edited: Graph | None = None
    args: tuple = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    original_args: tuple | None = None
    original_kwargs: Mapping[str, Any] | None = None
    entering: Callable[[tuple, Mapping[str, Any]], tuple] | None = None

    def __post_init__(self) -> None:
        if self.original_args is None:
            self.original_args = self.args
        if self.original_kwargs is None:
            self.original_kwargs = self.kwargs

    def anew(self) -> Subject:
        """The same edit with no run made yet."""
        return dataclasses.replace(self)

    # --- runs ------------------------------------------------------------------------------------

    @functools.cached_property
    def original_run(self) -> runs.Run:
        trial = runs.Trial.of(
            self.original, (self.original,), self.original_args, self.original_kwargs
        )
        return trial.run

    @functools.cached_property
    def _trial(self) -> runs.Trial:
        return runs.Trial.of(self.built, self.built.modules, self.args, self.kwargs)

    @property
    def run(self) -> runs.Run:
        """The edited model on the example, on a copy: the built model's buffers stay."""
        return self._trial.run

    @property
    def parts(self) -> tuple[nn.Module, ...]:
        """Copies of the built modules that were run: what is built keeps its buffers."""
        return self._trial.parts

    # --- names -----------------------------------------------------------------------------------

    @functools.cached_property
    def prefixes(self) -> tuple[str, ...]:
        """What stands before a name of each built module, to tell the parts of a split apart."""
        names = self.built.names
        return tuple(f"{n}." for n in names) if len(names) > 1 else ("",)

    def modules(self) -> Iterator[tuple[str, nn.Module]]:
        """Every module of the built model by path, parts of a split under their name."""
        for prefix, root in zip(self.prefixes, self.built.modules):
            for path, module in root.named_modules():
                yield (prefix + path).rstrip("."), module

    def tensors(self) -> Iterator[tuple[str, torch.Tensor, bool]]:
        """Every parameter and buffer: key, tensor, whether it is a parameter; ties under each name."""
        for prefix, root in zip(self.prefixes, self.built.modules):
            for key, tensor in root.named_parameters(remove_duplicate=False):
                yield prefix + key, tensor, True
            for key, tensor in root.named_buffers(remove_duplicate=False):
                yield prefix + key, tensor, False

    def came_from(self, tensor: torch.Tensor) -> str | None:
        """The name in the original of a tensor of the built model; ``None`` for a new one."""
        return self.built.origin.get(id(tensor))

    @functools.cached_property
    def copies(self) -> frozenset[str]:
        """Keys of new tensors that were given the original's values.

        Of a module all or none: what is all ones or zeros in both may just have been made so.
        """
        before = {**dict(self.original.named_parameters()), **dict(self.original.named_buffers())}
        found: dict[str, list[tuple[str, bool | None]]] = {}
        for prefix, root in zip(self.prefixes, self.built.modules):
            for key, tensor in (*root.named_parameters(), *root.named_buffers()):
                old = before.get(key)
                if old is not None and self.came_from(tensor) is None:
                    place = (prefix + key).rpartition(".")[0]
                    found.setdefault(place, []).append((prefix + key, _equal(old, tensor)))
        return frozenset(
            key
            for pairs in found.values()
            if any(same for _, same in pairs) and all(same is not False for _, same in pairs)
            for key, _ in pairs
        )

    def is_new(self, module: nn.Module) -> bool:
        """Whether a module of the built model was made by the text."""
        return id(module) not in self.built.paths


def _equal(old: torch.Tensor, new: torch.Tensor) -> bool | None:
    """Whether values are the same; ``None`` where they are, and say nothing."""
    if old.shape != new.shape or old.is_meta or new.is_meta or old.layout != new.layout:
        return False
    with torch.no_grad():
        if not torch.equal(old, new.to(old.device, old.dtype)):
            return False
        return True if (old != old.flatten()[:1]).any() else None


def listed(names: Iterable[str], limit: int = 3) -> str:
    """``"fc.weight, fc.bias and 3 more"``."""
    names = list(names)
    if len(names) <= limit:
        return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return f"{', '.join(names[:limit])} and {len(names) - limit:,} more"


def regions(names: Iterable[str], everything: Iterable[str]) -> list[str]:
    """The largest places that hold the named tensors and no others: ``layer3.2`` for all in it."""
    chosen = set(names)
    others = {
        key[:i]
        for key in everything
        if key not in chosen
        for i in [0, *(j for j, c in enumerate(key) if c == "."), len(key)]
    }
    found: dict[str, None] = {}
    for key in chosen if isinstance(names, (set, frozenset)) else names:
        place = key
        while (up := place.rpartition(".")[0]) and up not in others:
            place = up
        found.setdefault(place)
    return list(found)


def counted(number: int, one: str, many: str | None = None) -> str:
    """``"1 key"``, ``"2 keys"``, with thousands marked."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
