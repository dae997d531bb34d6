"""``macs``: multiply-accumulates of layers and of matrix products written as functions.

Counted from the recorded shapes: convolutions, linear layers, attention, recurrent layers, and the
matrix products of torch (``matmul``, ``@``, ``bmm``, ``einsum``, ``F.linear``, …). Additions,
biases, activations and normalisations are not multiply-accumulates. One MAC is two FLOPs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import nn

from nbsurgery.annotate.subject import Subject
from nbsurgery.graph import Node, Tensor


def measure(subject: Subject) -> tuple[dict, dict]:
    """MACs by node id, and the total."""
    own: dict[str, int] = {}
    for node in subject.walk():
        if node.child is not None or not node.outputs:
            continue
        if node.kind == "module":
            module = subject.module(node)
            own[node.id] = of_layer(module, subject, node) if module is not None else 0
        elif node.kind in ("function", "method"):
            own[node.id] = of_function(subject, node)
    return {"macs": subject.roll_up(own)}, {"macs": sum(own.values())}


def of_layer(module: nn.Module, subject: Subject, node: Node) -> int:
    """MACs of one call of a layer."""
    out = node.outputs[0].shape
    given = [t for t in map(subject.tensor, node.args) if t is not None]
    given += [t for t in map(subject.tensor, node.kwargs.values()) if t is not None]
    if isinstance(module, nn.modules.conv._ConvTransposeNd):
        kernel = math.prod(module.kernel_size)
        inner = math.prod(given[0].shape) if given else 0
        return inner * (module.out_channels // module.groups) * kernel
    if isinstance(module, nn.modules.conv._ConvNd):
        return (
            math.prod(out) * math.prod(module.kernel_size) * (module.in_channels // module.groups)
        )
    if isinstance(module, nn.Linear):
        return math.prod(out) * module.in_features
    if isinstance(module, nn.Bilinear):
        return math.prod(out) * module.in1_features * (module.in2_features + 1)
    if isinstance(module, nn.RNNBase):
        return _recurrent(module, given)
    if isinstance(module, (nn.LSTMCell, nn.GRUCell, nn.RNNCell)):
        batch = given[0].shape[0] if given and len(given[0].shape) > 1 else 1
        return batch * (module.weight_ih.numel() + module.weight_hh.numel())
    if isinstance(module, nn.MultiheadAttention):
        return _attention(module, given)
    return 0


def _recurrent(module: nn.RNNBase, given: list[Tensor]) -> int:
    """Every weight matrix is used once for each time step of each sequence."""
    if not given:
        return 0
    shape = given[0].shape
    # (time, batch, features) in either order; packed sequences are (all steps, features).
    steps = shape[0] * shape[1] if len(shape) == 3 else shape[0]
    matrices = sum(p.numel() for n, p in module.named_parameters() if n.startswith("weight"))
    return steps * matrices


def _attention(module: nn.MultiheadAttention, given: list[Tensor]) -> int:
    """Three projections in, two products of attention, one projection out."""
    if len(given) < 1:
        return 0
    query = given[0].shape
    key = given[1].shape if len(given) > 1 else query
    if len(query) == 3:
        batch = query[0] if module.batch_first else query[1]
        length = query[1] if module.batch_first else query[0]
        source = key[1] if module.batch_first else key[0]
    else:
        batch, length, source = 1, query[0], key[0]
    width = module.embed_dim
    projections = (
        length * width * width + source * module.kdim * width + source * module.vdim * width
    )
    source += (module.bias_k is not None) + bool(module.add_zero_attn)
    products = 2 * length * source * width
    return batch * (projections + products + length * width * width)


@dataclass(frozen=True)
class Product:
    """One product: the tensors that met, in order, what came out, and the equation of an einsum."""

    given: tuple[Tensor, ...]
    out: Tensor
    equation: str | None = None


def _of_node(subject: Subject, node: Node) -> Product:
    values = [*node.args, *node.kwargs.values()]
    equation = next((a for a in node.args if isinstance(a, str)), None)
    flat = [v for a in values for v in (a if isinstance(a, (list, tuple)) else (a,))]
    given = tuple(t for t in map(subject.tensor, flat) if t is not None)
    return Product(given, node.outputs[0], equation)


def of_function(subject: Subject, node: Node) -> int:
    """MACs of a function or method; of one that is kept whole, those of the products inside."""
    inside = node.facts.get("inside")
    if inside:
        return sum(_count(name, Product(given, out, text)) for name, given, out, text in inside)
    return _count(node.type, _of_node(subject, node)) if node.type in _FUNCTIONS else 0


def _count(name: str, product: Product) -> int:
    least, count = _FUNCTIONS.get(name, (0, None))
    return count(product) if count is not None and len(product.given) >= least else 0


def _matmul(p: Product) -> int:
    return math.prod(p.out.shape) * p.given[0].shape[-1]


def _added(p: Product) -> int:
    """``addmm(bias, a, b)`` and its kin."""
    return math.prod(p.out.shape) * p.given[1].shape[-1]


def _convolution(p: Product) -> int:
    return math.prod(p.out.shape) * math.prod(p.given[1].shape[1:])


def _transposed(p: Product) -> int:
    return math.prod(p.given[0].shape) * math.prod(p.given[1].shape[1:])


def _sdpa(p: Product) -> int:
    query, key, value = (t.shape for t in p.given[:3])
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _einsum(p: Product) -> int:
    """The product over every index that occurs, for two operands."""
    shapes = [t.shape for t in p.given]
    if p.equation is None or len(shapes) != 2:
        return 0
    sizes: dict[str, int] = {}
    rest = 1
    terms = p.equation.replace(" ", "").split("->")[0].split(",")
    for term, shape in zip(terms, shapes, strict=False):
        before, dots, after = term.partition("...")
        if dots:
            rest = max(rest, math.prod(shape[len(before) : len(shape) - len(after)]))
        pairs = [*zip(before, shape, strict=False)]
        pairs += zip(after, shape[len(shape) - len(after) :], strict=False)
        for letter, length in pairs:
            sizes[letter] = max(sizes.get(letter, 1), length)
    return rest * math.prod(sizes.values())


def _mha_function(p: Product) -> int:
    """``F.multi_head_attention_forward`` on (length, batch, width)."""
    query, key = p.given[0].shape, p.given[1].shape
    length, batch, width = query[0], query[1], query[-1]
    source = key[0]
    projections = width * width * (2 * length + 2 * source)
    return batch * (projections + 2 * length * source * width)


# By name of the function: how many tensors it needs, and the count.
_FUNCTIONS = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "__matmul__", "imatmul"), (2, _matmul)),
    "linear": (1, _matmul),
    **dict.fromkeys(("addmm", "baddbmm", "addbmm", "addmv"), (3, _added)),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), (2, _convolution)),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), (2, _transposed)),
    "scaled_dot_product_attention": (3, _sdpa),
    "einsum": (2, _einsum),
    "multi_head_attention_forward": (3, _mha_function),
}
