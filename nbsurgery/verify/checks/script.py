"""``torch.jit.script`` of the edited model, where the original can be scripted."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..copy import Copier
from ..quiet import quiet
from ..report import Finding
from ..subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Scripts copies without memory, the original's first."""
    if _script((subject.original,)) is not None:
        return
    error = _script(subject.built.modules)
    if error is None:
        yield Finding("ok", "torch.jit.script works, as before")
        return
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    yield Finding(
        "warning", f"torch.jit.script worked and fails now: {type(error).__name__}: {said}"
    )


def _script(modules) -> Exception | None:
    try:
        with quiet():
            for module in modules:
                torch.jit.script(Copier(module, device="meta").root)
    except Exception as error:  # noqa: BLE001  the compiler raises of every kind
        return error
    return None
