"""Random recipes on small real models: each applies and holds, or is refused and changes nothing."""

from __future__ import annotations

import collections
import functools
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbsurgery.session import Session

from tests.session.laws import again, check
from tests.session.zoo import SMALL, build


@functools.cache
def session(name: str) -> Session:
    """One session a model: each example undoes what it did."""
    model, args, kwargs = build(name)
    return Session(model, args, kwargs, namespace={})


@pytest.mark.parametrize("name", SMALL)
@settings(
    max_examples=8, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(seed=st.integers(0, 10_000))
def test_random_recipe_holds(name, seed):
    """The report finds no error, the model is untouched, the recipe survives JSON."""
    s = session(name)
    try:
        wrong = check(s, name, collections.Counter(), random.Random(seed))
        assert not wrong, "\n".join(wrong)
    finally:
        while s.can_undo:
            s.undo()


def test_recipe_gives_the_same_code_again():
    """The same steps on a fresh model give the same text."""
    s = session("resnet18")
    try:
        check(s, "resnet18", collections.Counter(), random.Random(3))
        recipe = [x.to_json() for x in s.recipe]
        assert recipe
        assert again("resnet18", recipe) == s.code
    finally:
        while s.can_undo:
            s.undo()
