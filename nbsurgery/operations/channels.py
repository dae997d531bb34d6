"""channels: other input or output widths of a layer, its weights carried over by a policy."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import nn

from ..claims import SameOutput
from ..coupling import Coupled, coupled
from ..draft import Draft, conjoined, is_head
from ..edits import Assign, Bulk, Edit, Place
from ..errors import StepError, an
from ..expression import parse
from ..graph import Node
from ..paths import each, nested, quoted
from ..targets import Target, resolve, spelled_where
from ..widths import (
    LAYERS,
    STATE,
    Pieces,
    changes,
    composed,
    constructor,
    depthwise,
    kept,
    make,
    norm_constructor,
    resized,
    torch_class,
    total,
    transposed,
    unfit,
    width_attribute,
    widths,
)
from .base import (
    Field,
    Offer,
    Operation,
    channel_axis,
    count_classes,
    count_inputs,
    inputs_read,
    is_moded,
    literals,
    need,
    suffix_for,
)

POLICIES = ("zero", "mean", "sum", "repeat", "new")


@dataclass(frozen=True)
class _Widths(Edit):
    """Layers of one kind made anew with other widths: a statement for one, a loop for several."""

    reshapes: ClassVar[bool] = True

    paths: tuple[str, ...]
    suffix: str

    def without(self, gone) -> Edit | None:
        left = tuple(p for p in self.paths if not gone(p))
        if not left or left == self.paths:
            return self if left else None
        comment = f"{_named(left)}: {self.comment.removeprefix(f'{_named(self.paths)}: ')}"
        return replace(self, paths=left, comment=comment)

    def lines(self, place: Place) -> list[str]:
        place.need("import torch", "from torch import nn")
        layers = [place.model.get_submodule(p) for p in self.paths]
        if len(self.paths) > 1:
            return self._loop(place, layers)
        body = [
            f"old = {place.spelled(self.paths[0])}",
            *self.body(layers, f'"{self.paths[0]}'),
        ]
        if self.in_place(layers):
            return body
        return [*body, place.assigned_everywhere(self.paths[0], "new")]

    def _loop(self, place: Place, layers: list[nn.Module]) -> list[str]:
        body = self.body(layers, 'f"{name}')
        heads, here = each(place.model, self.paths, place.variable)
        last = f"{here} = new"
        if "." not in here or here.endswith(")") or any("{name}" in line for line in body):
            heads = [f"for name in ({', '.join(map(quoted, self.paths))}):"]
            here = f"{place.variable}.get_submodule(name)"
            last = f"{place.variable}.set_submodule(name, new)"
        put = [] if self.in_place(layers) else [last]
        return nested(heads, [f"old = {here}", *body, *put])

    def body(self, layers: list[nn.Module], name: str) -> list[str]:
        """What makes ``new`` of ``old``; `name` opens a quoted text with the layer's name."""
        raise NotImplementedError

    def in_place(self, layers: list[nn.Module]) -> bool:
        """Whether the body changes ``old`` itself, which then stays where it is."""
        return False


