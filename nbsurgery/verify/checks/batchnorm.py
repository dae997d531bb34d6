"""A frozen BatchNorm still moves: its running statistics, at the next forward in train mode."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from ..report import Finding
from ..subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """BatchNorms frozen by this edit whose statistics would drift all the same."""
    thawed = dict(subject.original.named_parameters())
    drifting = []
    for path, module in subject.modules():
        if not isinstance(module, nn.modules.batchnorm._NormBase) or not module.track_running_stats:
            continue
        own = list(module.parameters(recurse=False))
        if not own or any(p.requires_grad for p in own):
            continue
        names = [subject.came_from(p) for p in own]
        if all(n in thawed and not thawed[n].requires_grad for n in names):
            continue  # frozen before: not this edit's doing
        if type(module).train in (nn.Module.train,) and type(module).forward is _forward(module):
            drifting.append(path)
    if drifting:
        n = len(drifting)
        yield Finding(
            "warning",
            f"{n} frozen BatchNorm layer{'s' if n > 1 else ''} ({drifting[0]}"
            f"{', …' if n > 1 else ''}) still update{'' if n > 1 else 's'} the running statistics "
            "after the next model.train()",
            {
                "operation": "freeze",
                "arguments": {"where": drifting, "batchnorm": "frozen"},
                "label": "freeze the statistics too",
            },
        )


def _forward(module: nn.Module):
    """The forward of torch's own class, which updates the statistics in train mode."""
    return next(
        vars(c)["forward"]
        for c in type(module).__mro__
        if "forward" in vars(c) and c.__module__.startswith("torch.nn")
    )
