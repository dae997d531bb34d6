"""A line of source is called by what a person knows it by."""

import sys
import types

import pytest
from IPython.core import compilerop

from nbsurgery.places import place


@pytest.fixture
def notebook(monkeypatch):
    """IPython's own compiler as a kernel has it, with one cell run as number 3."""
    compiler = compilerop.CachingCompiler()
    monkeypatch.setattr(compiler, "get_code_name", lambda *_: "/tmp/ipykernel_7/278.py")
    compiler.cache("x = 1", 3)
    shell = types.SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/lib/torchvision/models/resnet.py", "resnet.py:27"),
        ("/tmp/ipykernel_7/278.py", "cell [3], line 27"),
        ("/tmp/ipykernel_7/999.py", "this notebook, line 27"),
        ("<ipython-input-4-abc>", "this notebook, line 27"),
        ("<nbsurgery 4>", "the emitted code, line 27"),
        ("<stdin>", "<stdin>:27"),
    ],
)
def test_a_line_of_a_cell_is_called_by_its_cell(notebook, file, said):
    assert place(file, 27) == said


def test_outside_of_a_notebook_no_number_is_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert place("/tmp/ipykernel_7/278.py", 2) == "this notebook, line 2"
    monkeypatch.delitem(sys.modules, "IPython")
    assert place("/lib/net.py", 2) == "net.py:2"
