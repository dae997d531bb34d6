"""Round-off told from a real difference: both models once more in double precision."""

from __future__ import annotations

import dataclasses

import torch

from .compare import mapped
from .copy import structural_copy
from .subject import Subject

_LIMIT = 2 << 30  # bytes of weights beyond which no copy in double is made


def in_double(subject: Subject) -> Subject | None:
    """The same subject with all floats as float64; ``None`` where that is too large or cannot run.

    A BatchNorm that was lost differs by its eps alone, a few millionths, as much as round-off in
    float32; in float64 the two are nine digits apart.
    """
    if sum(p.nbytes for m in subject.built.modules for p in m.parameters()) > _LIMIT:
        return None
    models = tuple(structural_copy(m).double() for m in subject.built.modules)
    mine = mapped((subject.args, dict(subject.kwargs)), _wide)
    theirs = mapped((subject.original_args, dict(subject.original_kwargs)), _wide)
    wide = dataclasses.replace(
        subject,
        original=structural_copy(subject.original).double(),
        built=dataclasses.replace(
            subject.built, model=models if len(models) > 1 else models[0], origin={}, paths={}
        ),
        args=mine[0],
        kwargs=mine[1],
        original_args=theirs[0],
        original_kwargs=theirs[1],
    )
    if wide.run.error is not None or wide.original_run.error is not None:
        return None
    return wide


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor
