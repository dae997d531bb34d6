"""The operations: one file each, found by being here. A new one is a new file and nothing else."""

from __future__ import annotations

import importlib
import pkgutil

from .base import Field, Offer, Operation

__all__ = ["OPERATIONS", "Field", "Offer", "Operation"]


def _found() -> dict[str, Operation]:
    operations: list[Operation] = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if isinstance(getattr(module, "OPERATION", None), Operation):
            operations.append(module.OPERATION)
    operations.sort(key=lambda o: o.order)
    table = {o.name: o for o in operations}
    if len(table) != len(operations):
        raise RuntimeError("two operations have one name: " + ", ".join(o.name for o in operations))
    return table


OPERATIONS: dict[str, Operation] = _found()
