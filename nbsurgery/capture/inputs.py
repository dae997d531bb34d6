"""What a model is called with: checked before the run, made from a size, told after a failure."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from nbsurgery.errors import CaptureError, an


def check(model: Any, args: tuple, kwargs: Mapping[str, Any]) -> None:
    """Refuse what cannot be captured, in words.

    Raises:
        CaptureError: not a module, a class in place of an instance, a ScriptModule, a lazy module
            not yet materialised, or arguments that its forward does not take.
    """
    if isinstance(model, type):
        raise CaptureError(
            f"capture needs a model, not the class {model.__name__}: "
            f"make one first, for example {model.__name__}()"
        )
    if not isinstance(model, nn.Module):
        raise CaptureError(
            f"capture needs a torch.nn.Module, not {_kind(model)}; "
            "wrap a function in a small module whose forward calls it"
        )
    if isinstance(model, torch.jit.ScriptModule):
        raise CaptureError(
            "this model is a ScriptModule: its forward is compiled TorchScript that Python never "
            "runs, so nothing of it can be seen or edited; pass the Python model from before "
            "torch.jit"
        )
    lazy = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.modules.lazy.LazyModuleMixin) and module.has_uninitialized_params()
    ]
    if lazy:
        raise CaptureError(
            f"{type(model).__name__} has lazy layers without weights ({', '.join(lazy[:3])}): "
            "capturing would decide their sizes; run the model once on real inputs first"
        )
    for name, value in [*enumerate(args), *kwargs.items()]:
        if inspect.isgenerator(value):
            raise CaptureError(
                f"argument {name!r} is a generator, which a run would use up: "
                "pass a list or a tuple"
            )
    signature = _signature(model)
    if signature is not None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise CaptureError(
                f"{type(model).__name__}.forward takes ({_spell(signature)}) and was given "
                f"{_given(args, kwargs)}: {error}"
            ) from None


def _signature(model: nn.Module) -> inspect.Signature | None:
    try:
        return inspect.signature(model.forward)
    except (TypeError, ValueError):
        return None


def _spell(signature: inspect.Signature) -> str:
    parts = []
    for p in signature.parameters.values():
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        parts.append(text if p.default is p.empty else f"{text}={p.default!r}")
    return ", ".join(parts)


def _given(args: tuple, kwargs: Mapping[str, Any]) -> str:
    parts = [_kind(a) for a in args] + [f"{k}={_kind(v)}" for k, v in kwargs.items()]
    return "(" + ", ".join(parts) + ")" if parts else "no arguments"


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (int, float, str, bool, type(None))):
        return repr(value)
    return an(type(value).__name__)


def make(
    model: nn.Module,
    input_size: Sequence[int] | Sequence[Sequence[int]],
    dtypes: Sequence[torch.dtype] | None = None,
) -> tuple[torch.Tensor, ...]:
    """Example tensors of given sizes, on the model's device and of its dtype.

    Args:
        model: Its first floating-point parameter decides device and dtype.
        input_size: One shape with the batch axis, ``(1, 3, 224, 224)``, or a list of shapes.
        dtypes: One for each shape. Without it: the model's dtype, or indices (zeros of int64) where
            the model begins with an embedding.

    Returns:
        One tensor for each shape: normal random numbers from a generator of its own, so that the
        global random state stays.
    """
    sizes = [input_size] if _is_size(input_size) else input_size
    if not isinstance(sizes, (tuple, list)) or not sizes or not all(map(_is_size, sizes)):
        raise CaptureError(
            f"input_size={input_size!r} is no size: pass one with its batch axis, such as "
            "(1, 3, 224, 224), or a list of sizes"
        )
    weights = (*model.parameters(), *model.buffers())
    first = next((t for t in weights if t.is_floating_point()), None)
    device = first.device if first is not None else torch.device("cpu")
    dtype = first.dtype if first is not None else torch.get_default_dtype()
    if dtypes is None:
        dtypes = [torch.int64 if _takes_indices(model) else dtype] * len(sizes)
    if len(dtypes) != len(sizes):
        raise CaptureError(f"{len(sizes)} input sizes need {len(sizes)} dtypes, not {len(dtypes)}")
    generator = torch.Generator().manual_seed(0)
    made = []
    for size, kind in zip(sizes, dtypes, strict=True):
        if device.type == "meta":
            tensor = torch.empty(tuple(size), dtype=kind, device=device)
        elif kind.is_floating_point or kind.is_complex:
            tensor = torch.randn(tuple(size), generator=generator).to(kind)
        else:
            tensor = torch.zeros(tuple(size), dtype=kind)
        made.append(tensor.to(device))
    return tuple(made)


def _is_size(value: Any) -> bool:
    """A sequence of whole numbers, with at least one axis."""
    return (
        isinstance(value, (tuple, list))
        and len(value) > 0
        and all(type(n) is int and n >= 0 for n in value)
    )


def _takes_indices(model: nn.Module) -> bool:
    """Whether the first layer with weights looks up indices."""
    for module in model.modules():
        if any(p is not None for p in module._parameters.values()):
            return isinstance(module, (nn.Embedding, nn.EmbeddingBag))
    return False


def hint(model: nn.Module, tensors: list[torch.Tensor]) -> str:
    """To add to a failure: inputs on another device or of another dtype than the model."""
    places = {str(p.device) for p in model.parameters()}
    given = {str(t.device) for t in tensors}
    if places and given and not places & given and "meta" not in places:
        return f". The model is on {min(places)}, its inputs on {min(given)}: move one to the other"
    kinds = {_dtype(p) for p in model.parameters() if p.is_floating_point()}
    floats = {_dtype(t) for t in tensors if t.is_floating_point()}
    if kinds and floats and not kinds & floats:
        return f". The model's weights are {min(kinds)}, its inputs {min(floats)}: convert one"
    if kinds and tensors and not floats and not _takes_indices(model):
        whole = min(_dtype(t) for t in tensors)
        return f". The model's weights are {min(kinds)}, and no input is: it was given {whole}"
    return ""


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
