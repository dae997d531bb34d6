"""What is shipped: the wheel, installed where there is neither node nor dot, with its bundle inside."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parent.parent
pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return folder / done.stdout.strip().splitlines()[-1]


def test_the_wheel_holds_the_bundle_and_no_sources_of_it(wheel):
    """The page's code travels built; its sources, its dependencies and the tests stay at home."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {"nbsurgery/widget/static/widget.js", "nbsurgery/widget/static/widget.css"} <= set(names)
    strays = [n for n in names if "node_modules" in n or "/js/" in n or n.startswith("tests")]
    assert not strays
    here = {str(p.relative_to(ROOT)) for p in (ROOT / "nbsurgery").rglob("*.py")}
    here = {name for name in here if "node_modules" not in name and "widget/js" not in name}
    assert here <= set(names)


USE = """
import pathlib, shutil, sys
import torch
from torch import nn
import nbsurgery as nbs

home = pathlib.Path(nbs.__file__)
assert home.is_relative_to(sys.prefix), home
assert shutil.which("node") is None and shutil.which("dot") is None
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)).eval()
x = torch.zeros(1, 3, 8, 8)
graph = nbs.capture(model, x)
assert "Conv2d" in str(graph.table()) and "<svg" in graph.to_svg()
surgery = nbs.Surgery(model, x)
assert len(surgery._esm) > 1000 and len(surgery._css) > 100
surgery.replace("1", "nn.GELU()")
assert "GELU" in surgery.code and surgery.report["ok"], surgery.report
assert isinstance(surgery.build()[1], nn.GELU) and isinstance(model[1], nn.ReLU)
print("works")
"""


def test_the_installed_wheel_works_without_node_and_dot(wheel, tmp_path):
    """In an environment of its own: capture, table, picture, widget, an edit."""
    home = tmp_path / "home"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel]
    subprocess.run(install, check=True)
    # the dependencies are those of this environment, behind the wheel on the path
    (pathlib.Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CONDA", "VIRTUAL"))
    } | {"PATH": str(python.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, "-c", USE], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("works")
