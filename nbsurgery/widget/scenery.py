"""The picture's side of the widget: what is open, what changed, and plain data for the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from nbsurgery.graph import Graph


def compose(graph: Graph, open: set[str]) -> dict:
    """The scene of a graph; the one place where the widget reaches the renderer."""
    from nbsurgery import render

    return render.compose(graph, open)


def facts(graph: Graph, model: Any, names: list[str]) -> dict:
    """What the side panel says of a selection."""
    from nbsurgery import explain

    return plain(explain.facts(graph, model, names))


def below(graph: Graph, key: str) -> list[str]:
    """Keys of every scope inside another."""
    found = []
    for child in graph.children(key):
        found += [child.key, *below(graph, child.key)]
    return found


def first_open(graph: Graph, limit: int) -> set[str]:
    """What is open in the first picture: the root, and its children where they stay few."""
    children = [c.key for c in graph.children("")]
    drawn = sum(_drawn(graph, key) for key in ("", *children))
    return {"", *children} if drawn <= limit else {""}


def _drawn(graph: Graph, key: str) -> int:
    return sum(not n.glue and n.kind not in ("input", "output") for n in graph.scopes[key].nodes)


def scene(session: Any, view: str, open: set[str]) -> dict:
    """The picture before or after the edits, with what the edits changed marked."""
    base, current = session.base, session.current
    graph = base if view == "before" else current
    picture = compose(graph, {key for key in open if key in graph.scopes})
    if base is not current:
        mark(picture["group"], graph, other=base if view == "after" else current, view=view)
    return picture


def mark(group: dict, graph: Graph, *, other: Graph, view: str) -> bool:
    """Write ``diff`` into the items of a group; say whether anything below it differs."""
    word = "added" if view == "after" else "removed"
    changed = False
    for item in group["items"]:
        if item["kind"] == "group":
            differs = mark(item, graph, other=other, view=view)
            if item["scope"] not in other.scopes:
                item["diff"] = word
            elif differs:
                item["diff"] = "changed"
            changed |= item.get("diff") is not None
        elif item["kind"] == "box":
            if item.get("diff") is None:
                item["diff"] = _box_differs(item, graph, other, word)
            changed |= item["diff"] is not None
        elif item["kind"] == "card":
            for row in item["rows"]:
                if row.get("diff") is None:
                    row["diff"] = _row_differs(row["node"], graph, other, word)
                changed |= row["diff"] is not None
    return changed


def _row_differs(name: str, graph: Graph, other: Graph, word: str) -> str | None:
    mine, theirs = graph.by_name.get(name), other.by_name.get(name)
    if mine is None:
        return None
    if theirs is None:
        return word
    same = (mine.type, mine.outputs, mine.facts.get("params")) == (
        theirs.type,
        theirs.outputs,
        theirs.facts.get("params"),
    )
    return None if same else "changed"


def _box_differs(item: dict, graph: Graph, other: Graph, word: str) -> str | None:
    keys = [k for key in item["scopes"] for k in (key, *below(graph, key)) if key in graph.scopes]
    if any(key not in other.scopes for key in item["scopes"]):
        return word
    for key in keys:
        if key not in other.scopes:
            return "changed"
        for node in graph.scopes[key].nodes:
            if node.child is None and not node.glue and node.kind not in ("input", "output"):
                if _row_differs(node.name, graph, other, word):
                    return "changed"
        if len(graph.scopes[key].nodes) != len(other.scopes[key].nodes):
            return "changed"
    return None


def plain(value: Any) -> Any:
    """A value as JSON-able data: dataclasses and mappings become dicts, what is unknown its text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_json"):
            return plain(value.to_json())
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def public(graph: Graph, session: Any) -> Any:
    """What people hold in code; the bare graph as long as there is no view of it."""
    from nbsurgery import views

    return views.ModelGraph(graph, session.model)


def find(graph: Graph, query: str, limit: int = 200) -> list[str]:
    """Names and scope keys that a person may mean: all words occur in name or type, names first."""
    words = query.lower().split()
    if not words:
        return []
    entries = [(n.name, n.type) for n in graph.flat]
    entries += [(s.key, s.type) for s in graph.scopes.values() if s.key]
    hits: dict[str, tuple] = {}
    for order, (name, type_) in enumerate(entries):
        low, text = name.lower(), f"{name} {type_}".lower()
        if all(word in text for word in words):
            exact = low != query.lower()
            hits.setdefault(name, (exact, not all(word in low for word in words), order))
    return sorted(hits, key=hits.__getitem__)[:limit]
