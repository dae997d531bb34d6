"""The oracle: the edited graph, evaluated without the text, gives what the text's model gives."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ReplayRefused
from ..compare import difference
from ..oracle import evaluate
from ..report import Finding
from ..subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """One comparison on the example; silent where the draft has no single graph."""
    if subject.edited is None or len(subject.built.modules) != 1:
        return
    try:
        expected = evaluate(subject.edited, subject.copies[0].root, subject.args, subject.kwargs)
    except ReplayRefused as error:
        yield Finding("info", f"the wiring cannot be checked on this example: {error}")
        return
    except Exception as error:  # noqa: BLE001  anything the operations of the graph may raise
        said = " ".join(str(error).split())
        yield Finding("error", f"the edit as planned does not run: {type(error).__name__}: {said}")
        return
    found = difference(subject.run.output, expected)
    if found.close:
        exactly = "bit for bit" if found.equal else f"up to round-off ({found.max_abs:.1g})"
        yield Finding("ok", f"the code is wired as planned: both give the same numbers, {exactly}")
    else:
        yield Finding("error", f"the code is not wired as planned: its output shows {found}")
