"""What an edit changed in a scope, as differences that the author's text can take: insert, feed, replace, remove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..graph import Node, Ref, Scope, iter_refs, map_refs
from .expressions import Writer
from .turns import is_item_of_twin


@dataclass(frozen=True)
class Change:
    """One difference between the scope before and after the edit.

    Attributes:
        kind: ``"insert"`` (the value of `node` goes through the new modules), ``"feed"`` (only what
            `node` reads as its argument number `argument` does), ``"replace"`` (`node` is now a call
            of a new module), ``"remove"`` (`node` is now its first argument).
        node: The node of the base scope where it happens.
        attributes: What is called, in that order: ``self.dropout``, ``torch.tanh``.
        whole: For a replacement: whether all arguments of the old call go to the new module.
    """

    kind: str
    node: Node
    attributes: tuple[str, ...] = ()
    argument: int = 0
    whole: bool = True


def turns_of(writer: Writer, node: Node) -> list[Node]:
    """All that the place of a node made: one for each turn of the loops around it."""
    twin = is_item_of_twin(node, writer)
    return [
        n
        for n in writer.nodes
        if n.frames == node.frames
        and n.kind == node.kind
        and is_item_of_twin(n, writer) == twin
        and (not twin or n.args[1:] == node.args[1:])
    ]


def changes(before: Scope, after: Scope, new: set[str], writer: Writer) -> list[Change]:
    """The edit as insertions, replacements and removals of single calls.

    Raises:
        EmissionError: Something else was changed.
    """
    old, now = before.by_id, after.by_id
    made = {n.id: n for n in after.nodes if n.id not in old}
    gone = {n.id: n for n in before.nodes if n.id not in now and not _plumbing(n)}
    anchors = {id: _anchor(node, made, new, writer) for id, node in made.items()}
    found: list[Change] = []

    removed: set[str] = set()

    def resolve(id: str) -> str:
        while id in gone:
            removed.add(id)
            first = gone[id].args[0] if gone[id].args else None
            if not isinstance(first, Ref):
                raise writer.refuse("a call without a first argument was removed")
            id = first.id
        return id

    readers: dict[str, list[tuple[Node, int | None]]] = {}  # new module → who reads it, and where
    for id, node in now.items():
        if id in made:
            continue
        was = old[id]
        replaced = node.target != was.target or node.kind != was.kind
        if replaced:
            found.append(_replacement(was, node, new, writer))
        reads, read = (
            list(iter_refs((was.args, was.kwargs))),
            list(iter_refs((node.args, node.kwargs))),
        )
        if replaced and len(read) < len(reads):
            reads = reads[: len(read)]
        if len(reads) != len(read) or (not replaced and _shape(was) != _shape(node)):
            raise writer.refuse(f"{was.name} was changed in a way that is no single call")
        for index, (r, e) in enumerate(zip(reads, read, strict=True)):
            target = e.id
            if target in anchors:
                readers.setdefault(target, []).append((was, index))
                target = anchors[target][0]
            if target not in (r.id, resolve(r.id)):
                raise writer.refuse(f"{was.name} reads another value now")
    found += [Change("remove", gone[id]) for id in gone if id in removed]
    dead = [node for id, node in gone.items() if id not in removed]
    _inside(dead, [c.node for c in found if c.kind in ("remove", "replace")], writer)
    fed = _fed_in_every_turn(anchors, readers, writer)
    for id, (anchor, attributes) in anchors.items():
        if id not in readers:
            continue  # it only feeds a further new module
        if id in fed:
            found.append(_fed(old[anchor], attributes, readers[id], writer))
            continue
        change = _insertion(before, old[anchor], attributes, readers[id], gone, writer)
        if change.kind == "insert" and _written_between(after, anchor, id):
            change = _fed(old[anchor], attributes, readers[id], writer)
        found.append(change)
    return found


def _fed_in_every_turn(anchors: Mapping, readers: Mapping, writer: Writer) -> set[str]:
    """What each turn of a loop puts on the way into one call: what came before it is another place."""

    def whole(places: Mapping[str, Node]) -> set[str]:
        found = set()
        for node in places.values():
            ran = turns_of(writer, node)
            mine = {id for id, other in places.items() if other in ran}
            if len(mine) == len(ran) > 1:
                found |= mine
        return found

    reads = {id: who[0][0] for id, who in readers.items() if len(who) == 1}
    makes = {id: writer.by_id[anchors[id][0]] for id in readers}
    return whole(reads) - whole(makes)


def _inside(dead: list[Node], around: list[Node], writer: Writer) -> None:
    """What nobody reads any more must stand in an expression that goes, else it would still run."""
    for node in dead:
        file, written = writer.written(node)
        goes = any(
            other.frames[:-1] == node.frames[:-1] and file.holds(writer.written(other)[1], written)
            for other in around
            if written is not None
        )
        if not goes:
            raise writer.refuse(f"{node.name} would run for nothing")


def _plumbing(node: Node) -> bool:
    return node.glue or node.kind in ("parameter", "constant", "input")


def _shape(node: Node) -> str:
    """The arguments without what they refer to."""
    return repr(map_refs((node.args, dict(node.kwargs)), lambda ref: Ref("")))


def _anchor(node: Node, made: dict, new: set[str], writer: Writer) -> tuple[str, tuple[str, ...]]:
    """The base node whose value reaches a new module, and the new modules on the way."""
    attributes: list[str] = []
    while True:
        called = _called(node, new, writer)
        if called is None or len(node.args) != 1 or node.kwargs:
            raise writer.refuse(f"{node.name} is no call of something new on one value")
        attributes.insert(0, called)
        first = node.args[0]
        if not isinstance(first, Ref):
            raise writer.refuse(f"{node.name} reads no value of the run")
        if first.id not in made:
            return first.id, tuple(attributes)
        node = made[first.id]


def _called(node: Node, new: set[str], writer: Writer) -> str | None:
    """The text of what a new node calls: a new module, or a function that can be imported."""
    if node.kind == "function" and node.step is not None and not node.frames:
        return writer.refer(node.target)
    name = writer.below(node.target) if node.kind == "module" else None
    if name is None or name.partition(".")[0] not in new:
        return None
    return writer.new_one(name)


def _replacement(was: Node, node: Node, new: set[str], writer: Writer) -> Change:
    name = _called(node, new, writer)
    if name is None:
        raise writer.refuse(f"{was.name} became something else than a call of something new")
    whole = len(node.args) == len(was.args) and dict(node.kwargs).keys() == dict(was.kwargs).keys()
    if not whole and (len(node.args) != 1 or node.kwargs):
        raise writer.refuse(f"{was.name} got other arguments")
    return Change("replace", was, (name,), whole=whole)


def _insertion(before, anchor, attributes, readers, gone, writer) -> Change:
    """An insertion after a value where all its readers go through it, else on one argument."""
    everyone = [
        (n.id, i)
        for n in before.nodes
        if n.id not in gone
        for i, ref in enumerate(iter_refs((n.args, n.kwargs)))
        if ref.id == anchor.id and not (n.glue and not n.outputs)
    ]
    if {(n.id, i) for n, i in readers} >= set(everyone):
        return Change("insert", anchor, attributes)
    return _fed(anchor, attributes, readers, writer)


def _written_between(after: Scope, anchor: str, new: str) -> bool:
    """Whether something is overwritten between a value and the call that takes it."""
    order = [n.id for n in after.nodes]
    between = after.nodes[order.index(anchor) + 1 : order.index(new)]
    return any(n.writes for n in between)


def _fed(anchor: Node, attributes, readers, writer: Writer) -> Change:
    """An insertion on one argument of one reader."""
    if len(readers) == 1:
        reader, index = readers[0]
        places = [
            k
            for k, arg in enumerate(reader.args)
            if isinstance(arg, Ref) and arg == list(iter_refs((reader.args, reader.kwargs)))[index]
        ]
        if places:
            return Change("feed", reader, attributes, argument=places[0])
    raise writer.refuse(f"only some readers of {anchor.name} read the new module")
