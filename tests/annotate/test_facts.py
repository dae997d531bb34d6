"""Facts on nodes: they sum to independent counts."""

import pytest
import torch
import torchvision
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from nbsurgery.annotate import annotate
from nbsurgery.capture import capture
from tests.capture import small as models


def annotated(model, *args):
    return annotate(capture(model, args), model)


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_1", "mobilenet_v3_small"])
def test_totals_of_a_classifier_agree_with_independent_counts(name):
    """Parameters by the model's own list, MACs by torch's counter of FLOPs."""
    model = torchvision.models.get_model(name, weights=None).eval()
    x = torch.randn(1, 3, 64, 64)
    graph = annotated(model, x)
    expected = sum(p.numel() for p in model.parameters())
    assert sum(n.facts.get("params", 0) for n in graph.flat) == expected == graph.totals["params"]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    macs = sum(n.facts.get("macs", 0) for n in graph.flat)
    assert macs == graph.totals["macs"] == counter.get_total_flops() // 2


def test_shared_weights_are_counted_once():
    """The first call carries them; the tied output layer and the second call carry nothing."""
    graph = annotated(models.Tied().eval(), torch.randint(0, 20, (2, 7)))
    params = {n.name: n.facts["params"] for n in graph.flat if n.kind == "module"}
    assert params == {"embed": 160, "lin": 72, "lin_1": 0, "out": 0} or params == {
        "embed": 160,
        "lin": 72,
        "alias": 0,
        "out": 0,
    }


def test_frozen_parameters_are_told_apart():
    """``trainable`` counts what asks for gradients."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).eval()
    model[0].requires_grad_(False)
    graph = annotated(model, torch.randn(1, 4))
    assert [n.facts["trainable"] for n in graph.flat if n.kind == "module"] == [0, 10]
    assert graph.totals["trainable"] == 10


def test_the_call_of_a_scope_carries_its_subtree():
    """Sums of its own leaves."""
    model = torchvision.models.resnet18(weights=None).eval()
    graph = annotated(model, torch.randn(1, 3, 64, 64))
    call = next(n for n in graph.root.nodes if n.name == "layer1")
    inside = [n for n in graph.flat if n.name.startswith("layer1.")]
    assert call.facts["params"] == sum(p.numel() for p in model.layer1.parameters())
    assert call.facts["macs"] == sum(n.facts.get("macs", 0) for n in inside)


@pytest.mark.parametrize(
    ("model", "args", "expected"),
    [
        (nn.Conv2d(4, 6, 3, groups=2), (torch.ones(1, 4, 5, 5),), 9 * 6 * 2 * 9),
        (nn.ConvTranspose2d(16, 8, 4, 2, 1), (torch.ones(1, 16, 32, 32),), 2097152),
        (nn.Linear(3, 5), (torch.ones(2, 7, 3),), 2 * 7 * 3 * 5),
        (nn.LSTM(3, 4, batch_first=True), (torch.ones(2, 5, 3),), 10 * 16 * (3 + 4)),
        (
            nn.GRU(3, 4, 2, bidirectional=True),
            (torch.ones(5, 2, 3),),
            10 * 2 * 12 * (3 + 4 + 8 + 4),
        ),
        (nn.ReLU(), (torch.ones(4),), 0),
    ],
)
def test_macs_of_layers(model, args, expected):
    """By hand, where the counter of torch is blind too."""
    graph = annotated(nn.Sequential(model), *args)
    assert graph.totals["macs"] == expected


def test_macs_of_a_packed_sequence():
    """As many steps as the sequences have together."""

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
            return self.lstm(packed)[1][0]

    graph = annotated(Packed(), torch.ones(2, 5, 3), torch.tensor([5, 2]))
    assert graph.totals["macs"] == 7 * 16 * (3 + 4)


def test_macs_of_products_written_as_functions():
    """``@``, ``einsum``, ``F.linear`` and attention agree with torch's counter."""

    class Products(nn.Module):
        def forward(self, x, w):
            y = x @ w
            y = torch.einsum("bij,jk->bik", y, w)
            y = torch.nn.functional.linear(y, w)
            return torch.bmm(y, y.transpose(1, 2))

    args = (torch.randn(2, 5, 6), torch.randn(6, 6))
    graph = annotated(Products(), *args)
    with FlopCounterMode(display=False) as counter:
        Products()(*args)
    assert graph.totals["macs"] == counter.get_total_flops() // 2


def test_activation_bytes_are_the_sizes_of_what_is_made():
    """Float32 outputs; an in-place ReLU makes nothing."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
    graph = annotated(model, torch.randn(3, 4))
    facts = {n.name: n.facts.get("activation_bytes") for n in graph.flat if n.kind == "module"}
    assert facts == {"0": 3 * 8 * 4, "1": None, "2": 3 * 2 * 4}
    assert graph.totals["activation_bytes"] == 3 * 8 * 4 + 3 * 2 * 4


def test_products_inside_a_function_that_is_kept_whole_are_counted():
    """Swin's windowed attention is one node with all its products."""
    model = torchvision.models.swin_t(weights=None).eval()
    x = torch.randn(1, 3, 64, 64)
    graph = annotated(model, x)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    assert graph.totals["macs"] == counter.get_total_flops() // 2
    attention = next(n for n in graph.flat if n.type == "shifted_window_attention")
    assert attention.facts["macs"] > 0
    assert "inside" not in attention.facts
