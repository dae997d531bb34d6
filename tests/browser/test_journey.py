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
    widget.root.locator(".nbs-head-line h3", has_text="layer2.0.conv1").wait_for()
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


HEAD = "nn.Linear(old.in_features, 10)"


def test_edit_and_emit_again(opened):
    """Emit, run, edit again, emit, run: one cell, updated; undo, emit, run; emitting twice changes nothing."""
    book, widget = opened
    widget.click("fc")
    widget.operate("Replace", New=HEAD)
    assert "new cell" in widget.emit()
    book.run(2)
    widget.click("layer4.1")
    widget.operate("Remove")
    assert "up to date" in widget.emit()
    assert "holds this code already" in widget.emit()
    assert len(book.sources()) == 4
    book.run(2)
    book.run(3)
    assert book.printed(3) == "(2, 10)\n"
    assert book.execute("print(type(model.layer4[-1]).__name__, len(model.layer4))")
    both = book.sources()[2]
    assert "fc" in both and "layer4" in both
    widget.root.locator(".nbs-undo").click()
    widget.idle()
    assert "up to date" in widget.emit()
    only = book.sources()[2]
    assert "fc" in only and "layer4" not in only
    book.run(2)
    book.run(3)
    assert book.printed(3) == "(2, 10)\n"
    assert emitted(book) == {2: only}


def test_run_again_after_training(opened):
    """The emitted cell run twice, with a training step between: what is kept stays trained."""
    book, widget = opened
    widget.click("fc")
    widget.operate("Replace", New=HEAD)
    widget.emit()
    book.run(2)
    book.execute(
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "start = model.conv1.weight.detach().clone()\n"
        "model.train()(x).sum().backward(); optimizer.step(); model.eval()\n"
        "trained, head = model.conv1.weight.detach().clone(), model.fc.weight\n"
    )
    book.run(2)
    book.run(3)
    assert book.printed(3) == "(2, 10)\n"
    said = book.execute(
        "print(bool((trained != start).any()), bool((model.conv1.weight == trained).all()), "
        "model.fc.weight is head)"
    )
    assert said == "True True False\n"


def test_the_persons_edits_stay(opened):
    """A cell edited by hand is left alone: the new code goes below it, and is updated from then on."""
    book, widget = opened
    widget.click("fc")
    widget.operate("Replace", New=HEAD)
    widget.emit()
    mine = book.sources()[2] + "\nprint('mine')"
    book.edit(2, mine)
    widget.click("maxpool")
    widget.operate("Remove")
    assert "below it" in widget.emit()
    sources = book.sources()
    assert sources[:3] == [OPEN, SHOW, mine] and sources[4] == USE
    assert "maxpool" in sources[3]
    widget.root.locator(".nbs-undo").click()
    widget.idle()
    assert "up to date" in widget.emit()
    assert book.sources()[2:] == [
        mine,
        book.execute("print(surgery.code, end='')").rstrip("\n"),
        USE,
    ]
    saved = book.saved().cells
    assert [c.source for c in saved] == book.sources()


def test_the_notebooks_own_undo(opened):
    """Ctrl+Z in the cell takes an update back, with its mark; Z takes the insertion back."""
    book, widget = opened
    widget.click("fc")
    widget.operate("Replace", New=HEAD)
    widget.emit()
    first = book.sources()[2]
    widget.click("maxpool")
    widget.operate("Remove")
    widget.emit()
    assert book.sources()[2] != first
    cell = book.page.locator(".jp-Notebook .jp-Cell").nth(2)
    cell.locator(".cm-content").click()
    book.page.keyboard.press("Control+z")
    assert book.sources()[2] == first
    assert book.saved().cells[2].metadata.nbsurgery.source == first
    assert "up to date" in widget.emit()
    cell.locator(".jp-InputPrompt").first.click()
    book.page.keyboard.press("z")
    book.page.wait_for_timeout(200)
    assert book.sources() == [OPEN, SHOW, USE]


def test_reload_and_restart(opened):
    """After a reload the widget goes on; without its kernel it says so, and Emit still works."""
    book, widget = opened
    widget.click("fc")
    widget.operate("Replace", New=HEAD)
    widget.emit()
    book.saved()
    book.page.reload()
    book.ready()
    widget = book.widget(1)
    assert widget.selection() == ["fc"] and len(widget.steps()) == 1
    widget.click("maxpool")
    widget.operate("Remove")
    assert "up to date" in widget.emit()
    assert len(book.sources()) == 4
    book.shot("reloaded")
    book.page.evaluate(
        "() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    book.ready()
    banner = widget.root.locator(".nbs-banner")
    banner.wait_for()  # before anything is asked
    assert "restarted" in banner.inner_text()
    book.shot("restarted")
    widget.click("conv1", answered=False)
    assert widget.selection() == ["conv1"]
    assert "holds this code already" in widget.emit()
    book.run(0)
    book.run(1)
    widget = book.widget(1)
    widget.click("fc")
    widget.operate("Replace", New="nn.Linear(old.in_features, 3)")
    old = book.sources()[2]
    assert "new cell" in widget.emit()
    assert book.sources()[2] == old and "Linear(model.fc.in_features, 3)" in book.sources()[3]
    book.run(3)
    book.run(4)
    assert book.printed(4) == "(2, 3)\n"


def test_going_on_from_the_edited_model(opened):
    """After a run the widget offers to go on from the result: a new recipe, in a cell of its own."""
    book, widget = opened
    widget.click("fc")
    widget.operate("Replace", New=HEAD)
    widget.emit()
    first = book.sources()[2]
    book.run(2)
    widget.root.locator(".nbs-rebase").click()
    widget.idle()
    assert widget.steps() == []
    assert widget.thing("fc").locator(".nbs-shape").text_content() == "10"
    widget.click("fc")
    widget.operate("Replace", New="nn.Linear(old.in_features, 3)")
    widget.emit()
    assert book.sources()[2] == first and len(book.sources()) == 5
    book.run(3)
    book.run(4)
    assert book.printed(4) == "(2, 3)\n"
