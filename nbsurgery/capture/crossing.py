"""The borders of scopes: arguments arrive at input nodes, results leave by the output node."""

from __future__ import annotations

import inspect
import itertools
import operator
import threading
import weakref
from typing import Any

import torch

from nbsurgery.capture import arguments, frames, results
from nbsurgery.capture.steps import InputList, OpenScope, Seen, Step
from nbsurgery.capture.symbols import Symbol, plain, track
from nbsurgery.capture.values import (
    alias,
    facts,
    is_code,
    no_dispatch,
    parameters,
    tensors_in,
    version,
    worth,
)
from nbsurgery.graph import Ref


def scope_call(tape, original, module, paths, args, kwargs) -> Any:
    parent = tape.top
    with no_dispatch():
        seen = Seen()
        given = tuple([arguments.arg(tape, parent, a, seen) for a in args])
        named = (
            {k: arguments.arg(tape, parent, v, seen) for k, v in kwargs.items()} if kwargs else {}
        )
        tensors = seen.tensors
        before = [version(t) for t in tensors]
        path = tape.nearest(parent, paths)
        node = tape.step(parent, "module", type(module).__name__, path, given, named)
        node.module = module
        scope = open_scope(tape, path, module, parent, node)
        args, kwargs = enter(tape, scope, module, args, kwargs, given, named)
    tape.top = scope
    try:
        result = drain(tape, scope, inside(tape, original, module, args, kwargs))
    except Exception as error:
        tape.failed(parent, node, error, tensors)
        raise
    finally:
        tape.top = parent
    with no_dispatch():
        leave(tape, scope, result)
        node.same = handed_on(scope)
        ids = {id(t) for t, v in zip(tensors, before, strict=True) if version(t) != v}
        if ids:
            node.impure = True
            node.writes = tape.written(parent, [t for t in tensors if id(t) in ids])
        return results.bind(tape, parent, result, node, {id(t) for t in tensors}, ids)


def inside(tape, original, module, args, kwargs) -> Any:
    """Run a scope: the border at which the stacks of its operations end."""
    return original(module, *args, **kwargs)


def open_scope(tape, path: str, module, parent, caller) -> OpenScope:
    key = tape.numbered(tape.keys, path)
    scope = OpenScope(key, path, module, parent, caller)
    tape.scopes[key] = scope
    if caller is not None:
        caller.child = key
    if "forward" in module.__dict__:
        tape.cloud(scope, "it was assigned on the instance, so its class does not hold it")
    return scope


def enter(tape, scope, module, args, kwargs, given, named) -> tuple[tuple, dict]:
    """Bind arguments to input nodes; what the forward gets is what belongs to its scope."""
    args, kwargs = list(args), dict(kwargs)
    for name, place in parameters(module, args, kwargs):
        if isinstance(place, int):
            value, binding = args[place], given[place]
        else:
            value, binding = kwargs[place], named[place]
        node = tape.input(scope, name, binding, place)
        value = arrive(tape, scope, value, node)
        if isinstance(place, int):
            args[place] = value
        else:
            kwargs[place] = value
    return tuple(args), kwargs


