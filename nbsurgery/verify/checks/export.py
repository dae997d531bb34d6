"""``torch.export`` of the edited model, where the original can be exported."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch
from torch import nn

from .. import runs
from ..compare import mapped
from ..copy import structural_copy
from ..quiet import quiet
from ..report import Finding
from ..subject import Subject

# of each original, by what it is called with: it stays the same while steps come and go
_known: weakref.WeakKeyDictionary[nn.Module, dict[str, bool]] = weakref.WeakKeyDictionary()


def original(subject: Subject) -> Iterator[Finding]:
    """Exports a copy of the original, in a turn of its own; says nothing by itself."""
    _could(subject)
    return iter(())


def check(subject: Subject) -> Iterator[Finding]:
    """Exports copies; the exporter itself computes no number."""
    if not _could(subject):
        return
    error = _export(subject.built.modules, subject.args, subject.kwargs, subject.run.crossing)
    if error is not None:
        said = str(error).strip().splitlines()[0] if str(error).strip() else ""
        yield Finding(
            "warning", f"torch.export worked and fails now: {type(error).__name__}: {said}"
        )
    else:
        yield Finding("ok", "torch.export works, as before")


def _could(subject: Subject) -> bool:
    args, kwargs = subject.original_args, subject.original_kwargs
    known = _known.setdefault(subject.original, {})
    called = repr(mapped((args, kwargs), lambda t: (tuple(t.shape), t.dtype, t.device)))
    if called not in known:
        known[called] = _export((subject.original,), args, kwargs) is None
    return known[called]


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
