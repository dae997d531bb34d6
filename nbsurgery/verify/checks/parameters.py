"""Parameters before and after: how many, how many of them train, which go and which are new."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..report import Fact, Finding
from ..subject import Subject, counted, listed, regions


def check(subject: Subject) -> Iterator[Fact | Finding]:
    """Counts, each shared weight once."""
    before = {id(p): (n, p) for n, p in subject.original.named_parameters()}
    after = {}
    for name, tensor, is_parameter in subject.tensors():
        if is_parameter:
            after.setdefault(id(tensor), (name, tensor))
    yield Fact("Parameters", f"{_size(before):,}", f"{_size(after):,}")
    trainable = [
        {i: (n, p) for i, (n, p) in side.items() if p.requires_grad} for side in (before, after)
    ]
    yield Fact("Trainable", f"{_size(trainable[0]):,}", f"{_size(trainable[1]):,}")

    kept = {subject.came_from(p) for _, p in after.values()} - {None}
    new = {i: (n, p) for i, (n, p) in after.items() if subject.came_from(p) is None}
    copies = {i: (n, p) for i, (n, p) in new.items() if n in subject.copies}
    new = {i: pair for i, pair in new.items() if i not in copies}
    held = {n if subject.prefixes == ("",) else n.partition(".")[2] for n, _ in copies.values()}
    lost = {i: (n, p) for i, (n, p) in before.items() if n not in kept | held}
    if lost:
        where = listed(regions([n for n, _ in lost.values()], [n for n, _ in before.values()]))
        yield Finding("info", f"{_size(lost):,} parameters go, with {where}")
    if new:
        where = listed(regions([n for n, _ in new.values()], [n for n, _ in after.values()]))
        yield Finding("info", f"{_size(new):,} parameters are new, in {where}")
    if copies:
        where = listed(regions([n for n, _ in copies.values()], [n for n, _ in after.values()]))
        yield Finding("info", f"{_size(copies):,} parameters are carried over into {where}")
    if not lost and not new:
        yield Finding("ok", f"all {counted(_size(before), 'parameter')} are kept")
    if subject.built.written:
        names = listed(subject.built.written)
        yield Finding("info", f"the code writes new values into {names}")
    shared = sum(
        p.numel() for n, p in after.values() if subject.came_from(p) is None and not p.requires_grad
    )
    if shared:
        yield Finding("info", f"{shared:,} of the new parameters do not train")


def _size(side: dict[int, tuple[str, torch.Tensor]]) -> int:
    return sum(_numel(p) for _, p in side.values())


def _numel(parameter: torch.Tensor) -> int:
    try:
        return parameter.numel()
    except (RuntimeError, ValueError):  # a lazy one has no size yet
        return 0
