"""channels: other input or output widths of a layer, its weights carried over by a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..claims import SameOutput
from ..coupling import Coupled, coupled
from ..draft import Draft, is_head
from ..edits import Assign, Edit, Place
from ..errors import StepError, an
from ..expression import parse
from ..graph import Node
from ..targets import resolve, spelled_where
from ..widths import CONVS, constructor, make, widths
from .base import Field, Offer, Operation, is_moded, literals, need, suffix_for

POLICIES = ("zero", "mean", "sum", "repeat", "new")


@dataclass(frozen=True)
class Widen(Edit):
    """``channels``: a layer made anew with other widths, weights carried over by a policy."""

    path: str
    inputs: int | None
    outputs: int | None
    weights: str

    def lines(self, place: Place) -> list[str]:
        place.need("import torch", "from torch import nn")
        layer = place.model.get_submodule(self.path)
        old_ins, old_outs = widths(layer)
        ins, outs = self.inputs or old_ins, self.outputs or old_outs
        here = place.spelled(self.path)
        tensor = layer.weight
        move = [] if tensor.device.type == "cpu" else [f'"{tensor.device}"']
        move += (
            []
            if tensor.dtype.is_floating_point and str(tensor.dtype) == "torch.float32"
            else [str(tensor.dtype)]
        )
        suffix = f".to({', '.join(move)})" if move else ""
        first = f"[:{min(outs, old_outs)}" if outs != old_outs else "[:"
        kept = min(ins, old_ins)
        part = f"{first}, :{kept}]" if ins != old_ins else f"{first}]"
        copies: list[str] = []
        grows = ins > old_ins or outs > old_outs
        if self.weights == "zero" or ins == old_ins:
            copies = ["new.weight.zero_()"] if grows else []
            copies.append(f"new.weight{part} = old.weight{part}")
        elif self.weights == "mean":
            copies = [f"new.weight{part} = old.weight{part}"]
            if ins > old_ins:
                rest = part.replace(f":{kept}]", f"{kept}:]")
                copies.append(f"new.weight{rest} = old.weight{part}.mean(1, keepdim=True)")
        elif self.weights == "sum":
            share = f" / {ins}" if ins != 1 else ""
            copies = [f"new.weight.copy_(old.weight.sum(1, keepdim=True){share})"]
        elif self.weights == "repeat":
            copies = [
                f"new.weight.copy_(old.weight[:, torch.arange({ins}) % {old_ins}] * {old_ins} / {ins})"
            ]
        if layer.bias is not None:
            rows = f"[:{min(outs, old_outs)}]" if outs != old_outs else ""
            if outs > old_outs:
                copies.append("new.bias.zero_()")
            copies.append(
                f"new.bias{rows} = old.bias{rows}" if rows else "new.bias.copy_(old.bias)"
            )
        lines = [f"old = {here}"]
        if self.weights == "repeat":
            width = "in_features" if hasattr(layer, "in_features") else "in_channels"
            lines += [
                f"if old.{width} != {old_ins}:",
                f'    raise RuntimeError("{self.path} is widened already: run this on a fresh model")',
            ]
        return [
            *lines,
            f"new = {constructor(layer, ins, outs)}{suffix}",
            "with torch.no_grad():",
            *(f"    {c}" for c in copies),
            place.assigned(self.path, "new"),
        ]


@dataclass(frozen=True)
class WidenNorm(Edit):
    """A BatchNorm made anew for another number of features; what fits of its state stays."""

    path: str
    features: int

    def lines(self, place: Place) -> list[str]:
        place.need("import torch", "from torch import nn")
        norm = place.model.get_submodule(self.path)
        here = place.spelled(self.path)
        options = [f"{k}=old.{k}" for k, v in _NORM.items() if getattr(norm, k) != v]
        kept = min(self.features, norm.num_features)
        names = [n for n in ("weight", "bias", "running_mean", "running_var")
                 if getattr(norm, n, None) is not None]  # fmt: skip
        lines = [
            f"old = {here}",
            f"new = nn.{type(norm).__name__}({', '.join([str(self.features), *options])})",
            "new.train(old.training)",
        ]
        if names:
            listed = ", ".join(f'"{n}"' for n in names)
            lines += [
                "with torch.no_grad():",
                f"    for name in ({listed}):",
                f"        getattr(new, name)[:{kept}] = getattr(old, name)[:{kept}]",
            ]
        return [*lines, place.assigned(self.path, "new")]


_NORM = {"eps": 1e-05, "momentum": 0.1, "affine": True, "track_running_stats": True}


def widen_norm(draft: Draft, step: int, path: str, features: int) -> None:
    """Give a BatchNorm another number of features."""
    norm = draft.module(path)
    if not type(norm).__module__.startswith("torch.nn"):
        raise StepError(
            f"{path!r}, {an(type(norm).__name__)}, must follow; no rule is known for it"
        )
    with torch.device("meta"):
        made = type(norm)(features, **{k: getattr(norm, k) for k in _NORM})
    comment = f"{path}: {norm.num_features} → {features} features"
    draft.assign(WidenNorm(step, comment, path, features), path, made, type(norm).__name__)


class Channels(Operation):
    """Change ``inputs`` or ``outputs`` of a convolution or a linear layer."""

    name = "channels"
    order = 15
    takes = ("where", "inputs", "outputs", "weights", "follow")

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if len(nodes) != 1 or nodes[0].kind != "module" or nodes[0].child is not None:
            return []
        layer = draft.module(nodes[0].target)
        if not isinstance(layer, (*CONVS, nn.Linear)) or nodes[0].target in draft.made:
            return []
        ins, outs = widths(layer)
        where = {"where": nodes[0].target}
        head = is_head(draft, nodes[0].target)
        follow = () if head else (
            Field("follow", "Others follow", "bool", True, (),
                  "normalisations, additions and the layers that read it change as well"),
        )  # fmt: skip
        return [
            Offer("channels", "Change the outputs", "Change",
                  (Field("outputs", "Outputs", "int", outs),
                   Field("weights", "Weights", "choice", "new" if head else "zero", ("new", "zero"),
                         "new: all drawn anew; zero: the old rows stay, new rows are zero"),
                   *follow), where, 1),
            Offer("channels", "Change the inputs", "Change",
                  (Field("inputs", "Inputs", "int", ins),
                   Field("weights", "Weights", "choice", "zero", POLICIES,
                         "how the new input channels start")), where, 1),
        ]  # fmt: skip

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        targets = resolve(draft, need(arguments, "where", "channels"))
        ins, outs = arguments.get("inputs"), arguments.get("outputs")
        if ins is None and outs is None:
            raise StepError("channels needs inputs= or outputs=, a number of channels")
        for name, value in (("inputs", ins), ("outputs", outs)):
            if value is not None and (
                not isinstance(value, int) or isinstance(value, bool) or value < 1
            ):
                raise StepError(f"{name} is {value!r}; it must be a whole number of at least 1")
        follow = bool(arguments.get("follow"))
        policy = arguments.get("weights") or ("zero" if ins is not None or follow else "new")
        if policy not in POLICIES:
            raise StepError(f"weights={policy!r} is no policy; take one of {', '.join(POLICIES)}")
        for target in targets:
            if target.path is None and target.node.kind == "module":
                raise StepError(
                    f"{target.node.target!r} is called {target.node.calls} times; its width is the "
                    "same for every call: name the module"
                )
            if target.path is None:
                raise StepError(
                    f"{target.node.name!r} is {an(target.node.kind)}; it has no channels"
                )
            others = self._others(draft, target.path, outs, follow)
            self._change(draft, step, target.path, ins, outs, policy)
            for path in others.norms:
                widen_norm(draft, step, path, outs)
            for path in others.outputs:
                self._change(draft, step, path, None, outs, policy)
            for path in others.inputs:
                self._change(draft, step, path, outs, None, policy)
        return len(targets)

    def _others(self, draft: Draft, path: str, outs: int | None, follow: bool) -> Coupled:
        """What must follow a change of the outputs.

        Raises:
            StepError: Something must, and was not asked to; or it cannot.
        """
        layer = draft.module(path)
        if outs is None or not isinstance(layer, (*CONVS, nn.Linear)) or widths(layer)[1] == outs:
            return Coupled()
        try:
            found = coupled(draft, path)
        except StepError:
            if follow:
                raise
            return Coupled()  # no rule: the run on the example will tell
        if found and not follow:
            raise StepError(
                f"with {outs} outputs of {path!r}, {len(found.paths)} other layers must follow: {found}; "
                "pass follow=True to change them too"
            )
        return found

    def text(self, arguments: Mapping[str, Any]) -> str:
        parts = [
            f"{k} {arguments[k]}" for k in ("inputs", "outputs") if arguments.get(k) is not None
        ]
        policy = f", weights {arguments['weights']}" if arguments.get("weights") else ""
        return f"channels of {spelled_where(arguments['where'])}: {', '.join(parts)}{policy}"

    def _change(
        self, draft: Draft, step: int, path: str, ins: int | None, outs: int | None, policy: str
    ) -> None:
        layer = draft.module(path)
        if not isinstance(layer, (*CONVS, nn.Linear)):
            inner = [
                n for n, m in layer.named_modules() if isinstance(m, (*CONVS, nn.Linear)) and n
            ]
            hint = f"; inside it are {', '.join(f'{path}.{n}' for n in inner[:3])}" if inner else ""
            raise StepError(
                f"{path!r} is {an(type(layer).__name__)}; channels takes convolutions and linear "
                f"layers{hint}"
            )
        if getattr(layer, "groups", 1) != 1:
            raise StepError(
                f"{path!r} has {layer.groups} groups; its filters belong to channels one by one, so no "
                "policy fits: replace it with the layer that you want"
            )
        now_ins, now_outs = widths(layer)
        ins, outs = ins or now_ins, outs or now_outs
        earlier = next((e for e in draft.edits if isinstance(e, Widen) and e.path == path), None)
        if earlier is not None:  # both changes are one: from the layer as it was
            layer = draft.model.get_submodule(path)
            policy = policy if policy == "new" else earlier.weights
        elif path in draft.made:
            policy = "new"  # the layer is new itself: there are no weights to carry over
        old_ins, old_outs = widths(layer)
        made = make(layer, ins, outs)
        comment = self._comment(draft, path, layer, ins, outs, policy)
        if policy == "new":
            expr = parse(constructor(layer, ins, outs))
            known = literals(draft, path, expr, layer, made)
            suffix = suffix_for(draft, made, path)
            edit = Assign(step, comment, path, expr, known, suffix, is_moded(made))
        else:
            edit = Widen(
                step, comment, path, ins if ins != old_ins else None,
                outs if outs != old_outs else None, policy,
            )  # fmt: skip
        before = not draft.edits and not draft.rewires
        draft.assign(edit, path, made, type(made).__name__)
        if ins != old_ins:
            self._inputs(draft, step, path, ins, policy, before and outs == old_outs)

    def _inputs(
        self, draft: Draft, step: int, path: str, ins: int, policy: str, alone: bool
    ) -> None:
        """A layer that reads the model's input directly: the example follows."""
        for node in draft.calls_of(path):
            for source in draft.graph.inputs_of(node.id):
                root = draft.graph.by_id[source]
                if root.kind == "input" and root.scope == "" and root.shape:
                    axis = len(root.shape) - 1 if isinstance(draft.made[path], nn.Linear) else 1
                    draft.inputs[root.target] = (axis, ins)
                    if policy == "zero" and ins > root.shape[axis] and alone:
                        draft.claims[step] = SameOutput()

    def _comment(
        self, draft: Draft, path: str, layer: nn.Module, ins: int, outs: int, policy: str
    ) -> str:
        old_ins, old_outs = widths(layer)
        if ins == old_ins:
            unit = "outputs" if isinstance(layer, nn.Linear) else "output channels"
            if is_head(draft, path):
                unit = "classes"
            kept = "the old rows stay, new rows start at zero"
            if outs < old_outs:
                kept = f"the first {outs} stay"
            rest = "new weights" if policy == "new" else kept
            return f"{path}: {old_outs} → {outs} {unit}, {rest}"
        unit = "inputs" if isinstance(layer, nn.Linear) else "input channels"
        both = f"; {old_outs} → {outs} outputs" if outs != old_outs else ""
        added = ins - old_ins
        stay = (
            "the RGB filters stay"
            if old_ins == 3 and added > 0
            else f"the first {min(ins, old_ins)} stay"
        )
        words = {
            "new": "new weights",
            "zero": (
                f"{stay}, the {_th(ins) if added == 1 else f'{added} new ones'} "
                f"start{'s' if added == 1 else ''} at zero: same output"
            ),
            "mean": f"{stay}, the new ones start as their mean",
            "sum": "each filter is the sum over the old channels",
            "repeat": f"the old filters repeat, scaled by {old_ins}/{ins}",
        }
        if added < 0 and policy in ("zero", "mean"):
            words[policy] = f"the first {ins} stay"
        return f"{path}: {old_ins} → {ins} {unit}{both}; {words[policy]}"


def _th(n: int) -> str:
    words = {4: "fourth", 5: "fifth", 6: "sixth", 2: "second"}
    return words.get(n, "new one")


OPERATION = Channels()
