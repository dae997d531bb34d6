"""Convolutions, plain and transposed."""

from torch import nn

from ..subject import Subject, each, number, plural, sentences, shape, times, tuple_of, words


@words(nn.Conv1d, nn.Conv2d, nn.Conv3d)
def convolution(subject: Subject) -> str:
    """What a convolution computes, how the grid changes, where its weights come from."""
    conv = subject.module
    dims = len(conv.kernel_size)
    kernel = times(conv.kernel_size, dims)
    depthwise = conv.groups == conv.in_channels and conv.groups > 1
    per_group = conv.in_channels // conv.groups
    products = per_group
    for size in conv.kernel_size:
        products *= size
    kind = "depthwise convolution" if depthwise else "convolution"
    grouped = ""
    if conv.groups > 1 and not depthwise:
        grouped = f"The channels are cut into {conv.groups} groups that do not see each other"
    if set(conv.kernel_size) == {1}:
        seen = "each output mixes the channels at one position and looks at no neighbours"
    else:
        seen = f"each output looks at a {kernel} window"
    formula = "·".join(map(str, (conv.out_channels, per_group, *conv.kernel_size)))
    weights = f"Weights: {formula} = {number(conv.weight.numel())}" + (
        f", and a bias of {conv.out_channels}" if conv.bias is not None else ", no bias"
    )
    return sentences(
        f"A {kernel} {kind} from {plural(conv.in_channels, 'channel')} to {conv.out_channels}: {seen}",
        grouped,
        _grid(subject, dims),
        f"Each output number is a sum of {number(products)} products",
        weights,
    )


def _grid(subject: Subject, dims: int) -> str:
    """How the spatial size comes about: the formula with the numbers in it, for the first axis."""
    conv = subject.module
    if len(subject.x) <= dims or len(subject.y) <= dims:
        return ""
    before, after = subject.x[-dims:], subject.y[-dims:]
    stride, dilation = each(conv.stride), each(conv.dilation)
    gap = f", with gaps (dilation {dilation})" if set(conv.dilation) != {1} else ""
    step = f"It moves by {stride}" if set(conv.stride) != {1} else "It moves by 1"
    padding = conv.padding
    if isinstance(padding, str):
        return f"{step}{gap}, padding {padding!r}: {'×'.join(map(str, before))} becomes " + (
            "×".join(map(str, after))
        )
    sizes = f"{'×'.join(map(str, before))} becomes {'×'.join(map(str, after))}"
    if before == after:
        sizes = f"the size stays {'×'.join(map(str, before))}"
    p, k, s, d = (
        tuple_of(v, dims)[0] for v in (padding, conv.kernel_size, conv.stride, conv.dilation)
    )
    reach = f"{d}·({k}-1)" if d != 1 else f"({k}-1)"
    formula = f" (({before[0]} + 2·{p} - {reach} - 1) / {s} + 1, rounded down, = {after[0]})"
    return f"{step}{gap}, padded by {each(padding)}: {sizes}{formula if before != after else ''}"


@words(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
def transposed(subject: Subject) -> str:
    """A transposed convolution: each input spreads over a window."""
    conv = subject.module
    kernel = times(conv.kernel_size, len(conv.kernel_size))
    return sentences(
        f"A transposed {kernel} convolution from {plural(conv.in_channels, 'channel')} to "
        f"{conv.out_channels}: each input number is spread over a {kernel} window, "
        f"{each(conv.stride)} apart",
        f"{shape(subject.x)} becomes {shape(subject.y)}" if subject.x and subject.y else "",
        f"{number(subject.params)} parameters",
    )


@words("conv1d", "conv2d", "conv3d")
def functional(subject: Subject) -> str | None:
    """A convolution whose weight comes from elsewhere."""
    if len(subject.inputs) < 2:
        return None
    out, per_group, *kernel = subject.inputs[1].shape
    return sentences(
        f"A {'×'.join(map(str, kernel))} convolution to {plural(out, 'channel')}, each from "
        f"{plural(per_group, 'channel')}, with a weight that is no layer's own",
        f"{shape(subject.x)} becomes {shape(subject.y)}",
    )
