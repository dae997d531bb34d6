"""Pure edits of one scope's graph: insert, bypass, re-return, drop what is dead, open a child.

Every function takes frozen data and gives new frozen data back. Node ids of the base graph stay as
they are; nodes that an edit makes get ids of the step that makes them (``"@7#0"``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from .errors import EmissionError, StepError
from .graph import Graph, Node, Ref, Scope, built_item, iter_refs, map_refs


def renamed(scope: Scope, change: Callable[[str], Any], only: Iterable[str] | None = None) -> Scope:
    """The scope with references changed: ``change(id)`` gives a `Ref` or another argument.

    Args:
        scope: The scope to edit.
        change: From the id that is read now to what shall be read.
        only: Ids of the nodes whose arguments change; all by default.
    """
    wanted = None if only is None else set(only)

    def edit(node: Node) -> Node:
        if wanted is not None and node.id not in wanted:
            return node
        args = map_refs(node.args, lambda r: change(r.id))
        kwargs = map_refs(node.kwargs, lambda r: change(r.id))
        return node.with_(args=args, kwargs=kwargs)

    return scope.with_(nodes=tuple(edit(n) for n in scope.nodes))


def reading(scope: Scope, old: str, new: str, *, only: Iterable[str] | None = None) -> Scope:
    """The scope in which those who read `old` read `new`."""
    return renamed(scope, lambda id: Ref(new if id == old else id), only)


def position(scope: Scope, id: str) -> int:
    """Where node `id` stands in the scope's order."""
    for index, node in enumerate(scope.nodes):
        if node.id == id:
            return index
    raise StepError(f"{id!r} is not (or no longer) part of scope {scope.key or 'the root'!r}")


def position_after(scope: Scope, id: str) -> int:
    """Where a new node stands that reads node `id`: behind it, and behind all inputs."""
    index = position(scope, id) + 1
    while scope.nodes[index : index + 1] and scope.nodes[index].kind == "input":
        index += 1
    return index


def placed(scope: Scope, node: Node, index: int) -> Scope:
    """The scope with `node` at position `index`."""
    return scope.with_(nodes=(*scope.nodes[:index], node, *scope.nodes[index:]))


def insert_after(scope: Scope, anchor: str, node: Node) -> Scope:
    """Put `node`, which reads `anchor`, behind it: whoever read the anchor later reads the new node."""
    index = position_after(scope, anchor)
    users = [n.id for n in scope.nodes[index:] if anchor in n.refs]
    return placed(reading(scope, anchor, node.id, only=users), node, index)


def kept(scope: Scope, id: str, clone: str, step: int) -> Scope:
    """The scope with a clone of the value of node `id`, under the id `clone`, made at once."""
    node = scope.by_id[id]
    made = Node(
        clone, scope.key, "method", f"{node.name}.clone", "clone", "clone", (Ref(id),),
        outputs=node.outputs[:1], step=step,
    )  # fmt: skip
    return placed(scope, made, position_after(scope, id))


def insert_before(scope: Scope, user: str, source: str, node: Node) -> Scope:
    """Put `node`, which reads `source`, on the edge from `source` to `user`; others keep reading."""
    changed = reading(scope, source, node.id, only=[user])
    return placed(changed, node, position(changed, user))


def exchanged(scope: Scope, node: Node) -> Scope:
    """The scope with the node of the same id exchanged."""
    position(scope, node.id)
    return scope.with_(nodes=tuple(node if n.id == node.id else n for n in scope.nodes))


def bypassed(scope: Scope, id: str, source: str) -> Scope:
    """The scope without node `id`: whoever read it reads `source`."""
    changed = reading(scope, id, source)
    return scope.with_(nodes=tuple(n for n in changed.nodes if n.id != id))


def mirrored(old: Scope, new: Scope, other: Scope, name: Callable[[str], str]) -> Scope:
    """Another call of the same module with the edit that made `new` of `old`.

    Args:
        old: A call that ran the same operations as `other`, before the edit.
        new: It with the edit.
        other: The call to edit.
        name: Gives a new node a public name of its own.
    """
    pairs = list(zip(old.nodes, other.nodes, strict=True))
    ids = {a.id: b.id for a, b in pairs}
    children = {a.child: b.child for a, b in pairs if a.child is not None}

    def renamed_id(id: str) -> str:
        if id in ids:
            return ids[id]
        key, _, number = id.rpartition("#")
        return f"{children[key]}#{number}" if key in children else f"{id}@{other.key}"

    def copied(node: Node) -> Node:
        known = other.by_id.get(ids.get(node.id, ""))
        if known is not None and node == old.by_id[node.id]:
            return known
        args, kwargs = map_refs((node.args, node.kwargs), lambda r: Ref(renamed_id(r.id)))
        made = node.with_(
            id=renamed_id(node.id), scope=other.key, args=args, kwargs=kwargs,
            writes=tuple(map(renamed_id, node.writes)), child=children.get(node.child),
        )  # fmt: skip
        if known is None:
            return made.with_(name=name(node.name))
        same = node.outputs == old.by_id[node.id].outputs
        return made.with_(name=known.name, outputs=known.outputs if same else node.outputs)

    return other.with_(nodes=tuple(map(copied, new.nodes)))


