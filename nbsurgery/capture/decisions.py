"""Where Python decided on a value of the run: comparisons, truth, loops, numbers taken out."""

from __future__ import annotations

import threading
from typing import Any

import torch

from nbsurgery.capture import arguments, frames, operations, results
from nbsurgery.capture.steps import Digest, Seen
from nbsurgery.capture.symbols import Symbol, plain_all, track
from nbsurgery.capture.values import no_dispatch
from nbsurgery.graph import Ref

_FEW = 64  # numbers of a ``tolist()`` that are followed; more are taken as data


def iterate(tape, original, tensor) -> Any:
    """``for row in tensor``: recorded as ``unbind``; how many there are is a decision."""
    scope = tape.top
    with no_dispatch():
        if scope is None or tensor.dim() == 0:
            return original(tensor)
        ref = arguments.arg(tape, scope, tensor, Seen())
        result = list(tensor.unbind(0))
        node = tape.step(scope, "method", "unbind", "unbind", (ref, 0))
        tape.decide(scope, "iterate", None, list.__len__(result), node.id, node.frames)
        result = results.bind(tape, scope, result, node, set())
    return iter(result)


def dtype_of(tape, scope, function, args) -> torch.dtype:
    """``x.dtype``: one object for all tensors of a type cannot be followed, so a decision."""
    result = function(*args)
    where = frames.walk(3)
    key = ("dtype", scope.path, where)
    if where and key not in tape.decided:
        tape.decided[key] = None
        ref = arguments.arg(tape, scope, args[0], Seen())
        node = tape.step(scope, "function", "getattr", getattr, (ref, "dtype"), glue=True)
        value = str(result).removeprefix("torch.")
        tape.decisions.append(("dtype", None, value, where, scope.key, node.id))
    return result


def decision(tape, kind: str, number: Symbol, value: Any, where: tuple | None = None) -> None:
    """Python asked a tracked number for its value."""
    if tape.paused or tape.thread != threading.get_ident():
        return
    scope = tape.top
    ref = arguments.symbol(tape, scope, number)
    node = ref.id if isinstance(ref, Ref) else None
    tape.decide(scope, kind, None, value, node, frames.walk(3) if where is None else where)


def comparison(tape, function, left, right, value: bool) -> None:
    if tape.paused or tape.thread != threading.get_ident():
        return
    scope, seen = tape.top, Seen()
    args = (arguments.arg(tape, scope, left, seen), arguments.arg(tape, scope, right, seen))
    node = tape.step(scope, "function", function.__name__, function, args, glue=True)
    node.value = value
    tape.decide(scope, "compare", None, value, node.id, node.frames)


def number_operation(tape, function, args, result) -> Any:
    """Arithmetic on tracked numbers."""
    if tape.paused or tape.thread != threading.get_ident():
        return result
    scope, seen = tape.top, Seen()
    given = tuple(arguments.arg(tape, scope, a, seen) for a in args)
    name = function.__name__
    node = tape.step(scope, "function", name, function, given, None, operations.snake(name), True)
    node.value = result
    return track(result, tape, scope, node.id)


def draw(tape, function, args, kwargs) -> Any:
    """Python draws a random number: a node, as torch's own are; anything else that it draws stays."""
    result = function(*plain_all(args), **plain_all(kwargs))
    scope, seen = tape.top, Seen()
    if scope is None:
        return result
    given = tuple(arguments.arg(tape, scope, a, seen) for a in args)
    named = {k: arguments.arg(tape, scope, v, seen) for k, v in kwargs.items()}
    name = function.__name__
    node = tape.step(scope, "function", name, function, given, named)
    node.impure = True
    if type(result) in (int, float):
        node.value = result
        return track(result, tape, scope, node.id)
    tape.cloud(scope, f"it draws with {name}")
    tape.decide(scope, "constant", f"{name}()", Digest(None), node.id, node.frames)
    return result


def decide_on_data(tape, scope, plan, tensor, args, result) -> Any:
    """``if tensor.any()``, ``tensor.item()``: the run went on with a value of this data."""
    name = plan.target
    if name == "__bool__" or name == "item" and isinstance(result, bool):
        node = tape.step(scope, "function", "bool", bool, args, glue=True)
        node.value = result
        tape.decide(scope, "bool", None, result, node.id, node.frames)
        tape.cloud(scope, "{where} decides on a tensor's value")
        tape.place(scope, node.frames)
        return result
    if name in ("__int__", "__index__", "__float__", "__complex__") or isinstance(result, complex):
        node = tape.step(scope, "method", "item", "item", args, glue=True)
        node.value = result
        tape.decide(scope, "int", None, result, node.id, node.frames)
        tape.cloud(scope, "{where} turns a tensor's value into a number")
        tape.place(scope, node.frames)
        return result
    node = tape.step(scope, "method", name, name, args)
    if name == "item":
        node.glue = True
        node.value = result
        return track(result, tape, scope, node.id)
    if name == "tolist" and tensor.numel() <= _FEW:  # numbers that can be followed one by one
        node.glue = True
        if tensor.dim():  # as many as there are now
            size = tape.step(scope, "function", "getattr", getattr, (args[0], "shape"), glue=True)
            tape.decide(scope, "range", None, tuple(tensor.shape), size.id, size.frames)
        return results.bind(tape, scope, result, node, set())
    tape.decide(scope, "constant", f"{name}()", tape.digest(), node.id, node.frames)
    tape.cloud(scope, "{where} leaves torch with ." + name + "()")
    tape.place(scope, node.frames)
    return result
