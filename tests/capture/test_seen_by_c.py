"""Sizes that leave Python's arithmetic: texts, keys, indices, types. Followed, or on record."""

import itertools
import math
import random
from fractions import Fraction
from math import floor, isqrt

import numpy
import pytest
import torch
from torch import nn

from nbsurgery.capture import capture, replay
from nbsurgery.errors import ReplayRefused


class Of(nn.Module):
    """A function of the input, and things to index."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.table = [float(i) for i in range(20)]
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(5))
        self.chain = nn.Sequential(*[nn.Linear(4, 4) for _ in range(5)])

    def forward(self, x):
        return self.function(self, x)


def assertions(self, x):
    assert x.shape[1] > 2, f"{x.shape[0]} rows of {x.shape[1]}"
    torch._assert(x.shape[1] > 2, f"{x.shape[0]} rows")
    if x.shape[1] > 9:
        raise ValueError(f"{x.shape[0]} rows are too wide")
    return x + 1


def named(self, x):
    n = x.shape[0]
    return x * self.table[n]


def literal(self, x):
    n = x.shape[0] - 1
    y = x + 1
    return y * (1.0, 2.0, 3.0, 4.0, 5.0)[n]


def layers(self, x):
    for layer in self.layers[: x.shape[0]]:
        x = layer(x)
    return x


def caught(self, x):
    try:
        x.view(2, 4)
        return x + 1
    except RuntimeError:
        return x + 2


FOLLOWED = {
    "type": lambda self, x: x * 2 if type(x.shape[0]) is int else x,
    "type of a number": lambda self, x: x * 2 if type(len(self.table)) is int else x,
    "type of a scale": lambda self, x: x * 2 if type(x.shape[0] / 2) in (int, float) else x,
    "math": lambda self, x: x * math.gcd(x.shape[0], 6) + math.prod(x.shape),
    "math by name": lambda self, x: x * isqrt(x.shape[0] * 10) + floor(x.shape[0] / 2),
    "bits": lambda self, x: x * x.shape[0].bit_length(),
    "a message": assertions,
    "int of a tensor": lambda self, x: x.new_zeros(int(x.abs().max() * 0) + x.shape[0], 4) + x,
    "float of a tensor": lambda self, x: x * float(x.max()),
    "a tensor index": lambda self, x: x[: x.shape[0] - 1, : x.shape[1]],
}
RECORDED = {
    "an f-string": (lambda self, x: x * len(f"{x.shape[0] * 5}"), "x.shape"),
    "str": (lambda self, x: x * float(str(x.shape[0])), "str"),
    "a dict": (lambda self, x: x * {9: 1.0}.get(x.shape[0], 2.0), "get"),
    "a set": (lambda self, x: x * 2 if x.shape[0] in {3, 9} else x, "x.shape"),
    "a list": (lambda self, x: x * self.table[x.shape[0]], "self.table"),
    "a list by arithmetic": (lambda self, x: x * self.table[x.shape[0] // 2 * 2], "self.table"),
    "a list by a variable": (named, "self.table"),
    "a literal": (literal, "[n]"),
    "a slice of a list": (lambda self, x: x * sum(self.table[: x.shape[0]]), "self.table"),
    "a ModuleList": (lambda self, x: self.layers[x.shape[0]](x), "self.layers"),
    "a slice of a ModuleList": (layers, "self.layers"),
    "a Sequential": (lambda self, x: self.chain[x.shape[0]](x), "self.chain"),
    "numel of a size": (lambda self, x: x + x.shape.numel(), "numel"),
    "a repetition": (lambda self, x: x + sum(itertools.repeat(1, x.shape[0])), "repeat"),
    "a fraction": (lambda self, x: x * float(Fraction(x.shape[0], 3)), "float"),
    "a complex number": (lambda self, x: (x * complex(x.shape[0], 1)).real, "complex"),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_size_is_followed(name):
    """Another batch gives what the model gives."""
    model = Of(FOLLOWED[name])
    graph = capture(model, (torch.randn(2, 4),))
    for batch in (2, 3, 7):
        x = torch.randn(batch, 4)
        assert torch.equal(replay(graph, model, (x,)), model(x))


@pytest.mark.parametrize("name", RECORDED)
def test_a_size_that_leaves_arithmetic_is_on_record(name):
    """Exact while it stays, refused with the author's expression where it does not."""
    function, text = RECORDED[name]
    model = Of(function)
    graph = capture(model, (torch.randn(2, 4),))
    x = torch.randn(2, 4)
    assert torch.equal(replay(graph, model, (x,)), model(x))
    with pytest.raises(ReplayRefused, match="in the recorded run and is"):
        replay(graph, model, (torch.randn(4, 4),))
    found = [s.expression for s in graph.specialisations]
    assert any(text in expression for expression in found), found


