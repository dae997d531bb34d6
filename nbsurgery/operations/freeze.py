"""freeze and unfreeze: weights that training leaves alone, with a policy for BatchNorm statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..claims import SameOutput
from ..draft import Draft
from ..edits import Edit, Place, class_imports
from ..errors import StepError, an
from ..expression import spell
from ..graph import Node
from ..paths import each, nested, outermost_paths
from ..targets import call_name, one, resolve, spelled_where, unpacked
from .base import Field, Offer, Operation, need

POLICIES = ("frozen", "train")


@dataclass(frozen=True)
class Freeze(Edit):
    """``requires_grad_(False)`` on modules and parameters; frozen statistics stay in eval mode."""

    modules: tuple[str, ...]
    tensors: tuple[str, ...]
    statistics: bool
    on: bool = True

    def lines(self, place: Place) -> list[str]:
        flag = "False" if self.on else "True"
        lines = [f"{place.spelled(p)}.requires_grad_({flag})" for p in self.tensors]
        types = batchnorms(place.model, self.modules) if self.statistics else []
        if not types:
            if len(self.modules) <= 2:
                return [f"{place.spelled(p)}.requires_grad_({flag})" for p in self.modules] + lines
            heads, here = each(place.model, self.modules, place.variable)
            return [*nested(heads, [f"{here}.requires_grad_({flag})"]), *lines]
        place.need("from torch import nn")
        heads, here = each(place.model, self.modules, place.variable)
        if len(self.modules) == 1:
            heads, here = [], place.spelled(self.modules[0])
        body = [f"{here}.requires_grad_({flag})"]
        only = len({spell(t) for t in types}) == 1 and types[0].__module__.startswith("torch.nn")
        body.append(f"for bn in {here}.modules():")
        for kind in types:
            place.need(*class_imports(kind))
            name = f"Frozen{kind.__name__}"
            place.define(
                f"class {name}({spell(kind)}):\n"
                f'    """{kind.__name__} that stays in eval mode whatever `train()` says."""\n\n'
                "    def train(self, mode=True):\n        return super().train(False)"
            )
            test = f"isinstance(bn, {spell(kind)})" if only else f"type(bn) is {spell(kind)}"
            if self.on:
                body += [
                    f"    if {test}:",
                    f"        bn.__class__ = {name}",
                    "        bn.eval()",
                ]
            else:
                body += [
                    f"    if isinstance(bn, {name}):",
                    f"        bn.__class__ = {spell(kind)}",
                    f"        bn.train({place.variable}.training)",
                ]
        return [*nested(heads, body), *lines]

    def reaches(self, path: str) -> bool:
        return any(p == path or path.startswith(f"{p}.") for p in self.modules)

    def without(self, gone: Callable[[str], bool]) -> Edit | None:
        modules = tuple(p for p in self.modules if not gone(p))
        tensors = tuple(p for p in self.tensors if not gone(p))
        return replace(self, modules=modules, tensors=tensors) if modules or tensors else None


def batchnorms(model: nn.Module, paths: Iterable[str]) -> list[type]:
    """The classes of BatchNorm with running statistics inside some modules."""
    found: dict[type, None] = {}
    for path in paths:
        for m in model.get_submodule(path).modules():
            if isinstance(m, _BatchNorm) and m.track_running_stats:
                found.setdefault(type(m))
    return list(found)


class FreezeOperation(Operation):
    """Freeze ``where``, or everything ``until`` a node."""

    name = "freeze"
    order = 60
    takes = ("where", "until", "batchnorm")
    on = True
    neutral = True

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if not nodes:
            return []
        policy = Field(
            "batchnorm", "BatchNorm", "choice", "frozen", POLICIES,
            "frozen: running statistics stay, also after train(); train: they go on moving",
        )  # fmt: skip
        verb = "Freeze" if self.on else "Unfreeze"
        norms = any(isinstance(m, _BatchNorm) for m in draft.model.modules())
        fields = (policy,) if self.on and norms else ()
        found = []
        if all(n.kind == "module" for n in nodes):
            paths = [n.target for n in nodes]
            if any(p.numel() for path in paths for p in self._parameters(draft, path)):
                where = paths if len(paths) > 1 else paths[0]
                found.append(Offer(self.name, verb, "Train", fields, {"where": where}, len(paths)))
        if self.on and len(nodes) == 1 and nodes[0].kind not in ("input", "output"):
            where = {"call": call_name(draft.graph, nodes[0].id)}
            found.append(
                Offer(
                    self.name,
                    "Freeze up to here: all before it, too",
                    "Train",
                    fields,
                    {"until": where},
                    1,
                )
            )
        return found

    def _parameters(self, draft: Draft, path: str):
        try:
            return list(draft.module(path).parameters())
        except (StepError, AttributeError):
            return []

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        policy = arguments.get("batchnorm") or "frozen"
        if policy not in POLICIES:
            raise StepError(f"batchnorm={policy!r} is no policy; take one of {', '.join(POLICIES)}")
        if arguments.get("until") is not None and self.on:
            node = one(draft, arguments["until"], "freeze")
            modules, tensors = upstream(draft, node)
            words = f"up to {call_name(draft.graph, node.id)}"
        else:
            where = unpacked(draft, need(arguments, "where", self.name))
            targets = resolve(draft, where, lambda n: n.kind in ("parameter", "module"))
            modules, tensors = [], []
            for t in targets:
                if t.node.kind == "parameter":
                    tensors.append(t.node.target)
                elif t.node.kind == "module":
                    modules.append(t.node.target)
                else:
                    raise StepError(f"{t.node.name!r} is {an(t.node.kind)}; it has no weights")
            modules = outermost_paths(modules)
            words = _listed([*modules, *tensors])
        modules = [p for p in modules if self._parameters(draft, p)]
        if not modules and not tensors:
            raise StepError(f"there is no weight to {self.name} in {words}")
        old = [p for p in modules if p in draft.made]
        count = self._count(draft, modules, tensors)
        total = sum(p.numel() for p in draft.model.parameters())
        statistics = policy == "frozen" and bool(
            batchnorms(draft.model, [p for p in modules if p not in old])
        )
        if not self.on:
            statistics = statistics and any(
                isinstance(e, Freeze) and e.on and e.statistics for e in draft.edits
            )
        verb = "freeze" if self.on else "unfreeze"
        comment = f"{verb} {words}: {count:,} of {total:,} parameters" + (
            ", and the running statistics there" if statistics and self.on else ""
        )
        moves = (
            statistics and draft.model.training
        )  # it normalised by the batch, and no longer does
        if not draft.edits and not draft.rewires and not moves:
            draft.claims[step] = SameOutput()
        draft.edits.append(
            Freeze(step, comment, tuple(modules), tuple(tensors), statistics, self.on)
        )
        return len(modules) + len(tensors)

    def _count(self, draft: Draft, modules: Iterable[str], tensors: Iterable[str]) -> int:
        seen = {}
        for path in modules:
            for p in draft.module(path).parameters():
                seen[id(p)] = p.numel()
        for path in tensors:
            owner, _, name = path.rpartition(".")
            p = getattr(draft.model.get_submodule(owner), name)
            seen[id(p)] = p.numel()
        return sum(seen.values())

    def text(self, arguments: Mapping[str, Any]) -> str:
        if arguments.get("until") is not None:
            return f"{self.name} up to {spelled_where(arguments['until'])}"
        return f"{self.name} {spelled_where(arguments['where'])}"


class UnfreezeOperation(FreezeOperation):
    """Let training change ``where`` again."""

    name = "unfreeze"
    order = 61
    takes = ("where",)
    on = False


def upstream(draft: Draft, node: Node) -> tuple[list[str], list[str]]:
    """Modules and bare parameters that a node's value is made of, as whole modules where they are whole."""
    seen: set[str] = set()
    # a scope's call stands for all that it runs
    inside = [n.id for n in _flat_of(draft, node)]
    todo = list(inside)
    while todo:
        id = todo.pop()
        if id not in seen:
            seen.add(id)
            todo += draft.graph.inputs_of(id)
    wanted = {
        n.target for n in draft.graph.flat if n.id in seen and n.kind == "module"
    }  # fmt: skip
    later = {n.target for n in draft.graph.flat if n.id not in seen and n.kind == "module"}
    shared = wanted & later
    if shared:
        wanted |= shared  # the module serves both sides: it is frozen for both
    modules: list[str] = []

    def collect(path: str) -> None:
        module = draft.module(path)
        below = {t for t in wanted | later if t == path or t.startswith(path + ".")}
        own = any(True for _ in module.parameters(recurse=False))
        if path and below and below <= wanted and any(True for _ in module.parameters()):
            modules.append(path)
        elif path in wanted and own:
            modules.append(path)
        else:
            for name, _ in module.named_children():
                collect(f"{path}.{name}" if path else name)

    collect("")
    tensors = [
        str(n.target)
        for n in draft.live_nodes()
        if n.kind == "parameter" and n.id in seen and _is_parameter(draft, str(n.target))
    ]
    tensors = [t for t in tensors if not any(t.startswith(m + ".") for m in modules)]
    return modules, list(dict.fromkeys(tensors))


def _is_parameter(draft: Draft, path: str) -> bool:
    owner, _, name = path.rpartition(".")
    try:
        return isinstance(getattr(draft.model.get_submodule(owner), name, None), nn.Parameter)
    except AttributeError:
        return False


def _flat_of(draft: Draft, node: Node) -> list[Node]:
    if node.child is None or node.child not in draft.graph.scopes:
        return [node]
    return [m for n in draft.graph.scopes[node.child].nodes for m in _flat_of(draft, n) if not m.glue
            and m.kind not in ("input", "output")]  # fmt: skip


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} … {names[-1]} ({len(names)})"


OPERATION = FreezeOperation()
