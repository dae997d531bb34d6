"""Which other layers must follow when a layer makes more or fewer channels.

A width travels with the value: through activations, pools and normalisations, through additions to the
other branch's makers, and ends where a convolution or linear layer reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from .draft import Draft
from .errors import StepError
from .graph import Node
from .widths import CONVS, widths

_SAME = {
    "relu", "relu_", "gelu", "silu", "sigmoid", "tanh", "hardswish", "hardsigmoid", "leaky_relu", "elu",
    "dropout", "dropout2d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d",
    "interpolate", "contiguous", "clone", "softmax", "log_softmax", "stochastic_depth", "detach", "to",
    "max_pool1d", "avg_pool1d", "relu6", "mish",
}  # fmt: skip
_JOINED = {"add", "sub", "mul", "div", "truediv", "add_", "mul_", "maximum", "minimum"}


@dataclass
class Coupled:
    """What must follow: paths of layers whose inputs, outputs or features change too, in order."""

    inputs: dict[str, None] = field(default_factory=dict)
    outputs: dict[str, None] = field(default_factory=dict)
    norms: dict[str, None] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys([*self.norms, *self.outputs, *self.inputs]))

    def __bool__(self) -> bool:
        return bool(self.paths)

    def __str__(self) -> str:
        words = [f"{p} (outputs)" for p in self.outputs]
        words += list(self.norms)
        words += [f"{p} (inputs)" for p in self.inputs]
        return ", ".join(words[:6]) + (f" and {len(words) - 6} more" if len(words) > 6 else "")


def coupled(draft: Draft, path: str) -> Coupled:
    """Follow the outputs of the layer at `path` to everything that must change with them.

    Raises:
        StepError: The width reaches a place where no rule is known; says which.
    """
    found = Coupled()
    down: list[Node] = []
    seen_down: set[str] = set()
    seen_up: set[str] = set()

    def make(layer_path: str) -> None:
        """The outputs of a layer change: all its calls hand the new width on."""
        for node in draft.calls_of(layer_path):
            down.append(node)

    def up(id: str) -> None:
        """Whoever makes this value must make the new width."""
        if id in seen_up:
            return
        seen_up.add(id)
        node = draft.graph.by_id[id]
        if node.kind == "module":
            module = draft.module(node.target)
            if isinstance(module, (*CONVS, nn.Linear)):
                if node.target != path and node.target not in found.outputs:
                    _plain(node.target, module)
                    found.outputs[node.target] = None
                    make(node.target)
                return
            _through(node, module)
        elif node.type not in _SAME | _JOINED and not _keeps_channels(draft, node):
            raise _unknown(node)
        for source in draft.graph.inputs_of(id):
            above = draft.graph.by_id[source]
            if above.kind == "input":
                raise StepError(
                    f"the width reaches the input {above.name!r} of the model by {node.name!r}; it "
                    "cannot follow"
                )
            if above.kind != "parameter":
                up(source)
        down.append(node)

    def _through(node: Node, module: nn.Module) -> None:
        if isinstance(module, _NormBase):
            found.norms[node.target] = None
        elif isinstance(module, nn.GroupNorm) or any(True for _ in module.parameters()):
            raise StepError(
                f"the width reaches {node.target!r}, a {type(module).__name__}; no rule is known for it"
            )

    make(path)
    while down:
        node = down.pop()
        for id in draft.graph.users_of(node.id):
            if id in seen_down:
                continue
            seen_down.add(id)
            user = draft.graph.by_id[id]
            if user.kind == "output":
                continue
            if user.kind == "module":
                module = draft.module(user.target)
                if isinstance(module, (*CONVS, nn.Linear)):
                    _reader(draft, node, user, module)
                    found.inputs[user.target] = None
                    continue
                _through(user, module)
                down.append(user)
            elif user.type in _JOINED:
                up(id)
            elif user.type in _SAME or _keeps_channels(draft, user):
                down.append(user)
            else:
                raise _unknown(user)
    return found


def _plain(path: str, module: nn.Module) -> None:
    if getattr(module, "groups", 1) != 1:
        raise StepError(f"{path!r} has {module.groups} groups and would have to follow; it cannot")


def _reader(draft: Draft, node: Node, user: Node, module: nn.Module) -> None:
    """A layer that reads the width: its inputs must be that width, and not a multiple of it."""
    _plain(user.target, module)
    shape, ins = node.shape, widths(module)[0]
    axis = -1 if isinstance(module, nn.Linear) else 1
    if shape is not None and shape[axis] != ins:
        raise StepError(
            f"{user.target!r} reads {ins} features made of several channels each; it cannot follow"
        )


def _keeps_channels(draft: Draft, node: Node) -> bool:
    """A flatten of ``(N, C, 1, 1)`` or a mean over the picture: the features are the channels."""
    if node.type not in ("flatten", "view", "reshape", "mean", "squeeze") or node.shape is None:
        return False
    sources = draft.graph.inputs_of(node.id)
    shape = draft.graph.by_id[sources[0]].shape if sources else None
    return (
        shape is not None and len(shape) > 1 and len(node.shape) > 1 and shape[1] == node.shape[1]
    )


def _unknown(node: Node) -> StepError:
    return StepError(
        f"the width reaches {node.name!r} ({node.type}), where no rule is known for what must follow"
    )
