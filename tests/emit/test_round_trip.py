"""The law of printing: every scope, printed unchanged and put back, leaves the whole model as it was."""

from __future__ import annotations

import pytest
import torch
import torchvision

from nbsurgery.capture import capture
from tests import roundtrip
from tests.models import MODELS

# What decides on a mode or a size raises elsewhere instead of being silently wrong.
GUARDED = {"Items": "x has 2 items", "Branches": "eval mode", "SizeBranch": "x.shape[0] <= 2"}
OPAQUE: dict[str, str] = {}


def compare(model, args, others):
    """Rows of a round trip on the example, on other inputs and in train mode."""
    graph = capture(model, args, {}, how="real")
    return roundtrip.check(model, args, graph=graph, others=others, allow_specialised=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_small_model_survives(name):
    """Exact on two batch sizes and in both modes; what holds for one decision says so."""
    make, inputs = MODELS[name]
    rows = compare(make().eval(), inputs(2), [(inputs(4), {})])
    assert rows
    for row in rows:
        assert row.wrong is None, row.text
        assert (row.guarded is not None) == (row.key == "" and name in GUARDED), row.guarded
        assert (row.refused is not None) == (name in OPAQUE), row.refused
    if name in GUARDED:
        assert GUARDED[name] in rows[0].guarded
    if name in OPAQUE:
        assert OPAQUE[name] in rows[0].refused


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "squeezenet1_1"])
def test_a_library_model_survives(name):
    """Every scope of the model is printed, and exact."""
    model = torchvision.models.get_model(name, weights=None).eval()
    rows = compare(model, (torch.randn(2, 3, 64, 64),), [((torch.randn(3, 3, 64, 64),), {})])
    assert [r for r in rows if r.wrong or r.refused or r.guarded] == []


def test_subclasses_survive_too():
    """The other form: the old class with another forward, set on the instance."""
    model = torchvision.models.resnet18(weights=None).eval()
    x = torch.randn(2, 3, 64, 64)
    graph = capture(model, (x,), {}, how="real")
    rows = roundtrip.check(model, (x,), graph=graph, form="sub")
    assert [r for r in rows if r.wrong or r.refused] == []
