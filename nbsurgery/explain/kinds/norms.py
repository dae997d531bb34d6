"""Normalisation layers."""

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from ...errors import an
from ..subject import Subject, plural, sentences, shape, words


@words(_BatchNorm)
def batch_norm(subject: Subject) -> str:
    """Which statistics a BatchNorm uses now, and what it learns."""
    norm = subject.module
    if norm.training or not norm.track_running_stats:
        how = "taken over the batch (train mode)" if norm.training else "taken over the batch"
        moving = "The running statistics move with every call" if norm.track_running_stats else ""
    else:
        how, moving = "kept from training (eval mode: it is a fixed scale and shift)", ""
    learned = (
        f"It learns a scale and a shift per channel: 2·{norm.num_features} = {2 * norm.num_features}"
        if norm.affine
        else "It learns nothing (affine=False)"
    )
    return sentences(
        f"Normalises each of {plural(norm.num_features, 'channel')} by a mean and a variance {how}",
        moving,
        learned,
    )


@words(nn.LayerNorm)
def layer_norm(subject: Subject) -> str:
    """What a LayerNorm averages over."""
    norm = subject.module
    sizes = "×".join(map(str, norm.normalized_shape))
    learned = "" if norm.elementwise_affine else "; it learns nothing"
    return sentences(
        f"Normalises each position over its own {sizes} numbers, alike in training and evaluation",
        f"{plural(subject.params, 'parameter')}: a scale and a shift for each"
        if subject.params
        else learned.strip("; "),
    )


@words(nn.GroupNorm)
def group_norm(subject: Subject) -> str:
    """Groups of channels, per example."""
    norm = subject.module
    return sentences(
        f"Normalises each example over {plural(norm.num_groups, 'group')} of "
        f"{plural(norm.num_channels // norm.num_groups, 'channel')}, whatever the batch",
        f"{plural(subject.params, 'parameter')}" if subject.params else "",
    )


@words(_InstanceNorm)
def instance_norm(subject: Subject) -> str:
    """Each channel of each example by itself."""
    return f"Normalises each channel of each example by itself ({shape(subject.y)})"


@words("batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm")
def functional(subject: Subject) -> str:
    """A normalisation written as a function."""
    name = subject.node.type.replace("_", " ")
    return (
        f"A{an(name)[1:]} with weights that are no layer's own; the shape stays {shape(subject.y)}"
    )
