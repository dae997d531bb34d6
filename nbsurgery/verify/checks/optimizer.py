"""An optimizer that was made before the edit misses the weights that are new."""

from __future__ import annotations

from collections.abc import Iterator

from torch.optim import Optimizer

from ..copy import storage_key
from ..report import Finding
from ..subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Optimizers among the notebook's names that hold weights of the original."""
    space = subject.built.given or {}
    optimizers = {n: v for n, v in list(space.items()) if isinstance(v, Optimizer)}
    if not optimizers:
        return
    mine = {storage_key(p) for p in subject.original.parameters()}
    new = kept = 0
    standing = set()
    for _, tensor, is_parameter in subject.tensors():
        if is_parameter and id(tensor) not in standing:
            standing.add(id(tensor))
            if subject.came_from(tensor) is None and tensor.requires_grad:
                new += tensor.numel()
            else:
                kept += 1
    if not new:
        return
    for name, optimizer in optimizers.items():
        held = {storage_key(p) for group in optimizer.param_groups for p in group["params"]}
        if held & mine:
            yield Finding(
                "warning",
                f"the optimizer {name!r} does not hold the {new:,} new parameters: make it anew "
                "after the edit, or they never train",
            )
