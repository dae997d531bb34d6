"""The views over real captures: the questions that people ask of a resnet, and of failing models."""

import pytest
import torch
import torchvision
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import nbsurgery as nbs


@pytest.fixture(scope="module")
def resnet():
    torch.manual_seed(0)
    return torchvision.models.resnet18(weights=None).eval()


@pytest.fixture(scope="module")
def graph(resnet):
    return nbs.capture(resnet, input_size=(2, 3, 64, 64))


def test_the_question_that_people_ask_most(resnet, graph):
    """Which layer feeds this one, and how many channels does it make? And back from the module."""
    node = graph["layer2.0.downsample.0"]
    assert node.upstream(nn.Conv2d)[0].module.out_channels == 64
    assert [n.name for n in node.inputs] == ["layer1.1.relu_1"]
    assert (
        graph[resnet.layer2[0].downsample[0]] is node
        and node.module is resnet.layer2[0].downsample[0]
    )
    assert [n.name for n in graph["layer1.0.add"].inputs] == ["layer1.0.bn2", "maxpool"]


def test_calls_and_sources(graph):
    """One ReLU module is two calls; a node knows the line that made it."""
    assert [n.name for n in graph.find("layer1.0.relu")] == ["layer1.0.relu", "layer1.0.relu_1"]
    assert len(graph.find("layer*.*.relu*")) == 16 and len(graph.find(nn.ReLU)) == 17
    file, line = graph["layer1.0.add"].source.split(":")
    assert file == "resnet.py" and int(line) > 50
    assert graph["conv1"].dtype is torch.float32 and graph["conv1"].shape == (2, 64, 32, 32)


def test_parameters_and_macs_against_independent_counts(resnet, graph):
    """The totals are those of the model and of torch's own counter."""
    assert graph.totals["params"] == sum(p.numel() for p in resnet.parameters())
    assert sum(row.params for row in graph.table() if row.kind != "group") == graph.totals["params"]
    with FlopCounterMode(display=False) as counter:
        resnet(torch.zeros(2, 3, 64, 64))
    assert graph.totals["macs"] == counter.get_total_flops() // 2
    assert graph["layer1"].macs == sum(n.macs for n in graph.find("layer1.**"))


def test_run_equals_the_model_on_another_batch(resnet, graph):
    """The captured graph evaluates like the model."""
    x = torch.randn(3, 3, 96, 96)
    assert torch.equal(graph.run(x), resnet(x))


def test_capture_changes_nothing(resnet):
    """Mode, weights, buffers and random state are as before."""
    state = {k: v.clone() for k, v in resnet.state_dict().items()}
    random = torch.random.get_rng_state()
    nbs.capture(resnet, input_size=(1, 3, 32, 32))
    assert not resnet.training and torch.equal(torch.random.get_rng_state(), random)
    assert all(torch.equal(v, state[k]) for k, v in resnet.state_dict().items())


def test_pictures_and_dot(graph):
    """The picture is an SVG, the DOT has a cluster for each open module."""
    svg = graph.to_svg()
    assert svg.lstrip().startswith("<svg") and "layer1" in svg
    assert len(graph.to_svg(["layer1.0"])) > len(graph.to_svg([]))
    with pytest.raises(nbs.SelectionError, match="nearest: 'layer1.0'"):
        graph.to_svg(["layer1.00"])
    source = graph.to_graphviz(depth=2).source
    assert source.count("subgraph") >= 4 and "64" in source
    assert graph._repr_mimebundle_()["image/svg+xml"] == svg
    assert svg._repr_mimebundle_()["image/svg+xml"] == svg


def test_without_an_engine_the_table_shows(graph, monkeypatch):
    """Where no picture can be drawn, the notebook shows the table."""

    def refuse(*args, **kwargs):
        raise nbs.EngineError("no Graphviz")

    monkeypatch.setattr(nbs.ModelGraph, "to_svg", refuse)
    assert "nbs-table" in graph._repr_mimebundle_()["text/html"]


class Fails(nn.Module):
    """Two layers whose sizes do not fit."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 5), nn.Linear(6, 2)

    def forward(self, x):
        return self.b(self.a(x))


def test_a_model_that_fails_is_shown_up_to_there():
    """The error holds the graph, which names the failing node, and the model's own words."""
    with pytest.raises(nbs.ModelFailed, match="shape") as caught:
        nbs.capture(Fails(), torch.zeros(1, 4))
    graph = caught.value.graph
    assert isinstance(graph, nbs.ModelGraph) and "a" in graph and graph.failure is not None
    assert "FAILED" in repr(graph) and "FAILED" in str(graph.table())


def test_dicts_in_and_out():
    """Structured inputs and outputs have nodes like any."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, batch, scale=1.0):
            out = self.fc(batch["x"]) * scale
            return {"logits": out, "size": batch["x"].shape[0]}

    graph = nbs.capture(Net(), {"x": torch.zeros(2, 4)}, scale=2.0)
    assert graph["fc"].users and graph.output is not None
    assert torch.equal(graph.run({"x": torch.ones(3, 4)}, scale=2.0)["logits"],
                       graph.model({"x": torch.ones(3, 4)}, scale=2.0)["logits"])  # fmt: skip


class Reads(nn.Module):
    """Reads the size of one value to shape another."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)

    def forward(self, x):
        out = self.fc(x)
        return out.view(x.shape[0], 2, 3), torch.arange(x.shape[0])


def test_whose_size_alone_is_read_is_no_predecessor():
    """A view is connected to what it reshapes; what reads nothing but a size, to where that is from."""
    graph = nbs.capture(Reads(), torch.zeros(5, 4))
    assert [n.name for n in graph["view"].inputs] == ["fc"]
    assert [n.name for n in graph["arange"].inputs] == ["x"]
    assert "view" not in [n.name for n in graph["x"].users]
