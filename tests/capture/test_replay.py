"""Replaying what was captured equals the model, exactly, on the example and on other batches."""

import pytest
import torch
import torchvision

from nbsurgery.annotate import annotate
from nbsurgery.capture import capture, replay


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "squeezenet1_1"])
def test_a_classifier_replays_exactly(name):
    """Difference 0.0, on the recorded batch and on another one of another size."""
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None).eval()
    graph = capture(model, (torch.randn(1, 3, 64, 64),))
    for shape in ((1, 3, 64, 64), (2, 3, 96, 64)):
        x = torch.randn(shape)
        with torch.no_grad():
            assert torch.equal(replay(graph, model, (x,)), model(x))
    assert [s.key for s in graph.scopes.values() if s.opaque] == []


def test_the_parts_of_resnet18_sum_to_its_parameters():
    """Counts on the flat nodes add up to an independent count."""
    model = torchvision.models.resnet18(weights=None).eval()
    graph = annotate(capture(model, (torch.randn(1, 3, 64, 64),)), model)
    expected = sum(p.numel() for p in model.parameters())
    assert sum(n.facts.get("params", 0) for n in graph.flat) == expected == graph.totals["params"]


def test_a_basic_block_is_one_small_graph():
    """Its operations in order, the projection as one node, the in-place writes on record."""
    model = torchvision.models.resnet18(weights=None).eval()
    scope = capture(model, (torch.randn(1, 3, 64, 64),)).scopes["layer2.0"]
    assert [n.name for n in scope.nodes] == [
        "layer2.0.x",
        "layer2.0.conv1",
        "layer2.0.bn1",
        "layer2.0.relu",
        "layer2.0.conv2",
        "layer2.0.bn2",
        "layer2.0.downsample",
        "layer2.0.add",
        "layer2.0.relu_1",
        "layer2.0.output",
    ]
    by_name = {n.name: n for n in scope.nodes}
    add = by_name["layer2.0.add"]
    assert add.refs == (by_name["layer2.0.bn2"].id, by_name["layer2.0.downsample"].id)
    assert by_name["layer2.0.relu_1"].writes == (add.id,)
    assert by_name["layer2.0.relu_1"].call == 2
    assert by_name["layer2.0.relu_1"].calls == 2
    assert add.frames[-1].code is type(model.layer2[0]).forward.__code__
