"""Several widgets on a page, in boxes, moved; keys and wheel beside the notebook's own; the static picture."""

import pytest

# what depends on the widget alone is tried in one application
in_lab = pytest.mark.parametrize("server", ["lab"], indirect=True)

OPEN = """\
import torch, ipywidgets
from torch import nn
import nbsurgery as nbs
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
one = nbs.Surgery(net, torch.zeros(1, 4))
two = nbs.Surgery(nn.Sequential(nn.Linear(3, 3), nn.Tanh()), torch.zeros(1, 3))"""


def roots(book, index):
    return book.page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".nbs-root")


def test_many_views(notebook):
    """Two widgets in a box, one of them shown again: each emits below its own cell, views agree."""
    book = notebook(OPEN, "ipywidgets.VBox([one, two])", "print(1)", "one", "print(2)")
    book.run(0)
    book.run(1)
    book.run(3)
    first = book.widget(1)
    second = type(first)(book, roots(book, 1).nth(1))
    again = book.widget(3)
    again.click("0")
    first.idle()
    assert first.selection() == again.selection() == ["0"]
    assert second.selection() == []
    book.execute("one.selection = ['2']")
    book.page.wait_for_function(
        "e => e.querySelector('[data-name=\"2\"]').classList.contains('nbs-selected')",
        arg=again.root.element_handle(),
    )
    again.operate("Replace", New="nn.Linear(8, 5)")
    assert first.code() == again.code() and "5" in first.code()
    again.emit()
    assert "net[2] = nn.Linear" in book.sources()[4]
    second.click("1")
    second.operate("Replace", New="nn.GELU()")
    second.emit()
    assert "GELU" in book.sources()[2]
    assert len(book.sources()) == 7
    book.shot("many")


@in_lab
def test_a_moved_cell_keeps_its_view(notebook):
    """Pan, zoom and selection survive; the code goes below the new place."""
    book = notebook(OPEN, "one", "print(1)")
    book.run(0)
    book.run(1)
    widget = book.widget(1)
    widget.click("1")
    widget.root.locator('[title^="Zoom in"]').click()
    widget.settled()
    book.page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
    book.command("notebook:move-cell-down")
    widget = book.widget(2)
    assert widget.selection() == ["1"]
    assert widget.root.locator(".nbs-scale").inner_text() == "125 %"
    book.execute("one.remove('1')")
    widget.idle()
    widget.emit()
    assert book.sources()[3] == book.execute("print(one.code, end='')").rstrip("\n")
    assert book.sources()[1] == "print(1)" and len(book.sources()) == 4


@in_lab
def test_the_picture_stays_in_sight(notebook):
    """A picture that becomes shorter is not lost above the canvas; what is opened stays where it was."""
    book = notebook(
        "import torch, nbsurgery as nbs\nfrom torch import nn\n"
        "block = lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh())\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.blocks = nn.ModuleList(block() for _ in range(8))\n"
        "    def forward(self, x):\n"
        "        for block in self.blocks: x = x + block(x)\n"
        "        return x\n"
        "s = nbs.Surgery(Net(), torch.zeros(1, 4)); s._ask_expand_to(3); s"
    )
    book.run(0)
    widget = book.widget(0)
    widget.click("blocks.7.3")
    canvas = widget.root.locator(".nbs-canvas").bounding_box()
    book.execute("s.cut(after='blocks.0.1')")
    widget.idle()
    book.page.wait_for_timeout(500)
    seen = widget.thing("blocks.0.1").bounding_box()
    assert canvas["y"] < seen["y"] < canvas["y"] + canvas["height"]
    book.execute("s.undo()")
    book.page.wait_for_timeout(500)
    widget.show("blocks.4")
    before = widget.thing("blocks.4").bounding_box()
    widget.toggle("blocks.4")
    after = widget.thing("blocks.4").bounding_box()
    assert abs(before["y"] - after["y"]) < 2


