"""A part of a model between two borders: which nodes it runs, what crosses into it and out of it.

A border lies after (or before) one node, anywhere in the tree of scopes. Values made before it and
read behind it cross it. A scope that a border runs through is split itself; all others stay whole.
Ids stay: what is computed in one part is, under the same id, an input of the next.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import rewrite, source
from .errors import EmissionError, StepError
from .graph import Graph, Node, Ref, Scope, map_refs


@dataclass(frozen=True)
class Border:
    """A place between two nodes.

    ``chain`` holds node ids from the root inwards: the calls that lead to the scope of the last one.
    The border lies behind the last node, or before it where ``before`` is set.
    """

    chain: tuple[str, ...]
    before: bool = False

    @property
    def inner(self) -> Border | None:
        """The border as the called scope sees it; ``None`` where it does not reach inside."""
        return Border(self.chain[1:], self.before) if len(self.chain) > 1 else None


@dataclass(frozen=True)
class Crossing:
    """What crosses a border, seen from one scope: its inputs still needed, its own values, inner ones."""

    inputs: tuple[str, ...]
    local: tuple[str, ...]
    inner: tuple[str, ...]

    @property
    def made(self) -> tuple[str, ...]:
        """Values that the part before the border has to hand over, besides the scope's inputs."""
        return (*self.local, *self.inner)


@dataclass
class Part:
    """One part of a model: its scopes, of which those that a border runs through are changed.

    ``partial`` maps the key of a scope that is not whole to what is left of it. ``opened`` holds, by
    key, the containers that their caller runs child by child, since more than one value leaves them.
    ``handed`` maps a value made further inside to the call that hands it out alone, ``taken`` the input
    of a container to the values that enter it as one tuple; an opened one takes none. ``first`` is the border that it begins at,
    ``names`` what enters it and earlier parts, by the name that it has there.
    """

    name: str
    graph: Graph
    partial: dict[str, Scope] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    container: Callable[[Scope], bool] = field(default=lambda scope: False, repr=False)
    opened: dict[str, Scope] = field(default_factory=dict)
    handed: dict[str, str] = field(default_factory=dict)
    taken: dict[str, tuple[str, ...]] = field(default_factory=dict)
    first: Border | None = None
    names: dict[str, str] = field(default_factory=dict)
    opening: set[str] = field(default_factory=set, repr=False)

    def tupled(self, scope: Scope, came: Crossing | None) -> bool:
        """Whether a piece takes what crosses as one tuple."""
        if came is None or len(came.inputs) + len(came.made) < 2:
            return False
        if scope.key == "":
            return self.container(scope)
        up = self.graph.parent(scope.key)
        return any(
            k not in self.opening and self.container(self.graph.scopes[k]) for k in (scope.key, up)
        )


def border(graph: Graph, node: Node, before: bool) -> Border:
    """The border after (or before) a node, as far out in the tree as it can be drawn.

    Raises:
        EmissionError: It runs through one of several calls of a module.
    """
    chain = [node]
    while chain[0].scope != "":
        chain.insert(0, graph.by_id[graph.scopes[chain[0].scope].caller])
    while len(chain) > 1:
        scope = graph.scopes[chain[-1].scope]
        body = [n for n in scope.nodes if n.kind not in ("input", "output") and not n.glue]
        edge = body[0] if before else body[-1]
        if edge.id != chain[-1].id:
            break
        chain.pop()
    for node in chain[1:]:
        path = graph.scopes[node.scope].path
        calls = sum(s.path == path for s in graph.scopes.values())
        if calls > 1:
            raise EmissionError(
                f"{path!r} is called {calls} times and cannot end or begin inside of one call: its "
                "class serves all of them; take a place between two of its calls"
            )
    return Border(tuple(n.id for n in chain), before)


