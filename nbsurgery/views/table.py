"""The table of a model: layer, type, output shape, parameters, connected to; as data, text, HTML."""

from __future__ import annotations

import html
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import graph as data

if TYPE_CHECKING:
    from .model_graph import ModelGraph
    from .node import Node
    from .scope import Scope

HEADINGS = ("Layer", "Type", "Output shape", "Params", "Connected to")
_NARROWEST = (18, 10, 12, 9, 16)  # below this a column is not squeezed
_GIVE_WAY = (4, 0, 1, 2)  # the order in which columns give way: connected to, layer, type, shape


class Row(NamedTuple):
    """One line of the table.

    ``kind`` is ``"group"`` for the call of a module that was opened, else the node's kind; ``params``
    of a group is the sum over its module, of a node what it reads first. ``connected`` holds the
    names of its predecessors, across scope borders.
    """

    layer: str
    type: str
    shape: tuple[int, ...] | None
    params: int
    connected: tuple[str, ...]
    kind: str
    depth: int
    trainable: int
    macs: int
    call: int
    calls: int
    path: str | None
    scope: str
    outputs: tuple[tuple[int, ...], ...]
    note: str


class Table:
    """All nodes of a model in execution order, modules as group rows, totals below.

    ``print(graph.table())`` gives text, a notebook shows HTML, ``table.rows`` is the data
    (named tuples: ``pandas.DataFrame(graph.table().rows)`` works).
    """

    def __init__(self, graph: ModelGraph, *, width: int | None = None):
        self.rows: tuple[Row, ...] = tuple(_rows(graph))
        self.totals: dict[str, Any] = graph.totals
        self.title = f"{graph.data.root.type}"
        self._example = [(node.name, node.outputs) for node in graph.inputs]
        self._failure = graph.failure
        self._width = width

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def summary(self) -> tuple[tuple[str, str], ...]:
        """The lines below the table: what is totalled, and its value."""
        totals = self.totals
        frozen = totals["params"] - totals["trainable"]
        lines = [("Total params", f"{totals['params']:,}")]
        lines.append(("Trainable params", f"{totals['trainable']:,}"))
        lines.append(("Frozen params", f"{frozen:,}"))
        if totals["unused"]:
            lines.append(("Not used in this run", f"{totals['unused']:,} params"))
        if totals["macs"]:
            lines.append(("Multiply-accumulates", f"{totals['macs']:,}"))
        if totals.get("activation_bytes"):
            size = totals["activation_bytes"] / 1e6
            lines.append(("Outputs in memory", f"{size:,.1f} MB, if all were kept"))
        example = ", ".join(f"{name} {spell_shapes(outputs)}" for name, outputs in self._example)
        if example:
            lines.append(("Example", example))
        if self._failure is not None:
            where = self._failure.node or self._failure.scope
            lines.append(("The run FAILED", f"at {where}: {self._failure.error}"))
        return tuple(lines)

    def to_text(self, width: int | None = None) -> str:
        """The table as aligned text.

        Args:
            width: Columns to fit into; by default the terminal's, at most 140. Where full names do
                not fit, a name inside the module of the row begins with a dot (``.conv1``), and
                what is still too long wraps.
        """
        if width is None:
            width = self._width
        if width is None:
            width = max(60, min(140, shutil.get_terminal_size((110, 24)).columns))
        cells = [self._cells(row) for row in self.rows]
        if sum(_widths([HEADINGS, *cells])) + 2 * (len(HEADINGS) - 1) > width:
            cells = [self._cells(row, short=True) for row in self.rows]
        widths = _fit([HEADINGS, *cells], width)
        line = "─" * (sum(widths) + 2 * (len(widths) - 1))
        out = [self.title, line, *_lines(HEADINGS, widths), line]
        for row in cells:
            out += _lines(row, widths)
        out.append(line)
        label = max((len(name) for name, _ in self.summary()), default=0)
        for name, value in self.summary():
            indent = " " * (label + 2)
            room = max(width - label - 2, 20)
            text = textwrap.wrap(value, room) or [""]
            out.append(f"{name:<{label}}  {text[0]}")
            out += [indent + more for more in text[1:]]
        return "\n".join(out)

    def _cells(self, row: Row, short: bool = False) -> tuple[str, ...]:
        calls = f" ({row.call}/{row.calls})" if row.calls > 1 else ""
        names = [row.layer, *row.connected]
        if short:  # ".add" is the add of the module whose row stands above
            names = [_within(name, row.scope) for name in names]
        return (
            "  " * row.depth + names[0],
            row.type + calls,
            _spell(row.outputs),
            spell_params(row),
            ", ".join(names[1:]),
        )

    __str__ = to_text

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """The table as HTML: no script, one scoped style, readable on light and dark grounds."""
        head = "".join(
            f"<th{_aligned(i)}>{html.escape(text)}</th>" for i, text in enumerate(HEADINGS)
        )
        body = "".join(self._html_row(row) for row in self.rows)
        foot = "".join(
            f"<tr><td{_aligned(0)}>{html.escape(name)}</td>"
            f"<td{_aligned(1)} colspan=4>{html.escape(value)}</td></tr>"
            for name, value in self.summary()
        )
        return (
            f"<style>{_STYLE}</style><div class='nbs-table'><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody><tfoot>{foot}</tfoot></table></div>"
        )

    def _html_row(self, row: Row) -> str:
        cells = self._cells(row)
        kind = "nbs-group" if row.kind == "group" else "nbs-node"
        title = f" title='{html.escape(row.note, quote=True)}'" if row.note else ""
        indent = f"padding-left:{0.6 + 1.1 * row.depth:.1f}em!important"
        layer = f"<td style='text-align:left;{indent}'{title}>"
        return (
            f"<tr class='{kind}'>{layer}{html.escape(row.layer)}</td>"
            + "".join(
                f"<td{_aligned(i)}>{html.escape(text)}</td>" for i, text in enumerate(cells[1:], 1)
            )
            + "</tr>"
        )


