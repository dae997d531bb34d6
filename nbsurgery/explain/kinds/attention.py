"""Attention, transformers' own layers, recurrent layers."""

from torch import nn

from ...errors import an
from ..subject import Subject, number, plural, sentences, shape, words


@words(nn.MultiheadAttention)
def multihead(subject: Subject) -> str:
    """Heads, their width, what looks at what."""
    layer = subject.module
    head = layer.embed_dim // layer.num_heads
    length = ""
    if len(subject.x) == 3:
        tokens = subject.x[1] if layer.batch_first else subject.x[0]
        length = (
            f"Each of {tokens} positions weighs all the others: {tokens}·{tokens} weights per head"
        )
    return sentences(
        f"Attention with {plural(layer.num_heads, 'head')} of {head}: {layer.num_heads}·{head} = "
        f"{layer.embed_dim}",
        length,
        f"{number(subject.params)} parameters, for queries, keys, values and the output",
    )


@words("scaled_dot_product_attention")
def attention(subject: Subject) -> str | None:
    """softmax(QKᵀ/√d)·V with the numbers in it."""
    if len(subject.inputs) < 3 or len(subject.x) < 2:
        return None
    queries, keys, width = subject.x[-2], subject.inputs[1].shape[-2], subject.x[-1]
    heads = f"In each of {plural(subject.x[-3], 'head')}, " if len(subject.x) > 3 else ""
    causal = "Positions see only what came before" if subject.arg("is_causal", 5, False) else ""
    text = f"{heads}each of {queries} queries weighs {keys} keys and takes the mean of their values"
    return sentences(
        text[0].upper() + text[1:],
        f"The weights are softmax(q·k / √{width})",
        causal,
    )


@words(nn.RNNBase)
def recurrent(subject: Subject) -> str:
    """Steps, layers, directions."""
    layer = subject.module
    both = " in both directions" if layer.bidirectional else ""
    steps = ""
    if len(subject.x) == 3:
        count = subject.x[1] if layer.batch_first else subject.x[0]
        steps = f"It walks through {count} steps, one after the other"
    return sentences(
        f"A{an(type(layer).__name__)[1:]} of {plural(layer.num_layers, 'layer')}{both} from "
        f"{layer.input_size} numbers to a state of {layer.hidden_size}",
        steps,
        f"{number(subject.params)} parameters",
        f"It gives {plural(len(subject.node.outputs), 'tensor')}, the first {shape(subject.y, True)}",
    )