def crossing(graph: Graph, key: str, at: Border) -> Crossing:
    """What crosses a border, seen from the scope `key` that it runs through."""
    scope = graph.scopes[key]
    index = rewrite.position(scope, at.chain[0])
    inner = at.inner
    stop = index if inner is not None or at.before else index + 1
    start = index + 1 if inner is not None else stop
    read = {id for n in scope.nodes[start:] for id in n.refs}
    below: tuple[str, ...] = ()
    if inner is not None:
        child = graph.scopes[scope.nodes[index].child]
        deep = crossing(graph, child.key, inner)
        for id in deep.inputs:
            bound = child.bindings.get(id)
            if not isinstance(bound, Ref):
                raise EmissionError(f"{child.key} takes a structure that a border cannot split")
            read.add(bound.id)
        below = deep.made
    inputs = tuple(n.id for n in scope.inputs if n.id in read)
    local = tuple(
        n.id
        for n in scope.nodes[:stop]
        if n.kind not in ("input", "output", "parameter", "constant") and n.id in read
    )
    return Crossing(inputs, local, below)


def part(
    graph: Graph,
    name: str,
    first: Border | None,
    last: Border | None,
    container: Callable[[Scope], bool],
    names: dict[str, str] | None = None,
) -> Part:
    """The part of the model behind the border `first` and up to the border `last`.

    `container` says whether a scope is a plain ``nn.Sequential``: it hands one value on, so what it
    calls takes several values as one tuple. `names` holds what enters earlier parts; it is added to.

    Raises:
        StepError: Nothing runs between the two.
        EmissionError: A border runs through something that cannot be split.
    """
    chain = last is None or _carries(graph, "", last, container)
    made = Part(
        name,
        graph,
        container=lambda s: container(s) and (chain or s.key != ""),
        first=first,
        names={} if names is None else names,
    )
    root = _piece(graph, "", first, last, made)
    made.partial[""] = root
    made.inputs = tuple(n.id for n in root.inputs)
    if last is not None:
        cross = crossing(graph, "", last)
        made.outputs = (*cross.inputs, *cross.made)
    if not any(n.kind in ("module", "function", "method") and not n.glue for n in root.nodes):
        raise StepError(f"nothing runs in {name!r}: the borders lie on the same place")
    made.graph = graph.with_scopes(made.partial)
    return made


def leading(graph: Graph, last: Border) -> tuple[Graph, tuple[str, ...]]:
    """What runs before a border, to be evaluated: its output is what crosses, under these ids."""
    made = Part("", graph)
    made.partial[""] = _piece(graph, "", None, last, made)
    cross = crossing(graph, "", last)
    return graph.with_scopes(made.partial), (*cross.inputs, *cross.made)


def _carries(graph: Graph, key: str, last: Border, container: Callable[[Scope], bool]) -> bool:
    """Whether a container hands on all that crosses by its last child alone; other scopes always do."""
    scope = graph.scopes[key]
    if not container(scope):
        return True
    cross = crossing(graph, key, last)
    if len(cross.inputs) + len(cross.made) < 2:
        return True
    if cross.local or (key == "" and cross.inputs):
        return False
    child = graph.by_id[last.chain[0]].child
    return last.inner is None or _carries(graph, child, last.inner, container)


def _runs_open(graph: Graph, key: str, last: Border, container: Callable[[Scope], bool]) -> bool:
    """Whether a container has to be run child by child, since a value leaves it on the way."""
    if not container(graph.scopes[key]):
        return False
    if crossing(graph, key, last).local:
        return True
    return last.inner is not None and _runs_open(
        graph, graph.by_id[last.chain[0]].child, last.inner, container
    )


