"""The structural copy: new module objects on the same weights, so that surgery never meets the person's own."""

from __future__ import annotations

import collections
import copy
import copyreg
import enum
import functools
import logging
import re
import types
import weakref
from collections.abc import Collection
from typing import Any

import torch
import torch.fx
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin

from ..errors import CaptureError

# Buffers are cloned, since a forward in train mode writes into them. Quantised models keep whole
# weights there, so beyond this many bytes they are shared, and watched like the parameters.
BUFFER_BUDGET = 256 << 20
_SMALL = 1 << 20  # bytes up to which unregistered tensors and arrays are cloned

_ATOMIC = frozenset(
    {
        type(None), bool, int, float, complex, str, bytes, range, type, type(Ellipsis),
        types.BuiltinFunctionType, types.ModuleType, types.CodeType, types.GeneratorType,
        types.MappingProxyType, property, re.Pattern, logging.Logger, slice,
        torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size,
    }
)  # fmt: skip
_WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel")


def structural_copy(model: nn.Module) -> nn.Module:
    """Copy a model without its weights: every module is new, every parameter shares its storage.

    Parameters are new `nn.Parameter` objects on the same storage; buffers are cloned, up to 256 MiB
    in all. Ties, aliases, hooks, parametrizations and attributes stay as they were; closures and
    bound methods that reach into the model are pointed at the copy.

    Args:
        model: Any module. It is only read.

    Returns:
        A module of the same class, in the same modes, that computes the same.

    Raises:
        CaptureError: `model` is no module, or one that cannot be copied; the message says which.
    """
    return Copier(model).root


