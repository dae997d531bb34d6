"""Copying and saving the edited model, where the original can be copied and saved."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

from ..copy import Copier
from ..report import Finding
from ..subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """``copy.deepcopy`` and ``pickle`` of copies without memory."""
    can = _errors((subject.original,))
    cannot = _errors(subject.built.modules)
    done = []
    for what, error in cannot.items():
        if error is None:
            done.append(what)
        elif can[what] is None:
            said = " ".join(str(error).split())
            yield Finding("warning", f"{what} worked and fails now: {type(error).__name__}: {said}")
    if done:
        yield Finding("ok", f"{' and '.join(done)} work{'s' if len(done) == 1 else ''}")


def _errors(modules) -> dict[str, Exception | None]:
    ghosts = [Copier(m, device="meta").root for m in modules]
    found: dict[str, Exception | None] = {}
    for what, do in (
        ("deepcopy", copy.deepcopy),
        ("pickle", lambda m: pickle.loads(pickle.dumps(m))),
    ):
        found[what] = None
        for ghost in ghosts:
            try:
                do(ghost)
            except Exception as error:  # noqa: BLE001  whatever an attribute raises
                found[what] = error
    return found
