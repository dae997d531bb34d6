"""Train mode and, where the original has one, a backward pass."""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch

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
    trains = any(p.requires_grad for m in subject.built.modules for p in m.parameters())
    reference = structural_copy(subject.original)
    for backward in (True, False) if trains and weights <= _LIMIT else (False,):
        error, found = _pass((reference,), subject.original_args, subject.original_kwargs, backward)
        if error is None:
            break
    else:
        return  # the original does not run in train mode either, on this example
    parts = tuple(structural_copy(m) for m in subject.built.modules)
    error, without = _pass(parts, subject.args, subject.kwargs, backward)
    if error is not None:
        yield _overwritten(subject, error) or Finding(
            "error",
            f"in train mode the original runs{' and trains' if backward else ''}, and the edited "
            f"model fails: {explain(error, parts)}",
        )
        return
    if not backward:
        yield Finding("ok", "it runs in train mode, as the original does")
        return
    idle = found[id(reference)]
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


def _overwritten(subject: Subject, error: Exception) -> Finding | None:
    """A write in place over what a new operation keeps for its gradient, with the cure."""
    if "modified by an inplace operation" not in str(error) or subject.edited is None:
        return None
    for node in subject.edited.flat:
        read = map(subject.edited.by_id.get, subject.edited.inputs_of(node.id))
        made = [n for n in read if n.step is not None]
        if made and node.kind == "module" and node.step is None:
            module = subject.original.get_submodule(node.target)
            if getattr(module, "inplace", False):
                new = "nn." + re.sub(r"(, )?inplace=True", "", repr(module))
                return Finding(
                    "error",
                    f"a backward pass fails: {node.name} writes in place over what {made[0].name} "
                    "needs for its gradient",
                    {
                        "operation": "replace",
                        "arguments": {"where": node.target, "new": new},
                        "label": f"{node.target} not in place",
                    },
                )
    return None


def _pass(parts, args, kwargs, backward: bool) -> tuple[Exception | None, dict[int, set[str]]]:
    """One run in train mode: its error, and by part the trainable weights without a gradient."""
    for part in parts:
        part.train()
    reached: set[int] = set()

    def arrived(parameter: torch.Tensor) -> None:
        reached.add(id(parameter))
        parameter.grad = None  # gradients of the whole model would be a second copy of it

    trained = [p for part in parts for p in part.parameters() if p.requires_grad]
    hooks = [p.register_post_accumulate_grad_hook(arrived) for p in trained if backward]
    run = runs.run(parts, args, kwargs, grad=backward, then=_backward if backward else None)
    for hook in hooks:
        hook.remove()
    if run.error is not None or not backward:
        return run.error, {}
    return None, {
        id(part): {
            n for n, p in part.named_parameters() if p.requires_grad and id(p) not in reached
        }
        for part in parts
    }


def _backward(output) -> None:
    losses = [
        t.float().mean() for t in tensors(output) if t.requires_grad and t.is_floating_point()
    ]
    if not losses:
        raise RuntimeError("no output has a gradient")
    torch.stack([loss.cpu() for loss in losses]).sum().backward()
