"""Classes defined in notebook cells: their source is in linecache, they are used by name."""

from __future__ import annotations

import copy
import linecache
import sys

import pytest
import torch

from nbsurgery.capture import capture
from nbsurgery.emit.names import import_block
from nbsurgery.emit.printer import print_class
from nbsurgery.emit.splice import splice
from tests.emit.test_splice import edited

CELL = """
import torch
import torch.nn.functional as F
from torch import nn

FACTOR = 3

def helper(value, times):
    return value * times

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        hidden = F.relu(self.lin(x))
        if self.training:
            hidden = helper(hidden, FACTOR)
        return hidden + 1
"""
FILE = "/tmp/ipykernel_1/99.py"


@pytest.fixture
def space():
    """What a kernel has after the cell."""
    main = sys.modules["__main__"]
    before = dict(vars(main))
    linecache.cache[FILE] = (len(CELL), None, CELL.splitlines(keepends=True), FILE)
    exec(compile(CELL, FILE, "exec"), vars(main))  # noqa: S102
    yield vars(main)
    linecache.cache.pop(FILE)
    for name in set(vars(main)) - set(before):
        del vars(main)[name]
    vars(main).update(before)


def test_names_of_the_notebook_are_used_without_imports(space):
    """Printed and spliced text run in the kernel's namespace and read like the cell."""
    model = space["Net"]().eval()
    x = torch.randn(2, 4)
    graph = capture(model, (x,), {}, how="real")
    printed = print_class(
        graph, graph.root, model, name="Copy", arg="model", allow_specialised=True
    )
    assert "hidden = F.relu(self.lin(x))" in printed.text
    after = edited(graph.root, graph.by_name["lin"], "insert")
    spliced = splice(graph, after, model, name="Changed", new={"extra": "nn.Identity()"})
    assert "hidden = F.relu(self.extra(self.lin(x)))" in spliced.text
    assert "helper(hidden, FACTOR)" in spliced.text
    assert "__main__" not in "".join((*printed.imports, *spliced.imports))
    here = dict(space)
    for result in (printed, spliced):
        exec(import_block(result.imports) + "\n\n\n" + result.text, here)  # noqa: S102
    changed = copy.deepcopy(model)
    changed.extra = torch.nn.Identity()
    changed.__class__ = here["Changed"]
    assert torch.equal(here["Copy"](model)(x), model(x)) and torch.equal(changed(x), model(x))


def test_a_helper_of_the_notebook_is_copied_by_its_text(space):
    """The copy reads the notebook's names as the helper does; on Python 3.10 only lines are known."""
    model = space["Net"]().train()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    after = edited(graph.root, graph.by_name["mul"], "insert")
    text = splice(graph, after, model, name="Changed", new={"extra": "nn.Identity()"}).text
    assert "hidden = self.helper(hidden, FACTOR)" in text
    assert text.endswith(
        "    def helper(self, value, times):\n        return self.extra(value * times)"
    )