def test_an_axis_that_is_not_read_stays_free():
    """``x.shape[1:].numel()`` and ``table[x.shape[1]]`` say nothing about the batch."""
    for function in (
        lambda self, x: x * x.shape[1:].numel(),
        lambda self, x: x * self.table[x.shape[1]],
    ):
        model = Of(function)
        graph = capture(model, (torch.randn(2, 4),))
        x = torch.randn(5, 4)
        assert torch.equal(replay(graph, model, (x,)), model(x))
        with pytest.raises(ReplayRefused):
            replay(graph, model, (torch.randn(2, 6),))


def test_a_truth_value_taken_from_a_tensor_is_on_record():
    """``.item()`` of a bool is a branch like any other."""
    model = Of(lambda self, x: x * 2 if (x > 0).all().item() else x)
    graph = capture(model, (torch.ones(2, 4),))
    with pytest.raises(ReplayRefused):
        replay(graph, model, (-torch.ones(2, 4),))


def test_an_error_that_was_caught_holds_for_these_inputs():
    """Whether an operation raises is not seen on another input, so that is refused."""
    model = Of(caught)
    x = torch.randn(3, 4)
    graph = capture(model, (x,))
    assert torch.equal(replay(graph, model, (x,)), model(x))
    with pytest.raises(ReplayRefused, match="view raised"):
        replay(graph, model, (torch.randn(2, 4),))


def test_numbers_that_python_draws_are_drawn_anew():
    """As those of torch are: the same seed gives what the model gives, another one something else."""
    model = Of(lambda self, x: x * random.uniform(1, 2) + float(numpy.random.rand()))
    x = torch.randn(2, 4)
    state = random.getstate()
    graph = capture(model, (x,))
    assert random.getstate() == state
    for seed in (1, 2):
        results = []
        for run in (lambda: model(x), lambda: replay(graph, model, (x,))):
            random.seed(seed)
            numpy.random.seed(seed)
            results.append(run())
        assert torch.equal(*results)


def test_what_else_is_drawn_is_refused():
    """A choice among objects cannot be followed."""
    model = Of(lambda self, x: random.choice([torch.relu, torch.tanh])(x))
    graph = capture(model, (torch.randn(2, 4),))
    with pytest.raises(ReplayRefused, match="choice"):
        replay(graph, model, (torch.randn(2, 4),))


def test_a_list_of_numbers_is_as_long_as_it_was():
    """``tolist()`` gives numbers that are followed, but not how many there are."""
    model = Of(lambda self, x: x * sum(x.sum(1).tolist()))
    graph = capture(model, (torch.randn(2, 4),))
    x = torch.randn(2, 4)
    assert torch.equal(replay(graph, model, (x,)), model(x))
    with pytest.raises(ReplayRefused, match="tolist"):
        replay(graph, model, (torch.randn(3, 4),))


def test_looking_for_lists_runs_no_code_of_the_model():
    """A property that computes is not read; an attribute of a tensor is not recorded."""

    class Lazy(nn.Module):
        reads = 0

        @property
        def table(self):
            type(self).reads += 1
            return [1.0, 2.0, 3.0]

        def forward(self, x):
            n = x.shape[0]
            y = x + 1
            return y.reshape(y.shape[n - 2], -1) * self.table[n]

    model = Lazy()
    graph = capture(model, (torch.randn(2, 4),))
    assert model.reads == 1
    ids = [node.id for node in graph.root.nodes]
    assert len(ids) == len(set(ids))
