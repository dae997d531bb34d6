"""The picture without a live widget: beside it in the saved notebook, and as files."""

from __future__ import annotations

import base64
import html
import math
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any

from nbsurgery import render
from nbsurgery.errors import SurgeryError

# What a widget without its kernel leaves has no element in it: JupyterLab's "model not found", above the
# picture that stands for it. The bundle's own style sheet is not there then.
_QUIET = (
    "<style>.jp-OutputArea-child:has(+ .jp-OutputArea-child .nbs-static)"
    ">.jupyter-widgets:not(:has(*)){display:none}"
    ".nbs-static img{max-width:100%;border:1px solid #8886;border-radius:10px}</style>"
)


def svg(scene: dict, *, dark: bool | None = False) -> str:
    """A scene as SVG text; ``dark=None`` follows the page."""
    return render.to_svg(scene, dark=dark)


def _image(text: str, name: str) -> str:
    # as an image, so that its styles and marker ids cannot meet those of another picture
    data = base64.b64encode(text.encode("utf-8")).decode("ascii")
    return f'<img alt="{html.escape(name)}" src="data:image/svg+xml;base64,{data}">'


def _dark(widget: Any) -> bool | None:
    return {"light": False, "dark": True}.get(widget.theme)


def _bundle(widget: Any) -> dict | None:
    """The static picture as outputs of a cell; ``None`` where it cannot be drawn."""
    try:
        text = svg(widget._scene, dark=_dark(widget))
    except Exception:  # noqa: BLE001 - the live widget is what counts; it must not fail for its stand-in
        return None
    name = widget._scene.get("group", {}).get("type", "model")
    return {
        "text/html": f'<div class="nbs-static">{_QUIET}{_image(text, name)}</div>',
        "text/plain": f"<picture of {name}>",
    }


def show(widget: Any) -> Any:
    """Display the widget, and below it the static picture that the page hides while the widget lives.

    JupyterLab shows no second form of a widget that has lost its kernel; a second output it does show.
    """
    from IPython.display import display

    data = widget._repr_mimebundle_()
    data, metadata = data if isinstance(data, tuple) else (data, {})
    display(data, raw=True, metadata=metadata)
    bundle = _bundle(widget)
    return display(bundle, raw=True, display_id=True) if bundle is not None else None


def update(handle: Any, widget: Any) -> None:
    """Bring the static picture to what the widget shows."""
    bundle = _bundle(widget)
    if bundle is not None:
        handle.update(bundle, raw=True)


def page(widget: Any) -> str:
    """One HTML page: the picture, the code and what was checked."""
    name = html.escape(str(widget._scene.get("group", {}).get("type", "model")))
    facts = "".join(
        f"<tr><th>{html.escape(str(f['label']))}<td>{html.escape(str(f['before']))}"
        f"<td>{html.escape(str(f['after']))}"
        for f in widget.report.get("facts", [])
    )
    findings = "".join(
        f'<li class="{html.escape(f["severity"])}">{html.escape(f["text"])}</li>'
        for f in widget.report.get("findings", [])
    )
    table = f"<table><tr><th><th>before<th>after{facts}</table>" if facts else ""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title><style>'
        "body{font:14px/1.5 Helvetica,Arial,sans-serif;margin:24px;color:#0f172a;background:#fff}"
        "main{display:grid;grid-template-columns:auto 1fr;gap:32px;align-items:start}"
        "pre{background:#f6f8fb;border:1px solid #cbd5e1;border-radius:8px;padding:12px;"
        "overflow:auto}td,th{text-align:left;padding:2px 12px 2px 0}.warning{color:#b45309}"
        ".error{color:#b42318}</style>"
        f"<h1>{name}</h1><main><div>{svg(widget._scene)}</div><div><pre>"
        f"{html.escape(widget.code)}</pre>{table}<ul>{findings}</ul></div></main></html>\n"
    )


def write_png(path: str | pathlib.Path, text: str, *, scale: float) -> None:
    """Write SVG text as PNG, with what is installed for it: cairosvg, else a Chromium.

    Raises:
        SurgeryError: Neither is there, or Chromium drew nothing.
    """
    try:
        import cairosvg
    except ImportError:
        _by_chromium(pathlib.Path(path).resolve(), text, scale)
    else:
        cairosvg.svg2png(text.encode("utf-8"), write_to=str(path), scale=scale)


def _by_chromium(path: pathlib.Path, text: str, scale: float) -> None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    cached = pathlib.Path.home().glob(".cache/ms-playwright/chromium-*/chrome-*/chrome")
    found = next(filter(None, [*map(shutil.which, names), *map(str, cached)]), None)
    if found is None:
        raise SurgeryError(
            "a PNG needs cairosvg (pip install cairosvg) or a Chromium; to_svg needs nothing"
        )
    width, height = (
        re.search(rf'<svg[^>]* {side}="([0-9.]+)', text) for side in ("width", "height")
    )
    size = f"{math.ceil(float(width[1]))},{math.ceil(float(height[1]))}" if width and height else ""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.html")
        page.write_text(
            f'<meta charset="utf-8"><style>*{{margin:0}}svg{{display:block}}</style>{text}'
        )
        command = [
            found, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={folder}/profile", f"--screenshot={path}", f"--window-size={size}",
            f"--force-device-scale-factor={scale}", page.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if not path.exists():
        raise SurgeryError(f"{found} drew no picture: {done.stderr[-300:]}")


def written(path: str | pathlib.Path | None, text: str) -> str:
    """Write a text where a path is given; give it back."""
    if path is not None:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    return text
