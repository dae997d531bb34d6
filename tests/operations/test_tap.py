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


HEAD = "nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))"


def test_an_auxiliary_head_is_offered_and_leaves_the_output_alone():
    """The offer's own defaults apply; the head reads the value, the output is proven to stay."""
    s = Session(pictures(), (torch.randn(2, 3, 8, 8),), namespace={})
    offer = next(o for o in s.offers(["2"]) if o["label"] == "Add an auxiliary head")
    s.do("tap", {**offer["arguments"], **{f["name"]: f["default"] for f in offer["fields"]}})
    assert offer["fields"][0]["default"] == HEAD
    out = s.build()(torch.randn(2, 3, 8, 8))
    assert {k: tuple(v.shape) for k, v in out.items()} == {"aux": (2, 5), "out": (2, 5)}
    assert s.report.ok, str(s.report)
    assert any("part 'out' equals the original's output" in f.text for f in s.report.findings)


def test_heads_that_write_in_place_are_found():
    """A head that overwrites what it reads changes the output: the report says so."""
    s = Session(pictures(), (torch.randn(2, 3, 8, 8),), namespace={})
    s.do("tap", {"nodes": {"2": "aux"}, "output": "out", "head": "nn.ReLU(inplace=True)"})
    assert not s.report.ok


def test_a_head_is_a_module():
    s = Session(pictures(), (torch.randn(2, 3, 8, 8),), namespace={})
    with pytest.raises(nbs.StepError, match="'torch.relu' makes a function"):
        s.do("tap", {"nodes": {"2": "aux"}, "head": "torch.relu"})


def pictures() -> nn.Module:
    """A classifier of small pictures."""
    torch.manual_seed(0)
    conv = nn.Conv2d
    return nn.Sequential(
        conv(3, 8, 3), nn.Tanh(), conv(8, 16, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
    ).eval()  # fmt: skip


def test_a_later_tap_stands_alone():
    """What an earlier tap returned is gone from code, docstring and comments."""
    s = Session(pictures(), (torch.randn(2, 3, 8, 8),), namespace={})
    s.do("tap", {"nodes": {"2": "earlier"}, "head": "nn.Conv2d(16, 1, 1)"})
    s.do("tap", {"nodes": {"0": "later"}, "output": "out"})
    assert "earlier" in s.code, "its own output is what the first one returns"
    s.undo()
    s.do("tap", {"nodes": {"0": "later"}})
    assert "earlier" not in s.code and "Conv2d" not in s.code
    assert s.report.ok, str(s.report)


def test_a_tap_of_a_plain_sequence_runs_twice():
    """Its class does not slice the container, which in a second run is of that class itself."""
    s = Session(pictures(), (torch.randn(2, 3, 8, 8),), namespace={})
    s.do("tap", {"nodes": {"2": "aux"}, "output": "out", "head": HEAD})
    assert any("run twice, the code gives the same" in f.text for f in s.report.findings)
    s.undo()
    s.do("replace", {"where": "1", "new": "nn.ReLU()"})
    s.do("tap", {"nodes": {"2": "aux"}, "output": "out", "head": HEAD})
    assert s.report.ok, str(s.report)  # the output is no longer the original's: not promised


class Flat(nn.Module):
    """Decides on what it is given."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if x.shape[0] > 1:
            x = x * 2
        x = self.first(x)
        return self.second(x)


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = Flat()

    def forward(self, x):
        return self.flat(x).relu()


def test_a_decision_of_an_opened_scope_is_guarded_where_it_was_opened():
    """What it was given is what its caller hands to it."""
    session = Session(Around().eval(), (torch.randn(2, 4),), namespace={})
    session.do("tap", {"nodes": {"flat.first": "early"}})
    assert "if x.shape[0] <= 1:" in session.code
    with pytest.raises(RuntimeError, match="holds only where"):
        session.build()(torch.randn(1, 4))
