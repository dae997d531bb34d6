"""Runs without numbers: inputs and weights that have only shapes, and when to use them."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

# Multiply-accumulates (by a rough estimate) above which shapes alone are cheaper than numbers.
_DEAR = 25e9
_DEAR_ON_DEVICE = 1e13


def choose(model: nn.Module, tensors: list[torch.Tensor]) -> str:
    """``"real"`` where a forward pass is cheap, else ``"fake"``."""
    if any(p.is_meta for p in model.parameters()) or any(t.is_meta for t in tensors):
        return "fake"
    if any(type(t) is not torch.Tensor for t in tensors):
        return "real"
    weights, device = 0, "cpu"
    for parameter in model.parameters():
        weights += parameter.numel()
        device = parameter.device.type
    positions = max([1, *map(_positions, tensors)])
    limit = _DEAR if device == "cpu" else _DEAR_ON_DEVICE
    return "fake" if weights * positions > limit else "real"


def _positions(tensor: torch.Tensor) -> int:
    """How often, about, each weight is used: batch times patches of 16 × 16, or tokens."""
    shape = tuple(tensor.shape)
    if not tensor.is_floating_point():
        return tensor.numel()
    if len(shape) >= 4:
        pixels = shape[-1] * shape[-2] * (shape[-3] if len(shape) == 5 else 1)
        return shape[0] * max(1, pixels // 256)
    return shape[0] * (shape[1] if len(shape) == 3 else 1) if shape else 1


@contextlib.contextmanager
def caches_emptied() -> Iterator[None]:
    """Empty every ``lru_cache`` that a run without numbers has added to: it would hand them on."""
    caches = [o for o in gc.get_objects() if type(o) is functools._lru_cache_wrapper]
    before = [c.cache_info().misses for c in caches]
    try:
        yield
    finally:
        for cache, misses in zip(caches, before, strict=True):
            if cache.cache_info().misses != misses:
                cache.cache_clear()


class Fakes:
    """A mode in which tensors have no data, and the conversion of a model's inputs to it."""

    def __init__(self):
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)

    def value(self, value: Any, depth: int = 0) -> Any:
        """The same value with fake tensors in place of real ones; containers are rebuilt."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if depth > 6:
            return value
        if isinstance(value, tuple):
            items = [self.value(v, depth + 1) for v in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if type(value) is list:
            return [self.value(v, depth + 1) for v in value]
        if type(value) is dict:
            return {k: self.value(v, depth + 1) for k, v in value.items()}
        if isinstance(value, dict) and not hasattr(value, "__dataclass_fields__"):
            try:
                return type(value)({k: self.value(v, depth + 1) for k, v in value.items()})
            except TypeError:
                return value
        return value

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta:
            with self.mode:
                return torch.empty_strided(
                    tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu"
                )
        return self.mode.from_tensor(tensor, static_shapes=True)

    def exchange(self, modules: list[nn.Module]) -> None:
        """Put fake weights and buffers in place of the model's own, so that no write reaches those.

        The snapshot of the modules puts them back.
        """
        made: dict[int, tuple] = {}
        for module in modules:
            for table in (module._parameters, module._buffers):
                for name, value in table.items():
                    if value is None:
                        continue
                    if id(value) not in made:
                        fake = self.tensor(value)
                        if isinstance(value, nn.Parameter) and not isinstance(fake, nn.Parameter):
                            with self.mode:
                                fake = nn.Parameter(fake, requires_grad=value.requires_grad)
                        made[id(value)] = (fake, value)
                    table[name] = made[id(value)][0]
