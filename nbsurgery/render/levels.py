"""What one scope shows: its drawn operations, the values between them, and its ports.

Plumbing is looked through, parameters fold into the operation that reads them, and a reference that
crosses a border becomes a port on either side of it. Nothing here depends on what is open.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..graph import Graph, Node, Ref, Scope, Tensor, built_item, iter_refs
from . import style

_READ = ("parameter", "constant")
_APART = 4  # a list of more values than this enters through one port, even if it is taken apart
ADDS = frozenset(("add", "iadd", "add_", "radd"))
_SIZES = frozenset(
    [
        "shape",
        "size",
        "dim",
        "ndim",
        "numel",
        "nelement",
        "len",
        "stride",
        "dtype",
        "device",
        "layout",
        "requires_grad",
        "is_cuda",
        "type",
        "element_size",
        "is_floating_point",
        "is_complex",
        "get_device",
        "itemsize",
        "nbytes",
    ]
)


@dataclass(frozen=True, slots=True)
class Edge:
    """A value on its way between two drawn nodes of one scope.

    Attributes:
        source: Node id, or a port through which the value enters the scope (see `entry`).
        target: Node id, or ``None`` for the scope's own output ports.
        values: Ids of the flat nodes that make what passes.
        exit: For a source that is the call of a scope: the value's id, which names its output port.
        entry: For a target that is the call of a scope: its port. That is the input node's id, and
            the value's after a bar where the items of a short list enter one by one.
    """

    source: str
    target: str | None
    values: tuple[str, ...]
    exit: str | None = None
    entry: str | None = None


@dataclass(slots=True)
class Level:
    """One scope, ready to be drawn: see the module's first line."""

    key: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    folded: dict[str, list[Node]] = field(default_factory=dict)
    ins: list[str] = field(default_factory=list)
    outs: list[str] = field(default_factory=list)
    entries: dict[str, dict[str, None]] = field(default_factory=dict)


def _is_size(node: Node) -> bool:
    """Whether plumbing gives a number, a shape or a device, and no data."""
    if node.outputs:
        return False
    if node.type == "getattr":
        return len(node.args) == 2 and node.args[1] in _SIZES
    return node.value is not None or node.type in _SIZES


def _is_access(node: Node) -> bool:
    """Whether a node takes an item or a field out of what it reads."""
    return node.type in ("getitem", "getattr") and len(node.args) == 2


def _plumbing(node: Node) -> bool:
    """Whether a node is looked through."""
    if node.kind in ("input", "output"):
        return False
    return node.glue or (node.kind in ("function", "method") and _is_size(node))


