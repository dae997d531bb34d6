"""remove: ends of containers, modules that are called with several values, modules that return several."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nbsurgery.errors import StepError
from nbsurgery.session import Session


class Layer(nn.Module):
    """Called with more than one value, the second by name."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, hidden, scale=None, *, shift=0.0):
        return self.linear(hidden) * scale + shift


class Pair(nn.Module):
    """Returns two values."""

    def forward(self, hidden, scale):
        return hidden * scale, scale


class Stack(nn.Module):
    """Layers in a list, one called by names alone, and one that returns a pair."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(4)])
        self.named, self.pair, self.head = Layer(), Pair(), nn.Linear(4, 2)

    def forward(self, x):
        scale = torch.full((1,), 2.0)
        for layer in self.layers:
            x = layer(x, scale, shift=1.0)
        x = self.named(hidden=x, scale=scale)
        x, scale = self.pair(x, scale)
        return self.head(x) * scale


@pytest.fixture
def session() -> Session:
    torch.manual_seed(0)
    return Session(Stack().eval(), (torch.randn(3, 4),), {}, namespace={})


def test_the_end_of_a_container_goes_step_by_step(session):
    """However the steps are ordered, neighbours at the end go together as one slice."""
    for order in (("2", "3"), ("3", "2")):
        for name in order:
            session.do("remove", {"where": f"layers.{name}"})
        assert "model.layers = model.layers[:2]" in session.code
        assert "PassThrough" not in session.code
        assert len(session.build().layers) == 2
        assert session.report.ok, str(session.report)
        session.undo()
        session.undo()


def test_a_module_with_several_arguments_hands_the_first_on(session):
    """In the middle of a list a placeholder that takes all arguments; keys of the others stay."""
    session.do("remove", {"where": "layers.1"})
    edited = session.build()
    x = torch.randn(3, 4)
    y = x
    for i in (0, 2, 3):
        y = session.original.layers[i](y, torch.full((1,), 2.0), shift=1.0)
    y = session.original.named(hidden=y, scale=torch.full((1,), 2.0)) * 2
    assert torch.equal(edited(x), session.original.head(y) * 2)
    assert "layers.2.linear.weight" in edited.state_dict()
    assert session.report.ok, str(session.report)


def test_handed_over_by_name(session):
    session.do("remove", {"where": "named"})
    assert "def forward(self, hidden, *args, **kwargs):" in session.code
    assert session.report.ok, str(session.report)


def test_a_module_that_returns_several_values_is_refused(session):
    with pytest.raises(StepError, match="'pair' returns several values"):
        session.do("remove", {"where": "pair"})
    assert session.recipe == ()


class Residual(nn.Module):
    """A branch beside the identity."""

    def __init__(self):
        super().__init__()
        self.stem, self.branch, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        x = self.stem(x)
        return self.head(self.branch(x).relu() + x)


@pytest.mark.parametrize(("keep", "branch"), [("relu", True), ("stem", False), (None, True)])
def test_one_side_of_an_addition_goes(keep, branch):
    """Without the addition its branch or its shortcut goes on; what then leads nowhere goes as well."""
    torch.manual_seed(0)
    model, x = Residual().eval(), torch.randn(3, 4)
    s = Session(model, (x,), {}, namespace={})
    (offer,) = [o for o in s.offers(["add"]) if o["operation"] == "remove"]
    assert offer["fields"][0]["choices"] == ["relu", "stem"]
    s.do("remove", {"where": "add", "keep": keep})
    y = model.stem(x)
    assert torch.equal(s.build()(x), model.head(model.branch(y).relu() if branch else y))
    assert hasattr(s.build(), "branch") is branch
    assert s.report.ok, str(s.report)


def test_keep_names_what_the_call_reads():
    s = Session(Residual().eval(), (torch.randn(3, 4),), {}, namespace={})
    with pytest.raises(StepError, match="'add' does not read head; it reads 'relu', 'stem'"):
        s.do("remove", {"where": "add", "keep": "head"})
    with pytest.raises(StepError, match="keep= names what goes on"):
        s.do("remove", {"where": "branch", "keep": "stem"})
