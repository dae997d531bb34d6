"""Outputs of any structure: what they look like, and how far two of them are apart."""

from __future__ import annotations

import copy
import dataclasses
import math
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

_TOLERANCE = {
    torch.float64: 1e-9,
    torch.complex128: 1e-9,
    torch.float32: 1e-5,
    torch.complex64: 1e-5,
}
_SKIP = (types.FunctionType, types.MethodType, types.ModuleType, torch.nn.Module, type)


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far one output is from another.

    Attributes:
        max_abs: The largest absolute difference of two numbers; infinite where the structures differ.
        where: Where it is: ``"['c2'][0]"``; empty for a bare tensor.
        problem: What differs in structure, type or shape; ``None`` where only numbers do.
        relative: The largest difference as a share of the largest number compared with.
        tolerance: The share up to which round-off explains a difference.
        numbers: How many numbers were compared; with none, equality says nothing.
    """

    max_abs: float = 0.0
    where: str = ""
    problem: str | None = None
    relative: float = 0.0
    tolerance: float = 1e-5
    numbers: int = 0

    @property
    def equal(self) -> bool:
        """Equal bit for bit (NaN equals NaN)."""
        return self.problem is None and self.max_abs == 0

    @property
    def close(self) -> bool:
        """Equal but for round-off, as another kernel or order of summing leaves it."""
        return self.problem is None and self.relative <= self.tolerance

    def __str__(self) -> str:
        at = f" at {self.where}" if self.where else ""
        if self.problem:
            return self.problem + at
        return "no difference" if self.equal else f"a difference of up to {self.max_abs:.3g}{at}"


def children(value: Any) -> list[tuple[str, Any]] | None:
    """The parts of a container with their access paths; ``None`` for a leaf."""
    if isinstance(value, torch.Tensor) or value is None or isinstance(value, _SKIP):
        return None
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        if hasattr(value, "_fields"):
            return [(f".{name}", item) for name, item in zip(value._fields, value)]
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    if dataclasses.is_dataclass(value):
        return [(f".{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    if hasattr(value, "__dict__") and not callable(value):
        return [(f".{name}", item) for name, item in vars(value).items()]
    return None


def leaves(value: Any, path: str = "", _seen: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every leaf of an output with its access path, in order."""
    parts = children(value)
    if parts is None or id(value) in _seen:
        yield path, value
        return
    for step, item in parts:
        yield from leaves(item, path + step, (*_seen, id(value)))


def tensors(value: Any) -> list[torch.Tensor]:
    """Every tensor of an output, in order."""
    return [leaf for _, leaf in leaves(value) if isinstance(leaf, torch.Tensor)]


def mapped(
    value: Any, change: Callable[[torch.Tensor], Any], other: Callable[[Any], Any] = lambda v: v
) -> Any:
    """The same structure with every tensor changed, and every other leaf by `other`."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        items = [mapped(item, change, other) for item in value]
        return type(value)._make(items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [mapped(item, change, other) for item in value]
    if isinstance(value, dict):
        made = {key: mapped(item, change, other) for key, item in value.items()}
        return made if type(value) is dict else type(value)(made)
    return other(value)


def changed(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The same structure with every tensor changed, also those that an object such as a cache holds."""

    def inside(leaf: Any) -> Any:
        held = tensors(leaf) if children(leaf) else []
        try:
            return copy.deepcopy(leaf, {id(t): change(t) for t in held}) if held else leaf
        except Exception:  # noqa: BLE001  it cannot be copied: it stays as it is
            return leaf

    return mapped(value, change, inside)


def cloned(value: Any) -> Any:
    """The same structure with every tensor cloned, and plain objects that a run could fill copied."""
    return mapped(
        value,
        lambda t: t.detach().clone().requires_grad_(t.requires_grad and t.is_leaf),
        _copied,
    )


def _copied(value: Any) -> Any:
    """A copy of an object such as a cache; itself where it has no parts or cannot be copied."""
    if not children(value):
        return value
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  locks, generators, tensors inside a graph: shared then
        return value


def difference(new: Any, old: Any, *, tensors_only: bool = False) -> Difference:
    """Compare two outputs of any structure: tensors, tuples, dicts, dataclasses, plain objects.

    Types of containers are not compared, their parts are: a model may come back with a dict where it
    had a subclass.

    Args:
        tensors_only: Leaves out plain values, such as the flags that a cache keeps for itself.

    Returns:
        The first difference in structure, shape or dtype, else the largest difference of numbers.
    """
    if tensors_only:
        new, old = (
            {path: leaf for path, leaf in leaves(value) if isinstance(leaf, torch.Tensor)}
            for value in (new, old)
        )
        found = _difference(new, old, "", ())
        at = next((path for path in new if f"[{path!r}]" == found.where), found.where)
        return dataclasses.replace(found, where=at)
    return _difference(new, old, "", ())


