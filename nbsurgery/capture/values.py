"""Questions about the values of a run: which tensors are inside, what is kept, what changed."""

from __future__ import annotations

import hashlib
import inspect
import weakref
from typing import Any

import torch
from torch import nn

from nbsurgery.capture.symbols import Symbol, plain
from nbsurgery.graph import Tensor

no_dispatch = torch._C.DisableTorchFunction
no_subclass = torch._C.DisableTorchFunctionSubclass
PLAIN = frozenset(
    {
        type(None), bool, int, float, str, bytes, complex, type(Ellipsis), range,
        torch.dtype, torch.device, torch.memory_format, torch.layout,
    }
)  # fmt: skip


def digest(given: Any) -> str | None:
    """A fingerprint of every tensor in some arguments."""
    state = hashlib.blake2b(digest_size=16)
    with no_dispatch():
        for tensor in tensors_in(given):
            if tensor.is_meta or type(tensor) is not torch.Tensor:
                return None
            state.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            state.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return state.hexdigest()


def alive(link):
    return link() if type(link) is weakref.ref else link


def hashable(value) -> bool:
    return isinstance(value, (int, float, str, bool, type(None)))


def version(tensor) -> int:
    return tensor._version if not tensor.is_inference() else 0


def is_code(value) -> bool:
    return isinstance(value, (type, nn.Module)) or callable(value)


def deep(value: Any, depth: int = 0) -> Any:
    """What an object holds, tensors by identity, down to the numbers."""
    if isinstance(value, torch.Tensor):
        return id(value)
    if isinstance(value, Symbol):
        return plain(value)
    if depth > 6 or type(value) in PLAIN:
        return value if hashable(value) else id(value)
    if isinstance(value, dict):
        return tuple((k, deep(v, depth + 1)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(deep(v, depth + 1) for v in value)
    state = getattr(value, "__dict__", None)
    if state is None or is_code(value) or "onfig" in type(value).__name__:
        return id(value)
    return tuple((k, deep(v, depth + 1)) for k, v in state.items())


def imprint(value: Any, depth: int = 0) -> Any:
    """What a container holds, by identity: tells whether it is still what it was."""
    if isinstance(value, torch.Tensor) or depth > 4:
        return id(value)
    if isinstance(value, dict):
        return tuple([(k, imprint(v, depth + 1)) for k, v in value.items()])
    if isinstance(value, list):
        return tuple([imprint(v, depth + 1) for v in list.__iter__(value)])
    if isinstance(value, tuple):
        if depth == 0 and not any(isinstance(v, (list, dict)) for v in value):
            return None  # cannot change
        return tuple([imprint(v, depth + 1) for v in value])
    state = getattr(value, "__dict__", None)
    if state is None or isinstance(value, Symbol) or is_code(value):
        return id(value)
    return tuple([(k, imprint(v, depth + 1)) for k, v in state.items()])


def tensors_in(value: Any, found: list | None = None, depth: int = 0) -> list:
    """Every tensor inside a value, in order."""
    if found is None:
        found = []
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif depth > 8 or type(value) in PLAIN:
        pass
    elif isinstance(value, tuple):
        for item in value:
            tensors_in(item, found, depth + 1)
    elif isinstance(value, list):
        for item in list.__iter__(value):
            tensors_in(item, found, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            tensors_in(item, found, depth + 1)
    elif hasattr(value, "__dict__") and not is_code(value):
        for item in list(vars(value).values()):
            tensors_in(item, found, depth + 1)
    return found


def worth(value: Any, depth: int = 0) -> bool:
    """Whether a part of a result gets a node of its own."""
    if isinstance(value, (torch.Tensor, torch.Size, Symbol)):
        return True
    kind = type(value)
    if kind is int or kind is float:
        return True
    if kind in PLAIN:
        return False
    if depth > 5:
        return False
    if isinstance(value, (tuple, list)):
        return any(worth(v, depth + 1) for v in value)
    if isinstance(value, dict):
        return any(worth(v, depth + 1) for v in value.values())
    return hasattr(value, "__dict__") and not is_code(value) and bool(tensors_in(value))


def tracked(value: Any, depth: int = 0) -> bool:
    """Whether a value holds anything of the run: a tensor or a tracked number."""
    if isinstance(value, (torch.Tensor, Symbol)):
        return True
    if depth > 4 or type(value) in PLAIN:
        return False
    if isinstance(value, dict):
        return any(tracked(v, depth + 1) for v in value.values())
    if isinstance(value, (tuple, list)):
        return any(tracked(v, depth + 1) for v in value)
    return hasattr(value, "__dict__") and not is_code(value) and bool(tensors_in(value))


def calls_back(value: Any, depth: int = 0) -> bool:
    """Whether a value holds modules or functions, through which more could be recorded."""
    if isinstance(value, torch.Tensor) or depth > 3 or type(value) in PLAIN:
        return False
    if isinstance(value, dict):
        return any(calls_back(v, depth + 1) for v in value.values())
    if isinstance(value, (tuple, list)):
        return any(calls_back(v, depth + 1) for v in value)
    return not isinstance(value, type) and (callable(value) or inspect.isgenerator(value))


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """The same values under a new identity."""
    try:
        with no_subclass():
            return torch.ops.aten.alias(tensor) if not tensor.is_quantized else tensor.detach()
    except (RuntimeError, NotImplementedError):  # layouts without views keep their identity
        return tensor


_names: dict[Any, str] = {}


def facts(tensor: torch.Tensor) -> Tensor:
    """What is kept of a tensor of the run."""
    dtype = tensor.dtype
    kind = _names.get(dtype)
    if kind is None:
        kind = _names[dtype] = str(dtype).removeprefix("torch.")
    device = tensor.device
    where = _names.get(device)
    if where is None:
        where = _names[device] = str(device)
    try:
        shape = tuple(map(int, tensor.shape))
    except (RuntimeError, TypeError):  # nested tensors have no one shape
        shape = ()
    return Tensor(shape, kind, where, tensor.requires_grad)


_signatures: dict[Any, tuple | None] = {}


def parameters(module: nn.Module, args: list, kwargs: dict) -> list[tuple[str, int | str]]:
    """For each argument that was passed: the name of the forward's parameter, and its place."""
    forward = module.__dict__.get("forward") or type(module).forward
    key = getattr(forward, "__func__", forward)
    try:
        known = _signatures.get(key, 0)
    except TypeError:
        known = 0
    if known == 0:
        try:
            found = [p for i, p in enumerate(inspect.signature(module.forward).parameters.values())]
        except (TypeError, ValueError):
            found = None
        known = found
        try:
            _signatures[key] = known
        except TypeError:
            pass
    result: list[tuple[str, int | str]] = []
    positional = [p for p in known or () if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variable = next((p.name for p in known or () if p.kind == p.VAR_POSITIONAL), "args")
    for i in range(len(args)):
        if i < len(positional):
            result.append((positional[i].name, i))
        else:
            result.append((f"{variable}_{i - len(positional)}", i))
    result.extend((name, name) for name in kwargs)
    return result
