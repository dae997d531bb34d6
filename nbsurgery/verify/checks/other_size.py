"""The edited model at another image size or sequence length, where the original runs there too."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..compare import changed, tensors
from ..report import Finding
from ..subject import Subject
from ..trial import trial


def check(subject: Subject) -> Iterator[Finding]:
    """Images grow by half, sequences of tokens by three."""
    given = tensors((subject.original_args, subject.original_kwargs))
    images = [t for t in given if t.dim() == 4 and t.is_floating_point()]
    if images:
        h, w = images[0].shape[-2:]
        step = 32 if min(h, w) >= 64 else max(min(h, w) // 2, 1)
        size = (h + step, w + step)

        def change(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.dim() != 4 or tensor.shape[-2:] != (h, w):
                return tensor
            rows = torch.arange(size[0], device=tensor.device) % h
            columns = torch.arange(size[1], device=tensor.device) % w
            return tensor.index_select(2, rows).index_select(3, columns)

        name = f"image size {size[0]}×{size[1]}"
    else:
        tokens = [t for t in given if t.dim() == 2 and not t.is_floating_point()]
        if not tokens:
            return
        length = tokens[0].shape[1]
        longer = length + 3

        def change(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.dim() != 2 or tensor.shape[1] != length:
                return tensor
            return tensor.index_select(1, torch.arange(longer, device=tensor.device) % length)

        name = f"sequence length {longer}"
    yield from trial(subject, name, lambda example: changed(example, change), needed=False)
