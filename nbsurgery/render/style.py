"""What the picture looks like: families of operations, colours of both themes, sizes, short texts.

The hues are Okabe and Ito's, which survive colour blindness; colour only repeats what the type's
text says already.
"""

from __future__ import annotations

from collections.abc import Iterable

# -- sizes, in px ---------------------------------------------------------------------------------
ROW = 26  # height of one operation
HEAD = 24  # title bar of an open module
BOX = 46  # front of a collapsed module, with its stacked edge
STACK = 4  # how far the card behind peeks out
GAP = 26  # free height between an item and what it feeds
SIDE = 14  # free width beside the items of an open module
CLEAR = 10  # free width between a lane and the items that it passes
NAME, TYPE, NOTE = 12, 10, 9.5  # font sizes: bold names, types, shapes and counts
LONGEST = 190  # a name or type is shortened beyond this width
FONTS = '"Helvetica Neue",Helvetica,Arial,"Liberation Sans",Arimo,sans-serif'

# -- families -------------------------------------------------------------------------------------
FAMILIES = {
    "conv": "#0072B2",
    "linear": "#56B4E9",
    "norm": "#009E73",
    "act": "#E69F00",
    "pool": "#CC79A7",
    "attn": "#D55E00",
    "merge": "#B79F00",
    "shape": "#7A869A",
    "drop": "#9AA5B1",
    "io": "#334155",
    "embed": "#8B6FD6",
    "other": "#64748B",
}

_EXACT = {
    "merge": "add sub mul div truediv floordiv cat concat concatenate stack hstack vstack dstack "
    "maximum minimum where lerp addcmul addcdiv radd rsub rmul iadd isub imul",
    "shape": "flatten view reshape permute transpose getitem chunk split tensor_split unbind expand "
    "expand_as repeat repeat_interleave contiguous size unsqueeze squeeze t mT swapaxes movedim roll "
    "pad unflatten Flatten Unflatten Permute narrow select index_select gather view_as tile flip "
    "broadcast_to to type_as float half bfloat16 long int type clone detach pixel_shuffle rot90 "
    "meshgrid zeros ones arange full empty zeros_like ones_like full_like new_zeros "
    "new_ones tensor setitem masked_fill tril triu index_copy scatter",
    "linear": "matmul bmm mm addmm baddbmm einsum linear bilinear Bilinear Conv1D",
    "attn": "softmax Softmax scaled_dot_product_attention MultiheadAttention",
    "act": "relu gelu silu sigmoid tanh elu selu mish softplus leaky_relu hardswish hardsigmoid "
    "log_softmax glu prelu celu relu6 hardtanh Threshold LogSoftmax Softplus Softsign GLU",
    "drop": "Identity identity StochasticDepth stochastic_depth DropPath",
    "embed": "Embedding embedding EmbeddingBag parameter",
    "other": "LSTM GRU RNN",
}
_BY_TYPE = {name: family for family, names in _EXACT.items() for name in names.split()}
_PARTS = (
    ("conv", ("conv",)),
    ("norm", ("norm", "frozenbn")),
    ("pool", ("pool", "interpolate", "upsample", "roialign", "roi_align")),
    ("attn", ("attention", "softmax")),
    ("drop", ("dropout", "stochasticdepth", "droppath")),
    ("linear", ("linear",)),
    ("embed", ("embedding",)),
    (
        "act",
        ("relu", "gelu", "silu", "sigmoid", "tanh", "swish", "mish", "elu", "shrink", "activation"),
    ),
)


def family(type: str) -> str:
    """The family of an operation, from its type's name.

    Example:
        >>> family("BatchNorm2d"), family("add"), family("anything")
        ('norm', 'merge', 'other')
    """
    found = _BY_TYPE.get(type) or _BY_TYPE.get(type.rstrip("_"))
    if found is None:
        low = type.lower()
        found = next((name for name, parts in _PARTS if any(p in low for p in parts)), "other")
        _BY_TYPE[type] = found
    return found


# -- short texts ----------------------------------------------------------------------------------
def count(number: float | None) -> str:
    """A count in at most six characters; nothing for zero.

    Example:
        >>> count(9408), count(36864), count(2_099_712), count(0)
        ('9,408', '36.9K', '2.1M', '')
    """
    if not number:
        return ""
    if number < 10_000:
        return f"{number:,}"
    for size, unit in ((1e3, "K"), (1e6, "M"), (1e9, "B")):
        if round(number / size, 1) < 1000:
            return f"{number / size:.1f}{unit}"
    return f"{number / 1e12:.1f}T"


def shape(dims: Iterable[int] | None, batch: int | None = None) -> str:
    """A shape without its batch axis.

    Args:
        dims: The whole shape; ``None`` where nothing is known.
        batch: Length of the batch axis: a first axis of this length is left out.

    Returns:
        ``"64×56×56"``; ``"N"`` for one number per sample, ``"scalar"`` for a single number.

    Example:
        >>> shape((1, 64, 56, 56), 1), shape((64, 49, 96), 1), shape((2,), 2), shape(())
        ('64×56×56', '64×49×96', 'N', 'scalar')
    """
    if dims is None:
        return ""
    dims = tuple(dims)
    if not dims:
        return "scalar"
    if batch is not None and dims[0] == batch:
        dims = dims[1:]
    return "×".join(map(str, dims)) or "N"


