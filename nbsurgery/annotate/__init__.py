"""Facts about captured nodes: each annotation is one file, `annotate` runs them all.

An annotation is a function from a `Subject` (the graph, the model, the modules behind its nodes) to
facts by node id; whole-model totals come beside them.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from torch import nn

from nbsurgery.annotate import macs, memory, parameters
from nbsurgery.annotate.subject import Subject
from nbsurgery.graph import Graph

_ALL = (parameters, macs, memory)


def annotate(graph: Graph, model: nn.Module) -> Graph:
    """The same graph with facts on its nodes.

    They are ``params``, ``trainable``, ``macs`` and ``activation_bytes``.

    Leaf calls, parameters read and functions carry their own numbers; the call of a scope carries
    what its subtree has.
    """
    before = gc.isenabled()
    gc.disable()  # a full collection in the middle takes longer than the counting
    try:
        return _annotate(graph, model)
    finally:
        if before:
            gc.enable()


def _annotate(graph: Graph, model: nn.Module) -> Graph:
    subject = Subject(graph, model)
    found: dict[str, dict] = {}
    totals: dict = dict(graph.totals)
    for annotation in _ALL:
        by_node, whole = annotation.measure(subject)
        for name, values in by_node.items():
            for id, value in values.items():
                found.setdefault(id, {})[name] = value
        totals.update(whole)
    scopes = {}
    for key, scope in graph.scopes.items():
        nodes = tuple(
            n.with_(facts=_merged(n.facts, found[n.id])) if n.id in found else n
            for n in scope.nodes
        )
        scopes[key] = scope.with_(nodes=nodes)
    return Graph(scopes, graph.specialisations, graph.how, graph.failure, MappingProxyType(totals))


def _merged(noted: Mapping[str, Any], found: Mapping[str, Any]) -> Mapping[str, Any]:
    """The facts of a node: what capture noted for counting has been counted."""
    return MappingProxyType({**{k: v for k, v in noted.items() if k != "inside"}, **found})
