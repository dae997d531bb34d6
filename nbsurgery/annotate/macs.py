"""``macs``: multiply-accumulates of layers and of matrix products written as functions.

Counted from the recorded shapes: convolutions, linear layers, attention, recurrent layers, and the
matrix products of torch (``matmul``, ``@``, ``bmm``, ``einsum``, ``F.linear``, …). Additions, biases,
activations and normalisations are not multiply-accumulates. One MAC is two FLOPs.
"""

from __future__ import annotations

import math

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
            count = _FUNCTIONS.get(node.type)
            own[node.id] = count(subject, node) if count is not None else 0
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


def _operands(subject: Subject, node: Node) -> list[Tensor]:
    values = [*node.args, *node.kwargs.values()]
    return [t for t in map(subject.tensor, values) if t is not None]


def _matmul(subject: Subject, node: Node) -> int:
    given = _operands(subject, node)
    if len(given) < 2:
        return 0
    return math.prod(node.outputs[0].shape) * given[0].shape[-1]


def _added(subject: Subject, node: Node) -> int:
    """``addmm(bias, a, b)`` and its kin."""
    given = _operands(subject, node)
    if len(given) < 3:
        return 0
    return math.prod(node.outputs[0].shape) * given[1].shape[-1]


def _linear(subject: Subject, node: Node) -> int:
    given = _operands(subject, node)
    return math.prod(node.outputs[0].shape) * given[0].shape[-1] if given else 0


def _convolution(subject: Subject, node: Node) -> int:
    given = _operands(subject, node)
    if len(given) < 2:
        return 0
    return math.prod(node.outputs[0].shape) * math.prod(given[1].shape[1:])


def _transposed(subject: Subject, node: Node) -> int:
    given = _operands(subject, node)
    return math.prod(given[0].shape) * math.prod(given[1].shape[1:]) if len(given) > 1 else 0


def _sdpa(subject: Subject, node: Node) -> int:
    given = _operands(subject, node)
    if len(given) < 3:
        return 0
    query, key, value = (t.shape for t in given[:3])
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _einsum(subject: Subject, node: Node) -> int:
    """The product over every index that occurs, for two operands."""
    equation = next((a for a in node.args if isinstance(a, str)), None)
    operands = [a for a in node.args if not isinstance(a, str)]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    shapes = [t.shape for t in map(subject.tensor, operands) if t is not None]
    if equation is None or len(shapes) != 2:
        return 0
    sizes: dict[str, int] = {}
    rest = 1
    terms = equation.replace(" ", "").split("->")[0].split(",")
    for term, shape in zip(terms, shapes, strict=False):
        if "..." in term:
            before, after = term.split("...")
            middle = shape[len(before) : len(shape) - len(after)]
            rest = max(rest, math.prod(middle))
            pairs = [*zip(before, shape, strict=False)]
            pairs += zip(after, shape[len(shape) - len(after) :], strict=False)
        else:
            pairs = list(zip(term, shape, strict=False))
        for letter, length in pairs:
            sizes[letter] = max(sizes.get(letter, 1), length)
    return rest * math.prod(sizes.values())


def _mha_function(subject: Subject, node: Node) -> int:
    """``F.multi_head_attention_forward`` on (length, batch, width)."""
    given = _operands(subject, node)
    if len(given) < 3:
        return 0
    query, key = given[0].shape, given[1].shape
    length, batch, width = query[0], query[1], query[-1]
    source = key[0]
    projections = width * width * (2 * length + 2 * source)
    return batch * (projections + 2 * length * source * width)


_FUNCTIONS = {
    "matmul": _matmul, "mm": _matmul, "bmm": _matmul, "mv": _matmul, "dot": _matmul,
    "linear": _linear, "addmm": _added, "baddbmm": _added, "addbmm": _added, "addmv": _added,
    "conv1d": _convolution, "conv2d": _convolution, "conv3d": _convolution,
    "conv_transpose1d": _transposed, "conv_transpose2d": _transposed,
    "conv_transpose3d": _transposed, "scaled_dot_product_attention": _sdpa, "einsum": _einsum,
    "multi_head_attention_forward": _mha_function, "__matmul__": _matmul,
}  # fmt: skip
