"""What a run decided: which guards stand in printed text, how they say it, and what needs none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nbsurgery.capture import capture
from nbsurgery.emit.printer import print_class
from tests import roundtrip


def put(model: nn.Module, args: tuple, path: str = "") -> tuple[nn.Module, str]:
    """The model with a printed class in place, and its text."""
    graph = capture(model.eval(), args, {}, how="real")
    scope = next(s for s in graph.scopes.values() if s.path == path)
    module = model.get_submodule(path)
    printed = print_class(graph, scope, module, name="Printed", arg="block", allow_specialised=True)
    row = roundtrip.Row(scope.key, scope.type)
    return roundtrip.put(model, path, roundtrip.load(row, printed), "copy"), printed.text


class Decides(nn.Module):
    """Asks in several ways."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        if x.shape[0] > 8:
            x = x * 2
        if x.dim() == 2:
            x = self.lin(x)
        if x.shape[-1] in (3, 5):
            x = x + 1
        return x


def test_a_guard_says_what_was_so():
    """In the words of the condition, turned round where it was false."""
    _, text = put(Decides(), (torch.randn(2, 4),))
    assert "this forward holds only where x.shape[0] <= 8 (" in text
    assert "this forward holds only where x.dim() == 2 (" in text
    assert "→" not in text


class Keeps(nn.Module):
    """Gives a dtype on: of a value, by a variable, by a property that looks at the weights."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    @property
    def dtype(self):
        for parameter in self.parameters():
            return parameter.dtype

    def forward(self, x):
        dtype = x.dtype
        y = torch.sigmoid(x.float()).to(self.dtype)
        return (self.lin(y).float() * 2).to(dtype) + torch.ones(1, dtype=x.dtype)


def test_a_dtype_that_is_given_on_is_read_again():
    """No guard: the text holds in half precision too, and after a conversion."""
    model = Keeps().eval()
    with torch.no_grad():
        expected = Keeps.forward(model.bfloat16(), torch.ones(2, 4, dtype=torch.bfloat16))
        model.float()
        result, text = put(model, (torch.ones(2, 4),))
        assert "raise" not in text and "torch.float32" not in text, text
        actual = result.bfloat16()(torch.ones(2, 4, dtype=torch.bfloat16))
    assert actual.dtype == torch.bfloat16 and torch.equal(actual, expected)


class Compares(nn.Module):
    """Gives a dtype on and decides on it as well."""

    def forward(self, x):
        dtype = x.dtype
        if dtype == torch.float64:
            x = x * 2
        return x.float().to(dtype)


def test_a_dtype_that_also_decides_is_guarded():
    """Read again or not: another dtype goes another way."""
    result, text = put(Compares(), (torch.ones(2, 4),))
    assert "raise RuntimeError" in text
    with pytest.raises(RuntimeError, match="holds only where"):
        result(torch.ones(2, 4, dtype=torch.float64))


class Images:
    """Several tensors of a size."""

    def __init__(self, tensors):
        self.tensors = tensors


class Boxes(nn.Module):
    """One tensor for each item of a list that it is given."""

    def forward(self, images):
        return [image[:2] * 2 for image in images.tensors]


class Proposes(nn.Module):
    """Counts in plain Python what a part returned."""

    def __init__(self):
        super().__init__()
        self.boxes = Boxes()
        self.lin = nn.Linear(4, 4)

    def forward(self, images):
        boxes = self.boxes(images)
        return self.lin(torch.cat(boxes)).view(len(boxes), -1)


class Detects(nn.Module):
    """Makes the object that its part is given."""

    def __init__(self):
        super().__init__()
        self.proposes = Proposes()

    def forward(self, images):
        return self.proposes(Images([image + 1 for image in images]))


def test_how_many_items_a_list_had_is_guarded():
    """One more image raises, and says so, instead of a size that does not fit."""
    images = [torch.randn(3, 4), torch.randn(3, 4)]
    result, _ = put(Detects(), (images,), "proposes")
    assert result(images).shape == (2, 8)
    with pytest.raises(RuntimeError, match="boxes has 2 items"):
        result([*images, torch.randn(3, 4)])
