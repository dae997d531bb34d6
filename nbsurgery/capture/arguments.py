"""What goes into an operation, in terms of the nodes of its scope."""

from __future__ import annotations

import collections
import dataclasses
import inspect
from typing import Any

import torch
from torch import nn

from nbsurgery.capture import frames, regions
from nbsurgery.capture.steps import OpenScope, Seen
from nbsurgery.capture.symbols import Symbol, plain
from nbsurgery.capture.values import PLAIN, alive, facts, imprint, tensors_in
from nbsurgery.graph import Ref


def arg(tape, scope: OpenScope, value: Any, seen: Seen, depth: int = 0) -> Any:
    """A value in terms of the scope's nodes."""
    kind = type(value)
    if kind in PLAIN:
        if kind is torch.device:  # x.device gives a new object each time: known by identity
            return tape.find(scope, value) or value
        return value
    if isinstance(value, torch.Tensor):
        seen.tensors.append(value)
        if kind is not torch.Tensor and kind is not nn.Parameter:
            seen.odd = True
        entry = scope.env.get(id(value))
        if entry is not None and alive(entry[0]) is value:
            return entry[1]
        return tape.resolve(scope, value)
    if isinstance(value, Symbol):
        seen.symbols = True
        return symbol(tape, scope, value)
    entry = scope.env.get(id(value))
    if entry is not None and entry[0] is value and isinstance(value, tape.closed):
        seen.symbols = True
        return entry[1]
    if entry is not None and entry[0] is value and entry[2] == imprint(value):
        # Known as a whole; its tensors still count, for writes.
        meet(tape, value, seen)
        return entry[1]
    if kind is tuple:
        return tuple([arg(tape, scope, v, seen, depth + 1) for v in value])
    if kind is list:
        return [arg(tape, scope, v, seen, depth + 1) for v in value]
    if kind is slice:
        return slice(
            arg(tape, scope, value.start, seen),
            arg(tape, scope, value.stop, seen),
            arg(tape, scope, value.step, seen),
        )
    if kind is torch.Size:
        return tuple([arg(tape, scope, v, seen, depth + 1) for v in value])
    if kind is dict:
        return {k: arg(tape, scope, v, seen, depth + 1) for k, v in value.items()}
    return odd_arg(tape, scope, value, seen, depth)


def odd_arg(tape, scope: OpenScope, value: Any, seen: Seen, depth: int) -> Any:
    """Arguments that are neither tensors, numbers nor plain containers."""
    if isinstance(value, tape.closed):
        ref = tape.stow(scope, value, "cache")
        return ref or tape.unknown(scope, value, f"an object of type {type(value).__name__}")
    place = tape.attributes().get(id(value))
    if place is not None and place[0] is value and not place[2] and not tensors_in(value):
        node = tape.parameter_node(scope, tape.nearest(scope, place[1]), None)
        node.glue = True
        return Ref(node.id)
    if isinstance(value, list):
        return [arg(tape, scope, v, seen, depth + 1) for v in list.__iter__(value)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = tuple(arg(tape, scope, v, seen, depth + 1) for v in value)
        node = tape.step(scope, "function", type(value).__name__, type(value), items, glue=True)
        node.outputs = tuple(facts(t) for t in tensors_in(value))
        return Ref(node.id)
    if isinstance(value, tuple):
        return tuple([arg(tape, scope, v, seen, depth + 1) for v in value])
    if isinstance(value, nn.Module):
        paths = tape.paths.get(id(value))
        if paths is not None:
            node = tape.parameter_node(scope, tape.nearest(scope, paths), None)
            node.glue, node.type = True, type(value).__name__
            return Ref(node.id)
    if isinstance(value, type) or callable(value) or isinstance(value, torch.Generator):
        return value
    if isinstance(value, collections.OrderedDict) and type(value) is collections.OrderedDict:
        items = [(k, arg(tape, scope, v, seen, depth + 1)) for k, v in value.items()]
        node = tape.step(
            scope, "function", "OrderedDict", collections.OrderedDict, (items,), glue=True
        )
        return Ref(node.id)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kwargs = {
            f.name: arg(tape, scope, getattr(value, f.name), seen, depth + 1)
            for f in dataclasses.fields(value)
            if f.init and getattr(value, f.name, None) is not None
        }
        node = tape.step(
            scope, "function", type(value).__name__, type(value), (), kwargs, glue=True
        )
        return Ref(node.id)
    if inspect.isgenerator(value):
        return tape.unknown(scope, value, "a generator")
    if tensors_in(value):
        return rebuilt(tape, scope, value, seen, depth)
    return value


def rebuilt(tape, scope: OpenScope, value: Any, seen: Seen, depth: int) -> Ref:
    """An object with tensors inside: known to a caller, or rebuilt from what it holds now."""
    entry = scope.env.get(id(value))
    if entry is None or entry[0] is not value:
        ref = tape.stow(scope, value, type(value).__name__.lower())
        if ref is not None:
            meet(tape, value, seen)
            return ref
    name = type(value).__name__
    state = getattr(value, "__dict__", None)
    if state is None or isinstance(value, dict) or depth > 6:
        meet(tape, value, seen)
        return tape.unknown(scope, value, f"an object of type {name}")
    parts = {k: arg(tape, scope, v, seen, depth + 1) for k, v in state.items()}
    node = tape.step(scope, "function", name, regions.rebuild, (type(value), parts), glue=True)
    seen.symbols = True
    tape.cloud(scope, f"it passes on an object of type {name}")
    tape.bind_object(scope, value, Ref(node.id))
    return Ref(node.id)


def meet(tape, value: Any, seen: Seen, depth: int = 0) -> None:
    """Note the tensors inside a value that is passed on as a whole."""
    for tensor in tensors_in(value):
        seen.tensors.append(tensor)
        if type(tensor) is not torch.Tensor and type(tensor) is not nn.Parameter:
            seen.odd = True
    seen.symbols = True


def symbol(tape, scope: OpenScope, value: Symbol) -> Any:
    if value._tape is not tape:
        return plain(value)
    if value._scope is scope:
        return Ref(value._node)
    ref = tape.find(scope, value) or tape.stow(scope, value, "size")
    if ref is None:  # made in a scope that is over: a number kept on a module, say
        what = "a number that another module computed and left behind"
        tape.cloud(scope, f"it uses {what}")
        tape.decide(scope, "constant", what, tape.digest(), None, frames.walk(2))
        return plain(value)
    return ref
