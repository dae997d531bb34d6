"""New modules are born in train mode: what that does inside a model in eval mode, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from ..report import Finding
from ..subject import Subject, listed

_MATTERS = (
    nn.modules.dropout._DropoutNd,
    nn.modules.batchnorm._NormBase,
    nn.RReLU,
    nn.FractionalMaxPool2d,
    nn.FractionalMaxPool3d,
)


def check(subject: Subject) -> Iterator[Finding]:
    """Modules made by the text whose mode is not the one of what they stand in."""
    wrong: dict[bool, list[str]] = {True: [], False: []}
    checked = 0
    for prefix, root in zip(subject.prefixes, subject.built.modules):
        for path, module in root.named_modules():
            if not subject.is_new(module) or not matters(module):
                continue
            checked += 1
            if module.training != _around(subject, root, path):
                wrong[module.training].append(f"{prefix}{path} ({type(module).__name__})")
    if wrong[True]:
        one = len(wrong[True]) == 1
        yield Finding(
            "warning",
            f"{listed(wrong[True])} {'is' if one else 'are'} in train mode inside a model in eval "
            "mode: add .train(model.training), or two calls may differ",
        )
    if wrong[False]:
        one = len(wrong[False]) == 1
        yield Finding(
            "warning",
            f"{listed(wrong[False])} {'is' if one else 'are'} in eval mode inside a model in train "
            "mode",
        )
    if checked and not wrong[True] and not wrong[False]:
        yield Finding(
            "ok",
            f"the mode of {checked} new modules fits"
            if checked > 1
            else "the new module's mode fits",
        )


def matters(module: nn.Module) -> bool:
    """Whether train and eval mode differ for this module itself."""
    if isinstance(module, _MATTERS):
        return True
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return bool(module.dropout)
    if type(module).__module__.startswith("torch.nn"):
        return False
    return (
        "training"
        in getattr(getattr(type(module), "forward", None), "__code__", check.__code__).co_names
    )


def _around(subject: Subject, root: nn.Module, path: str) -> bool:
    """The mode of the nearest module around that came from the original, else the original's."""
    while path:
        path = path.rpartition(".")[0]
        module = root.get_submodule(path)
        if not subject.is_new(module):
            return module.training
    return subject.original.training
