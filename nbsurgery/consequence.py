"""What a step takes away and what it makes of the output, in one sentence, before the step is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from .draft import Draft, batch_of, conjoined, shape_text
from .graph import Graph, Ref, iter_refs
from .operations.cut import parameters
from .targets import call_name, taken_away

MANY = 6  # names that are listed; of more, the first ones and their number


def consequence(before: Draft, after: Draft) -> str:
    """Compare the model without a step and with it.

    Returns:
        ``"layer4, avgpool and fc go, with 17,013,736 parameters; the output is that of layer3,
        (N, 1024, 14, 14)"``; empty where nothing goes and the output is made by the same operation.
    """
    parts = []
    old, new = _left(before), _left(after)
    if names := list(dict.fromkeys(_gone(old, new))):
        lost = parameters(old) - parameters(new)
        some = (
            names if len(names) <= MANY else [*names[: MANY - 1], f"{len(names) - MANY + 1} more"]
        )
        text = f"{conjoined(some)} {'goes' if len(names) == 1 else 'go'}"
        parts.append(text + (f", with {lost:,} parameters" if lost > 0 else ""))
    entering = [_inputs(d) for d in (old, new)]
    if entering[0] != entering[1]:
        parts.append(f"the model is called with {entering[1]}")
    results = [_result(d, old.graph) for d in (old, new)]
    if results[0] != results[1] and results[1]:
        parts.append(f"the output is {results[1]}")
    return "; ".join(parts)


def _left(draft: Draft) -> Draft:
    """The draft with the graph that is left where it begins inside; else the draft itself."""
    pieces = draft.pieces()
    if len(pieces) != 1:
        return draft
    return dataclasses.replace(draft, graph=pieces[0].part.graph, division=None)


def _gone(old: Draft, new: Draft) -> Iterator[str]:
    """Names of what runs in one draft and not in the other, whole modules by theirs."""
    live = [n for n in new.live_nodes() if n.kind != "input" and not taken_away(new, n)]
    left, kept = {n.id for n in live}, {n.target for n in live if n.kind == "module"}

    def walk(key: str) -> Iterator[str]:
        for node in old.graph.scopes[key].nodes:
            if node.glue or node.kind in ("input", "output", "parameter", "constant"):
                continue
            inner = node.child in old.graph.scopes
            if node.id in left or inner and old.graph.within(node.child) & left:
                if inner and (node.id not in left or node.child in new.graph.scopes):
                    yield from walk(node.child)
            elif not taken_away(old, node):
                whole = node.kind == "module" and node.target not in kept
                yield node.target if whole else call_name(old.graph, node.id)

    return walk("")


def _inputs(draft: Draft) -> str:
    nodes = draft.graph.root.inputs
    return _listed([_shaped(draft, str(n.target), n.shape) for n in nodes])


def _listed(parts: list[str]) -> str:
    return conjoined(parts) if 0 < len(parts) <= MANY else f"{len(parts)} values"


def _shaped(draft: Draft, name: str, shape: tuple[int, ...] | None) -> str:
    return name if shape is None else f"{name} {shape_text(shape, batch_of(draft.base))}"


def _result(draft: Draft, names: Graph) -> str:
    """What is returned, in words: each value by the outermost call of `names` that gives it."""
    output = draft.graph.root.output
    if output is None or not output.args:
        return ""
    value = output.args[0]
    if isinstance(value, dict):
        parts = [f"{k} = {_value(draft, v, names)}" for k, v in value.items()]
        kind, many = "a dict", f"a dict of {len(parts)} values"
    else:
        refs = list(iter_refs(value))
        if len(refs) == 1:
            refs = [Ref(id) for id in _sources(draft, refs[0])]
        parts = [_value(draft, ref, names) for ref in refs]
        kind = many = f"{len(parts)} values"
    if len(parts) == 1 and not isinstance(value, dict):
        return f"that of {parts[0]}"
    return f"{kind}: {conjoined(parts)}" if 0 < len(parts) <= MANY else many if parts else ""


def _sources(draft: Draft, ref: Ref) -> tuple[str, ...]:
    """What makes a value that the root sees, past what only stands for something taken out."""
    found = draft.graph.sources("", ref) or (ref.id,)
    node = draft.graph.by_id[found[0]]
    while len(found) == 1 and taken_away(draft, node) and node.refs:
        found = draft.graph.sources(node.scope, Ref(node.refs[0]))
        node = draft.graph.by_id[found[0]]
    return found


def _value(draft: Draft, value: Any, names: Graph) -> str:
    if not isinstance(value, Ref):
        return "several values"
    graph, found = draft.graph, _sources(draft, value)
    node = graph.by_id[found[0] if len(found) == 1 else value.id]
    named, shape = names if node.id in names.by_id else graph, draft.shape(node)
    return _shaped(draft, call_name(named, _outermost(named, node.id)), shape)


def _outermost(graph: Graph, id: str) -> str:
    """The call farthest out that returns just the value of a node."""
    node = graph.by_id[id]
    while node.scope:
        scope = graph.scopes[node.scope]
        if scope.output is None or scope.output.args[:1] != (Ref(node.id),):
            break
        node = graph.by_id[scope.caller]
    return node.id
