"""The oracle: the edited graph, evaluated without the text, gives what the text's model gives."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ReplayRefused
from ...graph import Graph, Node
from ..compare import Difference, difference
from ..copy import structural_copy
from ..double import in_double
from ..oracle import evaluate
from ..report import Finding
from ..subject import Subject, listed


def check(subject: Subject) -> Iterator[Finding]:
    """One comparison on the example; silent where the draft has no single graph."""
    if subject.edited is None or len(subject.built.modules) != 1:
        return
    try:
        model = structural_copy(subject.built.modules[0])
        expected = evaluate(subject.edited, model, subject.args, subject.kwargs)
    except ReplayRefused as error:
        yield Finding("info", f"the wiring cannot be checked on this example: {error}")
        return
    except Exception as error:  # noqa: BLE001  anything the operations of the graph may raise
        said = " ".join(str(error).split())
        yield Finding("error", f"the edit as planned does not run: {type(error).__name__}: {said}")
        return
    found = difference(subject.run.output, expected, tensors_only=True)
    if found.close and not found.equal:
        found = _confirmed(subject, found)
    inner: list[str] = []
    if found.equal and not found.numbers:
        found, inner = _inner(subject)
        if not inner:
            return  # nothing to compare; that the output is empty is told with the values
    if found.close:
        exactly = "bit for bit" if found.equal else f"up to round-off ({found.max_abs:.1g})"
        what = f"the same numbers at {listed(inner)}" if inner else "the same numbers"
        yield Finding("ok", f"the code is wired as planned: both give {what}, {exactly}")
    else:
        what = "what its output is made of" if inner else "its output"
        yield Finding("error", f"the code is not wired as planned: {what} shows {found}")


def _inner(subject: Subject) -> tuple[Difference, list[str]]:
    """The last values that hold numbers before an empty output, planned and real, and their names."""
    planned, real = subject.edited, subject.after[0] if subject.after else None
    by_name = real.by_name if real is not None else {}
    pairs = {n.name: (n.id, by_name[n.name].id) for n in _filled(planned) if n.name in by_name}
    values = []
    for side, graph in enumerate((real, planned) if pairs else ()):
        model = structural_copy(subject.built.modules[0])
        ids = [p[1 - side] for p in pairs.values()]
        try:
            _, found = evaluate(graph, model, subject.args, subject.kwargs, values=ids)
        except Exception:  # noqa: BLE001  the recording does not hold: nothing can be said
            return Difference(), []
        values.append({name: found.get(p[1 - side]) for name, p in pairs.items()})
    return (difference(*values, tensors_only=True), list(pairs)) if pairs else (Difference(), [])


def _filled(graph: Graph) -> list[Node]:
    """The nodes on which the output depends last that hold numbers, those before them left out."""
    todo, seen, found = [n.id for n in graph.flat if n.kind == "output"], set(), []
    while todo:
        node = graph.by_id[todo.pop()]
        if node.id in seen or node.kind in ("input", "parameter"):
            continue
        seen.add(node.id)
        if any(v.shape is not None and 0 not in v.shape for v in node.outputs):
            found.append(node)
        else:
            todo += graph.inputs_of(node.id)
    return found[::-1]


def _confirmed(subject: Subject, found: Difference) -> Difference:
    """What looks like round-off, compared in double precision; as it is where that cannot run."""
    wide = in_double(subject)
    if wide is None:
        return found
    try:
        model = structural_copy(wide.built.modules[0])
        expected = evaluate(wide.edited, model, wide.args, wide.kwargs)
    except Exception:  # noqa: BLE001  the recording may hold for float32 only
        return found
    again = difference(wide.run.output, expected, tensors_only=True)
    return found if again.close else again
