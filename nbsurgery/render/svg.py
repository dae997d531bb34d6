"""A scene as one standalone SVG file, light or dark."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from . import style, text


def _safe(value: object) -> str:
    """Text that XML can hold, whatever the model called its parts."""
    return "".join(
        c
        if c in "\t\n" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff")
        else "�"
        for c in str(value)
    )


def _text(value: object) -> str:
    return escape(_safe(value))


def _attr(value: object) -> str:
    return quoteattr(_safe(value))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def to_svg(scene: dict, dark: bool | None = False, title: str | None = None) -> str:
    """Draw a scene.

    Args:
        scene: What `compose` gave.
        dark: The dark theme; ``None`` follows the page that shows it as an image.
        title: The picture's accessible name; the root's class by default.

    Returns:
        An SVG document that needs no script, no style sheet and no font of its own.
    """
    theme = style.theme(dark)
    root = scene["group"]
    width, height = scene["width"], scene["height"]
    title = title or f"{root['type']}: how it is wired"
    names = list(_names(root))
    told = ", ".join(names[:60]) + (f" and {len(names) - 60} more" if len(names) > 60 else "")
    out = [
        (
            f'<svg class="nbs nbs-{theme}" xmlns="http://www.w3.org/2000/svg" role="img" width="{_n(width)}" '
            f'height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}">'
            f"<title>{_text(title)}</title><desc>{_text('From input to output: ' + told)}</desc>"
            f"<style>{style.css(dark)}</style><defs>"
        )
    ]
    for name, kind, size in (
        (f"nbs-edge-{theme}", "ae", 6.5),
        (f"nbs-skip-{theme}", "as", 7.5),
    ):
        out.append(
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="{size}" '
            f'markerHeight="{size}" orient="auto" markerUnits="userSpaceOnUse">'
            f'<path class="{kind}" d="M0,.6L8,4L0,7.4z"/></marker>'
        )
    out.append('</defs><rect class="bg" width="100%" height="100%"/>')
    _inside(root, out, theme)
    out.append("</svg>")
    return "".join(out)


def _names(group: dict) -> Iterator[str]:
    for item in group["items"]:
        if item["kind"] == "group":
            yield f"{item['name']} ({item['type']})"
            yield from _names(item)
        elif item["kind"] == "card":
            yield from (row["name"] for row in item["rows"])
        else:
            yield item["name"]


def _inside(group: dict, out: list[str], theme: str) -> None:
    """A group's edges, title and items, in the order in which they cover each other."""
    for edge in sorted(group["edges"], key=lambda e: e["skip"]):
        skip = " skip" if edge["skip"] else ""
        marker = f"nbs-{'skip' if skip else 'edge'}-{theme}"
        arrow = f' marker-end="url(#{marker})"' if edge["arrow"] else ""
        out.append(
            f'<path class="e{skip}" data-value={_attr(edge["value"])} d="{edge["d"]}"{arrow}>'
            f"<title>{_text(edge['shape'])}</title></path>"
        )
    if group["head"]:
        _title(group, out)
    late = []
    for item in group["items"]:
        if item["kind"] == "group":
            _group(item, out, theme)
        else:
            _ITEMS[item["kind"]](item, out)
        if item.get("more"):
            late.append(item["more"])
    for more in late:
        _more(more, out)


def _title(group: dict, out: list[str]) -> None:
    w, head = group["w"], group["head"] - 2
    out.append(
        f'<path class="hd" d="M.5,{head}v{-(head - 10)}a9.5,9.5 0 0 1 9.5,-9.5h{_n(w - 20)}'
        f'a9.5,9.5 0 0 1 9.5,9.5v{head - 10}z"/><path class="chev" d="M10,9l4,4l4,-4"/>'
        f'<text x="24" y="15"><tspan class="nm">{_text(group["name"])}</tspan>'
        f'<tspan class="kd" dx="6">{_text(group["type"])}</tspan></text>'
    )
    if group["params"]:
        out.append(
            f'<text class="pr" text-anchor="end" x="{_n(w - 10)}" y="15">{_text(group["params"])}</text>'
        )
    if group["badge"]:
        right = w - 16 - (text.width(group["params"], style.NOTE) if group["params"] else -6)
        _badge(group["badge"], right, 4, out)


def _group(group: dict, out: list[str], theme: str) -> None:
    state = f" {group['diff']}" if group["diff"] else ""
    out.append(
        f'<g class="mod d{min(group["depth"], 3)}{state}" data-key={_attr(group["key"])} '
        f'transform="translate({_n(group["x"])},{_n(group["y"])})">'
        f'<rect class="b" width="{_n(group["w"])}" height="{_n(group["h"])}" rx="10"/>'
    )
    _inside(group, out, theme)
    out.append("</g>")


