"""``params`` and ``trainable``: parameter counts, shared weights counted once.

The first call that uses a weight carries it, later ones carry 0, so that the numbers of the flat
nodes sum to the total of what the run used. The call of a scope carries what its module holds, each
weight once; a further call of the same module carries 0.
"""

from __future__ import annotations

from torch import nn

from nbsurgery.annotate.subject import Subject


def measure(subject: Subject) -> tuple[dict, dict]:
    """Counts by node id, and totals over the model."""
    params: dict[str, int] = {}
    trainable: dict[str, int] = {}
    seen: set[int] = set()
    opened: set[int] = set()
    for node in subject.walk():
        if node.kind == "module":
            module = subject.module(node)
            if module is None:
                continue
            own = list(module.parameters())
            if node.child is not None:
                fresh = own if id(module) not in opened else []
                opened.add(id(module))
            else:
                fresh = [p for p in own if id(p) not in seen]
                seen.update(id(p) for p in own)
        elif node.kind == "parameter":
            value = subject.at(node.target)
            if not isinstance(value, nn.Parameter):
                continue
            fresh = [value] if id(value) not in seen else []
            seen.add(id(value))
        else:
            continue
        params[node.id] = sum(_count(p) for p in fresh)
        trainable[node.id] = sum(_count(p) for p in fresh if p.requires_grad)
    every = list(subject.model.parameters())
    totals = {
        "params": sum(_count(p) for p in every),
        "trainable": sum(_count(p) for p in every if p.requires_grad),
    }
    return {"params": params, "trainable": trainable}, totals


def _count(parameter: nn.Parameter) -> int:
    try:
        return parameter.numel()
    except (RuntimeError, ValueError):  # a lazy parameter has no size yet
        return 0
