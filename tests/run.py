"""Sets up what the tests need on a machine with only Python, and runs them: ``python3 tests/run.py``.

Makes ``.venv-test``, installs the package with its test extra, finds a Chromium (or installs one),
looks for node, and runs pytest there. What stands behind the command goes to pytest:
``python3 tests/run.py tests/views -k table``. Where ``CI=true`` is set, a missing browser or a
missing node is a failure; elsewhere their tests are left out, and this is said.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-test"
BIN = HOME / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")


def say(text: str) -> None:
    print(f"[set-up] {text}", flush=True)


def set_up() -> None:
    """Create the environment and install into it, where that has not been done for this state."""
    stamp = HOME / "installed"
    state = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == state:
        say(f"{HOME.name} is up to date")
        return
    if sys.version_info < (3, 10):  # noqa: UP036, this file runs before anything has checked it
        sys.exit(f"nbsurgery needs Python 3.10 or newer, this is {sys.version.split()[0]}")
    start = time.monotonic()
    if not PYTHON.exists():
        say(f"making {HOME.name}")
        venv.create(HOME, with_pip=True)
    say("installing nbsurgery with its test extra (torch alone takes some minutes)")
    command = [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e", ".[test]"]
    subprocess.run(command, cwd=ROOT, check=True)
    stamp.write_text(state)
    say(f"installed in {time.monotonic() - start:.0f} s")


def bundled_browser() -> str | None:
    """The Chromium that Playwright has downloaded earlier, if it is there."""
    code = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as p: print(p.chromium.executable_path)"
    )
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    path = done.stdout.strip()
    return path if path and os.path.exists(path) else None


def find_browser() -> str | None:
    """A Chromium: on the PATH, Playwright's own, else installed now; the tests look there too."""
    on_path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if on_path or (on_path := bundled_browser()):
        return on_path
    say("no Chromium found; asking Playwright for one")
    command = [PYTHON, "-m", "playwright", "install", "chromium"]
    if quiet(command, 300) and (path := bundled_browser()):
        say("Playwright has installed Chromium")
        return path
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        say("Playwright could not; installing the system's chromium package with apt-get")
        quiet(["apt-get", "update", "-qq"], 300)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
        if quiet(install, 600, environment):
            return shutil.which("chromium")
    return None


def quiet(command: list, seconds: int, environment: dict | None = None) -> bool:
    """Whether a command succeeds in its time; its output is shown only where it does not."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"{command[0]}: {error}")
        return False
    if done.returncode:
        print((done.stdout + done.stderr)[-1500:], flush=True)
    return done.returncode == 0


def main(arguments: list[str]) -> int:
    """Set up, tell what was found, run pytest; its summary is the last line."""
    set_up()
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    browser, node = find_browser(), shutil.which("node")
    missing = [name for name, found in (("Chromium", browser), ("node", node)) if not found]
    for name, found in (("Chromium", browser), ("node", node)):
        say(f"{name}: {found}" if found else f"{name}: not found, its tests are left out")
    if missing and IN_CI:
        sys.exit(f"in CI nothing is left out, and this is missing: {', '.join(missing)}")
    options = (
        []
        if any(a.startswith("-n") for a in arguments)
        else ["-n", "2", "--dist", "loadfile", "--durations=10"]
    )
    command = [PYTHON, "-m", "pytest", *options, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
