"""The edited model runs on its own modules: none of the person's model is reached or written."""

from __future__ import annotations

from collections.abc import Iterator

from ..report import Finding
from ..subject import Subject, listed


def check(subject: Subject) -> Iterator[Finding]:
    """Calls that reach the original by a closure or a global, and what could not be copied."""
    theirs = {id(m): path or "the model itself" for path, m in subject.original.named_modules()}
    reached = [path for i, path in theirs.items() if i in subject.run.called]
    if reached:
        yield Finding(
            "error",
            f"the edited model still calls {listed(reached)} of the model before the edit, through a "
            "closure or a global name",
        )
    for note in subject.built.notes:
        yield Finding("info", note)
