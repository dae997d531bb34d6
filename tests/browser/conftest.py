"""A real JupyterLab and a real Notebook in a real Chromium, isolated from the person's own settings."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

sync_api = pytest.importorskip("playwright.sync_api") if not os.environ.get("CI") else None
if sync_api is None:
    from playwright import sync_api

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parents[1]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/extensionmanager-extension/plugin": {"enabled": False},
}


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="session", params=["lab", "notebook"])
def server(request, tmp_path_factory):
    """One running application: its name, its address, the folder that it serves."""
    app = request.param
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root")
    for name, values in SETTINGS.items():
        path = home / "settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    (home / "config").mkdir()
    (home / "config" / "jupyter_server_config.py").write_text(
        "c.LabApp.news_url = None\nc.LabApp.extension_manager = 'readonly'\n"
    )
    env = dict(
        os.environ,
        JUPYTER_CONFIG_DIR=f"{home}/config",
        JUPYTER_DATA_DIR=f"{home}/data",
        JUPYTER_RUNTIME_DIR=f"{home}/run",
        IPYTHONDIR=f"{home}/ipython",
        JUPYTERLAB_SETTINGS_DIR=f"{home}/settings",
        JUPYTERLAB_WORKSPACES_DIR=f"{home}/workspaces",
        PYTHONPATH=str(REPOSITORY),
        OMP_NUM_THREADS="1",
    )
    port = _free_port()
    trait = "LabApp" if app == "lab" else "JupyterNotebookApp"
    command = [
        sys.executable, "-m", "jupyter", app, "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token=",
        "--ServerApp.password=", "--ServerApp.disable_check_xsrf=True",
        f"--ServerApp.root_dir={root}", "--ServerApp.terminals_enabled=False",
        f"--{trait}.expose_app_in_browser=True",
    ]  # fmt: skip
    log = home / "server.log"
    with open(log, "w") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT, cwd=root)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/api/status", timeout=1).read()
                break
            if process.poll() is not None:
                pytest.fail(log.read_text())
            time.sleep(0.05)
        else:
            pytest.fail("the server did not start:\n" + log.read_text())
        yield app, url, root
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _post(url: str, **data) -> dict:
    request = urllib.request.Request(
        url, json.dumps(data).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="session")
def warm(server):
    """A kernel that the tests of one application share: importing torch takes longer than a test."""
    return _post(f"{server[1]}/api/kernels", name="python3")["id"]


CLEAN = """\
__import__("ipywidgets").Widget.close_all()
get_ipython().reset(new_session=True)
"""


def _chromium(playwright) -> str | None:
    """Playwright's own Chromium, else one of the system."""
    own = playwright.chromium.executable_path
    if pathlib.Path(own).exists():
        return own
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return found
    return None


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests. Without one the tests are skipped, in CI they fail."""
    with sync_api.sync_playwright() as playwright:
        path = _chromium(playwright)
        if path is None:
            message = "no Chromium found: run `playwright install chromium`"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


class Notebook:
    """An open notebook, driven through the application's own commands."""

    def __init__(self, page, path, url):
        self.page, self.path, self.url = page, path, url

    def ready(self):
        """Wait until the notebook is open and its kernel has answered."""
        page = self.page
        page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext")
        page.evaluate(
            """async () => {
                await jupyterapp.restored;
                const panel = jupyterapp.shell.currentWidget;
                await panel.context.ready;
                await panel.sessionContext.ready;
                await panel.sessionContext.session.kernel.info;
            }"""
        )

    def run(self, index):
        """Run a cell and wait for its end; fail when it raised."""
        self.page.evaluate(
            """async index => {
                const book = jupyterapp.shell.currentWidget.content;
                book.activeCellIndex = index;
                book.deselectAll();
                await jupyterapp.commands.execute('notebook:run-cell');
            }""",
            index,
        )
        errors = [o for o in self.outputs(index) if o["output_type"] == "error"]
        assert not errors, errors

    def outputs(self, index):
        return self.page.evaluate(
            "i => jupyterapp.shell.currentWidget.content.model.cells.get(i)"
            ".sharedModel.getOutputs().map(o => ({...o}))",
            index,
        )

    def printed(self, index):
        """What a cell wrote to its standard output."""
        found = [o["text"] for o in self.outputs(index) if o["output_type"] == "stream"]
        return "".join("".join(text) for text in found)

    def execute(self, code):
        """Run code in the kernel, outside of any cell; give what it printed."""
        reply = self.page.evaluate(
            """async code => {
                const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                let text = '';
                const future = kernel.requestExecute({code});
                future.onIOPub = m => { if (m.header.msg_type === 'stream') text += m.content.text; };
                const done = await future.done;
                return {status: done.content.status, text, error: (done.content.traceback ?? []).join('\\n')};
            }""",
            code,
        )
        assert reply["status"] == "ok", reply["error"]
        return reply["text"]

    def command(self, name, **arguments):
        self.page.evaluate(
            "([n, a]) => jupyterapp.commands.execute(n, a).then(() => null)", [name, arguments]
        )

    def insert(self, index, source):
        """Write a new code cell, as a person would."""
        self.page.evaluate(
            "([i, s]) => { jupyterapp.shell.currentWidget.content.model.sharedModel"
            ".insertCell(i, {cell_type: 'code', source: s}); }",
            [index, source],
        )

    def edit(self, index, source):
        """Change a cell's text."""
        self.page.evaluate(
            "([i, s]) => { jupyterapp.shell.currentWidget.content.model.cells.get(i)"
            ".sharedModel.setSource(s); }",
            [index, source],
        )

    def sources(self):
        return self.page.evaluate(
            "() => Array.from(jupyterapp.shell.currentWidget.content.model.cells, "
            "c => c.sharedModel.getSource())"
        )

    def active(self):
        return self.page.evaluate("() => jupyterapp.shell.currentWidget.content.activeCellIndex")

    def saved(self):
        """Save, and read the file."""
        self.command("docmanager:save")
        return nbformat.read(self.path, 4)

    def widget(self, index=0):
        """The widget shown by a cell, painted."""
        root = self.page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".nbs-root").first
        root.locator(".nbs-row, .nbs-box").first.wait_for(state="attached")
        return Widget(self, root)

    def shot(self, name):
        folder = os.environ.get("NBS_SHOTS")
        if folder:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=f"{folder}/{name}.png")


