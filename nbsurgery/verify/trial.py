"""The edited model on another example than its own, beside the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..errors import SurgeryError
from . import runs
from .checks.values import judged
from .compare import Difference, difference
from .copy import structural_copy
from .failure import explain
from .oracle import evaluate
from .report import Finding
from .subject import Subject


def trial(
    subject: Subject, name: str, change: Callable[[Any], Any], *, needed: bool = True
) -> Iterator[Finding]:
    """Run both on a changed example and hold the claims and the wiring to it.

    Args:
        name: What is other about the example: ``"batch size 3"``.
        change: Makes it from ``(args, kwargs)``.
        needed: Whether the edited model has to run there; ``False`` where an edit may well fix a size.
    """
    theirs = change((subject.original_args, subject.original_kwargs))
    if subject.entering is None:
        mine = change((subject.args, subject.kwargs))
    original = runs.run((structural_copy(subject.original),), *theirs)
    if original.error is not None:
        return  # the original does not allow it either
    if subject.entering is not None:
        try:
            mine = subject.entering(*theirs), {}
        except SurgeryError:
            yield Finding(
                "warning" if needed else "info",
                f"at {name} the original goes another way in front of where the model begins; what "
                "it would hand in there is not known, and the model may not take it",
            )
            return
    parts = tuple(map(structural_copy, subject.built.modules))
    run = runs.run(parts, *mine)
    if run.error is not None:
        yield Finding(
            "error" if needed else "warning",
            f"at {name} the original runs and the edited model fails: {explain(run.error, parts)}",
        )
        return
    wrong, told = [], ", and what held on the example holds there"
    if subject.claims:
        try:
            findings = [f for _, f in judged(subject, run.output, original, theirs)]
        except (SurgeryError, RuntimeError, TypeError, KeyError):
            findings = []  # the original takes another way there, and what to compare with is not known
            told = "; the original goes another way there, so no inner values were compared"
        wrong = [f for f in findings if f.severity == "error"]
        if any(f.severity == "warning" for f in findings):
            told = "; its output holds no numbers there, so none were compared"
    for finding in wrong:
        yield Finding("error", f"at {name} {finding.text}")
    if subject.edited is not None and len(parts) == 1 and not wrong:
        found = _wiring(subject, run.output, mine)
        if found is not None and not found.close and _recording_holds(subject, original, theirs):
            wrong.append(found)
            yield Finding("error", f"at {name} the code is not wired as planned: it shows {found}")
    if not wrong:
        yield Finding("ok", f"it runs at {name}{told}")


def _wiring(subject: Subject, output: Any, example: tuple) -> Difference | None:
    """The plan's own output against the code's; ``None`` where the recording does not hold."""
    try:
        model = structural_copy(subject.built.modules[0])
        expected = evaluate(subject.edited, model, *example)
    except Exception:  # noqa: BLE001  whatever the recorded operations raise on this example
        return None
    return difference(output, expected, tensors_only=True)


def _recording_holds(subject: Subject, original: runs.Run, example: tuple) -> bool:
    """Whether the original's recorded run gives its output there: else the plan says nothing."""
    try:
        again = evaluate(subject.before, structural_copy(subject.original), *example)
    except Exception:  # noqa: BLE001
        return False
    return difference(again, original.output, tensors_only=True).close