@dataclass(frozen=True)
class Widen(_Widths):
    """``channels``: convolutions or linear layers; ``inputs`` and ``outputs`` are empty where they stay.

    With ``drawn`` new rows stay as they are drawn: what reads them starts at zero, and if both did,
    neither would ever get a gradient.
    """

    inputs: Pieces
    outputs: Pieces
    weights: str
    drawn: bool = False

    def body(self, layers: list[nn.Module], name: str) -> list[str]:
        layer = layers[0]
        ins, outs = (total(p, 1) or None for p in (self.inputs, self.outputs))
        whole = total(self.inputs, 0)
        rows = kept(self.outputs) if self.outputs else [("", "")]
        columns = kept(self.inputs) if self.inputs and not depthwise(layer) else [("", "")]
        grows = any(new > old for old, new in (*self.inputs, *self.outputs))
        flip, axis = transposed(layer), 0 if transposed(layer) else 1
        copies: list[str] = []
        if self.weights == "zero" or not self.inputs:
            copies = ["new.weight.zero_()"] if grows else []
            if self.drawn and self.outputs:
                wider = any(new > old for old, new in self.inputs) and not depthwise(layer)
                copies = [f"new.weight{_index(r, '', flip)} = 0" for r, _ in rows] if wider else []
            for row, column in itertools.product(rows, columns):
                new, old = (_index(row[i], column[i], flip) for i in (0, 1))
                copies.append(f"new.weight{new} = old.weight{old}")
        else:
            (row, _), (column, _) = rows[0], columns[0]
            part = _index(row, "", flip)
            if self.outputs and total(self.outputs, 1) > total(self.outputs, 0):
                copies = ["new.weight.zero_()"]
            if self.weights == "mean" and ins > whole:
                part = _index(row, column, flip)
                copies.append(f"new.weight{part} = old.weight{part}")
                rest = _index(row, f"{whole}:", flip)
                copies.append(f"new.weight{rest} = old.weight{part}.mean({axis}, keepdim=True)")
            else:
                value = f"old.weight{part}.{self.weights}({axis}, keepdim=True)"
                if self.weights == "sum" and ins > 1:
                    value += f" / {ins}"
                if self.weights == "repeat":
                    again = f"torch.arange({ins}) % {whole}"
                    value = f"old.weight{_index(row, again, flip)} * {whole} / {ins}"
                copies.append(
                    f"new.weight{part} = {value}" if part else f"new.weight.copy_({value})"
                )
        if layer.bias is not None:
            if self.outputs:
                more = any(new > old for old, new in self.outputs)
                copies += ["new.bias.zero_()"] if more and not self.drawn else []
                copies += [f"new.bias[{new}] = old.bias[{old}]" for new, old in rows]
            else:
                copies.append("new.bias.copy_(old.bias)")
        check = []
        kind = "features" if isinstance(layer, nn.Linear) else "channels"
        for side, pieces in (("in", self.inputs), ("out", self.outputs)):
            if changes(pieces) > 1 or (side == "in" and pieces and self.weights == "repeat"):
                check = [
                    f"if old.{side}_{kind} != {total(pieces, 0)}:",
                    f'    raise RuntimeError({name} is widened already: run this on a fresh model")',
                ]
        return [
            *check,
            f"new = {constructor(layers, ins, outs)}{self.suffix}",
            "with torch.no_grad():",
            *(f"    {c}" for c in copies),
        ]


@dataclass(frozen=True)
class WidenNorm(_Widths):
    """Normalisations made anew for another number of features; what fits of their state stays."""

    width: Pieces

    def body(self, layers: list[nn.Module], name: str) -> list[str]:
        norm, attribute = layers[0], width_attribute(layers[0])
        names = [key for key in STATE if getattr(norm, key, None) is not None]
        lines = [f"new = {norm_constructor(layers, total(self.width, 1))}{self.suffix}"]
        if changes(self.width) > 1:
            first = "[0]" if attribute == "normalized_shape" else ""
            lines = [
                f"if old.{attribute}{first} != {total(self.width, 0)}:",
                f'    raise RuntimeError({name} is widened already: run this on a fresh model")',
                *lines,
            ]
        in_place = self.in_place(layers)
        if hasattr(norm, "running_mean") and not in_place:
            lines.append("new.train(old.training)")
        if len(names) == 1 and not in_place:
            lines.append("with torch.no_grad():")
            lines += [f"    new.{names[0]}[{n}] = old.{names[0]}[{o}]" for n, o in kept(self.width)]
        elif names:
            listed = ", ".join(f'"{n}"' for n in names) + ("," if len(names) == 1 else "")
            lines += ["with torch.no_grad():", f"    for key in ({listed}):"]
            lines += [
                f"        getattr(new, key)[{n}] = getattr(old, key)[{o}]"
                for n, o in kept(self.width)
            ]
            if in_place:
                lines.append("        setattr(old, key, getattr(new, key))")
        if in_place:
            lines.append(f"old.{attribute} = new.{attribute}")
        return lines

    def in_place(self, layers: list[nn.Module]) -> bool:
        return type(layers[0]) is not torch_class(layers[0])


def _index(row: str, column: str, flip: bool) -> str:
    """``[:96, :4]``: the part of a weight, outputs first; a transposed one has its inputs first."""
    first, second = (column, row) if flip else (row, column)
    if second:
        return f"[{first or ':'}, {second}]"
    return f"[{first}]" if first else ""


