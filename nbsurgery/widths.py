"""How wide layers are, and how the same layer is made with other widths.

A width that changes is a tuple of pieces ``(old, new)``, in order: a convolution has one; what reads a
concatenation has one for each value, neighbours that stay being one. `kept` says what carries over.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvTransposeNd
from torch.nn.utils import parametrize

from .errors import an

Pieces = tuple[tuple[int, int], ...]
CONVS = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
)  # fmt: skip
LAYERS = (*CONVS, nn.Linear)
STATE = (
    "weight",
    "bias",
    "running_mean",
    "running_var",
)  # of a normalisation, one for each feature
NORMS = (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm, nn.PReLU)


def widths(layer: nn.Module) -> tuple[int, int]:
    """Input and output width of a convolution or linear layer."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    return layer.in_channels, layer.out_channels


def features(norm: nn.Module) -> int | None:
    """The width that a normalisation (or ``PReLU``) is made for; ``None`` where it has none."""
    width = getattr(norm, width_attribute(norm))
    if isinstance(width, tuple):
        return width[0] if len(width) == 1 else None
    return width


def width_attribute(norm: nn.Module) -> str:
    """Where a normalisation keeps its width."""
    if isinstance(norm, (nn.LayerNorm, nn.RMSNorm)):
        return "normalized_shape"
    if isinstance(norm, nn.PReLU):
        return "num_parameters"
    return "num_channels" if isinstance(norm, nn.GroupNorm) else "num_features"


def unfit(path: str, layer: nn.Module) -> str | None:
    """Why a layer cannot be made anew with other widths; ``None`` where it, or a depthwise one, can."""
    if getattr(layer, "groups", 1) != 1 and not depthwise(layer):
        return f"{path!r} has {layer.groups} groups, whose filters belong to channels one by one"
    if parametrize.is_parametrized(layer):
        return f"{path!r} is parametrized ({', '.join(layer.parametrizations)}), which a new layer is not"
    if type(layer) is not torch_class(layer):
        return f"{path!r} is {an(type(layer).__name__)}, a class of its own"
    return None


def torch_class(module: nn.Module) -> type:
    """Its class, or the nearest base that is torch's own."""
    return next(c for c in type(module).__mro__ if c.__module__.startswith("torch.nn"))


def resized(norm: nn.Module, plain: nn.Module) -> nn.Module:
    """A module of a subclass of torch's normalisation, with the tensors and width of a plain one."""
    new = copy.deepcopy(norm)
    setattr(new, width_attribute(norm), getattr(plain, width_attribute(plain)))
    for key in STATE:
        if getattr(norm, key, None) is not None:
            setattr(new, key, getattr(plain, key))
    return new


def depthwise(layer: nn.Module) -> bool:
    """Whether a convolution has one filter for each channel."""
    return isinstance(layer, CONVS) and layer.groups == layer.in_channels == layer.out_channels != 1


def transposed(layer: nn.Module) -> bool:
    """Whether the weight's first axis is that of the inputs."""
    return isinstance(layer, _ConvTransposeNd)


def total(pieces: Pieces, side: int) -> int:
    """The whole old (0) or new (1) width."""
    return sum(p[side] for p in pieces)


def merged(pieces: Pieces) -> Pieces:
    """The same with neighbours that stay taken together."""
    out: list[tuple[int, int]] = []
    for old, new in pieces:
        if out and old == new and out[-1][0] == out[-1][1]:
            out[-1] = (out[-1][0] + old, out[-1][0] + old)
        else:
            out.append((old, new))
    return tuple(out)


def composed(first: Pieces, second: Pieces) -> Pieces:
    """Two changes after each other as one.

    Raises:
        ValueError: The second cuts through a piece that the first changed.
    """
    if not first or not second:
        return first or second
    out: list[tuple[int, int]] = []
    ahead, behind = list(first), list(second)
    while ahead and behind:
        (old, now), (same, new) = ahead.pop(0), behind.pop(0)
        if now > same and old == now:  # a piece that stayed can be cut anywhere
            ahead.insert(0, (old - same, old - same))
            old = now = same
        elif now < same and same == new:
            behind.insert(0, (same - now, same - now))
            same = new = now
        if now != same:
            raise ValueError(f"{first} and {second} do not meet")
        out.append((old, new))
    return merged(tuple(out))


def changes(pieces: Pieces) -> int:
    """How many pieces get another width."""
    return sum(old != new for old, new in pieces)