def _aligned(column: int) -> str:
    """Where the text of a column stands, said at the cell: an untrusted notebook loses the style."""
    return f" style='text-align:{'right' if HEADINGS[column] == 'Params' else 'left'}'"


def _within(name: str, scope: str) -> str:
    """A name as it is said inside a module: ``".add"`` for ``"layer1.0.add"`` in ``"layer1.0"``."""
    return name[len(scope) :] if scope and name.startswith(scope + ".") else name


def spell_shapes(outputs: Sequence[data.Tensor]) -> str:
    """Shapes of some tensors: ``"1×64×56×56"``, ``"2×4, 2×1×8"``; a scalar is ``"scalar"``."""
    return _spell(tuple(tensor.shape for tensor in outputs))


def _spell(shapes: Sequence[tuple[int, ...]]) -> str:
    spelled = ["×".join(map(str, shape)) or "scalar" for shape in shapes]
    if len(spelled) > 4:
        spelled = [*spelled[:3], f"… {len(spelled)} in all"]
    return ", ".join(spelled) or "–"


def spell_params(row: Row) -> str:
    """Parameters of a row; ``Σ`` marks sums, ``shared`` weights that an earlier row has counted."""
    if row.kind == "group":
        return f"Σ {row.params:,}" if row.params else ""
    if row.params:
        return f"{row.params:,}"
    return "shared" if row.note.startswith("weights") else ""


def _rows(graph: ModelGraph) -> Iterator[Row]:
    root = graph.scopes[""]
    yield from _rows_of(graph, root, depth=0)


def _rows_of(graph: ModelGraph, scope: Scope, depth: int) -> Iterator[Row]:
    from .scope import Scope as ScopeView

    for item in scope.nodes:
        if isinstance(item, ScopeView):
            yield _row(item, "group", depth, item.params, item.opaque or "")
            yield from _rows_of(graph, item, depth + 1)
        else:
            note = ""
            if not item.params and graph._read(item._node):
                note = "weights counted at an earlier row"
            yield _row(item, item.kind, depth, item.params, note)


