"""The oracle: the edited graph, evaluated without the text, gives what the text's model gives."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import ReplayRefused
from ..compare import Difference, difference
from ..copy import structural_copy
from ..double import in_double
from ..oracle import evaluate
from ..report import Finding
from ..subject import Subject


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
    if found.close:
        exactly = "bit for bit" if found.equal else f"up to round-off ({found.max_abs:.1g})"
        yield Finding("ok", f"the code is wired as planned: both give the same numbers, {exactly}")
    else:
        yield Finding("error", f"the code is not wired as planned: its output shows {found}")


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