class Widget:
    """What a person does in a widget."""

    def __init__(self, notebook, root):
        self.notebook, self.page, self.root = notebook, notebook.page, root

    def thing(self, name):
        """The row, box or module of a name in the picture."""
        return self.root.locator(f'.nbs-scene [data-name="{name}"]').first

    def click(self, name, modifiers=None, answered=True):
        """Click a thing where it is: found by search first, so that it is in sight."""
        place = self.thing(name).locator(".nbs-hit, .nbs-head, .nbs-back").first
        place.wait_for(state="attached")
        self.show(name)
        place.click(modifiers=modifiers or [], force=True, position={"x": 30, "y": 9})
        if answered:
            self.idle()

    def show(self, name):
        """Bring a thing into sight by the canvas, as a person pans."""
        self.root.evaluate(
            """(root, name) => {
                const el = root.querySelector(`.nbs-scene [data-name="${name}"]`);
                const canvas = root.querySelector('.nbs-canvas');
                const stage = root.querySelector('.nbs-stage');
                stage.classList.remove('nbs-smooth');
                canvas.focus({preventScroll: true});
                const a = el.getBoundingClientRect(), b = canvas.getBoundingClientRect();
                const send = dy => canvas.dispatchEvent(new WheelEvent('wheel',
                    {deltaY: dy, bubbles: true, cancelable: true}));
                if (a.top < b.top + 20) send(a.top - b.top - 60);
                else if (a.top + 30 > b.bottom - 20) send(a.top - b.bottom + 120);
            }""",
            name,
        )
        self.settled()

    def settled(self):
        """Wait for the end of moves, so that a click meets what is seen."""
        self.root.evaluate(
            """async root => {
                await new Promise(requestAnimationFrame);
                await Promise.all(root.getAnimations({subtree: true})
                    .filter(a => a.effect.getTiming().iterations !== Infinity)
                    .map(a => a.finished.catch(() => null)));
            }"""
        )

    def toggle(self, scope):
        self.show(scope)
        self.thing(scope).locator(".nbs-chip").first.click(force=True)
        self.idle()
        self.settled()

    def idle(self):
        """Wait for the answer to all that was asked."""
        self.page.wait_for_function(
            "root => !root.dataset.asking && (root.dataset.waiting ?? '0') === '0'",
            arg=self.root.element_handle(),
            timeout=60_000,
        )

    def selection(self):
        return self.root.evaluate(
            "root => [...root.querySelectorAll('.nbs-selected')].map(e => e.dataset.name)"
        )

    def operate(self, label, **fields):
        """Choose an operation, fill its form by the labels, apply it."""
        self.root.locator(".nbs-offer", has_text=label).first.click()
        for field, value in fields.items():
            control = self.root.locator(".nbs-form").get_by_label(field.replace("_", " "))
            if isinstance(value, bool):
                control.set_checked(value)
            elif control.evaluate("e => e.tagName") == "SELECT":
                control.select_option(label=value)
            else:
                control.fill(str(value))
        self.root.locator(".nbs-apply").click()
        self.root.locator(".nbs-form").wait_for(state="detached", timeout=60_000)
        self.idle()

    def steps(self):
        return self.root.locator(".nbs-step-text > span").all_inner_texts()

    def code(self):
        return self.root.locator(".nbs-code code").evaluate("e => e.textContent")

    def emit(self):
        """Press Emit; give what the widget says about it."""
        toast = self.root.locator(".nbs-toast")
        toast.evaluate("e => { e.textContent = ''; }")
        self.root.locator(".nbs-emit").click()
        self.page.wait_for_function("e => e.textContent !== ''", arg=toast.element_handle())
        self.page.wait_for_timeout(150)  # the new cell is brought into view
        return toast.inner_text()


@pytest.fixture
def notebook(server, warm, browser, request):
    """Opens a notebook of the given cells; an error of the widget's own code fails the test."""
    app, url, root = server
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(30_000)
    errors = []

    def on_error(error):
        if "blob:" in (
            error.stack or ""
        ):  # the widget's own code; Notebook 7 throws one of its own
            errors.append(f"{error}\n{error.stack}")

    page.on("pageerror", on_error)
    page.route(
        lambda address: "127.0.0.1" not in address and not address.startswith(("blob:", "data:")),
        lambda route: route.abort(),
    )

    def open_(*cells, fresh=False):
        name = f"n{abs(hash(request.node.nodeid)) % 10**8}.ipynb"
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        book = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(c) for c in cells], metadata={"kernelspec": kernel}
        )
        nbformat.write(book, root / name)
        if not fresh:
            session = {"path": name, "name": name, "type": "notebook", "kernel": {"id": warm}}
            _post(f"{url}/api/sessions", **session)
        address = f"{url}/lab/tree/{name}?reset" if app == "lab" else f"{url}/notebooks/{name}"
        page.goto(address)
        opened = Notebook(page, root / name, address)
        opened.ready()
        if not fresh:
            opened.execute(CLEAN)
        return opened

    yield open_
    context.close()
    assert not errors, errors
