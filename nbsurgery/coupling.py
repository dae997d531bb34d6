"""Which other layers must follow when a layer makes more or fewer channels.

A width travels with the value: through activations, pools and normalisations, side by side with others
through concatenations, times the positions through a flatten; additions hand it to whoever makes the
other branch; it ends where a convolution or linear layer reads it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from .draft import Draft
from .errors import StepError, an
from .graph import Node, Ref, is_size, iter_refs
from .widths import (
    LAYERS,
    NORMS,
    Pieces,
    depthwise,
    features,
    merged,
    total,
    unfit,
    widths,
)

_SAME = {
    "relu", "relu_", "gelu", "silu", "sigmoid", "tanh", "hardswish", "hardsigmoid", "hardtanh",
    "leaky_relu", "elu", "selu", "celu", "softplus", "mish", "relu6", "dropout", "dropout2d",
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d",
    "interpolate", "contiguous", "clone", "detach", "softmax", "log_softmax", "stochastic_depth", "to",
    "float", "half", "bfloat16", "sqrt", "exp", "neg", "abs", "square", "pow", "clamp",
}  # fmt: skip
_JOINED = {
    "add", "sub", "mul", "div", "truediv", "add_", "sub_", "mul_", "div_", "maximum", "minimum",
    "iadd", "isub", "imul",
}  # fmt: skip
_REDUCED = {"mean", "sum", "amax", "amin"}
_NORMALISED = {"batch_norm", "instance_norm", "layer_norm", "group_norm", "rms_norm"}
_SHAPED = {"flatten", "view", "reshape", "squeeze"}
_PLAIN = (
    "torch.nn.modules.activation",
    "torch.nn.modules.pooling",
    "torch.nn.modules.dropout",
    "torch.nn.modules.padding",
    "torch.nn.modules.upsampling",
    "torch.nn.modules.linear",
)


@dataclass(frozen=True)
class _Layout:
    """The axis of a value that changes, and its pieces."""

    axis: int
    pieces: Pieces


@dataclass
class Coupled:
    """What must follow: path of a layer → the pieces of its inputs, outputs or features, in order.

    ``inputs`` and ``outputs`` of a depthwise convolution are both there. ``neutral`` says that channels
    which nothing reads change no number: none of them meet before the layers that read them.
    """

    inputs: dict[str, Pieces] = field(default_factory=dict)
    outputs: dict[str, Pieces] = field(default_factory=dict)
    norms: dict[str, Pieces] = field(default_factory=dict)
    neutral: bool = True

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys([*self.norms, *self.outputs, *self.inputs]))

    def __bool__(self) -> bool:
        return bool(self.paths)

    def __str__(self) -> str:
        words = [f"{p} (outputs)" for p in self.outputs if p not in self.inputs]
        words += list(self.norms)
        words += [f"{p} (inputs{' and outputs' if p in self.outputs else ''})" for p in self.inputs]
        return ", ".join(words[:6]) + (f" and {len(words) - 6} more" if len(words) > 6 else "")


def coupled(draft: Draft, path: str, outs: int) -> Coupled:
    """Follow the new outputs of the layer at `path` to everything that must change with them.

    Raises:
        StepError: The width reaches a place where no rule is known; says which.
    """
    before = _Flow(draft, _made_wider(draft), None)
    before.run()
    makers = {path: ((widths(draft.module(path))[1], outs),)}
    while True:
        flow = _Flow(draft, makers, before)
        asked = flow.run()
        if asked is None:
            found = flow.found
            found.neutral &= not flow.counted()
            found.outputs = {p: w for p, w in makers.items() if p != path} | found.outputs
            return found
        _plain(asked, draft.module(asked))
        makers[asked] = ((widths(draft.module(asked))[1], outs),)


def _made_wider(draft: Draft) -> dict[str, Pieces]:
    """Layers that earlier steps gave other outputs: the shapes that were recorded are older."""
    found = {}
    for path, made in draft.made.items():
        if isinstance(made, LAYERS) and draft.exists(path):
            old = draft.model.get_submodule(path)
            if isinstance(old, LAYERS) and widths(old)[1] != widths(made)[1]:
                found[path] = ((widths(old)[1], widths(made)[1]),)
    return found


class _Flow:
    """One walk over the graph in the order of execution, with the layers in `makers` changed.

    `before` is the walk with what earlier steps changed (``None`` in that walk itself, which stops
    where no rule is known instead of raising).
    """

    def __init__(self, draft: Draft, makers: Mapping[str, Pieces], before: _Flow | None):
        self.draft, self.makers, self.before = draft, makers, before
        self.layouts: dict[str, _Layout] = {}
        self.found = Coupled()

    def run(self) -> str | None:
        """Walk. Returns the path of a layer whose outputs must change as well, if one turns up."""
        for node in self.draft.graph.flat:
            try:
                asked = self._module(node) if node.kind == "module" else self._call(node)
            except StepError:
                if self.before is not None:
                    raise
                continue
            if asked is not None and self.before is not None:
                return asked
        return None

    def counted(self) -> bool:
        """Whether the run reads a width that changes as a number."""
        for node in self.draft.live_nodes():
            if not node.glue or not is_size(node):
                continue
            whole, index = node, None
            if node.type in ("size", "getitem") and len(node.args) > 1:
                index = node.args[1]
            if node.type == "getitem":  # x.shape[1]
                whole = (
                    self.draft.graph.by_id.get(node.args[0].id)
                    if isinstance(node.args[0], Ref)
                    else None
                )
            if whole is None or index is None:
                continue
            for id in self.draft.graph.sources(whole.scope, next(iter_refs(whole.args), None)):
                layout = self.layouts.get(id)
                shape = self.draft.graph.by_id[id].shape
                if (
                    layout
                    and shape
                    and isinstance(index, int)
                    and index % len(shape) == layout.axis
                ):
                    return True
        return False

    # -- modules ----------------------------------------------------------------------------

    def _module(self, node: Node) -> str | None:
        path, module = node.target, self.draft.module(node.target)
        given = self._given(node)
        if isinstance(module, LAYERS):
            if given is not None:
                self._read(node, module, given)
            if path in self.makers:
                axis = self._rank(node) - 1 if isinstance(module, nn.Linear) else 1
                self.layouts[node.id] = _Layout(axis, self.makers[path])
        elif given is not None:
            if isinstance(module, NORMS) and self._of_width(module, given):
                self._norm(node, path, module, given)
            elif isinstance(module, NORMS) and features(module) == 1:
                pass
            elif isinstance(module, nn.Flatten):
                self._reshaped(node, given)
                return None
            elif any(True for _ in module.parameters()) or type(module).__module__ not in _PLAIN:
                raise StepError(
                    f"the width reaches {path!r}, {an(type(module).__name__)}; no rule is known for it"
                )
            self._kept(node, given)
        return None

    def _of_width(self, module: nn.Module, given: _Layout) -> bool:
        sides = (0,) if self.before is not None else (0, 1)
        return features(module) in [total(given.pieces, side) for side in sides]

    def _read(self, node: Node, module: nn.Module, given: _Layout) -> None:
        """A layer that reads the width."""
        if self.before is None:
            if depthwise(module):
                self.layouts[node.id] = given
            return
        axis = self._rank(node) - 1 if isinstance(module, nn.Linear) else 1
        if given.axis != axis or total(given.pieces, 0) != widths(module)[0]:
            raise StepError(
                f"{node.target!r} reads {widths(module)[0]} features made of several channels each; "
                "it cannot follow"
            )
        self._agree(self.found.inputs, node.target, given.pieces)
        _plain(node.target, module)
        if depthwise(module):
            self._agree(self.found.outputs, node.target, given.pieces)
            self.layouts[node.id] = given

    def _norm(self, node: Node, path: str, module: nn.Module, given: _Layout) -> None:
        last = type(module) in (nn.LayerNorm, nn.RMSNorm) or node.kind != "module"
        last = last and isinstance(module, (nn.LayerNorm, nn.RMSNorm))
        self.found.neutral &= isinstance(module, (_NormBase, nn.PReLU))
        if given.axis != (self._rank(node) - 1 if last else 1):
            raise _unknown(node)
        if isinstance(module, nn.GroupNorm) and total(given.pieces, 1) % module.num_groups:
            raise StepError(
                f"{path!r} has {module.num_groups} groups, which do not divide "
                f"{total(given.pieces, 1)} channels"
            )
        if self.before is not None:
            self._agree(self.found.norms, path, given.pieces)

    def _agree(self, table: dict[str, Pieces], path: str, pieces: Pieces) -> None:
        if table.setdefault(path, pieces) != pieces:
            raise StepError(f"{path!r} is called with two kinds of input; it cannot follow both")

    # -- functions and methods --------------------------------------------------------------

    def _call(self, node: Node) -> str | None:
        if node.kind == "output":
            self.found.neutral &= self._given(node) is None
            return None
        changed = [s for s in self.draft.graph.inputs_of(node.id) if s in self.layouts]
        if not changed:
            return None
        given = self.layouts[changed[0]]
        if node.type in ("cat", "concat", "concatenate"):
            return self._cat(node)
        if node.type in _JOINED:
            return self._joined(node, given)
        if node.type in _SAME:
            self.found.neutral &= "softmax" not in node.type
            self._kept(node, given)
        elif node.type in _NORMALISED:
            path = self.draft.graph.scopes[node.scope].path
            module = self.draft.module(path)
            if not isinstance(module, NORMS) or not self._of_width(module, given):
                raise _unknown(node)
            self._norm(node, path, module, given)
            self.layouts[node.id] = given
        elif node.type in ("permute", "transpose"):
            self.layouts[node.id] = _Layout(self._moved(node, given.axis), given.pieces)
        elif node.type in _REDUCED:
            self._reduced(node, given)
        elif node.type in _SHAPED:
            self._reshaped(node, given)
        else:
            raise _unknown(node)
        return None

    def _kept(self, node: Node, given: _Layout) -> None:
        """The axis stays as it is, where the recorded shapes say so too."""
        if node.shape is None and node.kind == "module":  # a step made it: it has no recorded shape
            self.layouts[node.id] = given
            return
        source = self._source(node)
        if source is None or node.shape is None or len(source.shape) != len(node.shape):
            raise _unknown(node)
        if source.shape[given.axis] != node.shape[given.axis]:
            raise _unknown(node)
        self.layouts[node.id] = given

    def _cat(self, node: Node) -> str | None:
        shape = node.shape
        dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        parts = [
            self.draft.graph.sources(node.scope, ref)
            for ref in iter_refs((node.args[:1], node.kwargs))
        ]
        ids = parts[0] if len(parts) == 1 else [p[0] for p in parts if len(p) == 1]
        if shape is None or not isinstance(dim, int) or len(ids) < len(parts):
            raise _unknown(node)
        axis = dim % len(shape)
        layouts = [self.layouts.get(i) for i in ids]
        if any(lay is not None and lay.axis != axis for lay in layouts):
            return self._joined(node, next(lay for lay in layouts if lay is not None))
        recorded = [self.draft.graph.by_id[i].shape for i in ids]
        if any(s is None for s in recorded) or sum(s[axis] for s in recorded) != shape[axis]:
            raise _unknown(node)
        pieces: list[tuple[int, int]] = []
        for id, layout in zip(ids, layouts, strict=True):
            width = self._width(id, axis)
            pieces += [(width, width)] if layout is None else layout.pieces
        self.layouts[node.id] = _Layout(axis, merged(tuple(pieces)))
        return None

    def _joined(self, node: Node, given: _Layout) -> str | None:
        """An elementwise operation: every other value of that width must change alike."""
        if node.shape is None:
            raise _unknown(node)
        from_right = len(node.shape) - given.axis
        for id in self.draft.graph.inputs_of(node.id):
            source, layout = self.draft.graph.by_id[id], self.layouts.get(id)
            if layout is not None:
                if layout.pieces != given.pieces:
                    raise _unknown(node)
                continue
            if source.shape is None or len(source.shape) < from_right:
                continue
            if source.shape[-from_right] == 1 or self.before is None:
                continue
            if len(given.pieces) > 1 or source.kind == "parameter":
                raise _unknown(node)
            return self._maker(id, node)
        self.layouts[node.id] = given
        return None

    def _maker(self, id: str, at: Node) -> str:
        """The layer that gives the value `id` its width.

        Raises:
            StepError: It cannot be said.
        """
        node = self.draft.graph.by_id[id]
        if node.kind == "input":
            raise StepError(
                f"the width reaches the input {node.name!r} of the model by {at.name!r}; it cannot follow"
            )
        through = node.type in _SAME | _JOINED | _REDUCED | _SHAPED
        if node.kind == "module":
            module = self.draft.module(node.target)
            through = isinstance(module, (*NORMS, nn.Flatten)) or (
                type(module).__module__ in _PLAIN and not any(True for _ in module.parameters())
            )
            if isinstance(module, LAYERS):
                if not depthwise(module):
                    return node.target
                through = True
        if not through:
            raise _unknown(node)
        for source in self.draft.graph.inputs_of(id):
            above = self.draft.graph.by_id[source]
            if above.kind != "parameter" and source not in self.layouts and above.shape is not None:
                return self._maker(source, at)
        raise _unknown(node)

    def _moved(self, node: Node, axis: int) -> int:
        """Where `permute` or `transpose` puts an axis."""
        nd, dims = len(node.shape or ()), [*node.args[1:], *node.kwargs.values()]
        dims = list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims
        if not nd or not all(isinstance(d, int) for d in dims):
            raise _unknown(node)
        dims = [d % nd for d in dims]
        if node.type == "permute":
            return dims.index(axis)
        return {dims[0]: dims[1], dims[1]: dims[0]}.get(axis, axis)

    def _reduced(self, node: Node, given: _Layout) -> None:
        """A mean over positions leaves the width; one over the channels ends it."""
        source = self._source(node)
        dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        dims = [dims] if isinstance(dims, int) else dims
        if (
            source is None
            or not isinstance(dims, (list, tuple))
            or any(isinstance(d, Ref) for d in dims)
        ):
            raise _unknown(node)
        dims = {d % len(source.shape) for d in dims}
        if given.axis in dims:
            self.found.neutral = False
            return
        gone = 0 if len(node.shape) == len(source.shape) else sum(d < given.axis for d in dims)
        self.layouts[node.id] = _Layout(given.axis - gone, given.pieces)

    def _reshaped(self, node: Node, given: _Layout) -> None:
        """``(N, C, …)`` → ``(N, C)`` or ``(N, C · positions)``: the axis stays where it is."""
        source = self._source(node)
        axis = given.axis
        if source is None or node.shape is None or len(node.shape) <= axis:
            raise _unknown(node)
        if source.shape[:axis] != node.shape[:axis] or self._says_width(node, given):
            raise _unknown(node)
        if len(node.shape) == axis + 1:
            times = math.prod(source.shape[axis + 1 :])
        elif source.shape[axis] == node.shape[axis]:
            times = 1
        else:
            raise _unknown(node)
        self.layouts[node.id] = _Layout(
            axis, tuple((o * times, n * times) for o, n in given.pieces)
        )

    def _says_width(self, node: Node, given: _Layout) -> bool:
        """Whether a reshape names the old width as a plain number."""
        sizes = node.args[1:]
        sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
        if node.type not in ("view", "reshape") or len(sizes) <= given.axis:
            return node.type in ("view", "reshape")
        return isinstance(sizes[given.axis], int) and sizes[given.axis] != -1

    # -- small things -----------------------------------------------------------------------

    def _given(self, node: Node) -> _Layout | None:
        """The layout of what a module or the output reads."""
        found = [self.layouts[s] for s in self.draft.graph.inputs_of(node.id) if s in self.layouts]
        if found and node.kind == "module" and len(found) > 1:
            raise _unknown(node)
        return found[0] if found else None

    def _source(self, node: Node) -> Node | None:
        sources: list[Any] = [
            self.draft.graph.by_id[s]
            for s in self.draft.graph.inputs_of(node.id)
            if s in self.layouts
        ]
        return self._recorded(sources[0]) if len(sources) == 1 else None

    def _rank(self, node: Node) -> int:
        """How many axes what a layer gives has."""
        recorded = self._recorded(node)
        if recorded is None:
            raise _unknown(node)
        return len(recorded.shape)

    def _recorded(self, node: Node) -> Node | None:
        """The value itself, or what layers that a step made have made it of."""
        while node.shape is None and node.refs:
            node = self.draft.graph.by_id[node.refs[0]]
        return None if node.shape is None else node

    def _width(self, id: str, axis: int) -> int:
        """The width of a value before this step."""
        older = self.before.layouts.get(id) if self.before is not None else None
        if older is not None and older.axis == axis:
            return total(older.pieces, 1)
        return self.draft.graph.by_id[id].shape[axis]


def _plain(path: str, layer: nn.Module) -> None:
    if why := unfit(path, layer):
        raise StepError(f"{why}, and would have to follow; it cannot")


def _unknown(node: Node) -> StepError:
    return StepError(
        f"the width reaches {node.name!r} ({node.type}), where no rule is known for what must follow"
    )