@in_lab
def test_keys_and_wheel(notebook):
    """Keys in the widget are the widget's; a wheel over a canvas without the focus scrolls the page."""
    book = notebook(OPEN, "one", *["print(1)"] * 20)
    book.run(0)
    book.run(1)
    widget = book.widget(1)
    canvas = widget.root.locator(".nbs-canvas")
    before = book.sources()
    widget.click("1")
    for key in (
        "d",
        "d",
        "x",
        "a",
        "b",
        "z",
        "m",
        "y",
    ):  # the notebook would delete, cut, insert, …
        book.page.keyboard.press(key)
    assert book.sources() == before
    book.page.keyboard.press("ArrowDown")
    assert widget.selection() == ["2"]
    book.page.keyboard.press("/")
    book.page.keyboard.type("relu")
    widget.idle()
    assert widget.root.locator(".nbs-hits").inner_text() == "1"
    book.page.keyboard.press("Escape")
    stage = widget.root.locator(".nbs-stage")
    place = stage.evaluate("e => e.style.transform")
    widget.root.locator(".nbs-code h4").click()
    canvas.hover()
    book.page.mouse.wheel(0, 200)
    book.page.wait_for_timeout(150)
    assert stage.evaluate("e => e.style.transform") == place
    book.page.keyboard.down("Control")
    book.page.mouse.wheel(0, -100)
    book.page.keyboard.up("Control")
    book.page.wait_for_timeout(150)
    assert stage.evaluate("e => e.style.transform") != place


def test_the_static_picture(notebook):
    """Hidden while the widget lives; shown when the notebook is opened without its kernel."""
    book = notebook(OPEN, "one", fresh=True)  # its kernel is shut down
    book.run(0)
    book.run(1)
    book.widget(1)
    static = book.page.locator(".nbs-static")
    assert static.count() == 1 and not static.is_visible()
    assert "nbs-static" in book.saved().cells[1].outputs[1].data["text/html"]
    book.page.evaluate(
        "async () => { await jupyterapp.shell.currentWidget.sessionContext.shutdown(); }"
    )
    book.page.reload()
    book.ready()
    book.page.locator(".nbs-static img").wait_for()
    assert book.page.locator(".nbs-static img").evaluate("e => e.naturalWidth") > 50
    said = book.page.locator(".jp-OutputArea-output.jupyter-widgets")
    said.wait_for(state="attached")  # that the widget's model is gone
    assert said.count() == 1 and not said.is_visible()
    book.shot("static")


@in_lab
def test_emit_in_a_cell(notebook):
    """surgery.emit() puts the code into the next cell by IPython's own way."""
    book = notebook(OPEN, "one.remove('1'); one.emit()", "print('tail')")
    book.run(0)
    book.run(1)
    book.page.wait_for_function(
        "() => jupyterapp.shell.currentWidget.content.model.cells.length === 4"
    )
    code = book.execute("print(one.code, end='')").rstrip("\n")
    assert book.sources()[2] == code and "net" in code


@in_lab
def test_a_hostile_model(notebook):
    """Names and classes that look like markup are shown as text."""
    evil = "<img src=x onerror=window.hacked=1>"
    book = notebook(
        "import torch, nbsurgery as nbs\nfrom torch import nn\n"
        f"Evil = type({evil!r}, (nn.ReLU,), {{}})\nmodel = nn.Sequential(nn.Linear(2, 2))\n"
        f"model.add_module({evil.replace('.', ' ')!r}, Evil())\nnbs.Surgery(model, torch.zeros(1, 2))"
    )
    book.run(0)
    widget = book.widget(0)
    widget.root.locator(".nbs-box").locator(".nbs-back").click(force=True)
    widget.idle()
    assert evil.replace(".", " ") in widget.root.locator(".nbs-head-line").inner_text()
    assert book.page.evaluate("() => window.hacked") is None
    assert widget.root.locator("img").count() == 0
