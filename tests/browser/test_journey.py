"""The main job on a real ResNet: see it, click, emit, run the emitted cell, use the model."""

import pytest

OPEN = """\
import torch, torchvision
import nbsurgery as nbs
torch.set_num_threads(1)
model = torchvision.models.resnet18(weights=None).eval()
x = torch.randn(2, 3, 64, 64)"""
SHOW = "surgery = nbs.Surgery(model, x); surgery"
USE = "print(tuple(model(x).shape))"


@pytest.fixture
def opened(notebook):
    """A notebook with a widget on resnet18 in its second cell."""
    book = notebook(OPEN, SHOW, USE)
    book.run(0)
    book.run(1)
    return book, book.widget(1)


def emitted(book):
    """The cells that the widget wrote, by index."""
    cells = book.saved().cells
    return {i: c.source for i, c in enumerate(cells) if "nbsurgery" in c.metadata}


def test_the_way_through(opened):
    """Open, expand, select, edit by clicking, undo, redo, emit, run, use; the saved file agrees."""
    book, widget = opened
    book.shot("journey_1_open")
    assert widget.thing("layer1.0.conv1").count() == 1
    widget.toggle("layer2.0")
    assert widget.thing("layer2.0.downsample.0").count() or widget.thing("layer2.0.add").count()
    widget.click("layer2.0.conv1")
    assert widget.selection() == ["layer2.0.conv1"]
    widget.root.locator(".nbs-facts h3", has_text="layer2.0.conv1").wait_for()
    assert "73,728" in widget.root.locator(".nbs-facts").inner_text()
    book.shot("journey_2_selected")
    widget.click("fc")
    widget.operate("Replace", New="nn.Linear(old.in_features, 10)")
    assert len(widget.steps()) == 1
    assert "model.fc = nn.Linear(model.fc.in_features, 10)" in widget.code()
    book.shot("journey_3_edited")
    widget.root.locator(".nbs-undo").click()
    widget.idle()
    assert widget.steps() == []
    widget.root.locator(".nbs-redo").click()
    widget.idle()
    assert len(widget.steps()) == 1
    widget.emit()
    book.shot("journey_4_emitted")
    code = book.execute("print(surgery.code, end='')")
    assert book.sources() == [OPEN, SHOW, code.rstrip("\n"), USE]
    assert book.active() == 2
    book.run(2)
    book.run(3)
    assert book.printed(3) == "(2, 10)\n"
    assert emitted(book) == {2: code.rstrip("\n")}
    assert "trusted" not in book.saved().cells[2].metadata
    widget.root.locator(".nbs-notice").wait_for()
    book.shot("journey_5_ran")
