"""Random recipes on real and random models: each applies and holds, or is refused and changes nothing."""

from __future__ import annotations

import ast
import collections
import functools
import importlib.util
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nbsurgery.session import Session
from tests.session import laws
from tests.session.zoo import MODELS

CHUNKS = 15  # small ones, so that several workers share them
QUICK = [
    n
    for n in MODELS
    if n not in ("densenet121", "googlenet", "resnet50", "swin_t", "efficientnet_b0")
]


@functools.lru_cache(maxsize=len(QUICK))
def session(name: str) -> Session:
    """One session a model: each example takes back what it did."""
    return laws.opened(name)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@settings(
    max_examples=300 // CHUNKS, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)  # fmt: skip
@given(data=st.data())
def test_random_recipe_holds(chunk, data):
    """What every recipe keeps: see `laws.check`. Half of the models are written by chance."""
    real = QUICK[chunk % len(QUICK)]
    name = data.draw(st.sampled_from([real]) | st.integers(0, 10_000).map("cell {}".format))
    seed = data.draw(st.integers(0, 1_000_000))
    s = session(name)
    try:
        wrong = laws.check(s, name, collections.Counter(), random.Random(seed))
        assert not wrong, "\n".join(wrong)
    finally:
        laws.emptied(s)


def test_the_oracle_knows_neither_emission_nor_the_builder():
    """No module that the oracle imports, at any depth, writes code or runs it."""
    todo, seen = ["nbsurgery.verify.oracle"], set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        path = Path(importlib.util.find_spec(name).origin)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom):
                continue
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package)
            for found in (base, *(f"{base}.{a.name}" for a in node.names)):
                if found.startswith("nbsurgery.") and _is_module(found):
                    todo.append(found)
    assert {"nbsurgery.verify.oracle", "nbsurgery.capture.replay", "nbsurgery.graph"} <= seen
    builders = ("nbsurgery.emit", "nbsurgery.operations", "nbsurgery.session")
    builders += ("nbsurgery.verify.execute", "nbsurgery.verify.copy", "nbsurgery.draft")
    assert not [name for name in seen if name.startswith(builders)]


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
