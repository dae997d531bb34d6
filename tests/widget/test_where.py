"""A function given as a ``where`` sees Nodes, as it does in ``graph.find``."""

import pytest
import torch
from torch import nn

import nbsurgery as nbs
from nbsurgery.widget import Surgery


@pytest.fixture
def surgery():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    return Surgery(model.eval(), torch.zeros(1, 4))


def test_a_function_sees_nodes(surgery):
    """What a Node offers, its predecessors and counts, can choose the place."""
    surgery.replace(lambda node: node.type == "ReLU" and node.inputs[0].params == 72, "nn.GELU()")
    built = surgery.build()
    assert isinstance(built[3], nn.GELU) and isinstance(built[1], nn.ReLU)


def test_a_function_that_chooses_nothing_is_told(surgery):
    """Nothing chosen is an error, and nothing has changed."""
    with pytest.raises(nbs.SelectionError, match="chooses no node"):
        surgery.remove(lambda node: node.params > 10**9)
    assert surgery.steps == []
