"""README says what is true: its commands exist, its code runs, its links lead somewhere."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def test_two_commands_set_everything_up():
    """One command opens the main notebook, one runs the tests, and CI runs the latter."""
    opens, tests = (block.strip() for block in blocks("bash")[:2])
    assert "notebooks/01_explore.ipynb" in opens and '".[lab]"' in opens
    ci = (ROOT / ".ci" / "run").read_text().splitlines()
    assert ci[-1].removeprefix("exec ") == tests
    assert (ROOT / tests.split()[1]).exists()


def test_the_code_runs():
    """The Python blocks, one after the other in one namespace."""
    space: dict = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), space)  # noqa: S102, README is ours
    assert space["features"](space["x"]).shape == (1, 512)
    assert "GELU" in space["surgery"].code
    assert space["graph"]["layer2.0.downsample.0"].name == "layer2.0.downsample.0"


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_lead_somewhere(target):
    """Relative links name files of the repository."""
    assert target.startswith("http") or (ROOT / target).exists()
