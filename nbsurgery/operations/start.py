"""start: the model begins at a node; the values that cross into it become its inputs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ..claims import SameOutput
from ..draft import Draft, Piece, batch_of, camel, conjoined, shape_text
from ..errors import StepError
from ..graph import Node
from ..regions import Border, border, part
from ..targets import call_name, one, spelled_where
from .base import Offer, Operation, need
from .cut import parameters


class Start(Operation):
    """Everything before ``at`` goes, with its parameters."""

    name = "start"
    order = 42
    takes = ("at",)

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if len(nodes) != 1 or nodes[0].kind in ("input", "output", "parameter", "constant"):
            return []
        where = {"call": call_name(draft.graph, nodes[0].id)}
        return [Offer("start", "Start here: drop what comes before", "Cut", (), {"at": where}, 1)]

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        if draft.division is not None:
            raise StepError("the model is divided already; edit that step instead")
        node = one(draft, need(arguments, "at", "start"), "start")
        if node.kind == "output":
            raise StepError("nothing runs after the output; start at a node before it")
        if node.kind == "input":
            raise StepError(f"{node.name!r} is where the model begins already")
        begun(draft, node.id)  # says at once what is wrong with it
        draft.division = functools.partial(begun, id=node.id)
        if not draft.edits and not draft.rewires:
            draft.claims[step] = SameOutput()
        return 1

    def text(self, arguments: Mapping[str, Any]) -> str:
        return f"start at {spelled_where(arguments['at'])}"


def begun(draft: Draft, id: str) -> tuple[Piece, ...]:
    """What is left when the model begins at a node, on the graph as the draft has it now."""
    if draft.graph.root.output is None:
        raise StepError("the run of this model failed, so nothing can be left out")
    if id not in {n.id for n in draft.live_nodes()}:
        raise StepError("the place where the model begins went with another step")
    node = draft.node(id)
    before = parameters(draft)
    first = border(draft.graph, node, before=True)
    if _nothing_before(draft, first):
        raise StepError(
            f"nothing runs before {call_name(draft.graph, id)!r}: it begins there already"
        )
    made = part(draft.graph, "model", first, None, draft.is_sequential)
    trial = draft.copy()
    trial.graph = made.graph
    lost = before - parameters(trial)
    kept = {n.target for n in trial.live_nodes() if n.kind == "module"}
    gone = [
        path for n in draft.live_nodes()
        if n.kind == "module" and draft.exists(n.target)
        for path in _from_outside(n.target)
        if not any(k == path or k.startswith(path + ".") for k in kept)
    ]  # fmt: skip
    batch, name = batch_of(draft.base), call_name(draft.graph, node.id)
    inputs = [
        f"`{n.target}`" + (f" {shape_text(draft.shape(n), batch)}" if draft.shape(n) else "")
        if n.id not in made.taken
        else " and ".join(shape_text(draft.shape(draft.node(i)), batch) for i in made.taken[n.id])
        + " in a tuple"
        for n in made.partial[""].inputs
    ]
    comment = f"start at {name}: takes {conjoined(inputs)}" + (
        f"; {lost:,} parameters before it go" if lost else ""
    )
    suffix, doc = f"From{camel(name)}", f"from `{name}` on"
    return (Piece(made, "", suffix, doc, comment, gone[0] if gone else ""),)


def _nothing_before(draft: Draft, first: Border) -> bool:
    """Whether the model begins at a border already."""
    nodes = itertools.takewhile(lambda n: n.id != first.chain[0], draft.graph.root.nodes)
    ran = any(n.kind in ("module", "function", "method") and not n.glue for n in nodes)
    return len(first.chain) == 1 and not ran


def _from_outside(path: str) -> list[str]:
    """``a``, ``a.b``, ``a.b.c``: a path and what it lies in, the outermost first."""
    parts = path.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts) + 1)]


OPERATION = Start()
