"""What each torch function is to the recording: skipped, an operator, a method, a decision."""

from __future__ import annotations

import operator
import re
from typing import Any

import torch
from torch import nn

_UNRECORDED = """
element_size get_device dense_dim sparse_dim _version is_floating_point is_complex
is_contiguous has_names __hash__ __repr__ __format__ __str__ __dir__ is_tensor layout
requires_grad is_cuda is_cpu is_meta is_mps is_xpu is_sparse is_quantized is_leaf names name grad_fn
itemsize is_nested is_inference is_neg is_conj _is_view type qscheme __class__ output_nr
_backward_hooks is_mkldnn is_signed is_same_size is_set_to is_pinned is_coalesced data_ptr
untyped_storage storage_offset __dlpack__ __dlpack_device__ q_scale q_zero_point storage
_typed_storage is_shared __reduce_ex__ __deepcopy__ _has_symbolic_sizes_strides is_sparse_csr
_set_grad_enabled is_storage set_default_dtype get_default_dtype retain_grad register_hook
_use_count _grad _base is_vulkan is_ipu is_maia is_mtia
"""
_DECISIONS = "__bool__ __int__ __index__ __float__ __complex__ item tolist numpy __array__"
_SKIP = frozenset(_UNRECORDED.split())
_DECIDE = frozenset(_DECISIONS.split())
_OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "true_divide": operator.truediv, "pow": operator.pow, "matmul": operator.matmul,
    "remainder": operator.mod, "floor_divide": operator.floordiv, "neg": operator.neg,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "bitwise_not": operator.invert,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "add_": operator.iadd, "sub_": operator.isub, "mul_": operator.imul,
    "div_": operator.itruediv, "floor_divide_": operator.ifloordiv, "remainder_": operator.imod,
    "pow_": operator.ipow, "matmul_": operator.imatmul,
}  # fmt: skip
_DUNDERS = {
    "__add__": operator.add, "__sub__": operator.sub, "__mul__": operator.mul,
    "__truediv__": operator.truediv, "__div__": operator.truediv,
    "__floordiv__": operator.floordiv, "__mod__": operator.mod, "__pow__": operator.pow,
    "__matmul__": operator.matmul, "__and__": operator.and_, "__or__": operator.or_,
    "__xor__": operator.xor, "__lshift__": operator.lshift, "__rshift__": operator.rshift,
    "__lt__": operator.lt, "__le__": operator.le, "__gt__": operator.gt, "__ge__": operator.ge,
    "__eq__": operator.eq, "__ne__": operator.ne, "__neg__": operator.neg,
    "__invert__": operator.invert, "__getitem__": operator.getitem,
    "__setitem__": operator.setitem, "__iadd__": operator.iadd, "__isub__": operator.isub,
    "__imul__": operator.imul, "__itruediv__": operator.itruediv, "__idiv__": operator.itruediv,
    "__ifloordiv__": operator.ifloordiv, "__imod__": operator.imod, "__ipow__": operator.ipow,
    "__iand__": operator.iand, "__ior__": operator.ior, "__ixor__": operator.ixor,
    "__ilshift__": operator.ilshift, "__irshift__": operator.irshift, "__abs__": abs,
    "__len__": len,
}  # fmt: skip
_SWAPPED = {
    "__radd__": operator.add, "__rsub__": operator.sub, "__rmul__": operator.mul,
    "__rtruediv__": operator.truediv, "__rdiv__": operator.truediv,
    "__rfloordiv__": operator.floordiv, "__rpow__": operator.pow, "__rmatmul__": operator.matmul,
    "__rmod__": operator.mod, "__rand__": operator.and_, "__ror__": operator.or_,
    "__rxor__": operator.xor, "__rlshift__": operator.lshift, "__rrshift__": operator.rshift,
}  # fmt: skip
_MEASURES = frozenset({"size", "stride", "numel", "nelement", "dim", "ndimension"})
_SIZES = frozenset({"shape", "device", "ndim"})


# Products of tensors: what is noted of functions that are kept whole.
PRODUCTS = frozenset(
    {
        "matmul", "__matmul__", "mm", "bmm", "mv", "dot", "linear", "addmm", "baddbmm", "addbmm",
        "addmv", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d", "scaled_dot_product_attention", "einsum",
        "multi_head_attention_forward",
    }
)  # fmt: skip