def _box(box: dict, out: list[str]) -> None:
    w, h, s = box["w"], box["h"], style.STACK
    state = f" {box['diff']}" if box["diff"] else ""
    tip = f"{box['name']} · {box['type']}"
    if box["badge"]:
        tip += "\n" + box["badge"]["text"]
    times = f'<tspan class="xn" dx="6">×{box["count"]}</tspan>' if box["count"] > 1 else ""
    out.append(
        f'<g class="box{state}" data-key={_attr(box["key"])} '
        f'transform="translate({_n(box["x"])},{_n(box["y"])})"><title>{_text(tip)}</title>'
        f'<rect class="b" x="{s}" y="{s}" width="{_n(w - s)}" height="{h - s}" rx="9"/>'
        f'<rect class="b" width="{_n(w - s)}" height="{h - s}" rx="9"/>'
        f'<path class="chev" d="M11,9l4,4l-4,4"/>'
        f'<text x="23" y="17"><tspan class="nm">{_text(box["name"])}</tspan>'
        f'<tspan class="kd" dx="6">{_text(box["type"])}</tspan>{times}</text>'
    )
    if box["shape"]:
        out.append(f'<text class="sp" x="23" y="33">→ {_text(box["shape"])}</text>')
    if box["params"]:
        out.append(
            f'<text class="pr" text-anchor="end" x="{_n(w - 14)}" y="33">{_text(box["params"])}</text>'
        )
    if box["badge"]:
        _badge(box["badge"], w - 12, 6, out)
    out.append("</g>")


def _card(card: dict, out: list[str]) -> None:
    w, h, rows = card["w"], card["h"], card["rows"]
    failed = " failed" if any(row.get("failed") for row in rows) else ""
    out.append(
        f'<g class="op{failed}" data-key={_attr(card["key"])} '
        f'transform="translate({_n(card["x"])},{_n(card["y"])})">'
        f'<rect class="b" width="{_n(w)}" height="{h}" rx="7"/>'
    )
    for k, row in enumerate(rows):
        top, size = row["y"], row["h"]
        first, last = k == 0, k == len(rows) - 1
        strip = (
            f"M6,{top}H{7 if first else 0}"
            + ("a7,7 0 0 0 -7,7" if first else "")
            + f"V{top + size - (7 if last else 0)}"
            + ("a7,7 0 0 0 7,7" if last else "")
            + f"H6V{top}z"
        )
        if not first:
            out.append(f'<path class="sep" d="M8,{top}H{_n(w)}"/>')
        state = f" {row['diff']}" if row["diff"] else ""
        out.append(
            f'<g class="row{state}" data-key={_attr(row["key"])} data-node={_attr(row["node"])}>'
            f"<title>{_text(row['tip'])}</title>"
        )
        if state:
            out.append(
                f'<rect class="b" x="1" y="{top + 1}" width="{_n(w - 2)}" height="{size - 2}" rx="6" '
                'fill="none"/>'
            )
        out.append(
            f'<path fill="{style.FAMILIES[row["family"]]}" d="{strip}"/>'
            f'<text x="14" y="{top + 17}"><tspan class="nm">{_text(row["name"])}</tspan>'
        )
        if row["type"]:
            out.append(f'<tspan class="kd" dx="6">{_text(row["type"])}</tspan>')
        out.append("</text>")
        right = w - 9 - card["column"]
        if row["shape"]:
            out.append(
                f'<text class="sp" text-anchor="end" x="{_n(right)}" y="{top + 17}">'
                f"{_text(row['shape'])}</text>"
            )
        if row["params"]:
            out.append(
                f'<text class="pr" text-anchor="end" x="{_n(w - 9)}" y="{top + 17}">'
                f"{_text(row['params'])}</text>"
            )
        if row["badge"]:
            _badge(row["badge"], right - text.width(row["shape"], style.NOTE) - 6, top + 6, out)
        out.append("</g>")
    out.append("</g>")


def _pill(pill: dict, out: list[str]) -> None:
    w = pill["w"]
    out.append(
        f'<g class="io" data-key={_attr(pill["key"])} data-node={_attr(pill["node"])} '
        f'transform="translate({_n(pill["x"])},{_n(pill["y"])})">'
        f'<rect class="b" width="{_n(w)}" height="{pill["h"]}" rx="13"/>'
    )
    if pill["shape"]:
        out.append(
            f'<text class="nm" x="14" y="17">{_text(pill["name"])}</text>'
            f'<text class="sp" text-anchor="end" x="{_n(w - 14)}" y="17">{_text(pill["shape"])}</text>'
        )
    else:
        out.append(
            f'<text class="nm" text-anchor="middle" x="{_n(w / 2)}" y="17">{_text(pill["name"])}</text>'
        )
    out.append("</g>")


def _badge(badge: dict, right: float, top: float, out: list[str]) -> None:
    """The warning triangle, its right edge at `right`, with its count to the left."""
    x = right - 14
    out.append(
        f'<g class="badge" transform="translate({_n(x)},{_n(top)})"><title>{_text(badge["text"])}</title>'
        '<path d="M7,1.2L13.2,12H.8z"/><text text-anchor="middle" x="7" y="10.8">!</text>'
    )
    if badge["count"] > 1:
        out.append(f'<text text-anchor="end" x="-2" y="10.5">{badge["count"]}</text>')
    out.append("</g>")


def _more(more: dict, out: list[str]) -> None:
    out.append('<g class="more">')
    for edge in more["edges"]:
        out.append(f'<path class="e" data-value={_attr(edge["value"])} d="{edge["d"]}"/>')
    out.append(
        f'<rect x="{_n(more["x"])}" y="{_n(more["y"])}" width="{more["w"]}" height="{more["h"]}" rx="7"/>'
        f'<text text-anchor="middle" x="{_n(more["x"] + more["w"] / 2)}" y="{_n(more["y"] + 10.5)}">'
        f"{_text(more['label'])}</text></g>"
    )


_ITEMS = {"box": _box, "card": _card, "pill": _pill}
