"""The one door to Graphviz: its errors, its time limit, and life without it."""

import subprocess
import sys

import pytest

from nbsurgery.errors import EngineError
from nbsurgery.render import Cache, Engine, compose, find_engine
from nbsurgery.render import engine as module


def test_several_graphs_in_one_call():
    """Answers come in the order of the questions."""
    first, second = find_engine().layout(["digraph{a}", "digraph{a->b b->c}"])
    assert (1, 3) == (len(first["objects"]), len(second["objects"]))


def test_a_syntax_error_is_told():
    """What Graphviz says is in the message."""
    with pytest.raises(EngineError, match="syntax error"):
        find_engine().layout(["digraph{"])


def test_an_engine_that_is_not_there():
    """The message names the file and the cure."""
    with pytest.raises(EngineError, match=r"/nowhere/dot.*pip install"):
        Engine("/nowhere/dot", "dot").layout(["digraph{a}"])


def _script(tmp_path, text):
    path = tmp_path / "dot"
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_time_limit(tmp_path):
    """An engine that hangs is stopped."""
    slow = Engine(_script(tmp_path, "import time; time.sleep(60)"), "slow", limit=0.5)
    with pytest.raises(EngineError, match="more than 0.5 s"):
        slow.layout(["digraph{a}"])


def test_nonsense_is_refused(tmp_path):
    """Output that is no JSON, or too little of it, is an error."""
    with pytest.raises(EngineError, match="not JSON"):
        Engine(_script(tmp_path, "print('{')"), "odd").layout(["digraph{a}"])
    with pytest.raises(EngineError, match="0 of 1"):
        Engine(_script(tmp_path, ""), "odd").layout(["digraph{a}"])


def test_a_picture_in_spite_of_the_engine(graph_of, tmp_path):
    """Where the engine fails, the level is a column and the scene says why; nothing bad is kept."""
    broken = Engine(_script(tmp_path, "import sys; sys.exit('no fonts')"), "broken")
    cache = Cache()
    scene = compose(graph_of("resnet18"), {"layer1"}, engine=broken, cache=cache)
    assert "no fonts" in scene["stats"]["notices"][0]
    assert scene["height"] > 600
    assert not cache.placed


def test_the_wheel_comes_first(monkeypatch):
    """Without the wheel a system `dot` is taken; without both there is none, and no error."""
    assert "graphviz-pure" == find_engine().name
    monkeypatch.setattr(module, "_from_wheel", lambda: None)
    monkeypatch.setattr(module.shutil, "which", lambda name: "/usr/bin/dot")
    assert ("dot", "/usr/bin/dot") == (find_engine().name, find_engine().command)
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    assert find_engine() is None


def test_importing_looks_for_nothing():
    """A machine without any engine can import the renderer: it is looked for at the first layout."""
    code = (
        "import nbsurgery.render\n"
        "from nbsurgery.render import engine\n"
        "assert engine._from_wheel.cache_info().misses == 0\n"
        "assert engine.find_engine() is not None\n"
        "assert engine._from_wheel.cache_info().misses == 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert 0 == done.returncode, done.stderr
