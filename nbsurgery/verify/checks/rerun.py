"""The cell run twice: the same structure, shapes, modes and kept weights as once, or a clear stop."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

from ...errors import SurgeryError
from ..execute import Built, execute
from ..report import Finding
from ..subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Once more on a fresh copy, two times in one namespace."""
    once = subject.built
    try:
        twice = execute(
            once.text,
            subject.original,
            variable=once.variable,
            namespace=once.given,
            results=once.names,
            times=2,
        )
    except SurgeryError as error:
        yield Finding("error", f"the code runs once and not again on a fresh model: {error}")
        return
    before, after = picture(once), picture(twice)
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    if twice.stopped is not None:
        said = " ".join(str(twice.stopped).split())
        if changed:
            yield Finding(
                "error",
                f"run twice, the code fails half-way ({type(twice.stopped).__name__}: {said}) and has "
                f"changed {changed[0]}",
            )
        elif _deliberate(twice):
            yield Finding("ok", f"run twice, the code stops before it changes anything: {said}")
        else:
            yield Finding(
                "warning",
                f"run twice, the code fails with {type(twice.stopped).__name__}: {said}",
            )
    elif changed:
        yield Finding(
            "error",
            f"run twice, the code gives another model than once: {len(changed)} differences, first at "
            f"{changed[0]}",
        )
    else:
        yield Finding("ok", "run twice, the code gives the same model as once")


def picture(built: Built) -> dict[str, Any]:
    """Structure, shapes, modes and kept weights of what was built, by name."""
    found: dict[str, Any] = {}
    for name, root in zip(built.names, built.modules):
        for path, module in root.named_modules():
            found[f"{name}.{path}".rstrip(".")] = (
                type(module).__qualname__,
                module.training,
                module.extra_repr(),
            )
        for key, tensor in (*root.named_parameters(), *root.named_buffers()):
            found[f"{name}.{key}"] = (
                _shape(tensor),
                str(tensor.dtype),
                tensor.requires_grad,
                built.origin.get(id(tensor)),
            )
    return found


def _shape(tensor) -> tuple:
    try:
        return tuple(tensor.shape)
    except (RuntimeError, ValueError):  # lazy
        return ()


def _deliberate(built: Built) -> bool:
    """Whether the text itself raised: by ``raise`` or ``assert``."""
    last = traceback.extract_tb(built.stopped.__traceback__)[-1]
    line = (last.line or "").lstrip()
    return last.filename == built.filename and line.startswith(("raise ", "assert "))
