"""Captured graphs to draw, each made once."""

import functools
import sys
from pathlib import Path

import pytest
import torch

from nbsurgery.annotate import annotate
from nbsurgery.capture import capture

sys.path.insert(0, str(Path(__file__).parent))


@functools.cache
def _graph(name):
    from drawn import MODELS

    torch.manual_seed(0)
    model, args = MODELS[name]()
    model.eval()
    return annotate(capture(model, args, {}), model)


@pytest.fixture
def graph_of():
    """The captured and annotated graph of a model of `drawn.MODELS`."""
    return _graph
