"""set: hyper-parameters of layers that are plain attributes, such as stride, padding or dilation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn
from torch.nn.modules.conv import _ConvNd

from ..draft import Draft, batch_of, shape_text
from ..edits import Edit, Place
from ..errors import StepError, an, nearest
from ..graph import Node
from ..paths import each, in_lists, nested
from ..targets import resolve, spelled_where
from .base import Field, Offer, Operation, need, written_only

# Attributes that describe the shape of the weights: changing them alone would lie.
_SHAPE = {
    "in_channels", "out_channels", "in_features", "out_features", "num_features", "kernel_size", "groups",
    "num_embeddings", "embedding_dim", "hidden_size", "input_size", "num_layers", "normalized_shape",
    "embed_dim", "num_heads", "bias", "num_channels", "transposed", "output_padding", "return_indices",
}  # fmt: skip
_POOLS = ("kernel_size",)  # for pools the window is a plain number


@dataclass(frozen=True)
class Change:
    """One attribute of one layer."""

    path: str
    name: str
    old: Any
    new: Any
    kernel: tuple[int, ...] = ()  # of a convolution

    @property
    def words(self) -> str:
        return f"{self.name} {_word(self.old)} → {_word(self.new)}"

    def same(self, other: Change) -> bool:
        """Whether both are about one attribute."""
        return (self.path, self.name) == (other.path, other.name)


@dataclass(frozen=True)
class SetAttributes(Edit):
    """``model.layer4[0].conv2.stride = (1, 1)``: consecutive changes under one scope."""

    changes: tuple[Change, ...] = ()
    sizes: str = ""  # how the output of that scope changed

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c.path for c in self.changes))

    @property
    def sets(self) -> Iterator[tuple[str, str, Any]]:
        return ((c.path, c.name, c.new) for c in self.changes)

    def lines(self, place: Place) -> list[str]:
        groups: dict[tuple, list[str]] = {}  # equal values → the layers that get them
        for path in self.paths:
            values = tuple((c.name, _spelled(c.new)) for c in self.changes if c.path == path)
            groups.setdefault(values, []).append(path)
        return [line for values, paths in groups.items() for line in _lines(place, paths, values)]

    def without(self, gone: Callable[[str], bool]) -> Edit | None:
        kept = tuple(c for c in self.changes if not gone(c.path))
        if not kept or kept == self.changes:
            return self if kept else None
        return replace(self, changes=kept, comment=_comment(kept, self.sizes))


def _set_by(edit: Edit) -> tuple[Change, ...]:
    return edit.changes if isinstance(edit, SetAttributes) else ()


def _lines(place: Place, paths: Sequence[str], values: Sequence[tuple[str, str]]) -> list[str]:
    lists = len(paths) > 1 and in_lists(place.model, paths, place.variable)
    if len(paths) > 2 or lists:
        heads, here = lists or each(place.model, paths, place.variable, "layer")
        return nested(heads, [f"{here}.{k} = {v}" for k, v in values])
    return [f"{place.spelled(p)}.{k} = {v}" for p in paths for k, v in values]


def _comment(changes: Sequence[Change], sizes: str) -> str:
    """``layer4: stride 2 → 1, 3×3 convolutions dilated by 2``, then how its output changed."""
    paths = list(dict.fromkeys(c.path for c in changes))
    words: list[str] = []
    for path in paths:
        own = [c for c in changes if c.path == path]
        dilated = _dilated(own)
        words += [dilated] if dilated else [c.words for c in own]
    where = common(paths) or f"{paths[0]} … {paths[-1]}"
    return f"{where}: {', '.join(dict.fromkeys(words))}{sizes}"


def _dilated(changes: Sequence[Change]) -> str | None:
    """The words for a convolution that is spread out, and padded so that its output keeps its size."""
    found = {c.name: c for c in changes}
    if found.keys() != {"dilation", "padding"}:
        return None
    (d0, d1), (p0, p1) = [(c.old, c.new) for c in (found["dilation"], found["padding"])]
    kernel = found["dilation"].kernel
    numbers = all(isinstance(v, tuple) and len(set(v)) == 1 for v in (d0, d1, p0, p1))
    if not kernel or not numbers or 2 * (p1[0] - p0[0]) != (kernel[0] - 1) * (d1[0] - d0[0]):
        return None
    return f"{'×'.join(map(str, kernel))} convolutions dilated by {d1[0]}"


def common(paths: Sequence[str]) -> str:
    """The path of the innermost module that holds all of them; empty for the model itself."""
    parts = [p.split(".") for p in paths]
    together = []
    for names in zip(*parts):
        if len(set(names)) > 1:
            break
        together.append(names[0])
    return ".".join(together)


class Set(Operation):
    """Change plain hyper-parameters of ``where``; ``values`` maps attribute to value."""

    name = "set"
    order = 16
    idle = True
    nones = True
    resizes = True

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if len(nodes) != 1 or nodes[0].kind != "module" or nodes[0].child is not None:
            return []
        module = draft.module(nodes[0].target)
        if nodes[0].target in draft.made or not type(module).__module__.startswith("torch.nn"):
            return []
        names = settable(module)
        if not names:
            return []
        fields = tuple(Field(n, n, "text", _shown(getattr(module, n))) for n in names)
        return [
            Offer("set", "Set hyper-parameters", "Change", fields, {"where": nodes[0].target}, 1)
        ]

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        where = need(arguments, "where", "set")
        wanted = {k: v for k, v in arguments.items() if k not in ("where", "values")}
        wanted |= arguments.get("values") or {}
        if not wanted:
            raise StepError("set needs at least one attribute, such as stride=1")

        def fits(node: Node) -> bool:
            if node.kind != "module" or not draft.is_kept(node.target):
                return False
            return set(wanted) <= set(settable(draft.module(node.target)))

        targets = resolve(draft, where, fits)
        changes: list[Change] = []
        known = {(c.path, c.name): c.new for e in draft.edits for c in _set_by(e)}
        for target in targets:
            if target.node.kind != "module":
                raise StepError(f"{target.node.name!r} is {an(target.node.kind)}; set takes layers")
            path = target.node.target
            if not draft.is_kept(path):
                raise StepError(f"{path!r} is new: give it the values where it is made")
            module = draft.module(path)
            kernel = module.kernel_size if isinstance(module, _ConvNd) else ()
            for name, value in wanted.items():
                old = known.get((path, name), self._check(path, module, name))
                words_too = isinstance(module, _ConvNd) and name == "padding"
                new = value if words_too and value in ("same", "valid") else _fitted(value, old)
                if new != old:
                    changes.append(Change(path, name, old, new, kernel))
        if not changes:
            raise StepError(f"{spelled_where(where)} has these values already")
        _one_padding(draft, {**known, **{(c.path, c.name): c.new for c in changes}})
        for change in changes:
            if change.name == "inplace":
                if not change.new and any(
                    written_only(draft, n) for n in draft.calls_of(change.path)
                ):
                    raise StepError(
                        f"the forward reads what {change.path!r} wrote into, not what it returns: "
                        "with inplace=False its result would be lost"
                    )
                draft.set_in_place(change.path, change.new)
        for path in {c.path: None for c in changes if c.name != "inplace"}:
            module, calls = draft.module(path), draft.calls_of(path)
            if _derived(module) and any(n.child in draft.graph.scopes for n in calls):
                draft.leaf_calls((path,), module)
        for path in {c.path: None for c in changes if c.path in draft.made}:
            made = copy.deepcopy(draft.made[path])
            for change in changes:
                if change.path == path:
                    setattr(made, change.name, change.new)
            draft.made[path] = made
        _record(draft, step, changes)
        return len({c.path for c in changes})

    def _check(self, path: str, module: nn.Module, name: str) -> Any:
        allowed = settable(module)
        if name == "track_running_stats" and hasattr(module, name):
            raise StepError(
                f"{name} of {path!r} says which buffers it is made with, and in eval mode these alone "
                "count; replace the layer instead"
            )
        if name not in allowed:
            if name in _SHAPE and hasattr(module, name):
                raise StepError(
                    f"{name} of {path!r} says how its weights are shaped; use channels, or replace "
                    "the layer"
                )
            raise StepError(
                f"{path!r}, {an(type(module).__name__)}, has no {name!r} to set"
                + nearest(name, allowed)
                + f"; it has {', '.join(allowed) or 'none'}"
            )
        if name in ("padding", "dilation") and getattr(module, "padding_mode", "zeros") != "zeros":
            raise StepError(
                f"{path!r} pads by {module.padding_mode!r} and keeps a second copy of its padding; "
                "replace the layer instead"
            )
        return getattr(module, name)

    def text(self, arguments: Mapping[str, Any]) -> str:
        wanted = {k: v for k, v in arguments.items() if k not in ("where", "values")}
        wanted |= arguments.get("values") or {}
        parts = ", ".join(f"{k} = {v}" for k, v in wanted.items())
        return f"set {parts} on {spelled_where(arguments['where'])}"


def _one_padding(draft: Draft, now: Mapping[tuple[str, str], Any]) -> None:
    """A convolution that does not pad with zeros reads its padding where `__init__` left it.

    Raises:
        StepError: It would pad by another mode, and as wide as before.
    """
    for path in {path for path, _ in now}:
        module = draft.module(path)
        if not isinstance(module, _ConvNd):
            continue
        mode = now.get((path, "padding_mode"), module.padding_mode)
        stale = now.get((path, "padding"), module.padding) != module.padding
        if module.padding == "same":
            stale |= now.get((path, "dilation"), module.dilation) != module.dilation
        if mode != "zeros" and stale:
            raise StepError(
                f"{path!r} would pad by {mode!r}, and such a layer keeps a second copy of its padding, "
                "which stays as it was made; replace the layer instead"
            )


def _record(draft: Draft, step: int, changes: Sequence[Change]) -> None:
    """Take changes into the draft: into what earlier steps set, else behind the last edit.

    What is set twice is written once; what is set back leaves nothing.
    """
    fresh = []
    for change in changes:
        at = next((i for i, e in enumerate(draft.edits) if any(map(change.same, _set_by(e)))), None)
        if at is None:
            fresh.append(change)
        else:
            merged = [
                replace(c, new=change.new) if c.same(change) else c
                for c in _set_by(draft.edits[at])
            ]
            draft.edits[at] = _edit(draft, step, [c for c in merged if c.old != c.new])
    last = _set_by(draft.edits[-1]) if draft.edits else ()
    if fresh and last and common([c.path for c in (*last, *fresh)]):
        draft.edits[-1] = _edit(draft, step, [*last, *fresh])
    elif fresh:
        draft.edits.append(_edit(draft, step, fresh))
    draft.edits = [e for e in draft.edits if not isinstance(e, SetAttributes) or e.changes]


def _edit(draft: Draft, step: int, changes: Sequence[Change]) -> SetAttributes:
    if not changes:
        return SetAttributes(step, "")
    sizes = _sizes(draft, common([c.path for c in changes]))
    return SetAttributes(step, _comment(changes, sizes), tuple(changes), sizes)


def _sizes(draft: Draft, path: str) -> str:
    """``: (N, 2048, 7, 7) → (N, 2048, 14, 14)`` where the output of the first call at `path` changed."""
    calls = draft.calls_of(path) if path else []
    if not calls:
        return ""
    batch, before, after = batch_of(draft.base), calls[0].shape, draft.shape(calls[0])
    if before == after:
        return ""
    return f": {shape_text(before, batch)} → {shape_text(after, batch)}"


def _derived(module: nn.Module) -> bool:
    """Whether a class of its own is one of torch's layers: what it recorded held for the old values."""
    kinds = [
        c.__module__.rpartition(".")[2]
        for c in type(module).__mro__
        if c.__module__.startswith("torch.nn.modules.")
    ]
    return bool(set(kinds) - {"module", "container"})


