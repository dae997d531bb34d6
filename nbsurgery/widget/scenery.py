"""The picture's side of the widget: what is open, what changed, and plain data for the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nbsurgery import explain, render
from nbsurgery.graph import Graph, Node
from nbsurgery.select import glob_pattern


def compose(graph: Graph, open: set[str], diff: Mapping[str, str]) -> dict:
    """The scene of a graph; the one place where the widget reaches the renderer."""
    return render.compose(graph, open, diff=diff)


def facts(graph: Graph, model: Any, names: list[str]) -> dict:
    """What the side panel says of a selection."""
    return plain(explain.facts(graph, model, names))


def below(graph: Graph, key: str) -> list[str]:
    """Keys of every scope inside another."""
    found = []
    for child in graph.children(key):
        found += [child.key, *below(graph, child.key)]
    return found


def first_open(graph: Graph) -> set[str]:
    """What is open in the first picture."""
    return {"", *render.default_open(graph)}


def scene(session: Any, view: str, open: set[str]) -> dict:
    """One of the pictures, with what the edits changed marked."""
    graph, _ = session.models[view]
    diff = removed(session) if view == "before" else added(session, graph)
    whole = _with_scopes(graph, diff, _touched(session) if session.edited else set())
    return compose(graph, {key for key in open if key in graph.scopes}, whole)


def removed(session: Any) -> dict[str, str]:
    """What the steps did to the model as it was, by node id: ``removed`` or ``changed``."""
    if not session.edited:
        return {}
    found = {node.id: "removed" for node in session.base.flat}
    touched = _touched(session)
    for name, (graph, _) in session.models.items():
        for node in graph.flat if name != "before" else ():
            old = session.origin(node)
            if old is not None and found.get(old.id) == "removed":
                del found[old.id]
                if _differ(old, node, touched):
                    found[old.id] = "changed"
    return found


def added(session: Any, graph: Graph) -> dict[str, str]:
    """What the steps made of it, by node id of the result: ``added`` or ``changed``."""
    if graph is session.base:
        return {}
    found: dict[str, str] = {}
    touched = _touched(session)
    for node in graph.flat:
        if node.kind in ("input", "output"):
            continue
        old = session.origin(node)
        if old is None:
            found[node.id] = "added"
        elif _differ(old, node, touched):
            found[node.id] = "changed"
    return found


def _touched(session: Any) -> set[str]:
    """Paths of the modules that the code speaks of: their settings, weights or place change."""
    return {path for edit in session.draft.edits for path in edit.touched}


def _differ(old: Node, new: Node, touched: set[str]) -> bool:
    """Whether a node of the result is not what it was."""
    kinds = [(n.type, n.facts.get("params"), n.facts.get("trainable")) for n in (old, new)]
    at = old.kind == "module" and old.target in touched
    return old.kind not in ("input", "output") and (at or kinds[0] != kinds[1])


def _with_scopes(graph: Graph, diff: Mapping[str, str], touched: set[str]) -> dict[str, str]:
    """The same with the scopes around: all added or all removed, else changed."""
    whole: dict[str, str] = {}
    for key in graph.scopes:
        if key and graph.scopes[key].path in touched:
            whole[key] = "changed"
        if key:
            inside = [diff.get(node.id) for node in operations(graph, key)]
            words = set(inside)
            if words - {None}:
                one = len(words) == 1 and words <= {"added", "removed"}
                whole[key] = words.pop() if one else "changed"
    return {**diff, **whole}


def operations(graph: Graph, key: str) -> list[Node]:
    """The operations of a scope and of all inside it."""
    found: list[Node] = []
    for node in graph.scopes[key].nodes:
        if node.child in graph.scopes:
            found += operations(graph, node.child)
        elif not node.glue and node.kind not in ("input", "output"):
            found.append(node)
    return found


def plain(value: Any) -> Any:
    """A value as JSON-able data: dataclasses and mappings become dicts, what is unknown its text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_dict"):
            return plain(value.to_dict())
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def find(graph: Graph, query: str, limit: int = 200) -> list[str]:
    """Names and scope keys that a person may mean: all words occur in name or type, names first.

    A word with ``*`` is a glob for the whole name, as in the steps.
    """
    words = query.lower().split()
    if not words:
        return []
    globs = [glob_pattern(word) for word in words if "*" in word]
    words = [word for word in words if "*" not in word]
    entries = [(n.name, n.type) for n in graph.flat]
    entries += [(s.key, s.type) for s in graph.scopes.values() if s.key]
    hits: dict[str, tuple] = {}
    for order, (name, type_) in enumerate(entries):
        low, text = name.lower(), f"{name} {type_}".lower()
        if all(word in text for word in words) and all(glob.fullmatch(low) for glob in globs):
            exact = low != query.lower()
            last = low.rpartition(".")[2] not in words  # c_attn: the layer before what it runs
            hits.setdefault(name, (exact, last, not all(word in low for word in words), order))
    return sorted(hits, key=hits.__getitem__)[:limit]
