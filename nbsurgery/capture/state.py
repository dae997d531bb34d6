"""What a run may disturb, noted before and put back after: modules, buffers, random state, modes."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch
from torch import nn

_GONE = object()


class Snapshot:
    """The state of a model and of the process around it.

    Weights are not copied. Buffers are, where the run may write to them: in training mode, and in
    modules that are not torch's own.
    """

    def __init__(self, modules: list[nn.Module], copy_buffers: bool = True):
        self.modules = [
            self._module(m) for m in modules if not isinstance(m, torch.jit.ScriptModule)
        ]
        self.buffers: list[tuple] = []
        if copy_buffers:
            for module in modules:
                if module.__dict__.get("training") or not type(module).__module__.startswith(
                    "torch."
                ):
                    for buffer in (module.__dict__.get("_buffers") or {}).values():
                        if _copyable(buffer):
                            self.buffers.append((buffer, buffer._version, buffer.detach().clone()))
        self.cpu = torch.get_rng_state()
        self.cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
        self.python = random.getstate()
        numpy = sys.modules.get("numpy")
        self.numpy = numpy.random.get_state() if numpy is not None else None

    @staticmethod
    def _module(module: nn.Module) -> tuple:
        state = dict(module.__dict__)
        inner = {k: v.copy() for k, v in state.items() if isinstance(v, (dict, list, set))}
        return module, state, inner

    def restore(self) -> list[str]:
        """Put everything back.

        Returns:
            What the run itself had changed, in words.
        """
        changed: list[str] = []
        for module, state, inner in self.modules:
            _restore(module, state, inner, changed)
        for buffer, version, copy in self.buffers:
            # batch_norm moves its statistics without a word to the version counter
            if buffer._version != version or not torch.equal(buffer, copy):
                buffer.data.copy_(copy)
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state_all(self.cuda)
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
        return changed


def _copyable(buffer: Any) -> bool:
    return (
        type(buffer) is torch.Tensor
        and not buffer.is_meta
        and not buffer.is_inference()
        and not buffer.is_quantized
    )


def _restore(module: nn.Module, state: dict, inner: dict, changed: list[str]) -> None:
    now = module.__dict__
    if len(now) != len(state) or any(now.get(k, _GONE) is not v for k, v in state.items()):
        for name in [k for k in now if k not in state]:
            changed.append(f"{type(module).__name__}.{name}")
            del now[name]
        for name, value in state.items():
            if now.get(name, _GONE) is not value:
                changed.append(f"{type(module).__name__}.{name}")
                now[name] = value
    for name, copy in inner.items():
        value = state[name]
        if isinstance(value, list):
            if len(value) != len(copy) or any(a is not b for a, b in zip(value, copy, strict=True)):
                changed.append(f"{type(module).__name__}.{name}")
                value[:] = copy
        elif isinstance(value, set):
            if value != copy:
                value.clear()
                value.update(copy)
        elif len(value) != len(copy) or any(value.get(k, _GONE) is not v for k, v in copy.items()):
            changed.append(f"{type(module).__name__}.{name}")
            value.clear()
            value.update(copy)