def snake(name: str) -> str:
    """A function's name as torch.fx spells it in node names."""
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    chars = []
    previous_lower = False
    for c in name:
        if c.isupper() and previous_lower:
            chars.append("_")
        chars.append(c.lower())
        previous_lower = c.islower()
    name = "".join(chars)
    return re.sub(r"_[0-9]+$", "", name) or name


class Plan:
    """How one torch function is recorded."""

    __slots__ = (
        "always", "base", "glue", "inplace", "kind", "name", "operator", "operator_base", "setter",
        "skip",         "swapped", "target",
    )  # fmt: skip

    def __init__(self, kind: str, name: str, target: Any):
        self.kind, self.name, self.target = kind, name, target
        self.base = snake(name)
        self.operator = self.operator_base = None
        self.always = self.swapped = self.glue = self.setter = self.skip = False
        self.inplace = (name.endswith("_") and not name.endswith("__")) or name == "setattr"


def _by_identity() -> dict[int, tuple[str, Any]]:
    table: dict[int, tuple[str, Any]] = {}
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name, None)
        if callable(value) and not isinstance(value, type):
            table.setdefault(id(value), (name, value))
    return table


_methods = _by_identity()
_plans: dict[Any, Plan] = {}


def plan(function) -> Plan:
    """The plan for a function, made once."""
    found = _plans.get(function)
    if found is None:
        found = _plans[function] = _make(function)
    return found


def _make(function) -> Plan:
    name = getattr(function, "__name__", None) or type(function).__name__
    if name in ("__get__", "__set__", "__delete__") and hasattr(function, "__self__"):
        attribute = getattr(function.__self__, "__name__", "")
        if name == "__get__":
            kind = "size" if attribute in _SIZES else "read"
            made = Plan("dtype" if attribute == "dtype" else kind, attribute, attribute)
            made.skip = attribute in _SKIP or attribute == "grad"
        else:
            made = Plan("function", "setattr", attribute)
            made.setter = True
        return made
    method = _methods.get(id(function))
    is_method = method is not None and method[1] is function
    if is_method:
        name = method[0]  # wrapped dunders report another name: Tensor.__pow__ says "pow"
    elif getattr(torch.Tensor, name, None) is not None:
        own = getattr(torch._C.TensorBase, name, None)
        is_method = own is not None and _same(own, function)
    if name in _SKIP:
        made = Plan("function", name, function)
        made.skip = True
        return made
    if is_method and name in _DECIDE:
        return Plan("decide", name, name)
    if is_method and (name in _DUNDERS or name in _SWAPPED):
        made = Plan("function", name, function)
        made.operator = _DUNDERS.get(name) or _SWAPPED[name]
        made.always, made.swapped = True, name in _SWAPPED
    elif is_method:
        made = Plan("method", name, name)
        made.operator = _OPERATORS.get(name)
        made.glue = name in _MEASURES
    else:
        made = Plan("function", name, function)
    if made.operator is not None:
        base = made.operator.__name__
        made.inplace = base in _INPLACE or base == "setitem"
        if base in _INPLACE:  # ``out += x`` reads as an addition
            base = base[1:]
        made.operator_base = snake(base)
    return made


_INPLACE = frozenset(
    f.__name__ for f in [*_OPERATORS.values(), *_DUNDERS.values()]
    if f.__name__.startswith("i") and f.__name__ not in ("invert",)
)  # fmt: skip


def _same(a, b) -> bool:
    try:
        return bool(a is b or a == b)
    except (TypeError, ValueError, RuntimeError):
        return False


_leaf: dict[type, bool] = {}


def is_leaf(module: nn.Module) -> bool:
    """Whether a module stays one node: a layer of torch itself.

    Sequential, and layers of torch that are made of other modules (TransformerEncoderLayer), are
    opened; attention and recurrent layers are not.
    """
    kind = type(module)
    known = _leaf.get(kind)
    if known is not None:
        return known
    if isinstance(module, torch.jit.ScriptModule):
        result = True
    elif (
        not kind.__module__.startswith(("torch.nn", "torch.ao."))
        or isinstance(module, (nn.Sequential, nn.DataParallel))
        or kind.__name__.startswith("Transformer")
    ):
        result = False
    else:
        result = "parallel" not in kind.__module__
    _leaf[kind] = result
    return result
