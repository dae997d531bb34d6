"""Chains as `nn.Sequential`: the golden texts, kept keys, equal numbers, and what is no chain."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from nbsurgery.capture import capture
from nbsurgery.emit.names import import_block
from nbsurgery.emit.sequential import print_sequential
from nbsurgery.graph import Ref
from nbsurgery.rewrite import returning
from tests import models

GOLDEN = Path(__file__).parents[1] / "golden" / "emitted"


def run(printed, model):
    """The module that the text makes from a copy of the model."""
    space = {"model": copy.deepcopy(model)}
    exec(import_block(printed.imports) + "\n" + printed.text, space)  # noqa: S102
    return space["model"]


def test_a_resnet_is_a_chain():
    """The golden text, the same keys, the same numbers."""
    model = torchvision.models.resnet50(weights=None).eval()
    x = torch.randn(2, 3, 64, 64)
    graph = capture(model, (x,), {}, how="real")
    printed = print_sequential(graph, graph.root, model, arg="model", target="model")
    golden = (GOLDEN / "12_as_sequential.py").read_text()
    assert printed.text == golden.partition("load\n")[2].rstrip()
    assert import_block(printed.imports) == golden.partition("\n\n#")[0]
    made = run(printed, model)
    assert list(made.state_dict()) == list(model.state_dict())
    with torch.no_grad():
        assert torch.equal(made(x), model(x))


class Chain(nn.Module):
    """Functional layers between modules, one stateless module twice."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.act = nn.ReLU()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x = self.act(self.conv(x))
        x = F.adaptive_avg_pool2d(x, (1, 1))
        x = self.act(x.view(x.size(0), -1))
        x = F.dropout(x, 0.3, self.training)
        return torch.sigmoid(self.fc(x))


def test_functions_become_layers():
    """Names stay distinct, dropout takes the mode along."""
    model = Chain().eval()
    x = torch.randn(2, 3, 8, 8)
    graph = capture(model, (x,), {}, how="real")
    printed = print_sequential(graph, graph.root, model, arg="model", target="model")
    made = run(printed, model)
    assert list(made._modules) == [
        "conv", "act", "adaptive_avg_pool2d", "flatten", "act_1", "dropout", "fc", "sigmoid",
    ]  # fmt: skip
    assert torch.equal(made(x), model(x)) and set(made.state_dict()) == set(model.state_dict())


def test_a_run_of_a_container_is_a_slice():
    """`model[:2]` keeps the keys."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)).eval()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    scope = returning(graph.root, Ref(graph.root.nodes[2].id))
    assert print_sequential(graph, scope, model, arg="model").text == "model[:2]"


@pytest.mark.parametrize("name", ["SharedReLU", "Outputs", "Encoder", "Branches", "Recurrent"])
def test_what_is_no_chain_is_none(name):
    """Skips, several outputs, decisions."""
    make, inputs = models.MODELS[name]
    model = make().eval()
    graph = capture(model, inputs(2), {}, how="real")
    assert print_sequential(graph, graph.root, model, arg="model") is None


def test_a_layer_with_weights_that_is_called_twice_is_no_chain():
    """Its weights would have two keys."""

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return self.fc(self.fc(x))

    model = Twice().eval()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    assert print_sequential(graph, graph.root, model, arg="model") is None


def test_a_part_without_gradients_is_no_chain():
    """A with block has no place in a Sequential."""

    class Frozen(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.fc = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            with torch.no_grad():
                x = self.stem(x)
            return self.fc(x)

    model = Frozen().eval()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    assert print_sequential(graph, graph.root, model, arg="model") is None
