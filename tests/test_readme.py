"""README says what is true: its commands exist, its code runs, its links lead somewhere."""

import pathlib
import re

import pytest
import torch
import torchvision

import nbsurgery as nbs
from nbsurgery.operations import OPERATIONS

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


EDITS = re.findall(
    r"`(surgery\.\w+\(.*?\))`", TEXT.partition("## Edits")[2].partition("\n`surgery")[0]
)


@pytest.fixture(scope="module")
def resnet():
    return torchvision.models.resnet18(weights=None).eval(), torch.randn(1, 3, 64, 64)


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_of_the_table_works(edit, resnet):
    """Each line of the table, alone: it gives code, and a report without an error."""
    surgery = nbs.Surgery(*resnet)
    eval(edit, {"surgery": surgery})
    assert surgery.report["ok"], surgery.report
    assert "model" in surgery.code and surgery.build() is not None


def test_the_table_of_edits_is_whole():
    """Every edit that the widget has as a method stands in it."""
    shown = {re.match(r"surgery\.(\w+)", edit).group(1) for edit in EDITS}
    assert shown == {"reset_parameters" if name == "reset" else name for name in OPERATIONS}


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", TEXT))
def test_links_lead_somewhere(target):
    """Relative links name files of the repository."""
    assert target.startswith("http") or (ROOT / target).exists()
