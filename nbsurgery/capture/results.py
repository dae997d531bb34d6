"""What comes out of an operation, filed under its node: what the model gets to see."""

from __future__ import annotations

import contextlib
import operator
import weakref
from typing import Any

import torch

from nbsurgery.capture.steps import OpenScope, Step
from nbsurgery.capture.symbols import Symbol, plain, track
from nbsurgery.capture.values import alias, facts, is_code, tensors_in, worth
from nbsurgery.graph import Ref


def bind(tape, scope: OpenScope, value: Any, node: Step, taken: set, mutated=(), depth=0) -> Any:
    """File a result under its node; what comes back is what the model gets to see.

    An operation that returns what it was given gets an alias, so that two nodes never share
    one identity. `taken` holds ids of the tensors that went in, `mutated` of those written to.
    """
    kind = type(value)
    if isinstance(value, torch.Tensor):
        key, known = id(value), tape.find(scope, value)
        if key not in mutated and (key in taken or key in tape.tensors or known is not None):
            node.same = node.same if known is None else known.id
            value = alias(value)
        link = weakref.ref(value)
        ref = Ref(node.id)
        scope.env[id(value)] = (link, ref, None)
        tape.homes[id(value)] = (link, scope, ref)
        if not node.outputs:
            node.outputs = (facts(value),)
        return value
    if value is None or kind is bool or kind is str:
        return value
    if isinstance(value, Symbol):
        node.value = plain(value)
        return track(node.value, tape, scope, node.id)
    if kind is int or kind is float:
        node.value = value
        return track(value, tape, scope, node.id)
    if kind is torch.Size:
        items = []
        for i, size in enumerate(value):
            item = tape.step(scope, "function", "getitem", operator.getitem, (Ref(node.id), i))
            item.glue, item.value = True, plain(size)
            items.append(track(int.__int__(size), tape, scope, item.id, i, len(value)))
        result = torch.Size(items)
        scope.env[id(result)] = (result, Ref(node.id), None)
        return result
    if depth > 8:
        return value
    if isinstance(value, tape.closed):
        scope.env[id(value)] = (value, Ref(node.id), None)
        return value
    node.outputs = tuple(facts(t) for t in tensors_in(value))
    if isinstance(value, tuple):
        items = [
            part(tape, scope, v, node, operator.getitem, i, taken, mutated, depth)
            for i, v in enumerate(value)
        ]
        if hasattr(value, "_fields"):
            value = kind(*items)
        elif kind is tuple:
            value = tuple(items)
        else:
            try:
                value = kind(items)
            except (TypeError, ValueError):  # a class of tuple with a constructor of its own
                value = tuple(items)
    elif isinstance(value, list):
        for i, v in enumerate(list.__iter__(value)):
            list.__setitem__(
                value, i, part(tape, scope, v, node, operator.getitem, i, taken, mutated, depth)
            )
    elif isinstance(value, dict):
        for k, v in list(value.items()):
            new = part(tape, scope, v, node, operator.getitem, k, taken, mutated, depth)
            if new is not v:
                value[k] = new
    elif hasattr(value, "__dict__") and not is_code(value):
        for k, v in list(vars(value).items()):
            new = part(tape, scope, v, node, getattr, k, taken, mutated, depth)
            if new is not v:
                with contextlib.suppress(AttributeError, TypeError):  # it guards its attributes
                    object.__setattr__(value, k, new)
    else:
        return value
    tape.bind_object(scope, value, Ref(node.id))
    return value


def part(tape, scope, value, node, how, key, taken, mutated, depth) -> Any:
    """One part of a result, behind a glue node, where it is worth one."""
    if not worth(value):
        return value
    name = "getitem" if how is operator.getitem else "getattr"
    item = tape.step(scope, "function", name, how, (Ref(node.id), key), glue=True)
    return bind(tape, scope, value, item, taken, mutated, depth + 1)
