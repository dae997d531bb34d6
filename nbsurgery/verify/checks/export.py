"""``torch.export`` of the edited model, where the original can be exported."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .. import runs
from ..compare import mapped
from ..copy import structural_copy
from ..quiet import quiet
from ..report import Finding
from ..subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Exports copies, the original's first; the exporter itself computes no number."""
    error = _export((subject.original,), subject.original_args, subject.original_kwargs)
    if error is not None:
        return
    error = _export(subject.built.modules, subject.args, subject.kwargs, subject.run.crossing)
    if error is not None:
        said = str(error).strip().splitlines()[0] if str(error).strip() else ""
        yield Finding(
            "warning", f"torch.export worked and fails now: {type(error).__name__}: {said}"
        )
    else:
        yield Finding("ok", "torch.export works, as before")


def _export(modules, args, kwargs, crossing=()) -> Exception | None:
    try:
        with quiet(), torch.no_grad():
            for i, module in enumerate(modules):
                part = structural_copy(module)
                given = (args, kwargs) if i == 0 else (runs.handed_on(part, crossing[i - 1]), {})
                torch.export.export(part, *mapped(given, torch.Tensor.detach))
    except Exception as error:  # noqa: BLE001  the exporter raises of every kind
        return error
    return None
