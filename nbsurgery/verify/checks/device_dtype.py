"""Device and dtype of new weights beside those around them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from ..report import Finding
from ..subject import Subject, listed


def check(subject: Subject) -> Iterator[Finding]:
    """New floating-point weights that differ from all weights that were near their place."""
    odd: dict[str, list[str]] = {}
    new = 0
    for prefix, root in zip(subject.prefixes, subject.built.modules):
        for key, tensor in root.named_parameters():
            if subject.came_from(tensor) is not None:
                continue
            new += 1
            near = _near(subject.original, key.rpartition(".")[0])
            mine = _kind(tensor)
            if near and mine not in near:
                text = f"{mine[0]} on {mine[1]}, where {' and '.join(sorted(_words(near)))} was"
                odd.setdefault(text, []).append(prefix + key)
    for text, keys in odd.items():
        yield Finding("warning", f"{listed(keys)} {'is' if len(keys) == 1 else 'are'} {text}")
    if new and not odd:
        yield Finding("ok", "device and dtype of the new weights fit")


def _kind(tensor: torch.Tensor) -> tuple[str, str]:
    return str(tensor.dtype).removeprefix("torch."), str(tensor.device)


def _words(kinds) -> list[str]:
    return [f"{dtype} on {device}" for dtype, device in kinds]


def _near(original: nn.Module, path: str) -> set[tuple[str, str]]:
    """Kinds of the weights of the nearest module around a place that has any."""
    while True:
        try:
            module = original.get_submodule(path)
        except AttributeError:
            module = None
        if module is not None:
            kinds = {_kind(p) for p in module.parameters() if p.is_floating_point()}
            if kinds or not path:
                return kinds
        path = path.rpartition(".")[0]