class Channels(Operation):
    """Change ``inputs`` or ``outputs`` of a convolution or a linear layer."""

    name = "channels"
    order = 15
    idle = True
    takes = ("where", "inputs", "outputs", "weights", "follow")
    resizes = True

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if len(nodes) != 1 or nodes[0].kind != "module" or nodes[0].child is not None:
            return []
        layer = draft.module(nodes[0].target)
        if not isinstance(layer, LAYERS) or nodes[0].target in draft.made:
            return []
        if getattr(layer, "groups", 1) != 1:
            return []
        ins, outs = widths(layer)
        where = {"where": nodes[0].target}
        head = is_head(draft, nodes[0].target)
        follow = () if head else (
            Field("follow", "Others follow", "bool", True, (),
                  "normalisations, what is added to it, and the layers that read it change as well"),
        )  # fmt: skip
        found = []
        if head or self._follows(draft, nodes[0].target, outs):
            found.append(
                Offer("channels", "Change the outputs", "Change",
                      (Field("outputs", "Outputs", "int", outs),
                       Field("weights", "Weights", "choice", "new" if head else "zero", ("new", "zero"),
                             "new: all drawn anew; zero: the old rows stay, new rows are zero"),
                       *follow), where, 1)
            )  # fmt: skip
        if all(_from_outside(draft, n) for n in draft.calls_of(nodes[0].target)):
            found.append(  # others are fed by layers: their outputs change, and this one follows
                Offer("channels", "Change the inputs", "Change",
                      (Field("inputs", "Inputs", "int", ins),
                       Field("weights", "Weights", "choice", "zero", POLICIES,
                             "how the new input channels start")), where, 1)
            )  # fmt: skip
        return found

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
        changed, same = 0, []
        first = not draft.edits and not draft.rewires
        for target in targets:
            path = self._path(draft, target)
            now = widths(draft.module(path))
            if ins in (None, now[0]) and outs in (None, now[1]):
                continue
            changed += 1
            others = self._others(draft, path, outs, follow)
            asked = _Job(
                ((now[0], ins),) if ins not in (None, now[0]) else (),
                ((now[1], outs),) if outs not in (None, now[1]) else (),
            )
            alone = not draft.edits and not draft.rewires
            drawn = policy == "zero" and bool(others.inputs)
            own = asked.with_inputs(others.inputs.pop(path, ()))
            _change(draft, step, {path: own}, policy, drawn)
            rest = "new" if policy == "new" else "zero"
            _change_norms(draft, step, others.norms)
            for jobs in (
                {p: _Job((), w) for p, w in others.outputs.items() if p not in others.inputs},
                {p: _Job(w, others.outputs.get(p, ())) for p, w in others.inputs.items()},
            ):
                _change(draft, step, jobs, rest, drawn)
            grows = outs is not None and outs > now[1]
            same.append(first and policy == "zero" and others.neutral and grows)
            if asked.inputs:
                self._inputs(
                    draft, step, path, ins, alone and policy == "zero" and not asked.outputs
                )
        if same and all(same):
            draft.claims[step] = SameOutput()
        draft.edits = _together(draft, step)
        if not changed:
            raise StepError(
                f"{spelled_where(arguments['where'])} has these channels already; reset_parameters "
                "draws weights anew"
            )
        return changed

    def _path(self, draft: Draft, target: Target) -> str:
        """The layer that a target means.

        Raises:
            StepError: It has no channels.
        """
        node = target.node
        if target.path is None and node.kind == "module":
            raise StepError(
                f"{node.target!r} is called {node.calls} times; its width is the same for every call: "
                "name the module"
            )
        if target.path is None:
            raise StepError(f"{node.name!r} is {an(node.kind)}; it has no channels")
        path, layer = target.path, draft.module(target.path)
        if not isinstance(layer, LAYERS):
            inner = [n for n, m in layer.named_modules() if isinstance(m, LAYERS) and n]
            hint = f"; inside it are {', '.join(f'{path}.{n}' for n in inner[:3])}" if inner else ""
            kind = type(layer)
            own = any(kind.__name__ == c.__name__ for c in LAYERS)  # a library's own Linear
            name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}" if own else kind.__name__
            raise StepError(
                f"{path!r} is {an(name)}; channels takes convolutions and linear layers of torch"
                f"{hint}"
            )
        if depthwise(layer):
            raise StepError(
                f"{path!r} has one filter for each of its {layer.groups} channels: change the layer that "
                "makes them, with follow=True, and it follows"
            )
        if why := unfit(path, layer):
            raise StepError(
                f"{why}, so no policy for weights fits: change the layer before it, or replace it with "
                "the layer that you want"
            )
        return path

    def _others(self, draft: Draft, path: str, outs: int | None, follow: bool) -> Coupled:
        """What must follow a change of the outputs.

        Raises:
            StepError: Something must, and was not asked to; or it cannot.
        """
        if outs is None or widths(draft.module(path))[1] == outs:
            return Coupled()
        try:
            found = coupled(draft, path, outs)
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

    def _follows(self, draft: Draft, path: str, outs: int) -> bool:
        """Whether a rule is known for everything that a change of the outputs reaches."""
        try:
            coupled(draft, path, 2 * outs)
        except StepError:
            return False
        return True

    def _inputs(self, draft: Draft, step: int, path: str, ins: int, same: bool) -> None:
        """A layer that reads what enters the model: the example follows."""
        axis = channel_axis(draft.made[path])
        for node in draft.calls_of(path):
            for root in inputs_read(draft, node, axis):
                draft.inputs[root.target] = (axis % len(root.shape), ins)
                if same and ins > root.shape[axis]:
                    draft.claims[step] = SameOutput()