def _piece(graph: Graph, key: str, first: Border | None, last: Border | None, made: Part) -> Scope:
    scope = graph.scopes[key]
    if scope.opaque:
        raise EmissionError(f"{key or 'the root'} cannot be split: {scope.opaque}")
    begin, end = 0, len(scope.nodes)
    if first is not None:
        at = rewrite.position(scope, first.chain[0])
        begin = at if first.inner is not None or first.before else at + 1
    if last is not None:
        at = rewrite.position(scope, last.chain[0])
        end = at if last.inner is None and last.before else at + 1
    came = crossing(graph, key, first) if first is not None else None
    body = [n for n in scope.nodes[begin:end] if n.kind not in ("input", "output")]
    nodes: list[Node] = []
    for node in body:
        inside_first = first.inner if first is not None and node.id == first.chain[0] else None
        inside_last = last.inner if last is not None and node.id == last.chain[0] else None
        if inside_first is None and inside_last is None:
            nodes.append(node)
            continue
        child = graph.scopes[node.child]
        opened = inside_last is not None and _runs_open(
            graph, child.key, inside_last, made.container
        )
        if inside_first is not None and opened:
            opened = len(_handed_out(graph, child.key, inside_first, inside_last)) > 1
        if opened:
            made.opening.add(child.key)
        made.partial[child.key] = _piece(graph, child.key, inside_first, inside_last, made)
        if opened:
            nodes += _opened(made, scope, child)
            continue
        args = node.args, node.kwargs
        if inside_first is not None:
            deep = crossing(graph, child.key, inside_first)
            given = (*(child.bindings[i] for i in deep.inputs), *(Ref(i) for i in deep.made))
            if made.container(scope) and made.tupled(
                scope, came
            ):  # the tuple goes through as it came
                given = (Ref(f"{key}#values"),)
            elif made.tupled(child, deep):
                given = (given,)
            args = (given, {})
        out = _handed_out(graph, child.key, inside_first, inside_last)
        call = node.with_(args=args[0], kwargs=args[1], calls=1, call=1)
        nodes.append(call.with_(outputs=()) if len(out) == 1 else call)
        if len(out) == 1:
            made.handed[out[0]] = call.id
        elif out:
            for id in out:
                made.handed.pop(id, None)  # from here on it has a node of its own again
            nodes += [
                Node(id, key, "function", f"{node.name}.getitem", "getitem", operator.getitem,
                     (Ref(call.id), i), outputs=graph.by_id[id].outputs, glue=True)
                for i, id in enumerate(out)
            ]  # fmt: skip
    inputs = _inputs(graph, scope, came, made.names)
    parts: tuple[Node, ...] = ()
    if made.tupled(scope, came):
        whole = Node(f"{key}#values", key, "input", "values", "input", "values", step=0,
                     facts={"items": len(inputs)})  # fmt: skip
        made.taken[whole.id] = tuple(n.id for n in inputs)
        if not made.container(scope):
            parts = tuple(
                Node(n.id, key, "function", str(n.target), "getitem", operator.getitem,
                     (Ref(whole.id), i), outputs=n.outputs, glue=True, step=0)
                for i, n in enumerate(inputs)
            )  # fmt: skip
        inputs = (whole,)
    have = {n.id for n in (*inputs, *parts, *nodes)}
    wanted = {r for n in nodes for r in n.refs}
    constants = [
        n for n in scope.nodes if n.kind in ("parameter", "constant") and n.id in wanted - have
    ]
    out = scope.output
    if out is None:
        raise StepError(f"scope {key!r} has no output: its run failed")
    if last is not None:
        cross = crossing(graph, key, last)
        ids = (*cross.inputs, *cross.made) if key == "" else _handed_out(graph, key, first, last)
        refs = tuple(Ref(made.handed.get(i, i)) for i in ids)
        value: Any = refs[0] if len(refs) == 1 else refs
        out = out.with_(args=(value,), facts={**out.facts, "returns": "border"})
    if first is not None:
        out = out.with_(facts={**out.facts, "begins": "border"})
    piece = scope.with_(nodes=(*inputs, *parts, *constants, *nodes, out), stowaways=())
    if first is not None:
        bindings: Mapping[str, Any] = {
            **{i: scope.bindings[i] for i in came.inputs if i in scope.bindings},
            **{i: Ref(i) for i in came.made},
        }
        piece = piece.with_(bindings=bindings)
    missing = {r for n in piece.nodes for r in n.refs} - {n.id for n in piece.nodes}
    if missing:
        raise EmissionError(f"{key or 'the root'} reads values that do not cross the border")
    stay = _decided(graph) | rewrite.buffer_writes(scope)  # a buffer may have crossed
    if key != "":
        stay |= rewrite.input_writes(scope)  # the caller may read on what it gave
    piece = rewrite.without_dead(piece, decided=stay)
    idle = not any(n.kind == "module" for n in piece.nodes)
    if idle and made.container(scope) and made.tupled(scope, came):
        raise EmissionError(
            f"{key or 'the root'} runs nothing behind the border, and could not pick one of the values "
            "that cross it"
        )
    return piece


def _decided(graph: Graph) -> set[str]:
    """Calls that gave ``None``: text makes them again where they stand in it, and guards that."""
    return {d.node for d in graph.specialisations if d.kind == "none" and d.value}