def storage_key(tensor: torch.Tensor) -> int | None:
    """What two tensors on the same memory have in common; ``None`` where there is no storage."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError, ValueError):  # sparse, wrapped, uninitialised
        return None


def tensor_names(model: nn.Module) -> dict[int, str]:
    """The first name of every parameter and buffer, by the identity of the tensor."""
    names: dict[int, str] = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        names.setdefault(id(tensor), name)
    return names


class Copier:
    """One structural copy and what is known of it.

    Attributes:
        root: The copy.
        shared: For each storage that copy and original share, the ids of the original's tensors.
        origin: Name in the original by the identity of the copy's tensor.
        paths: Path in the original by the identity of the copy's module.
        notes: What could not be copied and is shared, one sentence each.
    """

    def __init__(
        self, model: nn.Module, *, clone: Collection[int] = (), device: str | None = None
    ) -> None:
        """Copy `model`.

        Args:
            clone: Ids of tensors of the original that get memory of their own.
            device: ``"meta"`` makes all tensors anew there, without memory.
        """
        if not isinstance(model, nn.Module):
            raise CaptureError(
                f"a model must be a torch.nn.Module; this is {type(model).__name__}: wrap it in one"
            )
        self._clone, self._device = clone, device
        self._memo: dict[int, Any] = {}
        self._keep: list[Any] = []  # what the memo's ids stand for must stay alive
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._names = tensor_names(model)
        self._buffers = self._affordable(model)
        self._sharers = collections.Counter(
            storage_key(t) for t in (*model.parameters(), *model.buffers())
        )
        self.shared: dict[int, list[int]] = {}
        self.origin: dict[int, str] = {}
        self.notes: list[str] = []
        try:
            self.root: nn.Module = self.value(model)
        except RecursionError:
            raise CaptureError(
                f"{type(model).__name__} holds objects nested too deeply to copy: "
                "detach what is not needed to run it"
            ) from None
        self.paths: dict[int, str] = {
            id(self._memo[id(module)]): path
            for path, module in model.named_modules()
            if id(module) in self._memo
        }

    @staticmethod
    def _affordable(model: nn.Module) -> set[int]:
        """Ids of the buffers that are cloned: the smallest first, until the budget is spent."""
        chosen, spent = set(), 0
        for buffer in sorted(model.buffers(), key=_nbytes):
            spent += _nbytes(buffer)
            if spent > BUFFER_BUDGET:
                break
            chosen.add(id(buffer))
        return chosen

    def value(self, old: Any) -> Any:
        """The counterpart of any value: modules and tensors of the copy for those of the original."""
        kind = type(old)
        if kind in _ATOMIC:
            return old
        if id(old) in self._memo:
            return self._memo[id(old)]
        if isinstance(old, torch.Tensor):
            return self._remember(old, self._tensor(old))
        if isinstance(old, nn.Module):
            return self._module(old)
        if kind in (list, dict, collections.OrderedDict, collections.defaultdict):
            return self._container(old, kind)
        if kind in (tuple, set, frozenset, collections.deque) or hasattr(kind, "_fields"):
            return self._sequence(old, kind)
        if kind is types.FunctionType:
            return self._function(old)
        if kind is types.MethodType:
            return self._remember(old, types.MethodType(old.__func__, self.value(old.__self__)))
        if kind is functools.partial:
            made = functools.partial(
                self.value(old.func), *self.value(old.args), **self.value(old.keywords)
            )
            return self._remember(old, made)
        if kind is weakref.ReferenceType:
            target = old()
            made = weakref.ref(self.value(target)) if isinstance(target, nn.Module) else old
            return self._remember(old, made)
        return self._object(old, kind)

    def _remember(self, old: Any, new: Any) -> Any:
        self._memo[id(old)] = new
        self._keep.append(old)
        return new

    # --- modules ---------------------------------------------------------------------------------

    def _module(self, old: nn.Module) -> nn.Module:
        if isinstance(old, torch.jit.ScriptModule):
            return self._remember(old, self._scripted(old))
        cls = type(old)
        if cls.__name__ in _WRAPPERS and cls.__module__.startswith("torch."):
            raise CaptureError(f"{cls.__name__} cannot be copied: pass the module inside it")
        if hasattr(old, "_orig_mod") and cls.__name__ == "OptimizedModule":
            # its __dict__ holds a compiled call of the original: rebuilt from the state it pickles
            new = self._remember(old, object.__new__(cls))
            new.__setstate__({k: self.value(v) for k, v in old.__getstate__().items()})
            return new
        try:
            new = object.__new__(_own_class(old))
        except TypeError as error:
            raise CaptureError(f"{cls.__name__} cannot be copied: {error}") from None
        self._remember(old, new)
        new.__dict__.update({name: self.value(attr) for name, attr in old.__dict__.items()})
        for slot in copyreg._slotnames(cls):  # type: ignore[attr-defined]
            if hasattr(old, slot):
                object.__setattr__(new, slot, self.value(getattr(old, slot)))
        return new

    def _scripted(self, old: torch.jit.ScriptModule) -> nn.Module:
        """A scripted module as a shell on the same parameters, with buffers of its own."""
        new = copy.copy(old)
        for name, tensor in (*_direct(old.named_parameters), *_direct(old.named_buffers)):
            data = tensor.detach().to(self._device or tensor.device)
            if isinstance(tensor, nn.Parameter):
                self._share(tensor, data)
                data = nn.Parameter(data, requires_grad=tensor.requires_grad)
            else:
                data = data.clone()
            setattr(new, name, data)
            if id(tensor) in self._names:
                self.origin[id(data)] = self._names[id(tensor)]
        for name, child in old.named_children():
            setattr(new, name, self.value(child))
        return new

    # --- tensors ---------------------------------------------------------------------------------

    def _tensor(self, old: torch.Tensor) -> torch.Tensor:
        new = self._data(old)
        if isinstance(old, UninitializedTensorMixin):
            pass
        elif isinstance(old, nn.Parameter):
            if type(new) in (torch.Tensor, nn.Parameter, type(old)) and type(old) is nn.Parameter:
                new = nn.Parameter(new, requires_grad=old.requires_grad)
            elif isinstance(old, nn.Parameter) and type(old).__mro__[1] is nn.Parameter:
                new = torch.Tensor._make_subclass(type(old), new, old.requires_grad)
            else:  # wrapper subclasses: detach() kept the class
                new = new.requires_grad_(old.requires_grad)
                new._is_param = True
        elif old.requires_grad and not new.requires_grad:
            new.requires_grad_(True)
        if extra := {k: v for k, v in vars(old).items() if k != "_is_param"}:
            for key, item in extra.items():
                setattr(new, key, self.value(item))
        if id(old) in self._names:
            self.origin[id(new)] = self._names[id(old)]
        return new

    def _data(self, old: torch.Tensor) -> torch.Tensor:
        """Memory for a counterpart: shared, cloned, or on the meta device."""
        if isinstance(old, UninitializedTensorMixin):
            where = {"device": self._device or old.device, "dtype": old.dtype}
            if isinstance(old, nn.Parameter):
                return type(old)(requires_grad=old.requires_grad, **where)
            return type(old)(**where)
        data = old.detach()
        if self._device is not None:
            return data.to(self._device)
        registered = id(old) in self._names
        own = id(old) in self._clone or (
            id(old) in self._buffers
            if registered
            else not isinstance(old, nn.Parameter) and _nbytes(old) <= _SMALL
        )
        if own:
            return self._cloned(old, data)
        self._share(old, data)
        return data

    def _cloned(self, old: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
        """A clone; tensors on one storage (ties, views) get clones on one storage."""
        key = storage_key(old)
        if key is None or self._sharers[key] < 2 or type(data) not in (torch.Tensor, nn.Parameter):
            return data.clone()
        if key not in self._storages:
            self._storages[key] = data.untyped_storage().clone()
        made = torch.empty(0, dtype=old.dtype, device=old.device)
        return made.set_(self._storages[key], old.storage_offset(), old.size(), old.stride())

    def _share(self, old: torch.Tensor, data: torch.Tensor) -> None:
        key = storage_key(data)
        if key is not None:
            self.shared.setdefault(key, []).append(id(old))

    # --- everything else -------------------------------------------------------------------------

    def _container(self, old: Any, kind: type) -> Any:
        if kind is list:
            new: Any = self._remember(old, [])
            new.extend(self.value(item) for item in old)
            return new
        new = self._remember(
            old, kind(old.default_factory) if kind is collections.defaultdict else kind()
        )
        for key, item in old.items():
            new[self.value(key)] = self.value(item)
        return new

    def _sequence(self, old: Any, kind: type) -> Any:
        items = [self.value(item) for item in old]
        if all(a is b for a, b in zip(items, old)) and kind in (tuple, frozenset):
            return old
        if hasattr(kind, "_fields"):
            return self._remember(old, kind._make(items))
        if kind is collections.deque:
            return self._remember(old, kind(items, old.maxlen))
        return self._remember(old, kind(items))

    def _function(self, old: types.FunctionType) -> types.FunctionType:
        """The function itself, or, where its closure reaches into the model, one on the copy."""
        linked = [cell for cell in old.__closure__ or () if _linked(_content(cell))]
        defaults = [d for d in old.__defaults__ or () if _linked(d)]
        if not linked and not defaults:
            return old
        fresh = {id(cell): types.CellType() for cell in linked}  # by id: cells compare contents
        cells = tuple(fresh.get(id(cell), cell) for cell in old.__closure__ or ())
        new = types.FunctionType(old.__code__, old.__globals__, old.__name__, None, cells or None)
        self._remember(old, new)
        new.__dict__.update(old.__dict__)
        new.__qualname__, new.__module__ = old.__qualname__, old.__module__
        new.__defaults__ = self.value(old.__defaults__)
        new.__kwdefaults__ = self.value(old.__kwdefaults__)
        for cell in linked:
            fresh[id(cell)].cell_contents = self.value(cell.cell_contents)
        return new

    def _object(self, old: Any, kind: type) -> Any:
        """A plain object with its attributes copied; what refuses is shared and noted."""
        if isinstance(old, (type, enum.Enum, torch.ScriptObject)) or callable(
            getattr(old, "acquire", None)
        ):
            return old
        if isinstance(old, torch.Generator):
            made = torch.Generator(old.device)
            made.set_state(old.get_state())
            return self._remember(old, made)
        if getattr(old, "nbytes", 0) > _SMALL and hasattr(old, "__array__"):
            return old
        if _plain(kind):
            new = self._remember(old, object.__new__(kind))
            new.__dict__.update({k: self.value(v) for k, v in old.__dict__.items()})
            for slot in copyreg._slotnames(kind):  # type: ignore[attr-defined]
                if hasattr(old, slot):
                    object.__setattr__(new, slot, self.value(getattr(old, slot)))
            return new
        try:
            return self._remember(old, copy.deepcopy(old, self._memo))
        except Exception as error:  # noqa: BLE001  a file, a handle: any error of any library
            self.notes.append(
                f"an attribute of type {kind.__name__} cannot be copied and is shared "
                f"({type(error).__name__})"
            )
            return self._remember(old, old)


def _direct(listing) -> list[tuple[str, torch.Tensor]]:
    """The tensors of one module alone, in full before anything is set."""
    return list(listing(recurse=False))


def _nbytes(tensor: torch.Tensor) -> int:
    try:
        return tensor.nbytes
    except (RuntimeError, NotImplementedError, ValueError):
        return 0


def _own_class(module: nn.Module) -> type:
    """The class for a copy: a class that belongs to one instance alone is made anew."""
    cls = type(module)
    if "parametrizations" in module._modules and "__deepcopy__" in vars(cls):
        space = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        return type(cls.__name__, cls.__bases__, space)
    if isinstance(module, torch.fx.GraphModule):  # recompile() writes the forward into the class
        return type(cls.__name__, (cls,), {"__module__": cls.__module__})
    return cls


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return None


def _linked(value: Any, depth: int = 0) -> bool:
    """Whether a value leads to a module or tensor by a path that a copy follows."""
    if isinstance(value, (nn.Module, torch.Tensor)):
        return True
    if depth > 3:
        return False
    if type(value) in (list, tuple):
        return any(_linked(item, depth + 1) for item in value)
    if type(value) is dict:
        return any(_linked(item, depth + 1) for item in value.values())
    if isinstance(value, types.MethodType):
        return _linked(value.__self__, depth + 1)
    if isinstance(value, functools.partial):
        return _linked((value.func, value.args, value.keywords), depth + 1)
    if isinstance(value, types.FunctionType):
        inner = (*map(_content, value.__closure__ or ()), *(value.__defaults__ or ()))
        return _linked(inner, depth + 1)
    return False


@functools.lru_cache(maxsize=1024)
def _plain(kind: type) -> bool:
    """Whether instances are made of their attributes alone: no protocol of their own to follow."""
    own = ("__deepcopy__", "__copy__", "__reduce__", "__getnewargs__", "__getnewargs_ex__")
    return (
        kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and not any(name in vars(c) for c in kind.__mro__[:-1] for name in own)
        and getattr(kind, "__getstate__", None) is getattr(object, "__getstate__", None)
        and not hasattr(kind, "__setstate__")
        and all(c.__flags__ & (1 << 9) for c in kind.__mro__[:-1])  # every class is a Python one
        and "__dict__" in dir(kind)
    )
