"""Two captures compared: what neither run could see by itself."""

import torch
from torch import nn

from nbsurgery.capture import capture, compare
from tests.capture.small import MODELS


class Printed(nn.Module):
    """Prints a size as C does: that asks a tracked number for nothing."""

    def forward(self, x):
        return x * float("%d" % x.shape[0])  # noqa: UP031


class Path(nn.Module):
    """Takes another way for long inputs."""

    def __init__(self):
        super().__init__()
        self.short, self.long = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4))

    def forward(self, x):
        return self.short(x) if x.shape[0] < 3 else self.long(x)


def test_a_number_that_no_run_could_see_is_found():
    """The literal differs between the runs; both values and the source line are told."""
    model = Printed()
    first, second = capture(model, (torch.ones(2, 4),)), capture(model, (torch.ones(3, 4),))
    assert first.specialisations == ()
    (found,) = compare(first, second)
    assert (found.kind, found.value) == ("constant", (2.0, 3.0))
    assert "x * float" in found.expression
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