def kept(pieces: Pieces) -> list[tuple[str, str]]:
    """Slices ``(of the new, of the old)`` that carry over.

    With one change they are counted from both ends, so that they are the same in a second run.
    """
    if changes(pieces) == 1:
        at = next(i for i, (old, new) in enumerate(pieces) if old != new)
        before, after = total(pieces[:at], 0), total(pieces[at + 1 :], 0)
        first = f":{before + min(pieces[at])}"
        return [(first, first), *([(f"-{after}:", f"-{after}:")] if after else [])]
    spans: list[list[int]] = []  # new start, old start, length
    here = there = 0
    for old, new in pieces:
        length = min(old, new)
        last = spans[-1] if spans else None
        if last and last[0] + last[2] == here and last[1] + last[2] == there:
            last[2] += length
        else:
            spans.append([here, there, length])
        here, there = here + new, there + old
    return [(f"{n}:{n + k}", f"{o}:{o + k}") for n, o, k in spans]


def make(text: str, old: nn.Module) -> nn.Module:
    """The new layer on the meta device, to ask it things."""
    with torch.device("meta"):
        return eval(text, {"nn": nn, "torch": torch, "old": old})


def constructor(
    layers: Sequence[nn.Module], ins: int | None, outs: int | None, old: str = "old"
) -> str:
    """The call that makes layers of one class with other widths; what is the default in all goes unsaid.

    A width of ``None`` is read from the old layer.
    """
    first = layers[0]
    if isinstance(first, nn.Linear):
        parts = [
            f"{old}.in_features" if ins is None else str(ins),
            f"{old}.out_features" if outs is None else str(outs),
        ]
        named = {}
    else:
        parts = [
            f"{old}.in_channels" if ins is None else str(ins),
            f"{old}.out_channels" if outs is None else str(outs),
            f"{old}.kernel_size",
        ]
        order = {"stride": 1, "padding": 0, "dilation": 1}
        named = {"padding_mode": "zeros"}
        if transposed(first):
            order = {"stride": 1, "padding": 0, "output_padding": 0}
            named["dilation"] = 1
        said = [k for k, v in order.items() if _differs(layers, k, v)]
        last = list(order).index(said[-1]) + 1 if said else 0
        parts += [f"{old}.{k}" for k in list(order)[:last]]
        if depthwise(first):
            parts.append(f"groups={ins}")
    parts += [f"{k}={old}.{k}" for k, v in named.items() if _differs(layers, k, v)]
    if first.bias is None:
        parts.append("bias=False")
    return f"nn.{_plain(first, LAYERS)}({', '.join(parts)})"


_OPTIONS = {
    nn.GroupNorm: {"eps": 1e-05, "affine": True},
    nn.LayerNorm: {"eps": 1e-05, "elementwise_affine": True},
    nn.RMSNorm: {"eps": None, "elementwise_affine": True},
    nn.PReLU: {},
}


def norm_constructor(norms: Sequence[nn.Module], width: int, old: str = "old") -> str:
    """The call that makes normalisations of one class for another width."""
    first = norms[0]
    options = next((o for c, o in _OPTIONS.items() if isinstance(first, c)), None)
    if options is None:
        options = {"eps": 1e-05, "momentum": 0.1, "affine": True, "track_running_stats": True}
        if isinstance(first, nn.modules.instancenorm._InstanceNorm):
            options |= {"affine": False, "track_running_stats": False}
    parts = [f"{old}.num_groups"] if isinstance(first, nn.GroupNorm) else []
    parts.append(str(width))
    parts += [
        f"{k}={old}.{k}" for k, v in options.items() if any(getattr(n, k) != v for n in norms)
    ]
    if isinstance(first, nn.LayerNorm) and first.elementwise_affine and first.bias is None:
        parts.append("bias=False")
    return f"nn.{torch_class(first).__name__}({', '.join(parts)})"


def _differs(layers: Sequence[nn.Module], name: str, default: object) -> bool:
    """Whether one of the layers has another value than the default."""

    def plain(layer: nn.Module) -> bool:
        value = getattr(layer, name)
        return value == default or value == (default,) * len(layer.kernel_size)

    return not all(plain(layer) for layer in layers)


def _plain(layer: nn.Module, classes: Sequence[type]) -> str:
    return next(c.__name__ for c in classes if isinstance(layer, c))
