"""A class without a call: its constructor is told what the call, or the module, was told."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nbsurgery.errors import StepError
from nbsurgery.session import Session


class Calls(nn.Module):
    """Functional calls with arguments of every kind, and two modules."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4, eps=1e-3)
        self.pool = nn.MaxPool2d(3, 2, 1)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        x = F.avg_pool2d(x, 2, 1)
        x = F.gelu(x, approximate="tanh")
        x = F.interpolate(x, scale_factor=2)
        x = F.dropout(x, 0.2, self.training)
        x = F.softmax(x, dim=1)
        x = F.max_pool2d(x, 2)
        x = self.pool(x)
        x = F.interpolate(x, size=x.shape[2])
        x = F.adaptive_avg_pool2d(x, 1)
        x = F.pixel_shuffle(x, 2)
        x = F.leaky_relu(x, 0.2)
        x = torch.flatten(x, 1)
        return F.log_softmax(x.sigmoid(), -1)


@pytest.fixture
def session() -> Session:
    torch.manual_seed(0)
    model = Calls().eval()
    return Session(model, (torch.randn(2, 4, 32, 32),), {}, namespace={})


MOVED = {
    "relu": ("nn.ReLU", "nn.ReLU(inplace=True)"),
    "avg_pool2d": ("nn.AvgPool2d", "nn.AvgPool2d(2, stride=1)"),
    "gelu": ("nn.GELU", 'nn.GELU(approximate="tanh")'),
    "interpolate": ("nn.Upsample", "nn.Upsample(scale_factor=2)"),
    "dropout": ("nn.Dropout", "nn.Dropout(0.2)"),
    "softmax": ("nn.Softmax", "nn.Softmax(dim=1)"),
    "max_pool2d": ("nn.MaxPool2d", "nn.MaxPool2d(2)"),
    "adaptive_avg_pool2d": ("nn.AdaptiveAvgPool2d", "nn.AdaptiveAvgPool2d(1)"),
    "pixel_shuffle": ("nn.PixelShuffle", "nn.PixelShuffle(2)"),
    "leaky_relu": ("nn.LeakyReLU", "nn.LeakyReLU(0.2)"),
    "flatten": ("nn.Flatten", "nn.Flatten()"),
    "sigmoid": ("nn.Sigmoid", "nn.Sigmoid()"),
    "log_softmax": ("nn.LogSoftmax", "nn.LogSoftmax(dim=-1)"),
}


@pytest.mark.parametrize("where", MOVED)
def test_the_arguments_of_a_call_move_into_the_constructor(session, where):
    """The module computes what the call did, so no number changes; it is offered as such, too."""
    cls, text = MOVED[where]
    offer = next(o for o in session.offers([where]) if o["operation"] == "replace")
    assert text in offer["fields"][0]["choices"]
    session.do("replace", {"where": where, "new": cls})
    assert f"= {text}" in session.code
    assert session.report.ok
    assert any("equals the original's, bit for bit" in f.text for f in session.report.findings)


def test_modules_hand_over_their_attributes(session):
    session.do("replace", {"where": "pool", "new": "nn.AvgPool2d"})
    session.do("replace", {"where": "norm", "new": "nn.SyncBatchNorm", "weights": "keep"})
    edited = session.build()
    assert (edited.pool.kernel_size, edited.pool.stride, edited.pool.padding) == (3, 2, 1)
    assert edited.norm.eps == 1e-3


def test_bulk_over_modules_and_calls_alike(session):
    """One class for a module and a call: each is told what the one before it was told."""
    session.do("replace", {"where": ["pool", "max_pool2d"], "new": "nn.MaxPool2d"})
    assert "= nn.MaxPool2d(2)" in session.code
    assert "stride=model.pool.stride, padding=model.pool.padding" in session.code


def test_bulk_says_what_any_of_them_was_told():
    """What only the second pool was told is not lost."""
    model = nn.Sequential(nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1))
    session = Session(model, (torch.randn(2, 4, 16, 16),), {}, namespace={})
    session.do("replace", {"where": {"class": "torch.nn.MaxPool2d"}, "new": "nn.AvgPool2d"})
    edited = session.build()
    assert [(p.kernel_size, p.stride, p.padding) for p in edited] == [(2, 2, 0), (3, 2, 1)]


@pytest.mark.parametrize(
    ("where", "new", "why"),
    [
        ("softmax", "nn.Linear", "dim=1, which nn.Linear does not take"),
        ("interpolate_1", "nn.Upsample", "takes 'size' from the run"),
        ("norm", "nn.GroupNorm", "needs 'num_groups', and BatchNorm2d has no 'num_groups'"),
        ("adaptive_avg_pool2d", "nn.LPPool2d", "which nn.LPPool2d does not take"),
        ("relu", "nn.PixelShuffle", "needs 'upscale_factor'"),
    ],
)
def test_what_has_no_counterpart_is_refused(session, where, new, why):
    with pytest.raises(StepError, match=why.replace("(", r"\(")):
        session.do("replace", {"where": where, "new": new})
    assert session.recipe == ()


def test_weights_that_are_carried_over_are_told(session):
    """With values of its own a kept BatchNorm is no new one; all ones and zeros would say nothing."""
    replace = {"where": "norm", "new": "nn.SyncBatchNorm", "weights": "keep"}
    session.do("replace", replace)
    assert any("with new weights (norm)" in f.text for f in session.report.findings)
    model = Calls().eval()
    with torch.no_grad():
        model.norm.weight.copy_(torch.rand(4))
    trained = Session(model, (torch.randn(2, 4, 32, 32),), {}, namespace={})
    trained.do("replace", replace)
    said = [f.text for f in trained.report.findings]
    assert "8 parameters are carried over into norm" in said
    assert "all 7 state_dict keys keep name and weights" in said
    assert not any("go, with" in text for text in said)
