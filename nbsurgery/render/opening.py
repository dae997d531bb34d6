"""Which modules are open at first: the stages of the model, and one block to look into."""

from __future__ import annotations

from collections import Counter

from ..graph import Graph
from .levels import Levels

_CONTAINERS = ("Sequential", "ModuleList", "SequentialList")
_FEW = 6


def default_open(graph: Graph, budget: int = 120) -> frozenset[str]:
    """Choose the scopes that a first look opens.

    Opened are chains that consist of modules mostly (a ResNet's stages), modules that hold most of
    the model (a wrapper, an encoder), and one block of the kind that the model repeats.

    Args:
        graph: The captured model.
        budget: Items that the picture may show, runs counted as one.

    Returns:
        Keys of scopes, ancestors included.
    """
    levels = Levels.of(graph)
    whole = max(levels.size(""), 1)
    calls = Counter(scope.type for scope in graph.scopes.values())
    open = {""}
    shown = _items(levels, "")
    queue = [""]
    while queue:
        for key in _children(levels, queue.pop(0)):
            cost = _items(levels, key)
            if shown + cost > budget:
                continue
            # what a model repeats often is a block, even where it is a chain
            stage = graph.scopes[key].type in _CONTAINERS or calls[graph.scopes[key].type] <= _FEW
            if (stage and _is_stage(levels, key)) or levels.size(key) > 0.5 * whole:
                open.add(key)
                queue.append(key)
                shown += cost
    block = _block(levels, open)
    if block is not None and shown + _items(levels, block) <= max(budget, 40):
        open.add(block)
    return frozenset(open - {""})


def _children(levels: Levels, key: str) -> list[str]:
    return [n.child for n in levels.level(key).nodes if n.child in levels.graph.scopes]


def _items(levels: Levels, key: str) -> int:
    """Items that an open scope adds, like neighbours counted as one."""
    total, last = 0, None
    for node in levels.level(key).nodes:
        like = levels.likeness(node.child) if node.child in levels.graph.scopes else None
        if like is None or like != last:
            total += 1
        last = like
    return total


def _is_stage(levels: Levels, key: str) -> bool:
    """Whether a scope is a plain chain with at least half of it modules that hold something."""
    level = levels.level(key)
    inner = [c for c in _children(levels, key) if levels.size(c) > 1]
    if len(inner) < 1 or 2 * len(inner) < len(level.nodes):
        return False
    into = Counter(e.target for e in level.edges)
    return all(into[n.id] <= 1 for n in level.nodes)


def _block(levels: Levels, open: set[str]) -> str | None:
    """The first closed scope of the class that holds most of the model in several calls."""
    closed = [c for key in open for c in _children(levels, key) if c not in open]
    order = {key: i for i, key in enumerate(levels.graph.scopes)}
    closed.sort(key=lambda key: order.get(key, 0))
    held: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for key in closed:
        type = levels.graph.scopes[key].type
        held[type] += levels.size(key)
        calls[type] += 1
    for type, _ in held.most_common():
        for key in closed:
            if levels.graph.scopes[key].type == type and levels.size(key) >= 3:
                return key
    return None
