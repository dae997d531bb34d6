"""tap: a block and what lies in it at once, whatever the order."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import nbsurgery as nbs
from nbsurgery.session import Session

from tests.operations.test_split import Scaled, chain

NAMES = ("1", "1.1", "1.1.add", "1.0.block.0")


@pytest.mark.parametrize("names", list(itertools.permutations(NAMES, 3)), ids=" ".join)
def test_a_block_and_what_is_in_it(names):
    model, x = chain(Scaled), torch.randn(2, 3, 8, 8)
    session = Session(model, (x,), namespace={})
    session.do("tap", {"nodes": {n: f"k{i}" for i, n in enumerate(names)}})
    assert session.report.ok, session.code
    out = session.build()(x)
    wanted = {}
    for key, name in enumerate(names):
        path = name.removesuffix(".add")
        hook = lambda m, i, o, k=f"k{key}": wanted.__setitem__(k, o)  # noqa: E731
        model.get_submodule(path).register_forward_hook(hook)
    model(x)
    assert list(out) == ["k0", "k1", "k2"]
    for key, value in wanted.items():
        assert torch.equal(out[key], value), (names, key)


@pytest.mark.parametrize("nodes", [{}, {"1": ""}, {"1": None}, {"1": "a", "0": "a"}, [nn.Conv2d]])
def test_keys_and_nodes_that_mean_nothing(nodes):
    session = Session(chain(Scaled), (torch.randn(2, 3, 8, 8),), namespace={})
    with pytest.raises(nbs.SurgeryError, match="tap|key"):
        session.do("tap", {"nodes": nodes})
