"""The edited model at another batch size, where the original runs there too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from ..compare import changed, tensors
from ..report import Finding
from ..subject import Subject
from ..trial import trial


def check(subject: Subject) -> Iterator[Finding]:
    """One sample more, or three where there was one: rows of the example repeat."""
    given = tensors((subject.original_args, subject.original_kwargs))
    sizes = Counter(t.shape[0] for t in given if t.dim() > 1)
    if not sizes:
        return
    old = sizes.most_common(1)[0][0]
    new = 3 if old == 1 else old + 1

    def change(tensor: torch.Tensor) -> Any:
        if tensor.dim() < 1 or tensor.shape[0] != old:
            return tensor
        return tensor.index_select(0, torch.arange(new, device=tensor.device) % old)

    yield from trial(subject, f"batch size {new}", lambda example: changed(example, change))
