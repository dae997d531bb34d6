"""Train mode and, where the original has one, a backward pass."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from .. import runs
from ..compare import tensors
from ..copy import structural_copy
from ..failure import explain
from ..report import Finding
from ..subject import Subject, counted, listed

_LIMIT = 2 << 30  # bytes of gradients beyond which no backward pass is made


def check(subject: Subject) -> Iterator[Finding]:
    """Both models in train mode, on copies: gradients are the copies' own."""
    weights = sum(p.nbytes for p in subject.original.parameters() if p.requires_grad)
    backward = weights <= _LIMIT
    reference = structural_copy(subject.original)
    theirs, found = _pass((reference,), subject.original_args, subject.original_kwargs, backward)
    idle = found.get(id(reference), set())
    if theirs is not None and not backward:
        return  # the original does not run in train mode either
    parts = tuple(structural_copy(m) for m in subject.built.modules)
    if theirs is not None:
        mine, _ = _pass(parts, subject.args, subject.kwargs, False)
        if mine is not None and not _trains_alone(subject):
            yield Finding("error", f"in train mode the edited model fails: {explain(mine, parts)}")
        return
    mine, without = _pass(parts, subject.args, subject.kwargs, backward)
    if mine is not None:
        yield Finding(
            "error",
            f"in train mode the original runs{' and trains' if backward else ''}, and the edited "
            f"model fails: {explain(mine, parts)}",
        )
        return
    if not backward:
        yield Finding("ok", "it runs in train mode (no backward pass: the gradients are too large)")
        return
    stuck = [
        prefix + name
        for prefix, root, part in zip(subject.prefixes, subject.built.modules, parts)
        for name, parameter in root.named_parameters()
        if name in without[id(part)] and subject.came_from(parameter) not in idle
    ]
    if stuck:
        one = len(stuck) == 1
        yield Finding(
            "warning",
            f"{counted(len(stuck), 'trainable weight')} {'gets' if one else 'get'} no gradient "
            f"({listed(stuck)})",
        )
    else:
        yield Finding(
            "ok", "in train mode it runs, and a backward pass reaches every trainable weight"
        )


def _pass(parts, args, kwargs, backward: bool) -> tuple[Exception | None, dict[int, set[str]]]:
    """One run in train mode: its error, and by part the trainable weights without a gradient."""
    for part in parts:
        part.train()
    run = runs.run(parts, args, kwargs, grad=backward, then=_backward if backward else None)
    if run.error is not None or not backward:
        return run.error, {}
    missing = {
        id(part): {n for n, p in part.named_parameters() if p.requires_grad and p.grad is None}
        for part in parts
    }
    return None, missing


def _backward(output) -> None:
    losses = [
        t.float().mean() for t in tensors(output) if t.requires_grad and t.is_floating_point()
    ]
    if not losses:
        raise RuntimeError("no output has a gradient")
    torch.stack([loss.cpu() for loss in losses]).sum().backward()


def _trains_alone(subject: Subject) -> bool:
    """Whether the original's failure in train mode is of the example (a batch of one), not of it."""
    return any(isinstance(m, nn.modules.batchnorm._NormBase) for m in subject.original.modules())