class Levels:
    """The levels of one graph, each made when it is first asked for."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.by_id = graph.by_id
        self._levels: dict[str, Level] = {}
        self._shapes: dict[str, int] = {}
        self._params: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._additions: dict[str, list[tuple[str, str]]] = {}
        self._intern: dict[Any, int] = {}

    @classmethod
    def of(cls, graph: Graph) -> Levels:
        """The levels of `graph`, kept with it."""
        return graph._memo("render.levels", lambda: cls(graph))

    # -- values ---------------------------------------------------------------------------------
    def _producers(self, arg: Any, path: tuple, seen: set) -> Iterator[tuple[Node, tuple]]:
        """The drawn nodes and inputs whose data makes `arg`, within its scope, through plumbing.

        A size that is read is no data: an edge for it would make a chain of what is none.
        """
        if not isinstance(arg, Ref):
            if path and isinstance(arg, (tuple, list, Mapping)):
                try:
                    yield from self._producers(arg[path[-1]], path[:-1], seen)
                    return
                except (KeyError, IndexError, TypeError):
                    pass
            for ref in iter_refs(arg):
                yield from self._producers(ref, (), seen)
            return
        if (arg.id, path) in seen:
            return
        seen.add((arg.id, path))
        node = self.by_id.get(arg.id)
        if node is None:
            return
        if not _plumbing(node):
            yield node, path
        elif _is_size(node):
            return
        elif _is_access(node) and not isinstance(node.args[1], Ref):
            yield from self._producers(node.args[0], (*path, node.args[1]), seen)
        elif path and (item := built_item(node, path[-1])) is not None:
            yield from self._producers(item, path[:-1], seen)
        else:
            for ref in iter_refs((node.args, node.kwargs)):
                yield from self._producers(ref, (), seen)

    def _taken_apart(self, input: str) -> bool:
        """Whether a scope uses the items of one of its inputs one by one: each then has its port."""
        return any(
            _plumbing(n) and n.type in ("getitem", "getattr") and n.outputs and input in n.refs
            for n in self.graph.scopes[self.by_id[input].scope].nodes
        )

    def _values(self, scope: str, node: Node, path: tuple) -> tuple[str, ...]:
        """Flat ids of what `node` gives; parameters are left out, they are drawn where they are read."""
        if node.kind != "input" and (node.child is None or node.child not in self.graph.scopes):
            return (node.id,)
        found = self.graph.sources(scope, Ref(node.id), path)
        return tuple(v for v in found if self.by_id[v].kind not in _READ)

    def level(self, key: str) -> Level:
        """The level of one scope."""
        if (found := self._levels.get(key)) is not None:
            return found
        graph, scope = self.graph, self.graph.scopes[key]
        level = Level(key)
        root = key == ""
        if root:
            allowed = dict.fromkeys(n.id for n in scope.inputs)
        else:
            up = graph.parent(key)
            allowed = self.level(up).entries.get(scope.caller, {}) if up is not None else {}
        drawn = {}
        for node in scope.nodes:
            if node.kind in ("input", "output"):
                continue
            if not _plumbing(node) and node.kind not in _READ:
                drawn[node.id] = node
        edges: dict[tuple, list[str]] = {}

        def connect(target: Node | None, slots: list[tuple[str | None, Any]]) -> None:
            rows = []
            for entry, arg in slots:
                for node, path in self._producers(arg, (), set()):
                    if node.kind in _READ:
                        if target is None:  # a parameter that is returned: nobody else shows it
                            drawn[node.id] = node
                        else:
                            if target.child is None or target.child not in graph.scopes:
                                level.folded.setdefault(target.id, []).append(node)
                            continue
                    values = (node.id,) if node.kind in _READ else self._values(key, node, path)
                    if node.kind == "input" and node.id not in allowed:
                        ports = [(f"{node.id}|{v}", v) for v in values]
                        ports = [(port, v) for port, v in ports if port in allowed]
                        for port, value in ports:
                            rows.append((port, entry, None, (value,)))
                        if not ports and target is not None:
                            self._fold_outer(level, key, node, target)
                        continue
                    if not values:
                        continue
                    if node.child is not None and node.child in graph.scopes:
                        for value in values:
                            rows.append((node.id, entry, value, (value,)))
                    else:
                        rows.append((node.id, entry, None, values))
            into: dict[str | None, dict[str, None]] = {}
            for _, entry, _, values in rows:
                into.setdefault(entry, {}).update(dict.fromkeys(values))
            for source, entry, exit, values in rows:
                if (
                    entry is not None
                    and 1 < len(into[entry]) <= _APART
                    and self._taken_apart(entry)
                ):
                    for value in values:
                        port = f"{entry}|{value}"
                        edges.setdefault((source, target.id, exit, port), []).append(value)
                        level.entries.setdefault(target.id, {}).setdefault(port)
                    continue
                if target is None:
                    for value in values:
                        if value not in level.outs:
                            level.outs.append(value)
                        edges.setdefault((source, None, exit, value), []).append(value)
                    continue
                edges.setdefault((source, target.id, exit, entry), []).extend(values)
                if entry is not None:
                    level.entries.setdefault(target.id, {}).setdefault(entry)

        for node in list(drawn.values()):
            child = graph.scopes.get(node.child) if node.child is not None else None
            if child is not None:
                slots = [
                    (p.id, child.bindings[p.id]) for p in child.inputs if p.id in child.bindings
                ]
                connect(node, slots)
            else:
                connect(node, [(None, (node.args, node.kwargs))])
        output = scope.output
        if output is not None:
            if root:
                drawn[output.id] = output
                connect(output, [(None, (output.args, output.kwargs))])
            else:
                connect(None, [(None, output.args[0] if output.args else None)])
        used = {source for source, _, _, _ in edges}
        if root:
            shown = [n for n in scope.inputs if n.id in used or n.outputs]
            level.nodes = shown + [n for n in drawn.values()]
        else:
            level.ins = [port for port in allowed if port in used]
            level.nodes = [n for n in scope.nodes if n.id in drawn]
        level.edges = [
            Edge(
                source,
                target,
                tuple(dict.fromkeys(values)),
                exit,
                port,
            )
            for (source, target, exit, port), values in edges.items()
        ]
        self._levels[key] = level
        return level

    def _fold_outer(self, level: Level, key: str, node: Node, target: Node) -> None:
        """Fold parameters that were handed to this scope into the operation that reads them."""
        for value in self.graph.sources(key, Ref(node.id)):
            found = self.by_id[value]
            if found.kind in _READ:
                level.folded.setdefault(target.id, []).append(found)

    # -- facts ----------------------------------------------------------------------------------
    @functools.cached_property
    def batch(self) -> int | None:
        """Length of the batch axis: the first input's first axis, if enough of the run shares it."""
        firsts = Counter(
            n.shape[0] for n in self.graph.flat if n.shape is not None and len(n.shape) > 1
        )
        if not firsts:
            return next((n.shape[0] for n in self.graph.root.inputs if n.shape), None)
        for node in self.graph.root.inputs:
            if node.shape and len(node.outputs) == 1:
                if firsts.get(node.shape[0], 0) >= 0.2 * sum(firsts.values()):
                    return node.shape[0]
                break
        return firsts.most_common(1)[0][0]

    def shape(self, outputs: tuple[Tensor, ...]) -> str:
        """The shapes of some tensors, as short as they can be said."""
        texts = [style.shape(t.shape, self.batch) for t in outputs]
        if len(texts) <= 1:
            return texts[0] if texts else ""
        if len(texts) == 2 and sum(map(len, texts)) < 22:
            return ", ".join(texts)
        return f"{texts[0]}, +{len(texts) - 1}"

    def scope_outputs(self, key: str) -> tuple[Tensor, ...]:
        """The tensors that the call of a scope gave back."""
        scope = self.graph.scopes[key]
        caller = self.by_id.get(scope.caller) if scope.caller is not None else None
        if caller is not None and caller.outputs:
            return caller.outputs
        output = scope.output
        if output is None:
            return ()
        if output.outputs:
            return output.outputs
        found = self.graph.sources(key, output.args[0] if output.args else None)
        return tuple(t for v in found for t in self.by_id[v].outputs[:1])

    def params(self, key: str) -> int:
        """Parameters of a scope's modules and reads, each counted once."""
        if key not in self._params:
            scope = self.graph.scopes[key]
            caller = self.by_id.get(scope.caller) if scope.caller is not None else None
            known = caller.facts.get("params") if caller is not None else None
            if known is None:
                seen: dict[Any, int] = {}
                self._collect(scope, seen)
                known = sum(seen.values())
            self._params[key] = known
        return self._params[key]

    def _collect(self, scope: Scope, seen: dict) -> None:
        for node in scope.nodes:
            if node.child is not None and node.child in self.graph.scopes:
                self._collect(self.graph.scopes[node.child], seen)
            elif node.facts.get("params"):
                seen[str(node.target)] = node.facts["params"]

    def size(self, key: str) -> int:
        """How many flat nodes a scope holds."""
        if key not in self._sizes:
            self._sizes[key] = sum(
                self.size(n.child) if n.child in self.graph.scopes else not n.glue
                for n in self.graph.scopes[key].nodes
                if n.kind not in ("input", "output")
            )
        return self._sizes[key]

    def likeness(self, key: str) -> int:
        """A number that two scopes share when they would be drawn alike, apart from names."""
        if key not in self._shapes:
            level, scope = self.level(key), self.graph.scopes[key]
            place = {n.id: i for i, n in enumerate(level.nodes)}
            place.update({p: -1 - i for i, p in enumerate(level.ins)})
            nodes = tuple(
                (
                    n.kind,
                    n.type,
                    tuple(t.shape for t in n.outputs),
                    n.facts.get("params"),
                    len(level.folded.get(n.id, ())),
                    self.likeness(n.child) if n.child in self.graph.scopes else None,
                )
                for n in level.nodes
            )
            edges = tuple((place.get(e.source), place.get(e.target)) for e in level.edges)
            found = (scope.type, scope.opaque is None, nodes, edges)
            self._shapes[key] = self._intern.setdefault(found, len(self._intern))
        return self._shapes[key]

    def additions(self, key: str) -> list[tuple[str, str]]:
        """Pairs of input nodes of a scope of which the first is added as it is to a branch of the second.

        A block whose sum is made in a module of its own (BERT's) has its shortcut around the others.
        """
        if key not in self._additions:
            level, found = self.level(key), []
            into: dict[str, list[Edge]] = {}
            for edge in level.edges:
                if edge.target is not None:
                    into.setdefault(edge.target, []).append(edge)
            for node in level.nodes if len(level.ins) > 1 else ():
                if node.type not in ADDS or len(into.get(node.id, ())) != 2:
                    continue
                for same, other in (into[node.id], into[node.id][::-1]):
                    if same.source not in level.ins or other.source in level.ins:
                        continue
                    behind, queue = set(), [other.source]
                    while queue:
                        for edge in into.get(queue.pop(), ()):
                            if edge.source not in behind:
                                behind.add(edge.source)
                                queue.append(edge.source)
                    main = [p for p in level.ins if p in behind]
                    if main and same.source not in behind:
                        found.append((same.source, main[0]))
            self._additions[key] = found
        return self._additions[key]

    def opaque(self, key: str) -> list[str]:
        """Why scopes at and below `key` cannot be rewritten, a sentence each."""
        scope = self.graph.scopes[key]
        found = [scope.opaque] if scope.opaque else []
        for node in scope.nodes:
            if node.child in self.graph.scopes:
                found += self.opaque(node.child)
        return found
