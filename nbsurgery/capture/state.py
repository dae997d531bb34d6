"""What a run may disturb, noted before and put back after: modules, tensors, random state."""

from __future__ import annotations

import copy
import random
import sys
from typing import Any

import torch
from torch import nn

_GONE = object()
_TORCH = frozenset(nn.Module().__dict__)


class Snapshot:
    """The state of a model and of the process around it.

    Weights are copied only where the run is about to write to one (`save`). Buffers are copied
    where it may: in training mode, and in modules that are not torch's own.
    """

    def __init__(self, modules: list[nn.Module], copy_tensors: bool = True):
        self.modules = [_note(m) for m in modules if not isinstance(m, torch.jit.ScriptModule)]
        self.saved: dict[int, tuple] = {}
        self.owners: dict[int, list[torch.Tensor]] | None = None
        self.every = modules
        self.copy_tensors = copy_tensors
        if copy_tensors:
            for module in modules:
                buffers = module.__dict__.get("_buffers")
                if buffers and (
                    module.__dict__.get("training")
                    or not type(module).__module__.startswith("torch.")
                ):
                    for buffer in buffers.values():
                        self._keep(buffer)
        self.cpu = torch.get_rng_state()
        self.cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
        self.python = random.getstate()
        numpy = sys.modules.get("numpy")
        self.numpy = numpy.random.get_state() if numpy is not None else None

    def _keep(self, tensor: Any) -> None:
        if id(tensor) not in self.saved and _copyable(tensor):
            self.saved[id(tensor)] = (tensor, tensor._version, tensor.detach().clone())

    def save(self, target: torch.Tensor) -> None:
        """An operation is about to write to `target`: copy what of the model shares its memory."""
        if not self.copy_tensors or type(target) not in (torch.Tensor, nn.Parameter):
            return
        if self.owners is None:
            self.owners = {}
            for module in self.every:
                for table in ("_parameters", "_buffers"):
                    for tensor in (module.__dict__.get(table) or {}).values():
                        if _copyable(tensor):
                            self.owners.setdefault(_memory(tensor), []).append(tensor)
        if _copyable(target):
            for tensor in self.owners.get(_memory(target), ()):
                self._keep(tensor)

    def changed(self) -> dict[int, list[str]]:
        """By id of a module: the attributes that the run set or filled, other than torch's own."""
        found: dict[int, list[str]] = {}
        for module, now, state, ids, inner in self.modules:
            names = []
            if list(map(id, now.values())) != ids:
                names += [
                    k
                    for k, v in now.items()
                    if state.get(k, _GONE) is not v and not _bookkeeping(k, v)
                ]
            for container, before in inner:
                if _differs(container, before):
                    names += [k for k, v in state.items() if v is container]
            names = [k for k in names if k not in _TORCH]
            if names:
                found[id(module)] = list(dict.fromkeys(names))
        return found

    def restore(self) -> None:
        """Put everything back."""
        for _, now, state, ids, inner in self.modules:
            _restore(now, state, ids, inner)
        for tensor, version, kept in self.saved.values():
            # batch_norm moves its statistics without a word to the version counter
            if tensor._version != version or not torch.equal(tensor, kept):
                tensor.data.copy_(kept)
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state_all(self.cuda)
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)


def _bookkeeping(name: str, value: Any) -> bool:
    """A private flag, "hooks are installed": no value that a forward computes with."""
    return name.startswith("_") and (value is None or isinstance(value, bool))


def _copyable(tensor: Any) -> bool:
    return (
        isinstance(tensor, torch.Tensor)
        and type(tensor) in (torch.Tensor, nn.Parameter)
        and tensor.layout is torch.strided
        and not tensor.is_meta
        and not tensor.is_inference()
        and not tensor.is_quantized
        and not tensor.is_nested
    )


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _note(module: nn.Module) -> tuple:
    """The attributes of a module, and what its containers hold."""
    state = module.__dict__
    inner = [
        (v, v.copy() if v else None) for v in state.values() if isinstance(v, (dict, list, set))
    ]
    return module, state, dict(state), list(map(id, state.values())), inner


def _differs(container: Any, before: Any) -> bool:
    if before is None:
        return bool(container)
    if isinstance(container, list):
        return list(map(id, container)) != list(map(id, before))
    if isinstance(container, set):
        return container != before
    return list(container) != list(before) or any(container[k] is not v for k, v in before.items())


def _restore(now: dict, state: dict, ids: list[int], inner: list[tuple]) -> None:
    if list(map(id, now.values())) != ids:
        for name in [k for k in now if k not in state]:
            del now[name]
        for name, value in state.items():
            if now.get(name, _GONE) is not value:
                now[name] = value
    for container, before in inner:
        if _differs(container, before):
            container.clear()
            if isinstance(container, list):
                container.extend(before or ())
            else:
                container.update(before or ())


def private(value: Any, memo: dict | None = None) -> Any:
    """Arguments for the run to do with as it likes: tensors cloned, objects copied around."""
    memo = {} if memo is None else memo
    known = memo.get(id(value))
    if known is not None:
        return known[1]
    if isinstance(value, torch.Tensor):
        if not _copyable(value):
            return value
        made: Any = value.detach().clone()
        if value.requires_grad:
            made.requires_grad_(True)
    elif isinstance(value, tuple):
        items = [private(v, memo) for v in value]
        made = type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    elif type(value) is list:
        made = [private(v, memo) for v in value]
    elif type(value) is dict:
        made = {k: private(v, memo) for k, v in value.items()}
    elif hasattr(value, "__dict__") and not isinstance(value, (nn.Module, type)):
        if callable(value):
            return value
        made = copy.copy(value)
        memo[id(value)] = (value, made)
        for name, item in vars(value).items():
            object.__setattr__(made, name, private(item, memo))
        if isinstance(value, dict):
            for key in list(dict.keys(value)):
                dict.__setitem__(made, key, private(dict.__getitem__(value, key), memo))
    else:
        return value
    memo[id(value)] = (value, made)
    return made
