"""Linear layers, embeddings, products of matrices."""

from torch import nn

from ..subject import Subject, number, plural, sentences, shape, words


@words(nn.Linear)
def linear(subject: Subject) -> str:
    """Each output is a weighted sum of all inputs."""
    layer = subject.module
    bias = f" + {layer.out_features}" if layer.bias is not None else ""
    total = layer.weight.numel() + (layer.bias.numel() if layer.bias is not None else 0)
    rows = ""
    if len(subject.x) > 2:
        rows = (
            f"The same layer is applied at each of {'×'.join(map(str, subject.x[1:-1]))} positions"
        )
    return sentences(
        f"Each of {plural(layer.out_features, 'output')} is a weighted sum of all "
        f"{plural(layer.in_features, 'input')}{' plus a bias' if layer.bias is not None else ''}",
        rows,
        f"Weights: {layer.out_features}·{layer.in_features}{bias} = {number(total)}",
    )


@words(nn.Bilinear)
def bilinear(subject: Subject) -> str:
    """Products of pairs."""
    layer = subject.module
    return (
        f"Each of {plural(layer.out_features, 'output')} is a weighted sum of all products of one of "
        f"{layer.in1_features} and one of {layer.in2_features} inputs"
    )


@words(nn.Embedding)
def embedding(subject: Subject) -> str:
    """A table, looked up by number."""
    layer = subject.module
    pad = (
        f"Row {layer.padding_idx} is padding and never learns"
        if layer.padding_idx is not None
        else ""
    )
    return sentences(
        f"Looks numbers up in a table: each of {plural(layer.num_embeddings, 'number')} has a learned "
        f"vector of {layer.embedding_dim}",
        f"Weights: {layer.num_embeddings}·{layer.embedding_dim} = {number(layer.weight.numel())}",
        pad,
        f"{shape(subject.x, batch=True)} becomes {shape(subject.y, batch=True)}"
        if subject.x and subject.y
        else "",
    )


@words("linear")
def functional(subject: Subject) -> str | None:
    """A linear map whose weight comes from elsewhere."""
    if not subject.x or not subject.y:
        return None
    return (
        f"Each of {plural(subject.y[-1], 'output')} is a weighted sum of all {subject.x[-1]} inputs, "
        "with a weight that is no layer's own"
    )


@words("matmul", "bmm", "mm", "baddbmm", "einsum")
def product(subject: Subject) -> str | None:
    """Two tensors multiplied as matrices."""
    if len(subject.inputs) < 2:
        return None
    a, b = subject.inputs[:2]
    return (
        f"Multiplies matrices: {shape(a.shape, batch=True)} by {shape(b.shape, batch=True)} gives "
        f"{shape(subject.y, batch=True)}"
    )
