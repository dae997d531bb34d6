"""The public names: all there, all documented, nothing else."""

import inspect
import subprocess
import sys

import pytest

import nbsurgery as nbs


@pytest.mark.parametrize("name", nbs.__all__)
def test_every_public_name_exists_and_is_documented(name):
    """What `__all__` lists can be had, and says what it is."""
    value = getattr(nbs, name)
    assert inspect.getdoc(value)


def test_public_names_are_sorted_and_nothing_else_is_public():
    """A name without an underscore is in the list, or a submodule."""
    assert nbs.__all__ == sorted(nbs.__all__)
    public = {n for n, v in vars(nbs).items() if not n.startswith("_") and not inspect.ismodule(v)}
    assert public - {"annotations"} <= set(nbs.__all__)


@pytest.mark.parametrize("name", ["ModelGraph", "Node", "Scope", "Table"])
def test_public_methods_are_documented(name):
    """Every public member of what people hold has a docstring."""
    cls = getattr(nbs, name)
    bare = [n for n, v in vars(cls).items() if not n.startswith("_") and not inspect.getdoc(v)]
    assert not [n for n in bare if callable(getattr(cls, n)) or isinstance(vars(cls)[n], property)]


def test_capture_is_the_function_whatever_is_imported():
    """The package of the same name never takes its place, in any order of imports."""
    code = (
        "from nbsurgery.capture import replay; import nbsurgery as nbs, nbsurgery.capture.main;"
        "import torch; print(type(nbs.capture).__name__,"
        "len(nbs.capture(torch.nn.Linear(2, 2), torch.zeros(1, 2))) > 2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["function", "True"]


def test_a_wrong_name_is_refused():
    """The lazy names do not swallow mistakes."""
    with pytest.raises(AttributeError, match="no attribute 'Surgeon'"):
        nbs.Surgeon  # noqa: B018
