"""A module instead of a call: the class of that name, with the arguments moved into its constructor."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ..errors import StepError
from ..expression import evaluate, parse
from ..graph import Node, Ref, iter_refs
from ..paths import quoted

_CLASSES = {
    name.lower(): cls
    for name, cls in vars(nn).items()
    if isinstance(cls, type) and issubclass(cls, nn.Module)
} | {"interpolate": nn.Upsample}
_OF_THE_CALL = {"training", "_stacklevel"}  # a module knows the first, and needs no second
_NAMED = {"dim", "size", "start_dim", "inplace", "approximate"}  # said by name even in first place


def class_for(node: Node) -> str | None:
    """``nn.AdaptiveAvgPool2d`` for a call of ``F.adaptive_avg_pool2d``; ``None`` where no class fits."""
    cls = _CLASSES.get(node.type.replace("_", ""))
    return None if cls is None or node.kind not in ("function", "method") else f"nn.{cls.__name__}"


def with_arguments(
    text: Any, node: Node, olds: Sequence[nn.Module], namespace: Mapping[str, Any]
) -> Any:
    """What to write for a class given without a call: its constructor, told what `node` was told.

    A functional call's own arguments are moved; of the modules `olds`, attributes of the same name.
    Any other text is returned as it came.

    Raises:
        StepError: An argument has no counterpart, or comes from the run.
    """
    expr = parse(text)
    if isinstance(expr.tree.body, ast.Call):
        return text
    cls = evaluate(expr, olds[0] if olds else None, namespace)
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        return text
    each = [_attributes(cls, m) for m in olds] or [_arguments(node, cls, expr.text)]
    parts: list[str] = []
    plain = True  # so far all are said in order, without their names
    for name, parameter in _parameters(cls).items():
        values = [given[name] for given in each if name in given]
        if any(not _same(value, parameter.default) for _, value in values):
            plain = plain and (not parts or parameter.default is parameter.empty)
            plain = plain and name not in _NAMED
            alike = name == "bias" and len({value for _, value in values}) == 1
            said = repr(values[0][1]) if alike else values[0][0]
            parts.append(said if plain else f"{name}={said}")
        elif not values and parameter.default is parameter.empty:
            has = f"{type(olds[0]).__name__} has" if olds else f"the call of {node.type!r} says"
            raise StepError(
                f"{expr.text} needs {name!r}, and {has} no {name!r}: write {expr.text}(…) yourself"
            )
        else:
            plain = False
    return f"{expr.text}({', '.join(parts)})"


def _same(value: Any, default: Any) -> bool:
    """Whether a value need not be said: the default itself, or the default for every axis."""
    return value == default or isinstance(value, list) and all(v == default for v in value)


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    """What a constructor takes by name, without where and in which precision it makes tensors."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    found = inspect.signature(cls).parameters
    return {k: p for k, p in found.items() if p.kind not in kinds and k not in ("device", "dtype")}


def _attributes(cls: type, old: nn.Module) -> dict[str, tuple[str, Any]]:
    """Constructor's parameter → text and value, from attributes of a module."""
    given: dict[str, tuple[str, Any]] = {}
    for name in _parameters(cls):
        value = getattr(old, name, inspect.Parameter.empty)
        if name == "bias" and (value is None or isinstance(value, torch.Tensor)):
            given[name] = ("old.bias is not None", value is not None)
        elif value is not inspect.Parameter.empty and not isinstance(value, torch.Tensor):
            given[name] = (f"old.{name}", value)
    return given


def _arguments(node: Node, cls: type, text: str) -> dict[str, tuple[str, Any]]:
    """Constructor's parameter → text and value, from the arguments of a functional call."""
    names, defaults = _signature(node)
    known = _parameters(cls)
    said = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    tensors = [k for k, v in said.items() if isinstance(v, Ref)]
    given = {k: v for k, v in defaults.items() if k in known}
    for name, value in said.items():
        if name in tensors[:1] or name in _OF_THE_CALL:
            continue
        if any(True for _ in iter_refs(value)):
            raise StepError(
                f"{node.name!r} takes {name!r} from the run, and {text} would have to know it beforehand: "
                f"write {text}({name}=...) with a fixed value, or give the module around it another "
                "one of your own"
            )
        if name in known:
            given[name] = value
        elif name != "inplace" and value not in (None, False) and value != defaults.get(name):
            raise StepError(f"{node.name!r} says {name}={value!r}, which {text} does not take")
    if node.type.endswith("_") and "inplace" in known:
        given["inplace"] = True
    return {k: (quoted(v) if isinstance(v, str) else repr(v), v) for k, v in given.items()}


def _signature(node: Node) -> tuple[list[str], dict[str, Any]]:
    """Names of what a functional call takes, in order, and their defaults."""
    target = node.target
    if callable(target):
        try:
            found = inspect.signature(target).parameters.values()
        except (TypeError, ValueError):
            found = ()
        if found and all(p.kind is not p.VAR_POSITIONAL for p in found):
            names = [p.name for p in found]
            return names, {p.name: p.default for p in found if p.default is not p.empty}
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{node.type}")
    arguments = schemas[0].arguments if schemas else ()
    return [a.name for a in arguments], {
        a.name: a.default_value for a in arguments if a.has_default_value()
    }
