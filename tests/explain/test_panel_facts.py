"""The rows of the side panel: what they hold, and that their links lead somewhere."""

import json

import pytest
import torch
from torch import nn

from nbsurgery.capture import capture
from nbsurgery.errors import SelectionError
from nbsurgery.explain import facts
from nbsurgery.graph import Failure, Graph
from tests.handmade import Net, net_graph

GRAPH, NET = net_graph(), Net().eval()


def rows(*names, graph=GRAPH, net=NET):
    panel = facts(graph, net, list(names))
    return {row["label"]: row for row in panel["rows"]}


@pytest.mark.parametrize("name", [*GRAPH.by_name, *GRAPH.scopes])
def test_every_panel_is_plain_data_and_its_links_exist(name):
    """What is sent to the page is JSON, and each link names a node or scope."""
    panel = facts(GRAPH, NET, [name])
    assert json.loads(json.dumps(panel)) == panel
    assert set(panel) == {"title", "subtitle", "type", "kind", "names", "rows", "text", "source"}
    for row in panel["rows"]:
        assert set(row) == {"label", "value", "links"} and isinstance(row["value"], str)
        for link in row["links"]:
            assert link["name"] in GRAPH.by_name or link["name"] in GRAPH.scopes


def test_a_node():
    """Shapes in and out, neighbours as links, parameters, the call."""
    row = rows("blocks.1.lin")
    assert row["Input"]["links"][0]["name"] == "blocks.0.relu_1" and row["Input"]["value"] == "2×4"
    assert row["Parameters"]["value"] == "20" and row["Multiply-accumulates"]["value"] == "32"
    assert "in_features=4" in row["Settings"]["value"]
    assert row["Inside"]["links"] == [{"text": "blocks.1", "name": "blocks.1"}]
    assert rows("blocks.0.relu_1")["Call"]["value"] == "2 of 2 of blocks.0.relu"
    labels = [r["label"] for r in facts(GRAPH, NET, ["blocks.1.add"])["rows"]]
    assert labels.count("Input") == 2


def test_a_scope_and_the_whole():
    """A module's call, and the model, with counts."""
    row = rows("blocks.0")
    assert row["Operations"]["value"] == "4: Linear, 2 ReLU in 1 module, add"
    assert [link["name"] for link in row["Read by"]["links"]] == ["blocks.1.lin", "blocks.1.add"]
    assert rows()["Parameters"]["value"] == "61" == rows("")["Parameters"]["value"]


def test_the_words_repeat_no_row():
    """Counts, costs and calls stand in the rows; the text says what these cannot."""
    assert facts(GRAPH, NET, [""])["text"] == ""
    assert "identity shortcut" in facts(GRAPH, NET, ["blocks.0"])["text"]
    for name in (*GRAPH.by_name, *GRAPH.scopes):
        text = facts(GRAPH, NET, [name])["text"]
        assert not any(word in text for word in ("operations (", "multiply-acc", "This is call"))


def test_many():
    """Several: links to each, parameters of shared modules once."""
    panel = facts(GRAPH, NET, ["blocks.0.lin", "blocks.1.lin", "fc"])
    assert panel["title"] == "3 selected" and panel["type"] == "3 Linear"
    assert rows("blocks.0", "blocks.0.lin")["Parameters"]["value"] == "20"


def test_frozen_parameters_are_told():
    """What is frozen is said beside the count."""
    net = Net()
    net.fc.weight.requires_grad_(False)
    assert rows("fc", net=net)["Parameters"]["value"] == "15, 3 trainable"
    net.fc.requires_grad_(False)
    assert rows("fc", net=net)["Parameters"]["value"] == "15, frozen"


def test_failure_and_opacity():
    """A failed node and a scope that cannot be rewritten say why."""
    failed = Graph(GRAPH.scopes, failure=Failure("#5", "", "sizes differ"))
    assert rows("fc", graph=failed)["Failed here"]["value"] == "sizes differ"
    assert rows(graph=failed)["The run failed"]["value"] == "sizes differ"
    opaque = GRAPH.with_scopes({"blocks.0": GRAPH.scopes["blocks.0"].with_(opaque="numpy inside")})
    assert rows("blocks.0", graph=opaque)["Cannot be rewritten"]["value"] == "numpy inside"


def test_without_a_model_what_is_recorded_still_shows():
    """No model, no settings; everything else stays."""
    panel = facts(GRAPH, None, ["fc"])
    assert [r["label"] for r in panel["rows"]] == [
        "Input",
        "Output",
        "Read by",
        "Multiply-accumulates",
    ]


def test_wrong_name():
    """A name that is not there gives the nearest."""
    with pytest.raises(SelectionError, match=r"'blocks\.0\.lin'"):
        facts(GRAPH, nn.Identity(), ["blocks.0.lim"])


def test_a_repr_that_raises_hides_nothing_else():
    """A layer whose own description fails still has its facts."""

    class Rude(nn.Linear):
        def extra_repr(self):
            raise ZeroDivisionError

    net = Net()
    net.fc = Rude(4, 3)
    row = rows("fc", net=net)
    assert "Settings" not in row and row["Parameters"]["value"] == "15"


class Positions(nn.Module):
    """Numbers of places made for a size, a weight read directly, placeholders."""

    def __init__(self):
        super().__init__()
        self.words, self.place = nn.Embedding(9, 4), nn.Embedding(9, 4)
        self.scale, self.rest = nn.Parameter(torch.ones(4)), nn.Identity()

    def forward(self, x):
        x = self.rest(self.rest(self.words(x)))
        x = x + self.place(torch.arange(x.shape[1], device=x.device))
        return self.rest(torch.relu(x)) * self.scale


def test_who_reads_a_size_is_not_said_to_read_the_value():
    net = Positions().eval()
    graph = capture(net, torch.ones(2, 5, dtype=torch.long))
    row = rows("rest_1", graph=graph, net=net)
    assert [link["name"] for link in row["Read by"]["links"]] == ["add"]
    row = rows("arange", graph=graph, net=net)
    assert row["Size of"]["links"][0]["name"] == "rest_1" and "Input" not in row


def test_layers_come_first_and_what_is_only_read_is_no_operation():
    net = Positions().eval()
    graph = capture(net, torch.ones(2, 5, dtype=torch.long))
    said = rows(graph=graph, net=net)["Operations"]["value"]
    assert said == "9: 2 Embedding, arange, add, relu, mul, 3 Identity in 1 module"
