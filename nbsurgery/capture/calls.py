"""Operations and calls as nodes: torch functions, layers, whole functions, tracked objects."""

from __future__ import annotations

from typing import Any

import torch

from nbsurgery.capture import arguments, crossing, decisions, frames, libraries, operations, results
from nbsurgery.capture.steps import OpenScope, Seen, Step
from nbsurgery.capture.symbols import plain_all
from nbsurgery.capture.values import (
    calls_back,
    deep,
    facts,
    no_dispatch,
    tensors_in,
    tracked,
    version,
    worth,
)
from nbsurgery.graph import Ref


def call(tape, function, args, kwargs) -> Any:
    """Run and record one torch function, as the function mode delivers it."""
    plan = operations.plan(function)
    if plan.skip:
        if kwargs:
            kwargs = plain_all(kwargs)
        return function(*plain_all(args), **kwargs)
    scope = tape.top
    seen = Seen()
    if plan.kind == "dtype":
        return decisions.dtype_of(tape, scope, function, args)
    given = tuple([arguments.arg(tape, scope, a, seen) for a in args])
    named = {k: arguments.arg(tape, scope, v, seen) for k, v in kwargs.items()} if kwargs else {}
    if seen.symbols:
        args, kwargs = plain_all(args), plain_all(kwargs)
    tensors = seen.tensors
    before = [version(t) for t in tensors]
    if plan.inplace and tensors:
        tape.save(tensors[0])
    if seen.odd:  # what a tensor subclass does by itself is no operation of the model
        tape.paused += 1
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        if not (plan.kind == "size" or plan.kind == "read"):
            tape.failed(scope, operation(tape, scope, plan, function, given, named), error, tensors)
        raise
    finally:
        if seen.odd:
            tape.paused -= 1
    if result is NotImplemented:
        return result
    mutated = [t for t, v in zip(tensors, before, strict=True) if version(t) != v]
    if plan.kind == "decide":
        return decisions.decide_on_data(tape, scope, plan, tensors[0], given, result)
    if type(result) is torch.Tensor and not mutated:
        node = operation(tape, scope, plan, function, given, named)
        return results.bind(tape, scope, result, node, {id(t) for t in tensors})
    if not mutated and not plan.setter and not worth(result):
        if type(result) is torch.device:
            node = operation(tape, scope, plan, function, given, named)
            scope.env[id(result)] = (result, Ref(node.id), None)
        return result
    node = operation(tape, scope, plan, function, given, named)
    if plan.setter:
        node.impure = True
        return result
    if mutated:
        node.impure = True
        node.writes = tape.written(scope, mutated)
    ids = {id(t) for t in mutated}
    return results.bind(tape, scope, result, node, {id(t) for t in tensors}, ids)


def operation(tape, scope, plan, function, args, kwargs) -> Step:
    kind, target, name, base, glue = plan.kind, plan.target, plan.name, plan.base, plan.glue
    if kind in ("size", "read"):
        return tape.step(
            scope, "function", "getattr" if kind == "size" else target, getattr,
            (args[0], target), None, "getattr", kind == "size",
        )  # fmt: skip
    if plan.setter:
        node = tape.step(scope, "function", "setattr", setattr, (args[0], target, args[1]))
        return node
    if plan.operator is not None and (plan.always or frames.is_operator(3)):
        target, base = plan.operator, plan.operator_base
        name, kind = base, "function"
        if plan.swapped:
            args = args[::-1]
    return tape.step(scope, kind, name, target, args, kwargs, base, glue)


def module_call(tape, original, module, args, kwargs) -> Any:
    """A module is called: a leaf becomes a node, anything else a scope."""
    if tape.entering and module is tape.root:  # its scope is open already
        tape.entering = False
        return original(module, *args, **kwargs)
    paths = tape.paths.get(id(module))
    if paths is None or tape.top is None:
        return original(module, *args, **kwargs)
    if operations.is_leaf(module):
        return leaf_call(tape, original, module, paths, args, kwargs)
    return crossing.scope_call(tape, original, module, paths, args, kwargs)


def leaf_call(tape, original, module, paths, args, kwargs) -> Any:
    """The call of a layer of torch: one node."""
    path = tape.nearest(tape.top, paths)
    kind, name = "module", type(module).__name__
    return whole(tape, original, (module,), args, kwargs, kind, name, path, None, module)


def function_call(tape, function, args, kwargs) -> Any:
    """The call of a function that is kept whole: one node, if it works on the run's values."""
    with no_dispatch():
        run = tape.top is not None and (tracked(args) or tracked(kwargs))
    if not run or calls_back(args) or calls_back(kwargs):
        return function(*args, **kwargs)
    name = function.__name__
    base = operations.snake(name)
    return whole(tape, function, (), args, kwargs, "function", name, function, base, None)


