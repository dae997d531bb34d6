"""The edited model in bfloat16, where the original runs in it."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .. import runs
from ..compare import changed
from ..copy import structural_copy
from ..failure import explain
from ..report import Finding
from ..subject import Subject

_LIMIT = 512 << 20  # bytes of weights beyond which no copy in another precision is made


def check(subject: Subject) -> Iterator[Finding]:
    """Both as ``.bfloat16()`` on copies; silent where the original cannot."""
    floats = {p.dtype for p in subject.original.parameters() if p.is_floating_point()}
    if floats != {torch.float32}:
        return
    size = sum(p.nbytes for p in subject.original.parameters())
    if size > _LIMIT:
        # without numbers nothing is found: the meta device multiplies unequal dtypes
        yield Finding(
            "info",
            f"bfloat16 was not tried: it needs a copy of {size / 2**31:.1f} GB; "
            "call the edited model with .bfloat16() to see",
        )
        return
    if _run((subject.original,), subject.original_args, subject.original_kwargs)[0] is not None:
        return
    error, parts = _run(subject.built.modules, subject.args, subject.kwargs)
    if error is not None:
        yield Finding("warning", f"in bfloat16 the edited model fails: {explain(error, parts)}")
    else:
        yield Finding("ok", "it runs in bfloat16, as the original does")


def _run(modules, args, kwargs):
    parts = tuple(structural_copy(m).to(torch.bfloat16) for m in modules)
    args, kwargs = changed((args, kwargs), _cast)
    return runs.run(parts, args, kwargs).error, parts


def _cast(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.bfloat16() if tensor.dtype is torch.float32 else tensor
