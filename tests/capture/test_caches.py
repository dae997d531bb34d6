"""Functions that remember results: a capture neither reads what they kept nor leaves anything in them."""

import functools

import pytest
import torch
from torch import nn

from nbsurgery.capture import capture, replay


@functools.lru_cache
def positions(n):
    return torch.arange(n) * 2.0


class Positions(nn.Module):
    def forward(self, x):
        return x + positions(x.shape[1])

    @functools.lru_cache  # noqa: B019 that is the case under test
    def table(self, n):
        return torch.ones(n)


class Shared(nn.Module):
    @staticmethod
    @functools.lru_cache
    def steps(n):
        return torch.arange(n) * 2.0

    def forward(self, x):
        return x + self.steps(x.shape[1])


@pytest.mark.parametrize("cls", [Positions, Shared])
def test_a_cached_table_is_computed_within_the_recording(cls):
    """Known from an earlier run or not: the operations that make it are nodes, at any length."""
    model = cls()
    model(torch.ones(2, 5))
    graph = capture(model, (torch.ones(2, 5),))
    assert [n.type for n in graph.flat] == ["input", "arange", "mul", "add", "output"]
    assert graph.root.opaque is None
    x = torch.randn(2, 7)
    assert torch.equal(replay(graph, model, (x,)), model(x))
    assert isinstance(vars(Shared)["steps"], staticmethod)


def test_a_run_on_shapes_alone_leaves_no_fake_tensor_in_a_cache():
    """The model works afterwards, on a length that the capture was the first to ask for."""
    positions.cache_clear()
    model = Positions()
    capture(model, (torch.ones(2, 6),), how="fake")
    assert torch.equal(model(torch.zeros(1, 6)), positions(6)[None])
