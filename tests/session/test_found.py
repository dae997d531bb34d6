"""What random surgery found: each a small model and the recipe that once went wrong."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nbsurgery.session import Session


class WritesItsInput(nn.Module):
    """A block that writes in place into what it was given, through a view."""

    def __init__(self):
        super().__init__()
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        x = x.flatten(1).view(x.shape[0], -1)
        return self.act(x) + 1


class Net(nn.Module):
    """The block's result is left alone, and its input is read after it."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.chain = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.block = WritesItsInput()
        self.scale = nn.Parameter(torch.ones(4))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.chain(self.first(x)) * self.scale
        self.block(x)
        x = F.relu(x - 1)
        return self.head(x)


FOUND = [
    # a write through a view, in a block that a tap opened, went as dead although x is read later
    [("tap", {"nodes": ["head", "block.view"]})],
    # what crosses a border is what stands there then, not what its node once made
    [("start", {"at": "block.add"})],
    [("start", {"at": {"call": "sub"}})],
    # places that went with a later step were still spoken of: a second run failed
    [("freeze", {"until": "scale"}), ("tap", {"nodes": ["x"]})],
    [("replace", {"where": ["first", "head"], "new": "nn.Linear(4, 4)"}), ("cut", {"after": "chain.1"})],
    [("start", {"at": {"call": "chain.2"}}), ("unfreeze", {"where": "first"})],
    [("unfreeze", {"where": "chain"}), ("start", {"at": {"call": "sub"}})],
]  # fmt: skip


@pytest.mark.parametrize("steps", FOUND)
def test_recipe_that_once_went_wrong(steps):
    """Nothing in the full report but what is well; the code runs twice, or stops by itself."""
    torch.manual_seed(0)
    session = Session(Net().eval(), (torch.randn(2, 4),), namespace={})
    for operation, arguments in steps:
        session.do(operation, arguments)
    found = session.verify().findings
    assert not [f.text for f in found if f.severity == "error"], session.code
    assert not [f.text for f in found if "run twice, the code fails" in f.text], session.code


class ReadTwice(nn.Module):
    """A value that an activation reads, and something else before it."""

    def __init__(self):
        super().__init__()
        self.lin, self.act, self.head = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)

    def forward(self, x):
        x = self.lin(x)
        x = x * torch.sigmoid(self.act(x))
        return self.head(x)


def test_a_layer_set_to_work_in_place_keeps_the_order_of_what_reads_it():
    """What is put in behind the write reads what the write leaves."""
    torch.manual_seed(0)
    session = Session(ReadTwice().eval(), (torch.randn(2, 4),), namespace={})
    session.do("set", {"where": "act", "inplace": True})
    session.do("insert", {"before": "mul", "new": "nn.BatchNorm1d(4)"})
    assert session.report.ok, session.code


class Listed(nn.Module):
    """Blocks in a list, each of two layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Pair() for _ in range(5)])
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return x + self.second(x)


@pytest.mark.parametrize("after", ["layers.0.relu", "layers.1", "layers.3.relu", ["layers.1.relu", "layers.3.relu"], ["layers.2.relu", "layers.2.second"]])  # fmt: skip
def test_split_inside_a_list_of_blocks(after):
    """Every weight is in one part, under its old key; numbers are the original's."""
    torch.manual_seed(0)
    session = Session(Listed().eval(), (torch.randn(2, 4),), namespace={})
    session.do("split", {"after": after})
    assert session.report.ok, session.code
    keys = [k for part in session.build() for k in part.state_dict()]
    assert sorted(keys) == sorted(session.model.state_dict()), session.code


def test_a_kept_output_is_promised_only_where_nothing_changed_before():
    """An auxiliary head on an edited model keeps the edited model's output."""
    torch.manual_seed(0)
    session = Session(Net().eval(), (torch.randn(2, 4),), namespace={})
    session.do("remove", {"where": "head"})
    session.do(
        "tap", {"nodes": ["chain.1"], "head": "nn.Linear(4, 2)", "keys": "aux", "output": "out"}
    )
    assert session.report.ok


def test_edits_before_a_start_leave_no_code():
    """What a step put into a part that goes is not written."""
    torch.manual_seed(0)
    session = Session(Listed().eval(), (torch.randn(2, 4),), namespace={})
    session.do("start", {"at": "head"})
    session.do("insert", {"before": "layers.1.second", "new": "nn.Dropout(0.1)"})
    assert session.report.ok
    assert "Dropout" not in session.code
