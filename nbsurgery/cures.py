"""What would make a refused step fit: other ways to ask for it, each tried before it is named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from .draft import Draft
from .errors import SurgeryError
from .fitting import misfit
from .graph import Node
from .operations import OPERATIONS
from .targets import resolve
from .widths import LAYERS, torch_class, widths

_TRIES = 6  # layers that are tried one by one


def cure(before: Draft, operation: str, arguments: Mapping[str, Any]) -> str:
    """How to ask for what a step was to do, where its shapes do not meet; empty where nothing helps.

    Args:
        before: What the steps before it made.
        operation: The step.
        arguments: Its arguments.
    """
    failed = _drafted(before, operation, arguments)
    node = misfit(failed) if failed is not None else None
    if node is None:  # what the run found cannot be seen here, so nothing can be tried either
        return ""
    for other, given, why in _others(before, failed, node, operation, arguments):
        trial = _drafted(before, other, given)
        if trial is not None and misfit(trial) is None:
            where = given["where"]
            rest = "".join(f", {k}={v!r}" for k, v in given.items() if k != "where")
            return f"surgery.{other}({where!r}{rest}) {why}"
    return ""


def _drafted(before: Draft, operation: str, arguments: Mapping[str, Any]) -> Draft | None:
    trial = before.copy()
    try:
        OPERATIONS[operation].apply(trial, 0, arguments)
    except SurgeryError:
        return None
    return trial


def _others(
    before: Draft, failed: Draft, node: Node, operation: str, arguments: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Other steps that may do it: their arguments, and what they do beside what was asked for."""
    if operation not in ("replace", "set") or "where" not in arguments:
        return
    paths = [t.path for t in resolve(before, arguments["where"]) if t.path is not None]
    if len(paths) == 1 and isinstance(failed.made.get(paths[0]), LAYERS):
        old, made = before.module(paths[0]), failed.made[paths[0]]
        (old_in, old_out), (ins, outs) = (
            widths(m) if isinstance(m, LAYERS) else (0, 0) for m in (old, made)
        )
        if isinstance(old, type(made)) and ins != old_in:
            yield "channels", {"where": paths[0], "inputs": ins}, "adapts what enters, too"
            if isinstance(arguments.get("new"), str):
                side = "in_features" if isinstance(made, nn.Linear) else "in_channels"
                text = re.sub(rf"\b{ins}\b", f"old.{side}", arguments["new"], count=1)
                yield operation, {**arguments, "new": text}, "reads what reaches it"
        if isinstance(old, type(made)) and outs != old_out:
            given = {"where": paths[0], "outputs": outs, "follow": True}
            yield "channels", given, "changes what must follow, too"
    partners = _partners(before, node, paths) if paths else []
    for partner in partners:
        given = {**arguments, "where": [*paths, partner]}
        yield operation, given, "does both in one step"


def _partners(draft: Draft, node: Node, paths: list[str]) -> list[str]:
    """Layers of the same class before the operation where the shapes do not meet, the nearest first."""
    kinds = tuple(torch_class(draft.module(p)) for p in paths)
    if nn.Module in kinds:  # classes of one's own have nothing in common
        return []
    graph, seen = draft.graph, set()
    found: dict[str, None] = {}
    todo = list(graph.inputs_of(node.id)) if node.id in graph.by_id else []
    while todo and len(found) < _TRIES:
        source = graph.by_id[todo.pop(0)]
        if source.id in seen:
            continue
        seen.add(source.id)
        # a layer of an author's own class is a scope
        path = source.target if source.kind == "module" else draft.scope_of(source).path
        if isinstance(draft.module(path), kinds) and path not in paths:
            found[path] = None
        todo += graph.inputs_of(source.id)
    return list(found)