def _together(draft: Draft, step: int) -> list[Edit]:
    """The edits, those of a step that change layers alike as one."""
    found: dict[Any, Edit] = {}
    for edit in draft.edits:
        key: Any = id(edit)
        if isinstance(edit, _Widths) and edit.step == step:
            layers = [draft.model.get_submodule(p) for p in edit.paths]
            lone = any(len(draft.aliases(p)) > 1 for p in edit.paths)
            says = edit.comment.removeprefix(f"{_named(edit.paths)}: ")
            kinds = {(type(m), *sorted(m.state_dict()), getattr(m, "groups", 0)) for m in layers}
            if not lone and len(kinds) == 1:
                key = (type(edit), replace(edit, comment=says, paths=()), kinds.pop())
                if key in found:
                    paths = (*found[key].paths, *edit.paths)
                    edit = replace(edit, comment=f"{_named(paths)}: {says}", paths=paths)
        found[key] = edit
    return list(found.values())


def _from_outside(draft: Draft, node: Node) -> bool:
    """Whether a call reads nothing but what enters the model."""
    return bool(inputs_read(draft, node, channel_axis(draft.module(node.target))))


@dataclass(frozen=True)
class _Job:
    """What changes of one layer; a side that stays is empty."""

    inputs: Pieces = ()
    outputs: Pieces = ()

    def with_inputs(self, pieces: Pieces) -> _Job:
        return replace(self, inputs=self.inputs or pieces)


def _change(
    draft: Draft, step: int, jobs: Mapping[str, _Job], policy: str, drawn: bool = False
) -> None:
    """Make layers anew; those that change alike are one edit."""
    groups: dict[Any, list[str]] = {}
    full: dict[str, _Job] = {}
    for path, job in jobs.items():
        earlier = next((e for e in draft.edits if isinstance(e, Widen) and path in e.paths), None)
        layer, how = draft.module(path), policy
        if earlier is not None:  # both changes are one: from the layer as it was
            layer, how = (
                draft.model.get_submodule(path),
                policy if policy == "new" else earlier.weights,
            )
            job = _Job(
                _both(path, earlier.inputs, job.inputs), _both(path, earlier.outputs, job.outputs)
            )
        elif path in draft.made:
            how = "new"  # the layer is new itself: there are no weights to carry over
        full[path] = job
        alone = (
            path if path in draft.made and earlier is None or len(draft.aliases(path)) > 1 else ""
        )
        bias, groups_ = layer.bias is None, getattr(layer, "groups", 1)
        suffix = suffix_for(draft, make(constructor([layer], *_new(job), "old"), layer), path)
        key = (type(layer), job, how, bias, groups_, layer.weight.ndim, suffix, alone)
        groups.setdefault(key, []).append(path)
    for (_, job, how, *_, suffix, alone), paths in groups.items():
        own = path in draft.made and not alone
        layers = [(draft.model.get_submodule if own else draft.module)(p) for p in paths]
        text = constructor(layers, *_new(job))
        made = {p: make(text, layer) for p, layer in zip(paths, layers, strict=True)}
        earlier = [e for e in draft.edits if isinstance(e, Widen) and paths[0] in e.paths]
        fresh = drawn or any(e.drawn for e in earlier)
        comment = f"{_named(paths)}: {_comment(draft, paths, layers[0], job, how, fresh)}"
        if how != "new":
            edit: Edit = Widen(
                step, comment, tuple(paths), suffix, job.inputs, job.outputs, how, fresh
            )
        elif len(paths) > 1:
            edit = Bulk(step, comment, tuple(paths), parse(text), None, suffix)
        else:
            known = literals(draft, paths[0], parse(text), layers[0], made[paths[0]])
            edit = Assign(step, comment, paths[0], parse(text), known, suffix)
        draft.assign(edit, made)
        for path, layer in made.items():
            count_classes(draft, step, path, layer)
            count_inputs(draft, step, path, layer)