def returning(
    scope: Scope, value: Any, fresh: Iterable[str] | None = None, effects: bool = False
) -> Scope:
    """The scope whose output is the structure `value` of references, without what is then dead.

    Args:
        scope: The scope to edit.
        value: What it shall return.
        fresh: Ids whose value is meant as it was when it was made: a later write in place does not
            stay for the output's sake. All of `value` by default.
        effects: Whether what is written into buffers behind the last node that `value` needs stays;
            what is written before always does.
    """
    out = scope.output
    if out is None:
        raise StepError(f"scope {scope.key!r} has no output: its run failed")
    ids = {r.id for r in iter_refs(value)} if fresh is None else set(fresh)
    told = {**out.facts, "returns": "edited"}  # emission: what was decided later does not matter
    ends = exchanged(scope, out.with_(args=(value,), facts=told))
    if effects:
        return without_dead(ends, ids)
    bare = without_dead(ends, ids, effects=False)
    last = max((position(ends, n.id) for n in bare.nodes if n.kind not in _STILL), default=0)
    before = {n.id for n in ends.nodes[:last]} & buffer_writes(ends)
    return without_dead(ends, ids, False, before)


def without_dead(
    scope: Scope, fresh: Iterable[str] = (), effects: bool = True, decided: Container[str] = ()
) -> Scope:
    """The scope without nodes that nothing needs.

    Inputs stay. A write in place is alive while what it overwrites is read by someone alive, or came
    from outside; a call of a module is dead when nobody reads it; other impure nodes stay. For values
    in `fresh` the output does not count as a reader of later writes. With `effects` a write into a
    buffer, or into an object that was given, stays (``self.steps += 1``), whoever reads it; nodes in
    `decided` stay in any case.
    """
    early = set(fresh)
    by_id, shared = scope.by_id, _shared(scope)
    users: dict[str, set[str]] = {n.id: set() for n in scope.nodes}
    for node in scope.nodes:
        for id in node.refs:
            users.setdefault(id, set()).add(node.id)
    alive: set[str] = {n.id for n in scope.nodes if n.kind in ("input", "output")}
    alive |= {n.id for n in scope.nodes if n.id in decided}
    alive |= {n.id for n in scope.nodes if n.impure and not n.writes and n.kind != "module"}
    if effects:
        alive |= buffer_writes(scope)
    while True:
        before = len(alive)
        for node in reversed(scope.nodes):
            if node.id in alive:
                alive.update(node.refs)
            elif any(
                w in alive and _matters(by_id.get(w), node, users, alive, scope, early, effects)
                for w in _overwritten(node, shared)
            ):
                alive.add(node.id)
        if len(alive) == before:
            break
    return scope.with_(nodes=tuple(n for n in scope.nodes if n.id in alive))


def buffer_writes(scope: Scope) -> set[str]:
    """The nodes that may write into what a module keeps."""
    shared = _shared(scope)
    read = {n.id for n in scope.nodes if n.kind == "parameter"}
    return {n.id for n in scope.nodes if n.writes and read & _overwritten(n, shared)}


def input_writes(scope: Scope) -> set[str]:
    """The nodes that may overwrite what the scope was given."""
    shared, given = _shared(scope), {n.id for n in scope.inputs}
    return {n.id for n in scope.nodes if n.writes and given & _overwritten(n, shared)}


_STILL = ("input", "output", "parameter", "constant")


def _matters(
    target: Node | None,
    write: Node,
    users: dict,
    alive: set,
    scope: Scope,
    early: set,
    effects: bool,
) -> bool:
    """Whether a write into `target` is seen by somebody who runs after it."""
    if target is None:
        return False
    if effects and target.kind == "parameter":
        return True
    if target.kind == "input" and not target.outputs and target.value is None:
        return effects  # an object that was given, such as a cache, is the caller's
    at = position(scope, write.id)
    readers = set(users.get(target.id, ()))
    if target.id in early and scope.output is not None:
        readers.discard(scope.output.id)
    return any(u in alive and position(scope, u) > at for u in readers)


def overwritten_later(scope: Scope, id: str) -> Node | None:
    """The first node that overwrites the value of node `id` in place after it was made.

    A write into something that may share the value's memory counts.
    """
    shared = _shared(scope)
    for node in scope.nodes[position(scope, id) + 1 :]:
        if id in _overwritten(node, shared):
            return node
    return None


def written_inputs(scope: Scope) -> list[str]:
    """The inputs that something in the scope may overwrite in place."""
    shared = _shared(scope)
    found = {id for n in scope.nodes for id in _overwritten(n, shared)}
    return [n.id for n in scope.inputs if n.id in found]


