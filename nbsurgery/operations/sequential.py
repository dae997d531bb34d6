"""sequential: a model that is a chain becomes an ``nn.Sequential``, under the same keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from ..claims import SameOutput
from ..draft import Draft, Piece
from ..errors import EmissionError, StepError
from ..graph import Node
from ..regions import Part, chain_of
from .base import Offer, Operation


class Sequential(Operation):
    """The root's own forward, said as a chain of its children."""

    name = "sequential"
    order = 80
    takes = ()

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if nodes or draft.division is not None or chain_of(draft.graph.root) is None:
            return []
        return [Offer(self.name, "Write the model as nn.Sequential", "Change", (), {}, 1)]

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        if draft.division is not None:
            raise StepError("the model is divided already; there is no whole to write as a chain")
        chained(draft)  # says at once what is wrong with it
        draft.division = chained
        if not draft.edits and not draft.rewires:
            draft.claims[step] = SameOutput()
        return 1

    def text(self, arguments: Mapping[str, Any]) -> str:
        return "write the model as nn.Sequential"


def chained(draft: Draft) -> tuple[Piece, ...]:
    """The whole model as one part that is a chain, on the graph as the draft has it now."""
    root = draft.graph.root
    if type(draft.model) is nn.Sequential and not draft.rewires:
        raise StepError("the model is an nn.Sequential already")
    if root.opaque:
        raise EmissionError(f"the model cannot be written as a chain: {root.opaque}")
    if chain_of(root) is None:
        odd = next(
            (n for n in root.nodes if not n.glue and n.kind not in ("input", "output")
             and (len(n.refs) != 1 or n.kind != "module" and n.type != "flatten")),
            None,
        )  # fmt: skip
        why = f": {odd.name!r} ({odd.type}) is no layer with one input" if odd is not None else ""
        raise StepError(f"the model is no chain of layers{why}")
    made = Part("model", draft.graph, {"": root}, container=lambda scope: False)
    comment = (
        f"{root.type} → nn.Sequential; the state_dict keys are unchanged, so checkpoints still load"
    )
    return (Piece(made, "", "Chain", "as a chain", comment),)


OPERATION = Sequential()
