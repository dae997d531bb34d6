"""An edited model that does not run: which node, and what met there."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ..errors import ModelFailed, ShapeError, StepError
from ..graph import Graph
from .compare import tensors

_CHANNELS = {
    nn.modules.conv._ConvNd: "in_channels",
    nn.modules.batchnorm._NormBase: "num_features",
    nn.GroupNorm: "num_channels",
}
_FEATURES = {
    nn.Linear: "in_features",
    nn.RNNBase: "input_size",
    nn.RNNCellBase: "input_size",
    nn.MultiheadAttention: "embed_dim",
}
_AXES = {"1d": 3, "2d": 4, "3d": 5}


def explain(
    error: BaseException, modules: Sequence[nn.Module], graph: Graph | None = None
) -> StepError:
    """Say in one sentence where an edited model failed, and which shapes met there.

    Args:
        error: What its run, or its capture, raised.
        modules: The built model, or the parts of a split.
        graph: What was recorded up to the failure; taken from the error where it is `ModelFailed`.

    Returns:
        A `ShapeError` where shapes, types or devices did not fit, else a `StepError`; not raised yet.
    """
    if isinstance(error, ModelFailed):
        graph = graph or error.graph
        error = error.__cause__ or error
    said = " ".join(str(error).split()) or type(error).__name__
    names = {id(m): path for root in modules for path, m in root.named_modules()}
    frame, line, module = _innermost(error, names)
    node = None
    if graph is not None and graph.failure is not None:
        node = graph.by_id.get(graph.failure.node) if graph.failure.node else None
    if module is not None and type(module).__module__.startswith("torch.nn"):
        name = names[id(module)]
        if node is not None and node.kind == "module" and node.target == name:
            name = node.name
        given = _input(frame, module)
        if given is not None:
            return _leaf(name, module, given, said)
    misfit = isinstance(error, (RuntimeError, ValueError, IndexError, ModelFailed))
    misfit = misfit and not isinstance(error, NotImplementedError)
    if node is not None and graph.failure.shapes and misfit:
        met = " meets ".join(map(str, graph.failure.shapes))
        return ShapeError(f"{node.name} ({node.type}) cannot run: {met}; {said}")
    if frame is not None:
        path = names.get(id(module)) or "the model"
        where = f"{path} ({type(module).__name__})" if module is not None else path
        text = linecache.getline(frame.f_code.co_filename, line).strip()
        shapes = _shapes_in(text, frame)
        if shapes and misfit:
            met = " meets ".join(f"{n} {s}" for n, s in shapes)
            return ShapeError(f"{where} cannot run `{text}`: {met}; {said}")
        return StepError(f"{where} cannot run `{text}`: {type(error).__name__}: {said}")
    return StepError(f"the edited model cannot run: {type(error).__name__}: {said}")


def _leaf(name: str, module: nn.Module, given: torch.Tensor, said: str) -> StepError:
    """What a layer of torch expects and what it gets."""
    shape, kind = tuple(given.shape), type(module).__name__
    weight = next((p for p in module.parameters(recurse=False)), None)
    against = f": {shape} meets {_weight(module)}"
    if weight is not None and given.device != weight.device:
        return ShapeError(
            f"{name} is on {weight.device}, its input on {given.device}{against}; "
            f"make it with device={str(given.device)!r}"
        )
    indices = isinstance(module, (nn.Embedding, nn.EmbeddingBag))
    if weight is not None and given.dtype != weight.dtype and not indices:
        mine, theirs = (str(t.dtype).removeprefix("torch.") for t in (weight, given))
        return ShapeError(
            f"{name} holds {mine}, gets {theirs}{against}; make it with dtype=torch.{theirs}"
        )
    axes = _AXES.get(kind[-2:])
    if axes and len(shape) not in (axes, axes - 1):
        return ShapeError(f"{name} ({kind}) expects {axes} axes, gets {len(shape)}{against}")
    for table, axis, what in ((_FEATURES, -1, "features"), (_CHANNELS, None, "channels")):
        for cls, attribute in table.items():
            if isinstance(module, cls) and shape:
                at = axis or (1 if not axes or len(shape) == axes else 0)
                wanted, got = (
                    getattr(module, attribute),
                    shape[at] if len(shape) > abs(at) - 1 else 0,
                )
                if wanted != got:
                    return ShapeError(f"{name} expects {wanted} {what}, gets {got}{against}")
    if isinstance(module, nn.LayerNorm):
        wanted, got = tuple(module.normalized_shape), shape[-len(module.normalized_shape) :]
        if wanted != got:
            return ShapeError(f"{name} expects {wanted} at the end, gets {got}{against}")
    return ShapeError(f"{name or 'the model'} ({kind}) cannot work on {shape}: {said}")


def _weight(module: nn.Module) -> str:
    for name, parameter in module.named_parameters(recurse=False):
        return f"{name} {tuple(parameter.shape)}"
    return type(module).__name__


def _innermost(
    error: BaseException, names: dict[int, str]
) -> tuple[types.FrameType | None, int, nn.Module | None]:
    """The deepest frame that runs a method of one of the modules, else the deepest one of all."""
    found: tuple[types.FrameType | None, int, nn.Module | None] = (None, 0, None)
    trace = error.__traceback__
    while trace is not None:
        me = trace.tb_frame.f_locals.get("self")
        # Module.__call__ is torch's own: a failure there is one of calling, and the caller's line says it
        calling = trace.tb_frame.f_code.co_filename == nn.modules.module.__file__
        if isinstance(me, nn.Module) and id(me) in names and not calling:
            found = (trace.tb_frame, trace.tb_lineno, me)
        trace = trace.tb_next
    return found


def _input(frame: types.FrameType | None, module: nn.Module) -> torch.Tensor | None:
    """What a layer of torch was called with: the first tensor among its forward's own arguments."""
    if frame is None:
        return None
    code = frame.f_code
    for name in code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]:
        found = tensors(frame.f_locals.get(name))
        if found:
            return found[0]
    return None


def _shapes_in(text: str, frame: types.FrameType) -> list[tuple[str, tuple[int, ...]]]:
    """The tensors that a line of source names, with their shapes."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a line out of several
        return []
    found: dict[str, tuple[int, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = _look_up(node, frame)
            if isinstance(value, torch.Tensor):
                found.setdefault(ast.unparse(node), tuple(value.shape))
    return list(found.items())


def _look_up(node: ast.AST, frame: types.FrameType) -> Any:
    """The value of a name or a chain of plain attributes; nothing is called."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _look_up(node.value, frame)
        if isinstance(owner, nn.Module):
            for table in ("_parameters", "_buffers", "_modules"):
                if node.attr in owner.__dict__.get(table, {}):
                    return owner.__dict__[table][node.attr]
            return owner.__dict__.get(node.attr)
    return None
