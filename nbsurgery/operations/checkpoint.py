"""checkpoint: a module's activations are computed again in the backward pass instead of kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..claims import SameOutput
from ..draft import Draft
from ..edits import Edit, Place, class_imports
from ..errors import StepError
from ..expression import spell
from ..graph import Node
from ..paths import each, nested
from ..targets import resolve, spelled_where
from .base import Offer, Operation, need


@dataclass(frozen=True)
class Checkpoint(Edit):
    """A subclass whose forward is checkpointed, put on the modules: keys and attributes stay."""

    paths: tuple[str, ...]

    def lines(self, place: Place) -> list[str]:
        place.need("from torch.utils.checkpoint import checkpoint")
        lines: list[str] = []
        by_class: dict[type, list[str]] = {}
        for path in self.paths:
            by_class.setdefault(type(place.model.get_submodule(path)), []).append(path)
        for cls, paths in by_class.items():
            place.need(*class_imports(cls))
            name = f"Checkpointed{cls.__name__.lstrip('_')}"
            place.define(
                f"class {name}({spell(cls)}):\n"
                f'    """{cls.__name__} whose activations are computed again in the backward pass."""\n\n'
                "    def __call__(self, *args, **kwargs):\n"
                "        return checkpoint(super().__call__, *args, use_reentrant=False, **kwargs)"
            )
            if len(paths) == 1:
                lines.append(f"{place.spelled(paths[0])}.__class__ = {name}")
                continue
            heads, here = each(place.model, paths, place.variable)
            lines += nested(heads, [f"{here}.__class__ = {name}"])
        return lines

    def without(self, gone: Callable[[str], bool]) -> Edit | None:
        paths = tuple(p for p in self.paths if not gone(p))
        return replace(self, paths=paths) if paths else None


class CheckpointOperation(Operation):
    """Checkpoint ``where``, without re-entering (a frozen prefix then still gives gradients)."""

    name = "checkpoint"
    order = 65
    takes = ("where",)
    neutral = True

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if not nodes or any(n.kind != "module" or n.child is None for n in nodes):
            return []
        paths = list(dict.fromkeys(n.target for n in nodes))
        where = paths if len(paths) > 1 else paths[0]
        return [
            Offer(self.name, "Checkpoint: save memory in training", "Train", (), {"where": where},
                  len(paths), "the forward runs again in the backward pass")
        ]  # fmt: skip

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        targets = resolve(draft, need(arguments, "where", self.name), lambda n: _whole(draft, n))
        paths: list[str] = []
        for target in targets:
            path = target.node.target
            if not _whole(draft, target.node):
                new = target.node.kind == "module" and " was put there by an earlier step and"
                raise StepError(
                    f"{target.node.name!r}{new or ''} cannot be checkpointed; name modules of the model"
                )
            if any(
                r.key and draft.graph.scopes[r.key].path == path for r in draft.rewires.values()
            ):
                raise StepError(
                    f"{path!r} gets a class of its own by an earlier step; checkpoint the module "
                    "around it, or what is inside"
                )
            cls = type(draft.model.get_submodule(path))
            if "<locals>" in cls.__qualname__:
                raise StepError(f"the class {cls.__name__} of {path!r} cannot be named in code")
            paths.append(path)
        if not draft.edits and not draft.rewires:
            draft.claims[step] = SameOutput()
        shown = ", ".join(paths) if len(paths) <= 4 else f"{paths[0]} … {paths[-1]} ({len(paths)})"
        draft.edits.append(
            Checkpoint(
                step,
                f"checkpoint {shown}: less memory in training, one more forward pass there",
                tuple(paths),
            )  # fmt: skip
        )
        return len(paths)

    def text(self, arguments: Mapping[str, Any]) -> str:
        return f"checkpoint {spelled_where(arguments['where'])}"


def _whole(draft: Draft, node: Node) -> bool:
    """Whether a call is one of a module that no step has made."""
    return node.kind == "module" and draft.is_kept(node.target)


OPERATION = CheckpointOperation()
