"""Widths that others must follow: through normalisations, additions and readers."""

from __future__ import annotations

import pytest

from nbsurgery.errors import StepError
from nbsurgery.session import Session
from tests.session.zoo import build


def session(name: str) -> Session:
    """A fresh session on a small model."""
    model, args, kwargs = build(name)
    return Session(model, args, kwargs, namespace={})


def test_what_must_follow_is_said():
    """Without follow, the layers that must change too are named, and nothing changes."""
    s = session("resnet18")
    with pytest.raises(StepError, match=r"layer1\.0\.bn1, layer1\.0\.conv2 \(inputs\)"):
        s.do("channels", {"where": "layer1.0.conv1", "outputs": 48})
    assert s.recipe == ()


def test_width_inside_a_block():
    """One convolution, its BatchNorm and its reader change; the output keeps its shape."""
    s = session("resnet18")
    s.do("channels", {"where": "layer1.0.conv1", "outputs": 48, "follow": True})
    edited = s.build()
    assert edited.layer1[0].bn1.num_features == 48
    assert tuple(edited.layer1[0].conv2.weight.shape) == (64, 48, 3, 3)
    assert s.report.ok, str(s.report)
    kept = s.original.layer1[0].conv1.weight[:48]
    assert edited.layer1[0].conv1.weight.equal(kept)


def test_width_through_additions():
    """Both branches of every addition on the way follow, and the next stage reads the new width."""
    s = session("resnet18")
    s.do("channels", {"where": "layer2.0.conv2", "outputs": 96, "follow": True})
    edited = s.build()
    widths = [m.out_channels for m in (edited.layer2[0].downsample[0], edited.layer2[1].conv2)]
    assert widths == [96, 96]
    assert edited.layer3[0].conv1.in_channels == edited.layer3[0].downsample[0].in_channels == 96
    assert s.report.ok, str(s.report)


def test_concatenation_is_refused_with_its_name():
    """A width that is concatenated has no rule: the place is named."""
    s = session("unet")
    with pytest.raises(StepError, match=r"up2\.cat"):
        s.do("channels", {"where": "down1.conv", "outputs": 12, "follow": True})