def arrive(tape, scope: OpenScope, value: Any, node: Step) -> Any:
    """One argument enters a scope."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        node.outputs = (facts(value),)
        if tape.find(scope, value) is not None:  # the same tensor given twice
            value = alias(value)
        scope.env[id(value)] = (weakref.ref(value), Ref(node.id), None)
        return value
    if value is None or kind is bool or kind is str:
        node.value = value
        return value
    if isinstance(value, Symbol):
        node.value = plain(value)
        return track(node.value, tape, scope, node.id)
    if kind is int or kind is float:
        node.value = value
        return track(value, tape, scope, node.id) if scope.parent is None else value
    if isinstance(value, tape.closed):
        scope.env[id(value)] = (value, Ref(node.id), None)
        return value
    return bind_arrival(tape, scope, value, node)


def bind_arrival(tape, scope, value, node, depth=0) -> Any:
    """A container or object enters a scope: its parts hang below the input by glue nodes."""
    found = tensors_in(value)
    node.outputs = tuple(facts(t) for t in found)
    ref = Ref(node.id)

    def inner(part, how, key):
        if not worth(part):
            return part
        name = "getitem" if how is operator.getitem else "getattr"
        item = tape.step(scope, "function", name, how, (ref, key), glue=True)
        if isinstance(part, torch.Tensor):
            item.outputs = (facts(part),)
            if tape.find(scope, part) is None:
                scope.env[id(part)] = (weakref.ref(part), Ref(item.id), None)
            return part
        if isinstance(part, Symbol):  # known here by identity: containers stay the caller's
            item.value = plain(part)
            scope.env[id(part)] = (part, Ref(item.id), None)
            return part
        if type(part) in (int, float):
            item.value = part
            return track(part, tape, scope, item.id) if outermost else part
        return bind_arrival(tape, scope, part, item, depth + 1)

    outermost = scope.parent is None
    if depth > 8:
        return value
    if isinstance(value, tuple):
        items = [inner(v, operator.getitem, i) for i, v in enumerate(value)]
        if any(a is not b for a, b in zip(items, value, strict=True)):
            if hasattr(value, "_fields"):
                value = type(value)(*items)
            else:
                value = type(value)(items)
    elif isinstance(value, list):
        items = [inner(v, operator.getitem, i) for i, v in enumerate(list.__iter__(value))]
        if depth == 0 or outermost:
            original, value = value, InputList(items)
            value._origin = (tape, node.id, len(items), original)
            if not outermost:
                scope.lists.append(value)
    elif isinstance(value, dict):
        items = {k: inner(v, operator.getitem, k) for k, v in value.items()}
        if outermost and type(value) is dict and any(items[k] is not value[k] for k in items):
            value = items
    elif hasattr(value, "__dict__") and not is_code(value):
        for k, v in list(vars(value).items()):
            if isinstance(v, (torch.Tensor, tuple, list, dict)):
                inner(v, getattr, k)
    tape.bind_object(scope, value, ref)
    return value


def drain(tape, scope: OpenScope, result: Any) -> Any:
    """A generator that a forward returns runs now, while its operations can be recorded."""
    if inspect.isgenerator(result):
        tape.cloud(scope, "it returns a generator, which was recorded as a list")
        return list(result)
    return result


def leave(tape, scope: OpenScope, result: Any) -> None:
    """The result of a scope becomes the argument of its output node."""
    seen = Seen()
    args = (arguments.arg(tape, scope, result, seen),)
    node = tape.step(scope, "output", "output", None, args)
    node.outputs = tuple(facts(t) for t in tensors_in(result))
    node.impure, node.frames = True, ()
    for items in scope.lists:  # what was appended to a list belongs to the caller's list
        original = items._origin[3]
        if len(original) != list.__len__(items) or any(
            a is not b for a, b in zip(original, list.__iter__(items), strict=True)
        ):
            original[:] = list(list.__iter__(items))
    scope.done = True
    scope.env.clear()


def handed_on(scope: OpenScope) -> str | None:
    """The caller's node whose very tensor a scope returns: a drop path in eval mode."""
    result = scope.nodes[-1].args[0]
    wanted = result.id if isinstance(result, Ref) else None
    for step in itertools.chain(reversed(scope.nodes), reversed(scope.inputs)):
        if step.id == wanted:  # what it hands on was made before it
            if step.kind == "input":
                given = scope.bindings.get(wanted)
                return given.id if isinstance(given, Ref) else None
            wanted = step.same
        if wanted is None:
            break
    return None


def loop(tape, items: InputList) -> None:
    """Python goes through a list that came as an argument: as many rounds as this run had."""
    scope = tape.top
    if tape.paused or tape.thread != threading.get_ident() or scope is None:
        return
    where = frames.walk(3)
    if not where:
        return
    node = items._origin[1]
    tape.decide(scope, "iterate", None, items._origin[2], node, where)
    if tape.takes_list and tensors_in(items):  # how many images there are is anybody's choice
        tape.cloud(scope, "{where} loops over a list that it was given")
        tape.place(scope, where)


def run_root(tape, args: tuple, kwargs: dict) -> Any:
    """Call the root inside its scope."""
    scope = open_scope(tape, "", tape.root, None, None)
    tape.given = (args, kwargs)
    tape.takes_list = any(isinstance(a, list) and tensors_in(a) for a in (*args, *kwargs.values()))
    with no_dispatch():
        given = [None] * len(args)
        named = dict.fromkeys(kwargs)
        args, kwargs = enter(tape, scope, tape.root, args, kwargs, given, named)
    tape.top = scope
    tape.entering = True
    result = drain(tape, scope, tape.root(*args, **kwargs))
    tape.top = scope
    with no_dispatch():
        leave(tape, scope, result)
    return result


frames.border(inside)
frames.border(run_root)
