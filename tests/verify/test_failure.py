"""An edited model that cannot run: the sentence names the node and the shapes that met there."""

import pytest
import torch
from torch import nn

from nbsurgery import verify
from nbsurgery.capture import capture
from nbsurgery.errors import ModelFailed, ShapeError, StepError
from nbsurgery.verify.runs import run


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.skip = nn.Conv2d(3, 8, 1)

    def forward(self, x):
        out = self.bn(self.conv(x))
        out += self.skip(x)
        return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.norm = nn.LayerNorm(4)
        self.fc = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        x = self.norm(self.block(x))
        return self.fc(torch.flatten(x, 1))


X = torch.ones(2, 3, 4, 4)


@pytest.mark.parametrize(
    "edit, said",
    [
        (
            "model.fc = nn.Linear(256, 10)",
            "fc expects 256 features, gets 128: (2, 128) meets weight (10, 256)",
        ),
        (
            "model.block.conv = nn.Conv2d(6, 8, 3, padding=1)",
            "block.conv expects 6 channels, gets 3: (2, 3, 4, 4) meets weight (8, 6, 3, 3)",
        ),
        (
            "model.block.bn = nn.BatchNorm2d(4)",
            "block.bn expects 4 channels, gets 8: (2, 8, 4, 4) meets weight (4,)",
        ),
        ("model.fc = nn.BatchNorm2d(128)", "fc (BatchNorm2d) expects 4 axes, gets 2"),
        ("model.norm = nn.LayerNorm((8, 5))", "norm expects (8, 5) at the end, gets (4, 4)"),
        ("model.fc = nn.Flatten(3)", "fc (Flatten) cannot work on (2, 128)"),
        ("model.fc = model.fc.double()", "fc holds float64, gets float32"),
        ("model.fc = nn.Linear(128, 2, device='meta')", "fc is on meta, its input on cpu"),
        (
            "model.block.conv = nn.Conv2d(3, 8, 9)",
            "block.conv (Conv2d) cannot work on (2, 3, 4, 4)",
        ),
    ],
)
def test_a_layer_that_does_not_fit(edit, said):
    """Both ways to meet the failure, running and capturing, say the same."""
    built = verify.execute(f"from torch import nn\n{edit}", Net())
    error = verify.explain(run(built.modules, (X,)).error, built.modules)
    assert isinstance(error, ShapeError) and said in str(error)
    with pytest.raises(ShapeError) as caught:
        verify.after(built, (X,))
    assert said in str(caught.value)


def test_an_addition_that_does_not_fit():
    """Not a layer but an operation: its name from the capture, its operands from the line."""
    built = verify.execute("from torch import nn\nmodel.block.skip = nn.Identity()", Net())
    error = verify.explain(run(built.modules, (X,)).error, built.modules)
    assert isinstance(error, ShapeError)
    assert "block (Block) cannot run `out += self.skip(x)`: out (2, 8, 4, 4)" in str(error)
    with pytest.raises(ShapeError) as caught:
        verify.after(built, (X,))
    assert str(caught.value).startswith(
        "block.add (add) cannot run: (2, 8, 4, 4) meets (2, 3, 4, 4);"
    )


@pytest.mark.parametrize(
    "edit, said",
    [
        ("del model.fc", "the model (Net) cannot run `return self.fc(torch.flatten(x, 1))`"),
        ("from torch import nn\nmodel.fc = nn.ModuleList()", "missing the required \"forward\""),
        ("model.block.forward = lambda: 1", "TypeError"),
    ],
)  # fmt: skip
def test_other_failures_are_no_shape_errors(edit, said):
    """An attribute that went, a container that cannot be called."""
    built = verify.execute(edit, Net())
    error = verify.explain(run(built.modules, (X,)).error, built.modules)
    assert type(error) is StepError and said in str(error)


def test_the_report_raises_what_the_run_raised():
    """`check` names the node too, and keeps the model's own error as the cause."""
    model = Net()
    built = verify.execute("from torch import nn\nmodel.fc = nn.Linear(2, 2)", model)
    with pytest.raises(ShapeError, match="fc expects 2 features, gets 128") as caught:
        verify.check(verify.Subject(capture(model, (X,)), model, built, args=(X,)))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_failure_that_only_the_capture_knows():
    """Without a traceback the recorded failure is enough."""
    model = Net()
    model.block.skip = nn.Identity()
    with pytest.raises(ModelFailed) as caught:
        capture(model, (X,))
    bare = ModelFailed(str(caught.value), caught.value.graph)
    assert "block.add" in str(verify.explain(bare, (model,)))
