"""Odd forwards: each is captured, exact where it can be, refused where it cannot, and says so."""

import copy
import types

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nbsurgery.capture import capture, replay
from nbsurgery.errors import ReplayRefused


class Rows(nn.Module):
    """Loops over the rows of a tensor."""

    def forward(self, x):
        return torch.stack([row * i for i, row in enumerate(x)])


class Pieces(nn.Module):
    """As many pieces as the size gives."""

    def forward(self, x):
        total = 0
        for piece in x.split(2, dim=0):
            total = total + piece.sum()
        return total


class Generated(nn.Module):
    """Returns a generator."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        return (layer(x) for layer in self.layers)


class Box:
    def __init__(self, t):
        self.t = t
        self.extra = {"k": [t * 3]}


class Reads(nn.Module):
    def forward(self, box):
        box.t = box.t + 1
        return box.t + box.extra["k"][0]


class Boxed(nn.Module):
    """Passes an object of its own to a child that changes it."""

    def __init__(self):
        super().__init__()
        self.inner = Reads()

    def forward(self, x):
        box = Box(x * 2)
        return self.inner(box) + box.t


class Hidden(nn.Module):
    """Keeps its layers in a plain list."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Calls(nn.Module):
    def forward(self, x, function):
        return function(x) * 2


class Callback(nn.Module):
    """Hands a function to a child: it closes over a value and a layer."""

    def __init__(self):
        super().__init__()
        self.lin, self.inner = nn.Linear(4, 4), Calls()

    def forward(self, x):
        y = self.lin(x)
        return self.inner(x, lambda t: t + y + self.lin(t))


class Recursive(nn.Module):
    """Calls itself."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, depth=2):
        return self.lin(x) if depth == 0 else self(torch.relu(x), depth - 1)


class Views(nn.Module):
    """Writes through views, in several ways."""

    def forward(self, x):
        x = x.clone()
        first = x[:, 0]
        first += 1
        x[0] = 0
        x.t()[1].zero_()
        F.relu_(x)
        return x, first


class Instance(nn.Module):
    """Its forward stands on the instance."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.forward = lambda x: self.lin(x) * 2


class Around(nn.Module):
    """Overrides ``__call__``."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def __call__(self, x):
        return super().__call__(x + 1)

    def forward(self, x):
        return self.lin(x)


class Out(nn.Module):
    """Writes into a buffer by ``out=``."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        torch.add(x.sum(0), 1, out=self.total)
        return self.total * 1


class Parametrized(nn.Module):
    """Weights that are computed, three ways."""

    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.b = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4))

    def forward(self, x):
        return self.b(self.a(x))


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    items = list(value) if isinstance(value, (tuple, list, types.GeneratorType)) else []
    return [t for v in items for t in tensors(v)]


# class: (does another batch replay, what the opaque scopes say)
CASES = {
    Rows: (False, ""),
    Pieces: (False, ""),
    Generated: (True, "generator"),
    Boxed: (True, "an object of type Box"),
    Hidden: (True, "not registered"),
    Callback: (True, ""),
    Recursive: (True, ""),
    Views: (True, ""),
    Instance: (True, "assigned on the instance"),
    Around: (True, ""),
    Out: (True, ""),
    Parametrized: (True, ""),
}


@pytest.mark.parametrize("cls", CASES)
def test_an_odd_forward_is_exact_or_refused(cls):
    """On the example, on other numbers, and on another batch."""
    general, reason = CASES[cls]
    model = cls().eval()
    graph = capture(model, (torch.randn(2, 4),))
    told = " ".join(s.opaque for s in graph.scopes.values() if s.opaque)
    assert reason in told
    assert bool(told) == bool(reason)
    with torch.no_grad():
        for batch in (2, 5):
            x = torch.randn(batch, 4)
            if batch == 5 and not general:
                with pytest.raises(ReplayRefused, match="2|1"):
                    replay(graph, model, (x,))
                continue
            other = copy.deepcopy(model) if cls is not Instance else model
            expected, found = tensors(other(x)), tensors(replay(graph, model, (x,)))
            assert len(expected) == len(found) > 0
            assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_capture_works_in_the_modes_that_people_are_in():
    """Under inference mode, autocast and with gradients on, as without."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.randn(2, 4)
    for mode in (
        torch.inference_mode(),
        torch.autocast("cpu", dtype=torch.bfloat16),
        torch.enable_grad(),
    ):
        with mode:
            graph = capture(model, (x,))
            assert torch.equal(replay(graph, model, (x,)), model(x))
