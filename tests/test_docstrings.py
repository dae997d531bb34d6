"""Examples in docstrings run and give what they say."""

import doctest
import importlib
import pkgutil

import pytest

import nbsurgery

MODULES = sorted(
    info.name for info in pkgutil.walk_packages(nbsurgery.__path__, "nbsurgery.") if info.name
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    """Every example of a module."""
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.failed == 0


def test_there_are_examples():
    """What is written as an example is found here."""
    finder = doctest.DocTestFinder()
    found = [t for n in MODULES for t in finder.find(importlib.import_module(n)) if t.examples]
    assert len(found) >= 4
