"""Two captures compared: what neither run could see by itself."""

import torch
from torch import nn

from nbsurgery.capture import capture, compare
from tests.capture.small import MODELS


class Table(nn.Module):
    """Looks a number up by a size: indexing a list asks a tracked number for nothing."""

    widths = (0, 1, 10, 100, 1000)

    def forward(self, x):
        return x * self.widths[x.shape[0]]


class Path(nn.Module):
    """Takes another way for long inputs."""

    def __init__(self):
        super().__init__()
        self.short, self.long = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4))

    def forward(self, x):
        return self.short(x) if x.shape[0] < 3 else self.long(x)


def test_a_number_looked_up_by_a_size_is_found():
    """The literal differs between the runs; both values and the source line are told."""
    model = Table()
    first, second = capture(model, (torch.ones(2, 4),)), capture(model, (torch.ones(3, 4),))
    assert first.specialisations == ()
    (found,) = compare(first, second)
    assert (found.kind, found.value) == ("constant", (10, 100))
    assert "x * self.widths[x.shape[0]]" in found.expression
    assert found.source.startswith("test_compare.py:")


def test_another_way_is_found():
    """Where the runs part."""
    model = Path()
    found = compare(capture(model, (torch.ones(2, 4),)), capture(model, (torch.ones(5, 4),)))
    assert any(s.kind == "compare" and s.value == ("short", "long") for s in found)


def test_a_general_recording_shows_no_difference():
    """Two batch sizes, the same graph."""
    for name in ("Flat", "Net", "Sizes", "DictIO", "Recurrent"):
        make, inputs = MODELS[name]
        model = make().eval()
        graphs = []
        for batch in (2, 5):
            args, kwargs = inputs(batch)
            graphs.append(capture(model, args, kwargs))
        assert compare(*graphs) == (), name
