"""Each patch of torch sees what it is for: fails by name when a new torch moves a private part."""

import functools
import sys
import types
import warnings

import pytest
import torch
import torch.utils.checkpoint
from torch import nn

from nbsurgery.capture import capture, hooks, replay


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def scripted(x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Sub(torch.Tensor):
    pass


class Hooked(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.function(self, x)


def no_grad(self, x):
    with torch.no_grad():
        y = x * 2
    return y + x


def autocast(self, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return self.lin(x).float()


def functional_call(self, x):
    weights = {k: v * 2 for k, v in self.lin.named_parameters()}
    return torch.func.functional_call(self.lin, weights, (x,))


CASES = {
    "custom autograd functions": (lambda self, x: Sign.apply(x) + 1, "Sign"),
    "scripted functions": (lambda self, x: scripted(x) + 1, "scripted"),
    "Tensor.as_subclass": (
        lambda self, x: (x.as_subclass(Sub) * 2).as_subclass(torch.Tensor),
        "as_subclass",
    ),
    "torch.vmap": (lambda self, x: torch.vmap(lambda row: row * row.sum())(x), "vmap_impl"),
    "torch.func.functional_call": (functional_call, "functional_call"),
    "no_grad": (no_grad, "no_grad"),
    "autocast": (autocast, "autocast"),
    "checkpoint": (
        lambda self, x: torch.utils.checkpoint.checkpoint(self.lin, x, use_reentrant=True),
        "Linear",
    ),
}


# What emission can write: with blocks, and functions that are named by their class.
PRINTABLE = {"checkpoint", "no_grad", "autocast", "custom autograd functions"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_hook_sees_what_it_is_for(name):
    """A node of the right type, an exact replay on another batch, and a scope that says so."""
    function, expected = CASES[name]
    model = Hooked(function)
    graph = capture(model, (torch.randn(2, 3),))
    types = [n.type for n in graph.root.nodes]
    assert expected in types
    assert (graph.root.opaque is None) == (name in PRINTABLE)
    x = torch.randn(4, 3)
    assert torch.equal(replay(graph, model, (x,)), model(x))
    assert hooks.missing == {}


def test_a_private_part_that_is_gone_is_told_by_name(monkeypatch):
    """A warning, and everything else still works."""

    def gone(patches):
        raise AttributeError("no such part")

    monkeypatch.setitem(hooks._BESIDE, "torch.vmap", gone)
    monkeypatch.setattr(hooks, "missing", {})
    with pytest.warns(UserWarning, match="cannot follow torch.vmap"):
        graph = capture(nn.Linear(2, 2), (torch.ones(1, 2),))
    assert "linear" in [n.type for n in graph.flat]


def test_compiled_modules_run_their_python():
    """No compiler is started, no graph break."""
    model = torch.compile(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), backend="eager")
    graph = capture(model, (torch.ones(1, 2),))
    assert "Linear" in [n.type for n in graph.flat]


class Typed(nn.Module):
    """Gives Python's types to torch."""

    def forward(self, x):
        return x.to(float) + torch.zeros(x.shape, dtype=int)


def test_types_that_are_given_to_torch_stay_types():
    """No stand-in for ``int`` in a file that writes ``dtype=int``."""
    model, x = Typed(), torch.randn(2, 4)
    graph = capture(model, (x,))
    assert torch.equal(replay(graph, model, (x,)), model(x))


@functools.lru_cache
def doubled(size):
    return 2 * size


def test_what_a_cache_keeps_is_not_taken_for_this_run(monkeypatch):
    """A cached function of another package neither keeps a tracked number nor answers with one."""
    module = types.ModuleType("cached_elsewhere")
    module.doubled = doubled
    monkeypatch.setitem(sys.modules, "cached_elsewhere", module)
    model = Hooked(lambda self, x: x * module.doubled(x.shape[0]))
    for _ in range(2):
        graph = capture(model, (torch.randn(2, 3),))
        x = torch.randn(5, 3)
        assert torch.equal(replay(graph, model, (x,)), model(x))
        doubled.cache_clear()
        assert type(doubled(2)) is int
