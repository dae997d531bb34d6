"""The picture without a live widget: beside it in the saved notebook, and as files."""

from __future__ import annotations

import base64
import html
import pathlib
from typing import Any

from nbsurgery import render
from nbsurgery.errors import SurgeryError


def svg(scene: dict, *, dark: bool = False) -> str:
    """A scene as SVG text."""
    return render.to_svg(scene, dark=dark)


def _image(text: str, name: str) -> str:
    # as an image, so that its styles and marker ids cannot meet those of another picture
    data = base64.b64encode(text.encode("utf-8")).decode("ascii")
    return f'<img alt="{html.escape(name)}" src="data:image/svg+xml;base64,{data}">'


def _bundle(widget: Any) -> dict | None:
    """The static picture as outputs of a cell; ``None`` where it cannot be drawn."""
    try:
        text = svg(widget._scene)
    except Exception:  # noqa: BLE001 - the live widget is what counts; it must not fail for its stand-in
        return None
    name = widget._scene.get("group", {}).get("type", "model")
    return {
        "text/html": f'<div class="nbs-static">{_image(text, name)}</div>',
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
    """Write SVG text as PNG, with what is installed for it."""
    try:
        import cairosvg
    except ImportError:
        cairosvg = None
    if cairosvg is not None:
        cairosvg.svg2png(text.encode("utf-8"), write_to=str(path), scale=scale)
        return
    raise SurgeryError(
        "a PNG needs the package cairosvg (pip install cairosvg); to_svg needs nothing"
    )


def written(path: str | pathlib.Path | None, text: str) -> str:
    """Write a text where a path is given; give it back."""
    if path is not None:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    return text