def _change_norms(draft: Draft, step: int, jobs: Mapping[str, Pieces]) -> None:
    """Give normalisations other widths; those that change alike are one edit."""
    groups: dict[Any, list[str]] = {}
    for path, pieces in jobs.items():
        norm = draft.module(path)
        earlier = next(
            (e for e in draft.edits if isinstance(e, WidenNorm) and path in e.paths), None
        )
        if earlier is not None:
            pieces, norm = _both(path, earlier.width, pieces), draft.model.get_submodule(path)
        fresh = path in draft.made and earlier is None
        if fresh and type(norm) is not torch_class(norm):
            raise StepError(
                f"{path!r}, {an(type(norm).__name__)} that an earlier step made, must follow: give that "
                "step the new width instead"
            )
        state = tuple(k for k, t in norm.state_dict().items() if t is not None)
        suffix = suffix_for(draft, make(norm_constructor([norm], total(pieces, 1)), norm), path)
        groups.setdefault((type(norm), pieces, state, suffix, path if fresh else ""), []).append(
            path
        )
    for (_, pieces, _, suffix, fresh), paths in groups.items():
        norms = [draft.module(p) for p in paths]
        width = total(pieces, 1)
        text = norm_constructor(norms, width)
        made = {p: make(text, norm) for p, norm in zip(paths, norms, strict=True)}
        if type(norms[0]) is not torch_class(norms[0]):
            made = {p: resized(norm, made[p]) for p, norm in zip(paths, norms, strict=True)}
        comment = f"{_named(paths)}: {total(pieces, 0)} → {width} features"
        if fresh:
            expr = parse(text)
            known = literals(draft, fresh, expr, norms[0], made[fresh])
            edit: Edit = Assign(step, comment, fresh, expr, known, suffix, is_moded(made[fresh]))
        else:
            edit = WidenNorm(step, comment, tuple(paths), suffix, pieces)
        draft.assign(edit, made)


def _new(job: _Job) -> tuple[int | None, int | None]:
    return total(job.inputs, 1) or None, total(job.outputs, 1) or None


def _both(path: str, first: Pieces, second: Pieces) -> Pieces:
    try:
        return composed(first, second)
    except ValueError:
        raise StepError(
            f"{path!r} would change twice, the second time through what the first made: make both "
            "changes in one step, or undo the first"
        ) from None


def _named(paths: Sequence[str]) -> str:
    if len(paths) > 3:
        return f"{len(paths)} layers ({paths[0]} … {paths[-1]})"
    return conjoined(paths)


def _comment(
    draft: Draft, paths: Sequence[str], layer: nn.Module, job: _Job, policy: str, drawn: bool
) -> str:
    (old_ins, ins), (old_outs, outs) = (
        (total(p, 0), total(p, 1)) for p in (job.inputs, job.outputs)
    )
    linear = isinstance(layer, nn.Linear)
    if not ins:
        unit = "outputs" if linear else "output channels"
        if all(is_head(draft, p) for p in paths):
            unit = "classes"
        stay = "the old rows stay, new rows " + ("are drawn" if drawn else "start at zero")
        if outs < old_outs:
            stay = f"the first {outs} stay"
        return f"{old_outs} → {outs} {unit}, {'new weights' if policy == 'new' else stay}"
    if outs and depthwise(layer):
        unit, both = "channels", ""
    else:
        unit = "inputs" if linear else "input channels"
        both = f"; {old_outs} → {outs} outputs" if outs else ""
    added = ins - old_ins
    stay = f"the first {min(ins, old_ins)} stay"
    if len(job.inputs) > 1:
        stay = "the others stay"
    elif old_ins == 3 and added > 0:
        stay = "the RGB filters stay"
    start = f"the {_th(ins) if added == 1 and len(job.inputs) == 1 else f'{added} new ones'} start"
    words = {
        "new": "new weights",
        "zero": f"{stay}, {start}{'s' if added == 1 else ''} at zero: same output",
        "mean": f"{stay}, {start}{'s' if added == 1 else ''} as their mean",
        "sum": "each filter is the sum over the old channels",
        "repeat": f"the old filters repeat, scaled by {old_ins}/{ins}",
    }
    if added < 0:
        words |= {"zero": stay, "mean": "each filter is the mean over the old channels"}
    return f"{old_ins} → {ins} {unit}{both}; {words[policy]}"


def _th(n: int) -> str:
    words = {4: "fourth", 5: "fifth", 6: "sixth", 2: "second"}
    return words.get(n, "new one")


OPERATION = Channels()
