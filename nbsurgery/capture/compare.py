"""Two runs of one model compared: what tracked numbers cannot see, as in ``table[x.shape[0]]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nbsurgery.capture import frames
from nbsurgery.graph import Graph, Node, Ref, Specialisation


def compare(first: Graph, second: Graph) -> tuple[Specialisation, ...]:
    """Name what differs between the recordings of two examples of different size.

    A recording that is general has the same nodes with the same literal arguments for both. What
    differs was decided by the example, whether or not the run could see it.

    Args:
        first, second: Graphs of one model, captured on two examples.

    Returns:
        One specialisation for each place: ``value`` is the pair of what the two runs had there, its
        kind is ``"constant"`` for a literal and ``"compare"`` where the runs took other ways.
    """
    found: list[Specialisation] = []
    for key in dict.fromkeys((*first.scopes, *second.scopes)):
        if key in first.scopes and key in second.scopes:
            found += _scopes(first, second, key)
        else:
            owner = first if key in first.scopes else second
            if owner.parent(key) in first.scopes and owner.parent(key) in second.scopes:
                caller = owner.by_id[owner.scopes[key].caller]
                runs = (key in first.scopes, key in second.scopes)
                found.append(_told("compare", f"{caller.name} is called", runs, caller))
    return tuple(found)


def _scopes(first: Graph, second: Graph, key: str) -> Iterator[Specialisation]:
    left, right = ([n for n in g.scopes[key].nodes if n.kind != "input"] for g in (first, second))
    for a, b in zip(left, right, strict=False):
        if (a.id, a.kind, a.type) != (b.id, b.kind, b.type):
            yield _told("compare", frames.spell(a.frames) or a.name, (a.name, b.name), a)
            return
        for x, y in _differences((a.args, dict(a.kwargs)), (b.args, dict(b.kwargs))):
            yield _told("constant", frames.spell(a.frames) or a.name, (x, y), a)
    if len(left) != len(right):
        rest = (left if len(left) > len(right) else right)[min(len(left), len(right))]
        counts = (len(left), len(right))
        yield _told("compare", frames.spell(rest.frames) or rest.name, counts, rest)


def _differences(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(a, Ref) or isinstance(b, Ref):
        if a != b:
            yield a, b
    elif isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        for x, y in zip(a, b, strict=True):
            yield from _differences(x, y)
    elif isinstance(a, Mapping) and isinstance(b, Mapping) and list(a) == list(b):
        for k in a:
            yield from _differences(a[k], b[k])
    elif isinstance(a, slice) and isinstance(b, slice):
        yield from _differences((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    elif isinstance(a, (int, float, str, tuple, list, Mapping, type(None))) and a != b:
        yield a, b


def _told(kind: str, expression: str, value: Any, node: Node) -> Specialisation:
    frame = node.frames[-1] if node.frames else None
    source = frame.place if frame else ""
    return Specialisation(kind, expression, value, source, node.scope, node.id, frame)
