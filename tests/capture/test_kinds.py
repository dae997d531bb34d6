"""Kinds of input: what people pass to models beside plain tensors, all captured and replayed."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn.utils import rnn

from nbsurgery.capture import capture, replay
from nbsurgery.errors import ReplayRefused

Point = namedtuple("Point", "x y")


@dataclass
class Batch:
    x: torch.Tensor
    scale: float
    parts: list


class Marked(torch.Tensor):
    """A subclass of Tensor that adds nothing."""


class Function(nn.Module):
    """A forward made from a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.lin = nn.Linear(4, 4)

    def forward(self, *args, **kwargs):
        return self.function(self.lin, *args, **kwargs)


def random(*shape):
    return torch.randn(*shape)


CASES = {
    "nested lists": (
        lambda lin, xs: lin(xs[0][0]) + xs[1][1],
        lambda: (([[random(2, 4)], [random(2, 4), random(2, 4)]],), {}),
    ),
    "a dict of tuples": (
        lambda lin, d: lin(d["a"][0]) * d["b"]["c"],
        lambda: (({"a": (random(2, 4),), "b": {"c": random(4)}},), {}),
    ),
    "an OrderedDict": (
        lambda lin, d: lin(d["a"]),
        lambda: ((OrderedDict(a=random(2, 4)),), {}),
    ),
    "a NamedTuple": (
        lambda lin, p: lin(p.x) - p.y,
        lambda: ((Point(random(2, 4), random(4)),), {}),
    ),
    "a dataclass": (
        lambda lin, b: lin(b.x) * b.scale + b.parts[0],
        lambda: ((Batch(random(2, 4), 0.5, [random(4)]),), {}),
    ),
    "whole numbers and floats": (
        lambda lin, x, n, s=1.0: lin(x).repeat(n, 1) * s,
        lambda: ((random(2, 4), 3), {"s": 0.25}),
    ),
    "a bool and None": (
        lambda lin, x, flag, mask=None: lin(x).relu() if flag else x,
        lambda: ((random(2, 4), True), {"mask": None}),
    ),
    "a string": (
        lambda lin, x, mode: nn.functional.interpolate(lin(x)[:, None], size=8, mode=mode),
        lambda: ((random(2, 4), "nearest"), {}),
    ),
    "complex numbers": (
        lambda lin, z: torch.view_as_real(z * torch.complex(lin(z.real), z.imag)),
        lambda: ((torch.randn(2, 4, dtype=torch.complex64),), {}),
    ),
    "a sparse matrix": (
        lambda lin, a, x: lin(torch.sparse.mm(a, x)),
        lambda: ((torch.eye(3).to_sparse(), random(3, 4)), {}),
    ),
    "more keywords than names": (
        lambda lin, **kw: lin(kw["a"]) + kw["b"],
        lambda: ((), {"a": random(2, 4), "b": random(4)}),
    ),
    "more arguments than names": (
        lambda lin, *xs: lin(xs[0]) + xs[1] + xs[2],
        lambda: ((random(2, 4), random(4), random(4)), {}),
    ),
    "the same tensor twice": (
        lambda lin, a, b: lin(a) + b,
        lambda: ((random(2, 4),) * 2, {}),
    ),
    "a bool tensor as a mask": (
        lambda lin, x, m: lin(x).masked_fill(m, 0.0),
        lambda: ((random(2, 4), random(2, 4) > 0), {}),
    ),
    "an empty batch": (lambda lin, x: lin(x), lambda: ((random(0, 4),), {})),
    "a scalar": (lambda lin, x, s: lin(x) * s, lambda: ((random(2, 4), torch.tensor(2.0)), {})),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_kinds_of_arguments(name):
    """Replayed exactly on other values of the same kind; the given ones are as before."""
    function, inputs = CASES[name]
    torch.manual_seed(0)
    model = Function(function)
    args, kwargs = inputs()
    graph = capture(model, args, kwargs)
    for _ in range(2):
        args, kwargs = inputs()
        assert torch.equal(replay(graph, model, args, kwargs), model(*args, **kwargs))


def test_a_number_given_stays_symbolic():
    """Another count, another factor: the same graph."""
    model = Function(CASES["whole numbers and floats"][0])
    graph = capture(model, (random(2, 4), 3), {"s": 0.25})
    x = random(2, 4)
    assert torch.equal(replay(graph, model, (x, 5), {"s": 2.0}), model(x, 5, s=2.0))


def test_a_flag_given_holds_for_its_value():
    """A bool cannot be followed: another one is refused."""
    model = Function(CASES["a bool and None"][0])
    graph = capture(model, (random(2, 4), True))
    with pytest.raises(ReplayRefused, match="True in the recorded run and is False"):
        replay(graph, model, (random(2, 4), False))


def test_a_packed_sequence_goes_through_an_lstm():
    """Packed and unpacked inside, or given packed."""

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 3, batch_first=True)

        def forward(self, x, lengths):
            packed = rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, _ = self.lstm(packed)
            return rnn.pad_packed_sequence(out, batch_first=True)[0]

    model = Packed()
    lengths = torch.tensor([2, 5, 3])
    graph = capture(model, (random(3, 5, 4), lengths))
    x = random(3, 5, 4)
    assert torch.equal(replay(graph, model, (x, lengths)), model(x, lengths))

    lstm = Function(lambda lin, p: lin(rnn.pad_packed_sequence(p)[0]))
    given = rnn.pack_sequence([random(3, 4), random(2, 4)])
    graph = capture(lstm, (given,))
    assert torch.equal(replay(graph, lstm, (given,)), lstm(given))


def test_a_subclass_of_tensor_keeps_its_type():
    """The forward sees what it was given."""
    seen = []

    def function(lin, x):
        seen.append(type(x))
        return lin(x) * 2

    model = Function(function)
    x = random(2, 4).as_subclass(Marked)
    graph = capture(model, (x,))
    assert seen == [Marked]
    assert torch.equal(replay(graph, model, (x,)), model(x))


def test_a_batch_encoding_is_a_mapping():
    """Hugging Face's tokenizers return it; passed whole, or unpacked."""
    transformers = pytest.importorskip("transformers")
    given = transformers.BatchEncoding({"a": random(2, 4), "b": random(4)})
    whole = Function(lambda lin, batch: lin(batch["a"]) + batch["b"])
    graph = capture(whole, (given,))
    assert torch.equal(replay(graph, whole, (given,)), whole(given))
    unpacked = Function(lambda lin, a, b: lin(a) + b)
    graph = capture(unpacked, (), given)
    assert torch.equal(replay(graph, unpacked, (), given), unpacked(**given))


def test_an_input_written_to_by_the_model_is_as_before_after_capture():
    """The run has tensors of its own."""
    model = Function(lambda lin, x: lin(x.add_(1)))
    x = torch.zeros(2, 4)
    graph = capture(model, (x,))
    assert torch.equal(x, torch.zeros(2, 4))
    assert torch.equal(replay(graph, model, (x.clone(),)), model(x.clone()))


def test_a_weight_written_to_in_forward_is_put_back():
    """Clipped weights, as in early GANs."""

    def function(lin, x):
        lin.weight.data.clamp_(-0.01, 0.01)
        return lin(x)

    model = Function(function)
    before = model.lin.weight.detach().clone()
    capture(model, (random(2, 4),))
    assert torch.equal(model.lin.weight, before)
