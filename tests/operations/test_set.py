"""Hyper-parameters set in several steps: one comment for one place, nothing for what is set back."""

from __future__ import annotations

import functools

import pytest
import torch
import torchvision

from nbsurgery.errors import StepError
from nbsurgery.session import Session


@functools.cache
def session() -> Session:
    """One session; every test undoes what it did."""
    model = torchvision.models.resnet18(weights=None).eval()
    return Session(model, (torch.randn(2, 3, 64, 64),), namespace={})


def code(*steps) -> str:
    """The text for some steps."""
    s = session()
    try:
        for operation, arguments in steps:
            s.do(operation, arguments)
        assert s.report.ok, str(s.report)
        return s.code
    finally:
        while s.can_undo:
            s.undo()


def put(where, **values):
    return "set", {"where": where, **values}


def test_steps_below_one_module_are_one_change():
    """Equal values become one loop, and the comment names the module that holds all."""
    text = code(
        put("layer1.0.bn1", eps=0.001),
        put("layer1.1.bn1", eps=0.001),
        put("layer1.1.bn2", eps=0.001),
    )
    assert text == (
        "# layer1: eps 1e-05 → 0.001\n"
        "for layer in (model.layer1[0].bn1, model.layer1[1].bn1, model.layer1[1].bn2):\n"
        "    layer.eps = 0.001\n"
    )  # fmt: skip


def test_steps_far_apart_stay_two_changes():
    """Below the root alone there is nothing in common to name."""
    text = code(put("bn1", eps=0.001), put("layer1.0.bn1", eps=0.001))
    assert text.count("#") == 2


def test_what_is_set_twice_is_written_once():
    """The first old value and the last new one; a step of another kind may lie between."""
    freeze = ("freeze", {"where": "layer1"})
    text = code(put("bn1", eps=0.01), freeze, put("bn1", eps=0.001))
    assert "bn1: eps 1e-05 → 0.001" in text and text.count("eps") == 2


def test_what_is_set_back_leaves_nothing():
    """Steps that cancel leave no code."""
    text = code(put("conv1", stride=1), put("conv1", stride=2))
    assert text == "# no step: the model stays as it is\n"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (("cut", {"after": "layer2.0.conv1"}), "(N, 3, 64, 64) → (N, 128, 16, 16)"),
        (("cut", {"before": "fc"}), "the output is the pooled vector (N, 512)"),
        (("split", {"after": "layer2"}), "head (N, 3, 64, 64) → (N, 128, 16, 16)"),
        (("start", {"at": "layer2"}), "takes `layer1` (N, 64, 32, 32)"),
    ],
)
def test_shapes_are_those_of_the_edited_model(step, words):
    """Comments and docstrings after a change of sizes say the sizes that come out."""
    text = code(put("conv1", stride=1), step)
    assert words in text, text


def test_the_comment_shows_the_consequence():
    """How the output changed, where it did."""
    text = code(put("conv1", stride=1))
    assert "# conv1: stride 2 → 1: (N, 64, 32, 32) → (N, 64, 64, 64)\n" in text


def test_shapes_follow_channels():
    """A width that was changed stands in the text of a later step."""
    text = code(("channels", {"where": "conv1", "inputs": 4}), ("cut", {"after": "layer1.0.conv1"}))
    assert "ResNet up to `layer1.0.conv1`: (N, 4, 64, 64) → (N, 64, 16, 16)." in text


def test_what_is_set_on_a_layer_that_goes_leaves_nothing():
    """A model that begins behind the layer does not name it; the sizes are those it causes."""
    text = code(put("conv1", stride=1), ("start", {"at": "layer2"}))
    assert "conv1.stride" not in text and "`layer1` (N, 64, 32, 32)" in text


def refused(layer: torch.nn.Module, *values: dict) -> str:
    """The message with which the last of some steps is refused."""
    model = torch.nn.Sequential(layer).eval()
    session = Session(model, (torch.randn(2, 3, 8, 8),), namespace={})
    for each in values[:-1]:
        session.do(*put("0", **each))
    with pytest.raises(StepError) as error:
        session.do(*put("0", **values[-1]))
    return str(error.value)


def test_another_mode_of_padding_does_not_meet_another_width():
    """Such a convolution reads a copy of its padding that a new value does not reach."""
    conv = torch.nn.Conv2d(3, 3, 3)
    assert "second copy" in refused(conv, {"padding": "same", "padding_mode": "circular"})
    assert "second copy" in refused(conv, {"padding": 1}, {"padding_mode": "reflect"})
    assert "second copy" in refused(conv, {"padding_mode": "reflect"}, {"padding": 1})


def test_running_statistics_are_no_mere_flag():
    """Without its buffers a norm cannot track, and with them eval mode uses them whatever it says."""
    for norm in (torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3, track_running_stats=False)):
        value = not norm.track_running_stats
        assert "which buffers" in refused(norm, {"track_running_stats": value})