def settable(module: nn.Module) -> list[str]:
    """Attributes of a layer that its forward reads and that its weights do not fix."""
    fixed = set(_SHAPE)
    if "Pool" in type(module).__name__:
        fixed -= set(_POOLS)
    return [
        k
        for k, v in vars(module).items()
        if not k.startswith("_")
        and k not in fixed
        and k not in ("training", "track_running_stats")
        and isinstance(v, (bool, int, float, str, tuple, type(None)))
        and not (v is None and k != "ceil_mode")
    ]


def _fitted(value: Any, old: Any) -> Any:
    """A value in the form of the old one: ``1`` becomes ``(1, 1)`` where the layer holds a pair."""
    if isinstance(value, str) and not isinstance(old, str):
        try:
            import ast

            value = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            raise StepError(f"{value!r} is no plain value; write a number or a tuple") from None
    if isinstance(value, list):
        value = tuple(value)
    if isinstance(old, tuple) and isinstance(value, (int, float)):
        return (value,) * len(old)
    if isinstance(old, tuple) and isinstance(value, tuple) and len(value) != len(old):
        raise StepError(f"{value!r} has {len(value)} numbers, and the layer takes {len(old)}")
    if isinstance(old, bool) != isinstance(value, bool) and not isinstance(old, (tuple, str)):
        raise StepError(f"{value!r} does not fit: the layer holds {old!r}")
    return value


def _word(value: Any) -> str:
    """``2`` for ``(2, 2)``: what a reader calls it."""
    same = isinstance(value, tuple) and len(set(value)) == 1
    return str(value[0]) if same else _shown(value)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _spelled(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


OPERATION = Set()
