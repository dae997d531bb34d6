"""Pooling layers and functions."""

from torch import nn
from torch.nn.modules import pooling

from ..subject import Subject, each, sentences, shape, words

_DIMS = {"1d": 1, "2d": 2, "3d": 3}


def _grid(sizes: tuple[int, ...], dims: int) -> str:
    return "×".join(map(str, sizes[-dims:]))


def _change(subject: Subject, dims: int) -> str:
    if len(subject.x) < dims or len(subject.y) < dims:
        return ""
    return f"{_grid(subject.x, dims)} becomes {_grid(subject.y, dims)}, channel by channel"


def _dims(name: str) -> int:
    return next((n for mark, n in _DIMS.items() if name.endswith(mark)), 2)


@words(pooling._MaxPoolNd, pooling._AvgPoolNd)
def window_pool(subject: Subject) -> str:
    """The largest or the mean of each window."""
    layer = subject.module
    return _window(subject, type(layer).__name__, layer.kernel_size, layer.stride, layer.padding)


@words("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d")
def window_function(subject: Subject) -> str:
    """The same, written as a function."""
    kernel = subject.arg("kernel_size", 1)
    stride = subject.arg("stride", 2) or kernel
    return _window(subject, subject.node.type, kernel, stride, subject.arg("padding", 3, 0))


def _window(subject: Subject, name: str, kernel, stride, padding) -> str:
    dims = _dims(name)
    what = "the largest number" if "max" in name.lower() else "the mean"
    size = "×".join([each(kernel)] * dims) if "×" not in each(kernel) else each(kernel)
    pad = f", padded by {each(padding)}" if padding not in (0, (0,) * dims, [0] * dims) else ""
    return sentences(
        f"Keeps {what} of each {size} window, {each(stride)} apart{pad}",
        _change(subject, dims),
        "It learns nothing",
    )


@words(
    pooling._AdaptiveAvgPoolNd,
    pooling._AdaptiveMaxPoolNd,
    *(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)),
)
def adaptive(subject: Subject) -> str:
    """Any grid to a fixed one."""
    name = type(subject.module).__name__ if subject.module is not None else subject.node.type
    dims = _dims(name)
    what = "largest" if "max" in name.lower() else "mean"
    if len(subject.y) >= dims and set(subject.y[-dims:]) == {1}:
        text = f"Takes the {what} of each channel over the whole grid: one number per channel"
    else:
        text = f"Divides any grid into the fixed one, and takes the {what} of each part"
    return sentences(text, _change(subject, dims), "So other input sizes fit as well")


@words(nn.MaxUnpool1d, nn.MaxUnpool2d, nn.MaxUnpool3d)
def unpool(subject: Subject) -> str:
    """Back to where the largest came from."""
    return f"Puts each number back where the largest one was: {shape(subject.y)}"