def _handed_out(
    graph: Graph, key: str, first: Border | None, last: Border | None
) -> tuple[str, ...]:
    """What a piece that is called makes for those behind it; what only passes by stays outside."""
    if last is None:
        return ()
    came = crossing(graph, key, first).made if first is not None else ()
    return tuple(i for i in crossing(graph, key, last).made if i not in came)


def _opened(made: Part, scope: Scope, child: Scope) -> list[Node]:
    """The calls of a container's children, in the scope that calls the container."""
    piece = made.partial.pop(child.key)
    made.opened[child.key] = piece
    bound = {**child.bindings, **piece.bindings}
    return [
        n.with_(
            scope=scope.key,
            args=map_refs(n.args, lambda r: bound.get(r.id, r)),
            kwargs=map_refs(n.kwargs, lambda r: bound.get(r.id, r)),
        )
        for n in piece.nodes
        if n.kind not in ("input", "output")
    ]


def _inputs(
    graph: Graph, scope: Scope, came: Crossing | None, names: dict[str, str]
) -> tuple[Node, ...]:
    """The inputs of a piece: the scope's own, or what crosses into it under good names.

    What enters a whole part is shown among the nodes of all parts, so it is called like none of them.
    """
    if came is None:
        return scope.inputs
    own = [n for n in scope.inputs if n.id in came.inputs]
    taken = {str(n.target) for n in own}
    made = []
    for id in came.made:
        node = graph.by_id[id]
        wanted = _variable(graph.scopes[node.scope], node)
        if scope.key == "" and not _free(graph, names, wanted, id):
            last = node.name.rpartition(".")[2]
            wanted = last if last.isidentifier() and _free(graph, names, last, id) else wanted
            others = {n for n in (*graph.by_name, *names) if not _free(graph, names, n, id)}
        else:
            others = set()
        name = rewrite.unique_name(wanted, taken | others)
        names[name] = id if scope.key == "" else names.get(name, id)
        taken.add(name)
        made.append(
            Node(id, scope.key, "input", name, "input", name, outputs=node.outputs, value=node.value,
                 step=0, frames=node.frames)
        )  # fmt: skip
    return (*own, *made)


def _free(graph: Graph, names: Mapping[str, str], name: str, id: str) -> bool:
    """Whether nothing but the value `id` goes by a name."""
    known = graph.by_name.get(name)
    return names.get(name, id) == id and (known is None or known.id == id)


def _variable(scope: Scope, node: Node) -> str:
    """A name for a value that becomes an argument: of the layer that made it, else the author's."""
    name = source.variable(scope, node) if node.kind in ("function", "method") else None
    if name is not None and name.isidentifier():
        return name
    last = [p for p in node.name.split(".") if not p.isdigit()]
    name = "".join(c if c.isalnum() else "_" for c in (last[-1] if last else "x"))
    if not name or name[0].isdigit():
        name = f"x{name}"
    return {"add": "out", "getitem": "part", "input": "x"}.get(name, name)


def chain_of(scope: Scope) -> list[Node] | None:
    """The nodes of a scope that only passes one value on from call to call; else ``None``.

    Calls of modules, each once, and ``flatten``: what an ``nn.Sequential`` can say.
    """
    tensors = [n for n in scope.inputs]
    if len(tensors) != 1 or scope.output is None:
        return None
    at, chain, seen = tensors[0].id, [], set()
    for node in scope.nodes:
        if node.kind in ("input", "output"):
            continue
        if node.glue or node.refs != (at,) or node.kwargs and node.kind == "module":
            return None
        if node.kind == "module":
            name = node.target[len(scope.path) + 1 :] if scope.path else node.target
            if node.args != (Ref(at),) or node.target in seen or "." in name:
                return None
            seen.add(node.target)
        elif flat_from(node) is None:
            return None
        chain.append(node)
        at = node.id
    return chain if scope.output.args[:1] == (Ref(at),) and chain else None


def flat_from(node: Node) -> int | None:
    """The first axis that a ``flatten`` to the end flattens; ``None`` for anything else."""
    if node.type != "flatten" or node.kind not in ("function", "method"):
        return None
    rest = [a for a in node.args[1:]]
    start = rest[0] if rest else node.kwargs.get("start_dim", 0)
    end = rest[1] if len(rest) > 1 else node.kwargs.get("end_dim", -1)
    return start if end == -1 and isinstance(start, int) else None
