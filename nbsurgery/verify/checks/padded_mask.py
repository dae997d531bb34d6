"""Another kind of example: an attention mask with padding, where the example's has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..report import Finding
from ..subject import Subject
from ..trial import trial


def check(subject: Subject) -> Iterator[Finding]:
    """An all-ones mask lets a model take a short cut; the first row gets one position of padding."""
    names = [n.target for n in subject.before.root.inputs]
    if not any(_full(name, value) for name, value in _named(subject, names)):
        return

    def change(example: tuple[tuple, dict]) -> tuple[tuple, dict]:
        args, kwargs = example
        args = tuple(
            _padded(a) if i < len(names) and _full(names[i], a) else a for i, a in enumerate(args)
        )
        return args, {k: _padded(v) if _full(k, v) else v for k, v in kwargs.items()}

    yield from trial(subject, "a padded mask", change)


def _named(subject: Subject, names: list[str]) -> list[tuple[str, Any]]:
    return [*zip(names, subject.original_args), *subject.original_kwargs.items()]


def _full(name: str, value: Any) -> bool:
    return (
        "mask" in name
        and isinstance(value, torch.Tensor)
        and value.dim() == 2
        and value.shape[1] > 1
        and not value.is_meta
        and bool((value == 1).all())
    )


def _padded(mask: torch.Tensor) -> torch.Tensor:
    mask = mask.clone()
    mask[0, -1] = 0
    return mask