def _difference(new: Any, old: Any, path: str, seen: tuple[int, ...]) -> Difference:
    if isinstance(new, torch.Tensor) and isinstance(old, torch.Tensor):
        return _tensors(new, old, path)
    mine, theirs = children(new), children(old)
    if mine is None or theirs is None:
        same = new is old or (type(new) is type(old) and _equal(new, old))
        if same or (callable(new) and callable(old)):
            return Difference(where=path, numbers=int(isinstance(new, (int, float, complex))))
        if isinstance(new, (int, float)) and isinstance(old, (int, float)):
            apart = abs(new - old)
            return Difference(apart, path, None, apart / (abs(old) or 1), numbers=1)
        return Difference(math.inf, path, f"{brief(new)} in place of {brief(old)}")
    if id(new) in seen:
        return Difference(where=path)
    keys, others = [k for k, _ in mine], [k for k, _ in theirs]
    if keys != others:
        extra = [k for k in keys if k not in others] or [k for k in others if k not in keys] or keys
        return Difference(
            math.inf, path, f"{len(keys)} parts in place of {len(others)} ({extra[0]} first)"
        )
    worst, numbers = Difference(), 0
    for (step, a), (_, b) in zip(mine, theirs):
        found = _difference(a, b, path + step, (*seen, id(new)))
        if found.problem:
            return found
        numbers += found.numbers
        if found.relative > worst.relative or found.max_abs > worst.max_abs:
            worst = found
    return dataclasses.replace(worst, numbers=numbers)


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b) or (math.isnan(a) and math.isnan(b))
    except (TypeError, ValueError, RuntimeError):  # arrays and the like: no single truth
        return False


def _tensors(new: torch.Tensor, old: torch.Tensor, path: str) -> Difference:
    for what in ("shape", "dtype", "device"):
        a, b = getattr(new, what), getattr(old, what)
        if a != b:
            a, b = (tuple(a), tuple(b)) if what == "shape" else (a, b)
            return Difference(math.inf, path, f"{what} {a} in place of {b}")
    if new.is_meta or not new.numel():
        return Difference(where=path, numbers=new.numel())
    new, old = new.detach(), old.detach()
    if new.is_sparse or new.layout is not torch.strided:
        new, old = new.to_dense(), old.to_dense()
    if new.is_quantized:
        new, old = new.dequantize(), old.dequantize()
    if torch.equal(new, old):
        return Difference(where=path, numbers=new.numel())
    wide = torch.complex128 if new.is_complex() else torch.float64
    tolerance = _TOLERANCE.get(new.dtype, 2e-2 if new.is_floating_point() else 0.0)
    a, b = new.to(wide), old.to(wide)
    apart = (a - b).abs()
    apart[(a == b) | (a.isnan() & b.isnan())] = 0  # inf - inf and NaN
    largest = float(apart.nan_to_num(math.inf).max())
    scale = float(b.abs().nan_to_num(0, 0).max()) or 1.0
    return Difference(largest, path, None, largest / scale, tolerance, new.numel())


# --- in words --------------------------------------------------------------------------------------


def brief(value: Any) -> str:
    """One leaf in a few characters."""
    if isinstance(value, torch.Tensor):
        return str(tuple(value.shape))
    if value is None or isinstance(value, (int, float, bool)):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 20 else value[:17] + "…")
    return type(value).__name__


def shapes(value: Any, limit: int = 6, _inside: bool = False) -> str:
    """The shapes of an output in its own structure: ``{'c2': (2, 256, 56, 56), …}``.

    An object within an object, a cache in the output of a language model, is its class's name.
    """
    parts = children(value)
    if parts is None:
        return brief(value)
    plain = type(value) in (tuple, list, dict) or hasattr(value, "_fields")
    if _inside and not plain:
        return type(value).__name__
    inside = _inside or not plain
    if type(value) is tuple:
        inner, ends = [shapes(item, limit, inside) for _, item in parts], "()"
    elif type(value) is list:
        inner, ends = [shapes(item, limit, inside) for _, item in parts], "[]"
    elif type(value) is dict:
        inner, ends = [f"{k[1:-1]}: {shapes(item, limit, inside)}" for k, item in parts], "{}"
    else:  # objects: what is None was not asked for
        kept = [(k.strip(".[]'"), item) for k, item in parts if item is not None]
        inner = [f"{k}={shapes(item, limit, inside)}" for k, item in kept]
        ends = f"{type(value).__name__}()"
    if len(inner) > limit:
        inner = [*inner[: limit - 1], f"… {len(inner)} in all"]
    tail = "," if ends == "()" and len(inner) == 1 else ""
    return f"{ends[:-1]}{', '.join(inner)}{tail}{ends[-1]}"
