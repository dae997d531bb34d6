"""Activations, dropout, softmax."""

from torch import nn

from ..subject import Subject, sentences, shape, words

_FORMULA = {
    "relu": "max(0, x): what is negative becomes 0",
    "relu6": "min(max(0, x), 6)",
    "leakyrelu": "x where positive, a small part of x where negative",
    "prelu": "x where positive, a learned part of x where negative",
    "elu": "x where positive, exp(x) - 1 where negative",
    "selu": "a scaled ELU that keeps mean and variance",
    "celu": "a smooth ELU",
    "gelu": "x·Φ(x): like ReLU, with a soft bend",
    "silu": "x·sigmoid(x), also called swish",
    "mish": "x·tanh(log(1 + exp(x)))",
    "hardswish": "x·relu6(x + 3)/6, a cheap swish",
    "hardsigmoid": "relu6(x + 3)/6, a cheap sigmoid",
    "hardtanh": "x, cut to a range",
    "sigmoid": "1/(1 + exp(-x)): between 0 and 1",
    "tanh": "between -1 and 1",
    "softplus": "log(1 + exp(x)), a smooth ReLU",
    "logsigmoid": "log of the sigmoid",
    "softsign": "x/(1 + |x|)",
    "tanhshrink": "x - tanh(x)",
    "threshold": "x above a threshold, else a fixed value",
    "exp": "the exponential",
    "clamp": "x, cut to a range",
}


@words(
    *(
        getattr(nn, name)
        for name in [
            "ReLU",
            "ReLU6",
            "LeakyReLU",
            "PReLU",
            "ELU",
            "SELU",
            "CELU",
            "GELU",
            "SiLU",
            "Mish",
            "Hardswish",
            "Hardsigmoid",
            "Hardtanh",
            "Sigmoid",
            "Tanh",
            "Softplus",
            "LogSigmoid",
            "Softsign",
            "Tanhshrink",
            "Threshold",
        ]
    ),
    *[
        "relu",
        "relu6",
        "leaky_relu",
        "prelu",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "mish",
        "hardswish",
        "hardsigmoid",
        "hardtanh",
    ],
    *[
        "sigmoid",
        "tanh",
        "softplus",
        "logsigmoid",
        "softsign",
        "tanhshrink",
        "threshold",
        "exp",
        "clamp",
    ],
)
def activation(subject: Subject) -> str:
    """One formula, applied to each number."""
    name = type(subject.module).__name__ if subject.module is not None else subject.node.type
    formula = next(
        (_FORMULA[k] for k in (name.lower(), name.lower().replace("_", "")) if k in _FORMULA), ""
    )
    learned = f"It learns {subject.params} numbers" if subject.params else ""
    kept = f"The shape stays {shape(subject.y)}" if subject.y else ""
    call = (
        "It is a call in the forward, so no list of modules shows it"
        if subject.module is None
        else ""
    )
    return sentences(f"{name} of each number: {formula}" if formula else name, kept, learned, call)


@words(nn.modules.dropout._DropoutNd, "dropout", "dropout1d", "dropout2d", "dropout3d",
       "alpha_dropout", "feature_dropout", "stochastic_depth")  # fmt: skip
def dropout(subject: Subject) -> str:
    """What it does in each mode, and which mode is on."""
    if subject.module is not None:
        p, training = subject.module.p, subject.module.training
    else:
        p, training = subject.arg("p", 1, 0.5), subject.arg("training", 2)
        if training is not None:
            training = bool(training)
    share = f"{p:.0%}" if isinstance(p, (int, float)) else "a part"
    now = {
        True: "It is in train mode now, so two calls differ",
        False: "It is in eval mode now and does nothing",
    }.get(training, "")
    if p == 0:
        return sentences("Drops nothing: its rate is 0")
    return sentences(
        f"In training, sets {share} of the numbers to 0 at random and scales up the rest", now
    )


@words(nn.Softmax, nn.LogSoftmax, "softmax", "log_softmax", nn.Softmin)
def softmax(subject: Subject) -> str:
    """Numbers that sum to 1 along an axis."""
    axis = getattr(subject.module, "dim", None)
    axis = subject.arg("dim", 1) if axis is None else axis
    log = "logarithms of " if "log" in subject.node.type.lower() else ""
    where = f"axis {axis}" if axis is not None else "one axis"
    size = ""
    if isinstance(axis, int) and subject.y and -len(subject.y) <= axis < len(subject.y):
        size = f" of {subject.y[axis]}"
    return f"Turns the numbers along {where}{size} into {log}shares that sum to 1"
