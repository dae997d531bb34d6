"""set: hyper-parameters of layers that are plain attributes, such as stride, padding or dilation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn
from torch.nn.modules.conv import _ConvNd

from ..draft import Draft
from ..edits import Edit, Place
from ..errors import StepError, an, nearest
from ..graph import Node
from ..targets import resolve, spelled_where
from .base import Field, Offer, Operation, need

# Attributes that describe the shape of the weights: changing them alone would lie.
_SHAPE = {
    "in_channels", "out_channels", "in_features", "out_features", "num_features", "kernel_size", "groups",
    "num_embeddings", "embedding_dim", "hidden_size", "input_size", "num_layers", "normalized_shape",
    "embed_dim", "num_heads", "bias", "num_channels", "transposed", "output_padding",
}  # fmt: skip
_POOLS = ("kernel_size",)  # for pools the window is a plain number


@dataclass(frozen=True)
class SetAttributes(Edit):
    """``model.layer4[0].conv2.stride = (1, 1)``, in one place or in a readable loop over many."""

    paths: tuple[str, ...]
    values: tuple[tuple[str, str], ...]

    def lines(self, place: Place) -> list[str]:
        loop = _slice(place, self.paths)
        if loop is not None and len(self.paths) > 1:
            head, variable, rest = loop
            return [head] + [f"    {variable}{rest}.{k} = {v}" for k, v in self.values]
        if len(self.paths) > 2:
            names = ", ".join(place.spelled(p) for p in self.paths)
            return [f"for layer in ({names}):"] + [f"    layer.{k} = {v}" for k, v in self.values]
        return [f"{place.spelled(p)}.{k} = {v}" for p in self.paths for k, v in self.values]

    def without(self, gone: Callable[[str], bool]) -> Edit | None:
        paths = tuple(p for p in self.paths if not gone(p))
        return replace(self, paths=paths) if paths else None


def _slice(place: Place, paths: tuple[str, ...]) -> tuple[str, str, str] | None:
    """``for block in model.layer4[1:]:`` where the paths are the same place of neighbours."""
    found = [re.fullmatch(r"(.+?)\.(\d+)((?:\.[^.]+)*)", p) for p in paths]
    if not all(found):
        return None
    heads, tails = {m[1] for m in found}, {m[3] for m in found}
    numbers = [int(m[2]) for m in found]
    if len(heads) != 1 or len(tails) != 1:
        return None
    container = place.model.get_submodule(next(iter(heads)))
    if type(container) not in (nn.Sequential, nn.ModuleList):
        return None
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    start, end = numbers[0], numbers[-1] + 1
    text = place.spelled(next(iter(heads)))
    if start or end != len(container):
        text += f"[{start or ''}:{'' if end == len(container) else end}]"
    # the rest of the path is the same below each: spelled from the first
    first = place.spelled(paths[0])
    rest = first[len(place.spelled(f"{next(iter(heads))}.{start}")) :]
    variable = "block" if rest else "layer"
    return f"for {variable} in {text}:", variable, rest


class Set(Operation):
    """Change plain hyper-parameters of ``where``; ``values`` maps attribute to value."""

    name = "set"
    order = 16
    nones = True

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
        targets = resolve(draft, need(arguments, "where", "set"))
        wanted = {k: v for k, v in arguments.items() if k not in ("where", "values")}
        wanted |= arguments.get("values") or {}
        if not wanted:
            raise StepError("set needs at least one attribute, such as stride=1")
        paths: list[str] = []
        values: dict[str, str] = {}
        words: list[str] = []
        for target in targets:
            if target.node.kind != "module":
                raise StepError(f"{target.node.name!r} is {an(target.node.kind)}; set takes layers")
            path = target.node.target
            if path in draft.made:
                raise StepError(f"{path!r} is new: give it the values where it is made")
            module = draft.module(path)
            changed = False
            for name, value in wanted.items():
                old = self._check(path, module, name)
                words_too = isinstance(module, _ConvNd) and name == "padding"
                new = value if words_too and value in ("same", "valid") else _fitted(value, old)
                if new != old:
                    changed = True
                    values[name] = _spelled(new)
                    words.append(f"{name} {_word(old)} → {_word(new)}")
            if changed:
                paths.append(path)
        if not paths:
            raise StepError(f"{spelled_where(arguments['where'])} has these values already")
        if "inplace" in values:
            for path in paths:
                draft.set_in_place(path, values["inplace"] == "True")
        shown = paths[0] if len(paths) == 1 else f"{paths[0]} … {paths[-1]}"
        draft.edits.append(
            SetAttributes(
                step,
                f"{shown}: {', '.join(dict.fromkeys(words))}",
                tuple(paths),
                tuple(values.items()),
            )
        )
        return len(paths)

    def _check(self, path: str, module: nn.Module, name: str) -> Any:
        allowed = settable(module)
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
        and k not in ("training",)
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
