"""Functions of torch's C side that are told the mode: they take a real `bool`, and the record stays."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nbsurgery import capture
from nbsurgery.session import Session


class Moded(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.linear, self.function = nn.Linear(4, 4), function

    def forward(self, x):
        x = self.linear(x)
        if self.function == "batch_norm":
            return torch.batch_norm(
                x, None, None, x.mean(0), x.var(0), self.training, 0.1, 1e-5, False
            )
        if self.function == "rrelu":
            return torch.rrelu(x, 0.1, 0.3, self.training)
        return getattr(torch, self.function)(x, 0.5, train=self.training)


@pytest.mark.parametrize("function", ["dropout", "alpha_dropout", "rrelu", "batch_norm"])
def test_the_mode_is_handed_on(function):
    """Printed text asks the module again: train mode works without a guard."""
    session = Session(Moded(function).eval(), (torch.randn(3, 4),), {}, namespace={})
    session.do("insert", {"after": "linear", "new": "nn.Tanh()"})
    assert f"torch.{function}(" in session.code and "self.training" in session.code
    report = session.verify()
    assert report.ok, f"{session.code}\n{report}"
    assert torch.dropout.__class__ is type(torch.relu)


class Identity(nn.Module):
    """Asks for the mode by identity."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, n=2):
        for i, layer in enumerate(self.layers):
            if self.training is False and i >= n:
                break
            x = layer(x)
        return x


def test_a_mode_that_is_asked_by_identity_is_the_models():
    """The recorded run goes the way that the model goes, and says that it was decided."""
    model, x = Identity().eval(), torch.randn(2, 4)
    graph = capture(model, x)
    assert len(graph.find(type="Linear")) == 2
    assert any(s.kind == "training" for s in graph.specialisations)
    assert torch.equal(graph.run(x), model(x))