def odd_call(tape, name, target, head, function, first, args, kwargs, reason) -> Any:
    """A call that torch's function mode does not see: one node; `reason` makes its scope opaque."""
    scope = tape.top
    if scope is None:
        return function(*first, *args, **kwargs)
    if reason:
        tape.cloud(scope, reason)
    before = len(scope.nodes)
    base = operations.snake(name)
    result = whole(tape, function, first, args, kwargs, "function", name, target, base, None)
    for node in scope.nodes[before:]:
        if node.target is target:
            node.args = (*head, *node.args)
    return result


def construct(tape, function, made, args, kwargs) -> None:
    """A tracked object is made: the call of its class."""
    scope, seen = tape.top, Seen()
    if scope is None:
        return function(made, *args, **kwargs)
    with no_dispatch():
        given = tuple([arguments.arg(tape, scope, a, seen) for a in args])
        named = (
            {k: arguments.arg(tape, scope, v, seen) for k, v in kwargs.items()} if kwargs else {}
        )
    tape.paused += 1
    try:
        function(made, *plain_all(args), **plain_all(kwargs))
    finally:
        tape.paused -= 1
    kind = type(made)
    node = tape.step(scope, "function", kind.__name__, kind, given, named, glue=True)
    scope.env[id(made)] = (made, Ref(node.id), None)
    if kind not in tape.closed:
        with no_dispatch():
            results.bind(tape, scope, made, node, set())


def method_call(tape, function, owner, args, kwargs) -> Any:
    """A method of a tracked object: one node."""
    scope = tape.top
    known = scope is not None and (
        tape.find(scope, owner) is not None or tape.stow(scope, owner, "cache") is not None
    )
    if not known:
        return function(owner, *args, **kwargs)
    name = function.__name__
    changed = name in libraries.CHANGES
    watch = not changed and not name.startswith(libraries.READS)
    before = deep(owner) if watch else None
    count = len(scope.nodes)
    tape.paused += 1
    try:
        result = function(owner, *plain_all(args), **plain_all(kwargs))
    finally:
        tape.paused -= 1
    if watch:
        changed = deep(owner) != before
    with no_dispatch():
        if not changed and not worth(result):
            del scope.nodes[count:]
            return result
        seen = Seen()
        given = tuple([arguments.arg(tape, scope, a, seen) for a in (owner, *args)])
        named = (
            {k: arguments.arg(tape, scope, v, seen) for k, v in kwargs.items()} if kwargs else {}
        )
        node = tape.step(scope, "method", name, name, given, named)
        node.glue = not tensors_in(result)
        if changed:
            node.impure, node.writes = True, (given[0].id,)
        return results.bind(tape, scope, result, node, {id(t) for t in seen.tensors})


def region(tape, name, function, args, token) -> Step:
    """One end of a ``with torch.no_grad():``."""
    scope = tape.top
    given = args if token is None else (Ref(token.id),)
    node = tape.step(scope, "function", name, function, given, glue=True)
    node.impure = True
    return node


def whole(tape, function, first, args, kwargs, kind, name, target, base, module) -> Any:
    """Run something as one node: what happens inside is not recorded."""
    scope, seen = tape.top, Seen()
    with no_dispatch():
        given = tuple([arguments.arg(tape, scope, a, seen) for a in args])
        named = (
            {k: arguments.arg(tape, scope, v, seen) for k, v in kwargs.items()} if kwargs else {}
        )
        if seen.symbols:
            args, kwargs = plain_all(args), plain_all(kwargs)
        tensors = seen.tensors
        before = [version(t) for t in tensors]
        node = tape.step(scope, kind, name, target, given, named, base)
        node.module = module
    tape.paused += 1
    outer, tape.products = tape.products, [] if kind == "function" else None
    try:
        if seen.odd or tape.how != "real" or kind == "function":
            result = function(*first, *args, **kwargs)
        else:
            with no_dispatch():
                result = function(*first, *args, **kwargs)
    except Exception as error:
        tape.failed(scope, node, error, tensors)
        raise
    finally:
        tape.paused -= 1
        node.inside, tape.products = tuple(tape.products or ()), outer
    with no_dispatch():
        ids = {id(t) for t, v in zip(tensors, before, strict=True) if version(t) != v}
        if ids:
            node.impure = True
            node.writes = tape.written(scope, [t for t in tensors if id(t) in ids])
        if kind == "function":
            nothing(tape, scope, node, result)
        return results.bind(tape, scope, result, node, {id(t) for t in tensors}, ids)


def product(tape, function, args, kwargs, result) -> None:
    """Note a product of tensors that a whole function performed, for whoever counts."""
    plan = operations.plan(function)
    if plan.name in operations.PRODUCTS and isinstance(result, torch.Tensor):
        given = tuple(facts(t) for t in tensors_in((args, kwargs or {})))
        equation = next((a for a in args if isinstance(a, str)), None)
        tape.products.append((plan.name, given, facts(result), equation))


def nothing(tape, scope: OpenScope, node: Step, result: Any) -> None:
    """A function answered ``None`` or not: "no mask needed" is a decision of this run."""
    if result is None:
        node.glue = True
        tape.decide(scope, "none", None, True, node.id, node.frames)
    elif node.type.startswith("create_"):
        tape.decide(scope, "none", None, False, node.id, node.frames)