def _overwritten(node: Node, shared: dict[str, set[str]]) -> set[str]:
    """Every value that a node may overwrite: what it writes, and what shares memory with that."""
    return {other for w in node.writes for other in shared.get(w, {w})}


def _shared(scope: Scope) -> dict[str, set[str]]:
    """Values that may share memory, by each of them: views, and what is handed on after a write."""
    found: dict[str, set[str]] = {}
    for node in scope.nodes:
        base = node.refs[:1] if node.type in _VIEWS else node.writes[:1]
        if not base and node.facts.get("same") in node.refs:  # dropout in eval mode
            base = (node.facts["same"],)
        together = found.get(base[0], {base[0]}) if base else set()
        together.add(node.id)
        for id in (*base, node.id):
            found[id] = together
    return found


_VIEWS = {
    "view", "reshape", "flatten", "permute", "transpose", "squeeze", "unsqueeze", "getitem",
    "expand", "contiguous", "detach", "alias", "Identity", "Dropout", "Dropout2d", "chunk", "split",
    "unbind", "narrow", "select", "t", "T",
}  # fmt: skip


def inline(graph: Graph, scope: Scope, call: str) -> Scope:
    """Open the child scope that node `call` calls: its operations take the place of the call.

    Args:
        graph: Holds the child's scope (possibly edited).
        scope: The scope that holds the call.
        call: Id of the call node.

    Returns:
        The scope with the child's nodes in it. Their ids stay, so that a node of the child is found
        again under the same id; their frames are put behind the frames of the call.

    Raises:
        EmissionError: The child is opaque, or hands over a value that cannot be followed.
    """
    node = scope.by_id[call]
    child = graph.scopes[node.child]
    if child.opaque:
        raise EmissionError(f"{child.key} cannot be opened: {child.opaque}")
    taken = {inp.id: child.bindings.get(inp.id, inp.value) for inp in child.inputs}
    inner: list[Node] = []

    def follow(ref: Ref) -> Any:
        return taken.get(ref.id, ref)

    for n in child.nodes:
        if n.kind in ("input", "output"):
            continue
        args, kwargs = map_refs(n.args, follow), map_refs(n.kwargs, follow)
        if n.glue and n.type == "getitem" and args and not isinstance(args[0], Ref):
            taken[n.id] = args[0][
                args[1]
            ]  # the argument was a literal tuple: read its part at once
            continue
        inner.append(
            n.with_(
                scope=scope.key,
                args=args,
                kwargs=kwargs,
                frames=(*node.frames, *n.frames),
                writes=tuple(taken[w].id if isinstance(taken.get(w), Ref) else w for w in n.writes),
            )
        )
    result = map_refs(child.output.args[0], follow)
    at = position(scope, call)
    rest = list(scope.nodes[at + 1 :])
    value: dict[str, Any] = {call: result}
    built = {n.id: n for n in inner if n.glue}
    tail: list[Node] = []
    for n in rest:
        args = map_refs(n.args, lambda r: value.get(r.id, r))
        kwargs = map_refs(n.kwargs, lambda r: value.get(r.id, r))
        if n.glue and n.type in ("getitem", "getattr") and args and not isinstance(args[0], Ref):
            if call in n.refs or any(id in value for id in n.refs):
                try:
                    part = args[0][args[1]] if n.type == "getitem" else getattr(args[0], args[1])
                except (KeyError, IndexError, TypeError, AttributeError) as error:
                    raise EmissionError(
                        f"{child.key} cannot be opened: the reader {n.name!r} of its result "
                        "cannot be followed"
                    ) from error
                value[n.id] = part
                continue
        if n.glue and n.type in ("getitem", "getattr") and len(args) == 2:
            whole = built.get(args[0].id) if isinstance(args[0], Ref) else None
            if whole is not None and (part := built_item(whole, args[1])) is not None:
                value[n.id] = part  # of an output object that was just made: no need to unpack it
                continue
        writes = tuple(value[w].id if isinstance(value.get(w), Ref) else w for w in n.writes)
        tail.append(n.with_(args=args, kwargs=kwargs, writes=writes))
    return scope.with_(nodes=(*scope.nodes[:at], *inner, *tail))


def rebound(child: Scope, before: Node, after: Node) -> Scope:
    """A child scope whose call reads other values now: its bindings follow.

    Args:
        child: The scope that is called.
        before, after: The call node, before and after the edit of the caller.
    """
    old = list(iter_refs((before.args, before.kwargs)))
    new = list(iter_refs((after.args, after.kwargs)))
    if len(old) != len(new) or old == new:
        return child
    moved = {o.id: n for o, n in zip(old, new, strict=True)}
    bindings = {k: map_refs(v, lambda r: moved.get(r.id, r)) for k, v in child.bindings.items()}
    return child.with_(bindings=bindings)


def unique_name(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, or `wanted` with the smallest number that makes it new: ``norm``, ``norm_2``, …"""
    taken = set(taken)
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
