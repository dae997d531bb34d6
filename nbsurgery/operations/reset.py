"""reset_parameters: weights drawn anew, by each layer's own rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..draft import Draft
from ..edits import Edit, Place
from ..errors import StepError, an
from ..graph import Node
from ..targets import resolve, spelled_where, unpacked
from .base import Offer, Operation, need


@dataclass(frozen=True)
class Reset(Edit):
    """``module.reset_parameters()`` of a layer, or of all layers inside a module."""

    path: str
    leaf: bool

    def lines(self, place: Place) -> list[str]:
        here = place.spelled(self.path)
        if self.leaf:
            return [f"{here}.reset_parameters()"]
        return [
            f"for module in {here}.modules():",
            '    if hasattr(module, "reset_parameters"):',
            "        module.reset_parameters()",
        ]


class ResetParameters(Operation):
    """Draw the weights of ``where`` anew."""

    name = "reset_parameters"
    order = 70
    takes = ("where",)

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if not nodes or any(n.kind != "module" or n.target in draft.made for n in nodes):
            return []
        paths = [n.target for n in nodes if _resettable(draft, n.target)]
        if not paths:
            return []
        where = paths if len(paths) > 1 else paths[0]
        return [
            Offer(
                self.name,
                "New weights: drawn as for a new layer",
                "Train",
                (),
                {"where": where},
                len(paths),
            )
        ]

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        targets = resolve(
            draft, unpacked(draft, need(arguments, "where", self.name)),
            lambda n: n.kind == "module" and _resettable(draft, n.target),
        )  # fmt: skip
        for target in targets:
            if target.node.kind != "module":
                raise StepError(
                    f"{target.node.name!r} is {an(target.node.kind)}; it has no weights"
                )
            path = target.node.target
            if not _resettable(draft, path):
                raise StepError(f"{path!r} holds no layer that can draw its weights anew")
            module = draft.module(path)
            count = sum(p.numel() for p in module.parameters())
            leaf = hasattr(module, "reset_parameters") and not any(True for _ in module.children())
            draft.edits.append(
                Reset(step, f"{path}: {count:,} weights drawn anew; the old ones go", path, leaf)
            )
        return len(targets)

    def text(self, arguments: Mapping[str, Any]) -> str:
        return f"draw the weights of {spelled_where(arguments['where'])} anew"


def _resettable(draft: Draft, path: str) -> bool:
    try:
        return any(hasattr(m, "reset_parameters") for m in draft.module(path).modules())
    except (StepError, AttributeError):
        return False


OPERATION = ResetParameters()
