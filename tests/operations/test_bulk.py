"""The same new module in many places: names where they fit in one line, else what they have in common."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torchvision.models import resnet50

from nbsurgery.edits import selected
from nbsurgery.session import Session

CONDITIONS = [
    ("layer*.*.relu", 16, 'name.endswith(".relu")'),
    ("layer3.*.relu", 6, 'name.startswith("layer3.") and name.endswith(".relu")'),
    ("layer[34].*.relu", 9, r're.fullmatch(r"layer[34]\.\d+\.relu", name)'),
    ("layer3.*.bn*", 18, r're.fullmatch(r"layer3\.\d+\.bn\d+", name)'),
]


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return resnet50(weights=None).eval()


@pytest.mark.parametrize(("where", "count", "condition"), CONDITIONS)
def test_many_names_are_found_by_one_condition(model, where, count, condition):
    """The condition holds for just the places that the glob means."""
    session = Session(model, (torch.randn(1, 3, 32, 32),), namespace={})
    session.do("replace", {"where": where, "new": "nn.Identity()"})
    assert f"    if {condition}:\n" in session.code
    edited = dict(session.build().named_modules())
    assert sum(isinstance(m, nn.Identity) for m in edited.values()) == count
    assert session.report.ok, str(session.report)


def test_few_names_are_said(model):
    session = Session(model, (torch.randn(1, 3, 32, 32),), namespace={})
    session.do("replace", {"where": "layer1.*.relu", "new": "nn.GELU()"})
    assert 'for name in ("layer1.0.relu", "layer1.1.relu", "layer1.2.relu"):' in session.code


def test_names_with_nothing_in_common_have_no_condition():
    net = nn.ModuleDict({"a-1": nn.Linear(1, 1), "b": nn.ModuleList([nn.ReLU(), nn.ReLU()])})
    assert selected(net, ("a-1", "b.0")) == ""
    assert selected(net, ("b.0", "b.1")) == 'name.startswith("b.")'
    assert selected(net, ("a-1",)) == r're.fullmatch(r"a\-1", name)'
