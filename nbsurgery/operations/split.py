"""split: one model becomes several, each handing on what the next one needs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..claims import SameOutput
from ..draft import Draft, Piece, batch_of, shape_text
from ..errors import StepError
from ..graph import Node
from ..regions import Border, Part, border, part
from ..targets import call_name, one, spelled_where
from .base import Offer, Operation, need


class Split(Operation):
    """Two modules, or one more than there are nodes in ``after``."""

    name = "split"
    order = 45
    takes = ("after",)

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if not nodes or any(n.kind in ("input", "output", "parameter", "constant") for n in nodes):
            return []
        where = [{"call": call_name(draft.graph, n.id)} for n in nodes]
        return [
            Offer("split", f"Split after: {len(nodes) + 1} modules", "Cut", (),
                  {"after": where if len(where) > 1 else where[0]}, len(nodes))
        ]  # fmt: skip

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        if draft.division is not None:
            raise StepError("the model is divided already; edit that step instead")
        where = need(arguments, "after", "split")
        places = [one(draft, w, "split") for w in (where if isinstance(where, list) else [where])]
        ids = tuple(n.id for n in places)
        divided(draft, ids)  # says at once what is wrong with it
        draft.division = functools.partial(divided, ids=ids)
        if not draft.edits and not draft.rewires:
            draft.claims[step] = SameOutput()
        return len(places)

    def text(self, arguments: Mapping[str, Any]) -> str:
        return f"split after {spelled_where(arguments['after'])}"


def divided(draft: Draft, ids: Sequence[str]) -> tuple[Piece, ...]:
    """The parts between some places, on the graph as the draft has it now."""
    if draft.graph.root.output is None:
        raise StepError("the run of this model failed, so it cannot be split")
    order = {id: i for i, id in enumerate(_finished(draft))}
    for id in ids:
        if id not in order:
            raise StepError("a place where the model is split went with another step")
    places = sorted((draft.node(i) for i in ids), key=lambda n: order[n.id])
    borders = [border(draft.graph, n, before=False) for n in places]
    if len(set(borders)) != len(borders):
        raise StepError("two of the places are the same border; name each once")
    names, suffixes = ["head", "tail"], ["Head", "Tail"]
    if len(places) > 1:
        names = [f"stage_{i + 1}" for i in range(len(places) + 1)]
        suffixes = [f"Stage{i + 1}" for i in range(len(names))]
    edges: list[Border | None] = [None, *borders, None]
    entering: dict[str, str] = {}
    parts = [
        part(draft.graph, name, a, b, draft.is_sequential, entering)
        for name, a, b in zip(names, edges, edges[1:])
    ]
    words = ", ".join(call_name(draft.graph, n.id) for n in places)
    batch = batch_of(draft.base)
    comment = f"split after {words}: " + ", ".join(
        f"{p.name} {_signature(draft, p, batch, i == 0)}" for i, p in enumerate(parts)
    )
    return tuple(
        Piece(p, p.name, suffix, _doc(places, i, len(parts), draft), comment if i == 0 else "")
        for i, (p, suffix) in enumerate(zip(parts, suffixes))
    )


def _finished(draft: Draft, key: str = "") -> Iterator[str]:
    """The calls in the order in which they end: behind what runs inside them."""
    for node in draft.graph.scopes[key].nodes:
        if node.child in draft.graph.scopes:
            yield from _finished(draft, node.child)
        yield node.id


def _signature(draft: Draft, p: Part, batch: int | None, first: bool) -> str:
    """``(N, 3, 224, 224) → (N, 512, 28, 28)``; later parts only say what they give."""
    entering = [draft.graph.by_id[i] for i in p.inputs if i in draft.graph.by_id]
    given = [shape_text(draft.shape(n), batch) for n in entering if n.shape]
    out = p.outputs or [draft.graph.inputs_of(draft.graph.root.output.id)[0]]
    made = [shape_text(draft.shape(draft.graph.by_id[i]), batch) for i in out]
    text = " and ".join(made)
    return f"{' and '.join(given)} → {text}" if first else f"→ {text}"


def _doc(places: Sequence[Node], i: int, count: int, draft: Draft) -> str:
    names = [f"`{call_name(draft.graph, n.id)}`" for n in places]
    if i == 0:
        return f"up to {names[0]}"
    if i == count - 1:
        return f"what follows {names[-1]}"
    return f"from {names[i - 1]} up to {names[i]}"


OPERATION = Split()