# -- colours --------------------------------------------------------------------------------------
LIGHT = {
    "bg": "#ffffff",
    "ink": "#0f172a",
    "muted": "#5c6a80",
    "sub": "#475569",
    "edge": "#7f8a9d",
    "skip": "#D55E00",
    "times": "#A84A00",
    "node": "#ffffff",
    "line": "#cbd5e1",
    "box": "#f5f7fb",
    "frame": "#cdd6e3",
    "tint1": "#f6f8fb",
    "tint2": "#eef2f7",
    "tint3": "#e7ecf3",
    "head1": "#e9eef5",
    "head2": "#e1e8f1",
    "head3": "#d8e0eb",
    "warn": "#92400E",
    "warnfill": "#FDE68A",
    "added": "#16794A",
    "removed": "#C0262D",
    "changed": "#8A5A00",
}
DARK = {
    "bg": "#0f1420",
    "ink": "#e8edf5",
    "muted": "#93a1b5",
    "sub": "#b4c0d0",
    "edge": "#66748a",
    "skip": "#ff9a5c",
    "times": "#ff9a5c",
    "node": "#182132",
    "line": "#33415a",
    "box": "#1a2438",
    "frame": "#2f3d57",
    "tint1": "#141b2a",
    "tint2": "#192234",
    "tint3": "#1e293e",
    "head1": "#1d283c",
    "head2": "#233048",
    "head3": "#2a3955",
    "warn": "#FBBF24",
    "warnfill": "#4A3705",
    "added": "#4ADE80",
    "removed": "#F87171",
    "changed": "#FBBF24",
}


def css(dark: bool | None = False) -> str:
    """The rules of a standalone picture, with literal colours: many viewers know no variables.

    ``None`` follows the page: an image takes its colour scheme from where it stands.
    """
    if dark is None:
        night = _rules(DARK).replace(".nbs ", f".nbs-{theme(None)} ")
        return _rules(LIGHT).replace(".nbs ", f".nbs-{theme(None)} ") + (
            f"@media (prefers-color-scheme:dark){{{night}}}"
        )
    # a page may hold a light and a dark picture
    return _rules(DARK if dark else LIGHT).replace(".nbs ", f".nbs-{theme(dark)} ")


def _rules(c: dict[str, str]) -> str:
    """The rules of one set of colours, for a picture of the class ``nbs``."""
    rules = [
        f".nbs text{{font-family:{FONTS};fill:{c['ink']}}}",
        f".nbs .bg{{fill:{c['bg']}}}",
        f".nbs .nm{{font-size:{NAME}px;font-weight:600}}",
        f".nbs .kd{{font-size:{TYPE}px;fill:{c['muted']}}}",
        f".nbs .sp{{font-size:{NOTE}px;fill:{c['muted']}}}",
        f".nbs .mod>text .kd{{fill:{c['sub']}}}",  # a title bar is darker than what lies on white
        f".nbs .pr{{font-size:{NOTE}px;fill:{c['sub']}}}",
        f".nbs .e{{fill:none;stroke:{c['edge']};stroke-width:1.5;stroke-linecap:round}}",
        f".nbs .e.skip{{stroke:{c['skip']};stroke-width:2}}",
        f".nbs .ae{{fill:{c['edge']}}}",
        f".nbs .as{{fill:{c['skip']}}}",
        f".nbs .op>.b{{fill:{c['node']};stroke:{c['line']}}}",
        f".nbs .sep{{stroke:{c['line']}}}",
        f".nbs .box>.b{{fill:{c['box']};stroke:{c['frame']}}}",
        f".nbs .io>.b{{fill:{c['ink']}}}",
        f".nbs .io text{{fill:{c['bg']}}}",
        f".nbs .mod>.b{{stroke:{c['frame']}}}",
        f".nbs .xn{{font-size:11px;font-weight:700;fill:{c['times']}}}",
        (
            f".nbs .chev{{fill:none;stroke:{c['muted']};stroke-width:1.4;stroke-linecap:round;"
            "stroke-linejoin:round}"
        ),
        (
            f".nbs .badge path{{fill:{c['warnfill']};stroke:{c['warn']};stroke-width:1.2;"
            "stroke-linejoin:round}"
        ),
        f".nbs .badge text{{font-size:8.5px;font-weight:700;fill:{c['warn']}}}",
        f".nbs .more rect{{fill:{c['box']};stroke:{c['edge']}}}",
        f".nbs .more text{{font-size:{NOTE}px;font-weight:700;fill:{c['sub']}}}",
        ".nbs .more .e{stroke-dasharray:3 3;visibility:hidden}",
        ".nbs .more:hover .e{visibility:visible}",
        f".nbs .failed .b{{stroke:{c['removed']};stroke-width:2}}",
    ]
    for depth in (1, 2, 3):
        rules.append(f".nbs .d{depth}>.b{{fill:{c[f'tint{depth}']}}}")
        rules.append(f".nbs .d{depth}>.hd{{fill:{c[f'head{depth}']}}}")
    for state in ("added", "removed", "changed"):
        rules.append(f".nbs .{state}>.b{{stroke:{c[state]};stroke-width:2}}")
    return "".join(rules)


def theme(dark: bool | None) -> str:
    """What classes and ids of a theme end with."""
    return "auto" if dark is None else "dark" if dark else "light"
