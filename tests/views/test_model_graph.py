"""Looking things up in a captured model, and walking from one to the next."""

import pytest
import torch
from torch import nn

from nbsurgery.errors import CaptureError, SelectionError
from nbsurgery.graph import Failure, Graph
from nbsurgery.views import ModelGraph, capture
from tests.handmade import Block, Net, net_graph


@pytest.fixture
def net():
    return Net()


@pytest.fixture
def graph(net):
    return ModelGraph(net_graph(), net)


def names(items):
    return [item.name for item in items]


def test_nodes_are_in_execution_order_and_the_same_objects(graph):
    """A node is one object, however it is reached."""
    assert names(graph.nodes) == list(graph) and len(graph) == 13
    assert graph["blocks.0.add"] is graph.nodes[3] is graph["blocks.0.lin"].users[0].users[0]


def test_inputs_and_users_cross_borders(graph):
    """Predecessors and successors are those that a reader of the whole model sees."""
    assert names(graph["blocks.1.add"].inputs) == ["blocks.1.relu", "blocks.0.relu_1"]
    assert names(graph["blocks.0.relu_1"].users) == ["blocks.1.lin", "blocks.1.add"]
    assert names(graph["output"].inputs) == ["fc"]


def test_from_module_to_node_and_back(graph, net):
    """A module leads to its first call, a node to its module."""
    assert graph[net.blocks[1].lin] is graph["blocks.1.lin"]
    assert graph[net.blocks[1]] is graph.scopes["blocks.1"]
    assert graph[net] is graph.scopes[""]
    assert graph["blocks.1.relu_1"].module is net.blocks[1].relu
    assert graph["blocks.1.relu_1"].path == "blocks.1.relu"
    assert (graph["blocks.1.relu_1"].call, graph["blocks.1.relu_1"].calls) == (2, 2)
    assert graph["flatten"].module is None and graph["flatten"].path is None


def test_upstream_finds_the_nearest_of_a_class(graph):
    """The search is breadth first, and stops at a find on each branch."""
    assert graph["fc"].upstream(nn.Linear)[0].module.out_features == 4
    assert names(graph["fc"].upstream(nn.Linear)) == ["blocks.1.lin", "blocks.0.lin"]
    assert names(graph["fc"].upstream("add")) == ["blocks.1.add"]
    assert names(graph["fc"].upstream(Block)) == ["blocks.1"]
    assert names(graph["blocks.1.lin"].upstream(Block)) == ["blocks.0"]  # not the one around it
    assert names(graph["x"].downstream((nn.ReLU, "add"))) == ["blocks.0.add", "blocks.0.relu"]
    assert names(graph["blocks.0"].downstream(Block)) == ["blocks.1"]
    assert graph["x"].upstream(nn.Linear) == ()
    with pytest.raises(TypeError, match="int is no class"):
        graph["fc"].upstream(3)


def test_scopes(graph):
    """A scope knows what it does itself, what feeds it and what reads it."""
    scope = graph["blocks.1"]
    assert names(scope.nodes) == [f"blocks.1.{n}" for n in ("lin", "relu", "add", "relu_1")]
    assert names(graph[""].nodes) == [
        "x",
        "blocks.0",
        "blocks.1",
        "relu",
        "flatten",
        "fc",
        "output",
    ]
    assert names(scope.inputs) == ["blocks.0.relu_1"] and names(scope.users) == ["relu"]
    assert names(scope.results) == ["blocks.1.relu_1"]
    assert (scope.type, scope.shape, scope.params, scope.macs) == ("Block", (2, 4), 20, 32)
    assert scope.parent is graph[""] and scope.opaque is None


def test_find(graph):
    """Globs, classes, types, functions; nothing found is an empty tuple."""
    assert names(graph.find("blocks.*")) == ["blocks.0", "blocks.1"]
    assert len(graph.find(type="relu")) == 5  # the module's four calls and F.relu
    assert names(graph.find(type="Block")) == ["blocks.0", "blocks.1"]
    assert names(graph.find(lambda node: node.macs > 24)) == ["blocks.0.lin", "blocks.1.lin"]
    assert names(graph.find("blocks.0.*", type="add")) == ["blocks.0.add"]
    assert graph.find(nn.LSTM) == () == graph.find("nothing*")


def test_wrong_names_offer_the_nearest(graph):
    """A typing error is answered with what was meant."""
    with pytest.raises(SelectionError, match="nearest: 'blocks.1.lin'"):
        graph["block.1.lin"]
    with pytest.raises(SelectionError, match="not called"):
        graph["unused"]
    with pytest.raises(SelectionError, match="use graph.find"):
        graph["blocks.*"]
    with pytest.raises(SelectionError, match="tuple is no name"):
        graph[1, 2]
    assert "blocks.1.lin" in graph and "block.1.lin" not in graph
    with pytest.raises(SelectionError, match="nearest: 'blocks.0.lin'"):
        graph.find("blocks.0.ln")


def test_later_edits_of_the_model_do_not_reach_the_graph(graph, net):
    """What was captured stays what it was, also when the person's model is edited."""
    old = net.fc
    net.fc = nn.Identity()
    assert graph["fc"].module is old and names(graph.find(nn.Linear))[-1] == "fc"


def test_totals_count_each_parameter_once(net):
    """A weight tied between two layers is counted where it is read first."""
    net.blocks[1].lin.weight = net.blocks[0].lin.weight
    graph = ModelGraph(net_graph(), net)
    assert graph["blocks.0.lin"].params == 20 and graph["blocks.1.lin"].params == 4
    assert graph.totals["params"] == sum(p.numel() for p in net.parameters()) == 45
    net.fc.requires_grad_(False)
    graph = ModelGraph(net_graph(), net)
    assert graph.totals["trainable"] == 30 and graph["fc"].trainable == 0


def test_representations_name_what_matters(graph):
    """A repr says name, type, call and shape."""
    assert repr(graph) == "<ModelGraph Net: 13 nodes, 3 scopes, 61 parameters>"
    assert repr(graph["blocks.0.relu_1"]) == "<Node 'blocks.0.relu_1': ReLU call 2 of 2 2×4>"
    assert repr(graph["blocks.0"]) == "<Scope 'blocks.0': Block 2×4, 20 parameters>"


def test_a_failed_run_is_shown(net):
    """A graph that ends early says so in its repr and its table."""
    recorded = net_graph()
    graph = ModelGraph(Graph(recorded.scopes, failure=Failure("fc", "", "sizes differ")), net)
    assert "FAILED" in repr(graph) and "at fc: sizes differ" in graph.table().to_text(200)


def test_capture_refuses_what_is_no_module():
    """A function is no module; both ways of giving inputs at once is a mistake."""
    with pytest.raises(CaptureError, match="function"):
        capture(lambda x: x)
    with pytest.raises(CaptureError, match="not both"):
        capture(nn.Linear(2, 2), torch.zeros(1, 2), input_size=(1, 2))