def _row(item: Node | Scope, kind: str, depth: int, params: int, note: str) -> Row:
    return Row(
        layer=item.name,
        type=item.type,
        shape=item.shape,
        params=params,
        connected=tuple(node.name for node in item.inputs),
        kind=kind,
        depth=depth,
        trainable=item.trainable,
        macs=0 if kind == "group" else item.macs,
        call=item.call,
        calls=item.calls,
        path=item.path,
        scope=item.scope if kind != "group" else item.parent.key,
        outputs=tuple(tensor.shape for tensor in item.outputs),
        note=note,
    )


def _widths(rows: Iterable[Sequence[str]]) -> list[int]:
    rows = list(rows)
    return [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]


def _fit(rows: Iterable[Sequence[str]], width: int) -> list[int]:
    """Column widths: natural ones where they fit, else columns give way in a fixed order."""
    widths = _widths(rows)
    spare = width - 2 * (len(widths) - 1)
    for i in _GIVE_WAY:
        over = sum(widths) - spare
        if over > 0:
            widths[i] = max(min(widths[i], _NARROWEST[i]), widths[i] - over)
    return widths


def _lines(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    wrapped = [_wrap(text, width) for text, width in zip(cells, widths, strict=True)]
    out = []
    for k in range(max(map(len, wrapped))):
        parts = [(column[k] if k < len(column) else "") for column in wrapped]
        aligned = [
            text.rjust(width) if i == 3 else text.ljust(width)
            for i, (text, width) in enumerate(zip(parts, widths, strict=True))
        ]
        out.append("  ".join(aligned).rstrip())
    return out


def _wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width`: broken behind commas, else behind dots, else anywhere."""
    if len(text) <= width:
        return [text]
    indent = len(text) - len(text.lstrip())
    indent = min(indent, width // 2)
    text = text.lstrip()
    out = []
    room = width - indent
    while text:
        if len(text) <= room:
            cut = len(text)
        else:
            breaks = [text.rfind(mark, 0, room) for mark in (", ", " ", ".", "_", "×")]
            at = next((b for b in breaks if b > 0), room - 1)
            cut = at + 1
        out.append(" " * indent + text[:cut].rstrip())
        text = text[cut:].lstrip()
    return out


# Colours come from the page: text is inherited, lines and grounds are grey with transparency.
_STYLE = """
.nbs-table{max-height:36em;overflow:auto;border:1px solid rgba(128,128,128,.3);border-radius:6px;
display:inline-block;max-width:100%}
.nbs-table table{border-collapse:collapse;font-size:12px;margin:0;color:inherit}
.nbs-table tr,.nbs-table td,.nbs-table th{background:transparent;border:none}
.nbs-table th,.nbs-table td{text-align:left!important;padding:2px .6em!important;vertical-align:top;
font-variant-numeric:tabular-nums}
.nbs-table thead th{position:sticky;top:0;background:var(--jp-layout-color1,Canvas)!important;
box-shadow:inset 0 -1px rgba(128,128,128,.5);font-weight:600}
.nbs-table th:nth-child(4),.nbs-table tbody td:nth-child(4){text-align:right!important;
white-space:nowrap}
.nbs-table tbody td:nth-child(3){white-space:nowrap}
.nbs-table td:nth-child(1),.nbs-table tbody td:nth-child(5){overflow-wrap:anywhere;min-width:10em}
.nbs-table tbody td:nth-child(2),.nbs-table tbody td:nth-child(5){opacity:.8}
.nbs-table tr.nbs-group td{background:rgba(128,128,128,.12)!important;font-weight:600}
.nbs-table tr.nbs-node:hover td{background:rgba(90,140,255,.14)!important}
.nbs-table tfoot tr:first-child td{border-top:1px solid rgba(128,128,128,.5)!important}
"""
