"""A captured model as people's own DOT: nested clusters, shapes and counts, for any Graphviz."""

from __future__ import annotations

import re

import graphviz

from ..errors import EngineError
from ..graph import Graph, Node
from . import style
from .engine import find_engine
from .levels import Levels


def to_graphviz(graph: Graph, depth: int | None = 2) -> graphviz.Digraph:
    """Write a model as a graph of the ``graphviz`` package, to be styled and rendered at will.

    Modules down to `depth` are clusters; what lies deeper is one box. Every node's name in the DOT
    text is the name that it has in Python; characters that mean something to Graphviz are ``_``.

    Args:
        graph: The captured model.
        depth: How many levels of modules are opened; ``None`` opens all, 0 none.

    Returns:
        A `graphviz.Digraph`: ``.source`` is its text, and it shows itself in a notebook; ``.render()``
        needs a Graphviz of your own.

    Example:
        >>> to_graphviz(graph, depth=1).save("model.dot")  # doctest: +SKIP
    """
    return _Writer(graph, depth).run()


class Digraph(graphviz.Digraph):
    """A graph that a notebook can show without a Graphviz on the system: by the engine in use here."""

    def _repr_mimebundle_(self, include=None, exclude=None, **kwargs):
        engine = find_engine()
        if engine is None:
            return {"text/plain": self.source}
        try:
            return {"image/svg+xml": engine.render(self.source).decode("utf-8")}
        except EngineError:  # too large a graph: its text says more than a traceback
            return {"text/plain": self.source}


_MEANING = re.compile(r"""^%|[:\\"<>]|&(?=[#\w]+;)""")


class _Writer:
    def __init__(self, graph: Graph, depth: int | None):
        self.graph, self.depth = graph, float("inf") if depth is None else depth
        self.levels = Levels.of(graph)
        self.names: dict[str, str] = {}  # node id → name in the DOT text
        self.home: dict[str, str] = {}  # flat or drawn node id → the id of what shows it
        self.used: set[str] = set()
        self.clusters = 0

    def run(self) -> graphviz.Digraph:
        root = Digraph(
            name=graphviz.escape(self.graph.root.type),
            graph_attr={"rankdir": "TB", "fontname": "Helvetica", "nodesep": "0.25"},
            node_attr={
                "shape": "box",
                "style": "rounded,filled",
                "fillcolor": "#ffffff",
                "color": "#8792a4",
                "fontname": "Helvetica",
                "fontsize": "10",
                "margin": "0.12,0.06",
                "height": "0.3",
            },
            edge_attr={"color": "#8792a4", "arrowsize": "0.6", "fontname": "Helvetica"},
        )
        self.scope(root, "", 0)
        for source, target in self.edges():
            root.edge(source, target)
        return root

    def scope(self, into: graphviz.Digraph, key: str, depth: int) -> None:
        level = self.levels.level(key)
        for node in level.nodes:
            child = node.child if node.child in self.graph.scopes else None
            if child is not None and depth < self.depth and self.levels.size(child) > 0:
                scope = self.graph.scopes[child]
                count = style.count(self.levels.params(child))
                text = f"{_short(scope.path)} ({scope.type})" + (
                    f", {count} params" if count else ""
                )
                self.clusters += 1
                with into.subgraph(name=f"cluster_{self.clusters}") as cluster:
                    cluster.attr(
                        label=_label(text),
                        labeljust="l",
                        fontsize="10",
                        style="rounded,filled",
                        color="#cdd6e3",
                        fillcolor=("#f6f8fb", "#eef2f7", "#e7ecf3")[depth % 3],
                    )
                    self.scope(cluster, child, depth + 1)
                continue
            self.node(into, node, child)

    def node(self, into: graphviz.Digraph, node: Node, child: str | None) -> None:
        name = _word(node.name or node.id)
        while name in self.used:
            name += "_"
        self.used.add(name)
        self.names[node.id] = name
        if child is not None:
            outputs = self.levels.scope_outputs(child)
            params = self.levels.params(child)
            self.claim(child, node.id)
        else:
            outputs = node.outputs
            params = (node.facts.get("params") or 0) if node.kind == "module" else 0
            reads = self.levels.level(node.scope).folded.get(node.id, ())
            params += sum({str(r.target): r.facts.get("params") or 0 for r in reads}.values())
        self.home[node.id] = node.id
        first = (
            node.name if node.kind in ("input", "output") else f"{_short(node.name)} ({node.type})"
        )
        second = ", ".join(
            t
            for t in (
                self.levels.shape(outputs).replace("×", "x"),  # Graphviz measures ASCII only
                f"{style.count(params)} params" if params else "",
            )
            if t
        )
        label = _label(first, second)
        more = {"color": style.FAMILIES[style.family(node.type)]}
        if node.kind in ("input", "output"):
            more = {"fillcolor": "#0f172a", "fontcolor": "#ffffff", "color": "#0f172a"}
        if child is not None:
            more = {"peripheries": "2"}
        into.node(name, label=label, **more)

    def claim(self, key: str, by: str) -> None:
        """Everything inside a closed scope is shown by the box of its call."""
        for node in self.graph.scopes[key].nodes:
            self.home[node.id] = by
            if node.child in self.graph.scopes:
                self.claim(node.child, by)

    def edges(self) -> list[tuple[str, str]]:
        """From what makes a value to what reads it, through every open border, each pair once."""
        found: dict[tuple[str, str], None] = {}
        for key in self.graph.scopes:
            level = self.levels.level(key)
            for edge in level.edges:
                target = edge.target
                if target is None or self.home.get(target) != target:
                    continue  # leaves the scope, or lies in a closed one: its readers have the edge
                for value in edge.values:
                    source = self.home.get(value)
                    if source is not None and source != target and source in self.names:
                        found.setdefault((self.names[source], self.names[target]))
        return list(found)


def _short(path: str) -> str:
    return path.rpartition(".")[2] or path


def _label(*lines: str) -> str:
    """Lines of plain text as a label: what looks like an escape or like HTML is neither."""
    plain = [graphviz.escape(_clean(line)).replace("&", "&amp;") for line in lines if line]
    return graphviz.nohtml("\\n".join(plain))


def _word(text: str) -> str:
    """A node's name, without what means something in one: ports, quotes, HTML, entities."""
    return _MEANING.sub("_", _clean(text))


def _clean(text: str) -> str:
    """Text that Graphviz and XML can both hold: controls and lone surrogates are question marks."""
    return "".join("?" if c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" else c for c in text)
