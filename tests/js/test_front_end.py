"""The front end's own tests under node; the committed bundle is what its source gives."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "nbsurgery" / "widget" / "js"
STATIC = ROOT / "nbsurgery" / "widget" / "static"


@pytest.fixture(scope="module")
def tools():
    """Node with the development packages; installed where npm is there, required in CI."""
    if shutil.which("node") and shutil.which("npm"):
        if not (SOURCE / "node_modules" / "esbuild").exists():
            done = subprocess.run(
                ["npm", "ci", "--no-audit", "--no-fund"],
                cwd=SOURCE,
                check=False,
                capture_output=True,
                text=True,
            )
            if done.returncode and not os.environ.get("CI"):
                pytest.skip(f"npm ci failed: {done.stderr[-300:]}")
            assert done.returncode == 0, done.stderr
        return
    if os.environ.get("CI"):
        pytest.fail("node and npm are needed in CI")
    pytest.skip("no node and npm: the front end is tested where they are")


def test_the_bundle_is_fresh(tools, tmp_path):
    """Building again gives the committed files, byte for byte."""
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=SOURCE, check=True, timeout=120)
    for name in ("widget.js", "widget.css"):
        assert (tmp_path / name).read_text() == (STATIC / name).read_text(), (
            f"{name} is stale: run `npm run build` in nbsurgery/widget/js"
        )


def test_types(tools):
    """The JSDoc types hold."""
    done = subprocess.run(
        ["npx", "--no-install", "tsc", "-p", "."], cwd=SOURCE, check=False, capture_output=True, text=True, timeout=300
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_units(tools):
    """The tests in *.test.mjs pass."""
    files = sorted(str(p) for p in pathlib.Path(__file__).parent.glob("*.test.mjs"))
    assert files
    done = subprocess.run(
        ["node", "--test", *files],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


def test_no_markup_is_written_as_text():
    """Names of a model are data: nothing in the source parses them as HTML."""
    for path in (SOURCE / "src").glob("*.js"):
        text = path.read_text()
        for door in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert door not in text, f"{path.name} uses {door}"
