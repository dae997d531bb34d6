"""Steps changed, dragged and moved by keys; the full check beside cells that run."""

import pytest

pytestmark = pytest.mark.parametrize("server", ["lab"], indirect=True)

OPEN = """\
import torch
from torch import nn
import nbsurgery as nbs
net = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)).eval()
surgery = nbs.Surgery(net, torch.randn(2, 4)); surgery"""
# A forward that takes its time: without it the checks may be done before a cell is sent.
SLOW = (
    OPEN.replace("import torch\n", "import time, torch\n", 1)
    .replace(
        "net = ",
        """\
class Slow(nn.Tanh):
    def forward(self, x):
        time.sleep(0.05)
        return super().forward(x)

net = """,
    )
    .replace("nn.Tanh(), nn.Linear(8, 2)", "Slow(), nn.Linear(8, 2)")
)
LOOK = "print(surgery._checking.get('state'))"


def test_steps_are_changed_and_moved(notebook):
    """The form of a step opens filled in; a drag and an arrow key put steps elsewhere."""
    book = notebook(OPEN)
    book.run(0)
    widget = book.widget(0)
    widget.click("4")
    widget.operate("Replace", New="nn.Linear(old.in_features, 3)")
    widget.click("3")
    widget.operate("Remove")
    widget.click("0")
    widget.operate("Freeze")
    widget.root.locator(".nbs-step-text").first.click()
    text = widget.root.locator(".nbs-form textarea")
    assert text.input_value() == "nn.Linear(old.in_features, 3)"
    text.fill("nn.Linear(old.in_features, 7)")
    widget.root.locator(".nbs-apply").click()
    widget.root.locator(".nbs-form").wait_for(state="detached")
    widget.idle()
    first, second, third = widget.steps()
    assert "7)" in first and "7)" in widget.code()
    rows = [widget.root.locator(".nbs-step").nth(i).bounding_box() for i in range(3)]
    mouse = book.page.mouse
    mouse.move(rows[0]["x"] + 80, rows[0]["y"] + 12)
    mouse.down()
    mouse.move(rows[0]["x"] + 80, rows[2]["y"] + rows[2]["height"], steps=5)
    mouse.up()
    book.page.wait_for_function(
        "([e, text]) => e.querySelector('.nbs-step:last-child span').textContent === text",
        arg=[widget.root.element_handle(), first],
    )
    widget.idle()
    assert widget.steps() == [second, third, first]
    assert widget.root.locator(".nbs-form").count() == 0
    widget.root.locator(".nbs-grip").nth(1).press("ArrowUp")
    widget.idle()
    assert widget.steps() == [third, second, first]


def test_cells_run_between_the_checks(notebook):
    """Emit puts the cell there at once; while it is checked cells run; what is found is told beside it."""
    book = notebook(SLOW, LOOK)
    book.run(0)
    widget = book.widget(0)
    widget.click("1")
    widget.operate("Insert after", New="nn.ReLU(inplace=True)")
    widget.emit()
    assert "inplace=True" in book.sources()[1]
    seen = []
    while "done" not in seen and len(seen) < 200:
        book.run(2)
        seen.append(book.printed(2).strip())
    assert "running" in seen and seen[-1] == "done"
    fate = widget.root.locator(".nbs-fate")
    assert "Don’t rely on the cell below" in fate.inner_text() and "train" in fate.inner_text()
    widget.root.locator(".nbs-undo").click()
    widget.idle()
    assert not fate.is_visible()
