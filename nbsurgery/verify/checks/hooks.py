"""Hooks that went with a module that was exchanged."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from ..report import Finding
from ..subject import Subject, listed

_TABLES = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def check(subject: Subject) -> Iterator[Finding]:
    """The original's hooks whose module is not part of the edited model."""
    kept = {subject.built.paths.get(id(m)) for _, m in subject.modules()}
    lost, total = [], 0
    for path, module in subject.original.named_modules():
        count = _count(module)
        total += count
        if count and path not in kept:
            lost += [path or "the model itself"] * count
    if lost:
        where = listed(dict.fromkeys(lost))
        n = len(lost)
        yield Finding(
            "warning", f"{n} hook{'s' if n > 1 else ''} on {where} will be lost with the module"
        )
    elif total:
        yield Finding("ok", f"{total} hook{'s stay' if total > 1 else ' stays'} in place")


def _count(module: nn.Module) -> int:
    return sum(len(getattr(module, table, ())) for table in _TABLES)
