"""The mutants are of the code as it is: each text that they exchange stands once in its file."""

from __future__ import annotations

import pytest

from tests.mutants import HERE, MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_the_text_of_a_mutant_is_found(mutant):
    """Else it breaks nothing, and says nothing about the tests."""
    text = (HERE / "nbsurgery" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
