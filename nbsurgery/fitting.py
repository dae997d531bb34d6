"""Whether shapes still meet after an edit: what changed is computed again, as far as shapes differ."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from .draft import Draft
from .errors import SurgeryError
from .graph import Node, Ref, Scope, Tensor, iter_refs, map_refs


def fits(draft: Draft) -> bool:
    """Whether the edited graph can run on the example, as far as shapes and dtypes tell."""
    return misfit(draft) is None


def misfit(draft: Draft) -> Node | None:
    """The operation of the edited graph that cannot run on the example; ``None`` where none is known.

    Nothing is computed: tensors are on the meta device, and only operations that changed, or that read
    another shape than in the recorded run, are asked. What cannot be told counts as fitting.
    """
    state = torch.get_rng_state()
    try:
        with torch.device("meta"), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what an operation says belongs to a run
            _Shapes(draft).walk("")
    except _Misfit as found:
        return found.node
    finally:
        torch.set_rng_state(state)
    return None


_TURNED = {"permute", "transpose", "swapaxes", "movedim", "t"}  # they leave other strides


class _Misfit(Exception):
    """An operation cannot take the shapes that reach it."""

    def __init__(self, node: Node | None = None):
        super().__init__()
        self.node = node


class _Unknown(Exception):
    """A value that the recording does not hold."""


class _Shapes:
    """Values that differ from the recorded run, by node id."""

    def __init__(self, draft: Draft):
        self.draft = draft
        self.other: dict[str, Any] = {}
        self.unknown: set[str] = set()
        self.set: dict[str, dict[str, Any]] = {}  # path of a layer → its new attributes
        for path, name, value in (found for edit in draft.edits for found in edit.sets):
            self.set.setdefault(path, {})[name] = value

    def walk(self, key: str) -> None:
        scopes = self.draft.graph.scopes
        scope = scopes[key]
        for node in scope.nodes:
            if node.kind == "output":
                continue
            if node.kind == "input":
                if key == "":
                    self._resized(node)
                else:
                    self._handed(node, _bound(scopes, node), _bound(self.draft.base.scopes, node))
            elif node.child in scopes:
                self.walk(node.child)
                given, before = _given(scopes, node), _given(self.draft.base.scopes, node)
                self._handed(node, given, before)
            elif self._changed(node) or any(self._differs(id) for id in node.refs):
                self._computed(node)

    def _resized(self, node: Node) -> None:
        axis, size = self.draft.inputs.get(node.target, (0, None))
        if size is not None and node.shape is not None:
            shape = (*node.shape[:axis], size, *node.shape[axis + 1 :])
            self.other[node.id] = empty(node.outputs[0], shape)

    def _differs(self, id: str) -> bool:
        return id in self.other or id in self.unknown

    def _changed(self, node: Node) -> bool:
        before = self.draft.base.by_id.get(node.id)
        if node.kind == "module" and node.target in self.set:
            return True
        if before is node:
            return False
        if before is None or node.kind == "module" and node.target in self.draft.made:
            return True
        return (before.kind, before.target, before.args, before.kwargs) != (
            node.kind, node.target, node.args, node.kwargs,
        )  # fmt: skip

    def _handed(self, node: Node, given: Any, before: Any) -> None:
        """A value that is made elsewhere, under the id of an input or of a call."""
        if given != before or any(self._differs(r.id) for r in iter_refs(given)):
            try:
                self._note(node, map_refs(given, self._value))
            except _Unknown:
                self.unknown.add(node.id)

    def _computed(self, node: Node) -> None:
        try:
            args = map_refs(node.args, self._value)
            kwargs = map_refs(node.kwargs, self._value)
            self._note(node, self._result(node, args, kwargs))
        except (_Unknown, NotImplementedError, SurgeryError):
            self.unknown.add(node.id)
        except Exception as error:  # whatever the operation says of what it is given
            raise _Misfit(node) from error

    def _result(self, node: Node, args: tuple, kwargs: dict) -> Any:
        if node.kind == "function":
            return node.target(*args, **kwargs)
        if node.kind == "method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        if node.kind != "module":
            raise _Unknown
        module = self.draft.module(node.target)
        if not isinstance(module, nn.Module):
            raise _Unknown
        if node.target in self.set:
            module = copy.copy(module)
            module.__dict__.update(self.set[node.target])
        if isinstance(module, nn.modules.conv._ConvTransposeNd) and isinstance(
            args[0], torch.Tensor
        ):
            _channels(module, args[0])
        state = {k: _like(t) for k, t in (*module.named_parameters(), *module.named_buffers())}
        return torch.func.functional_call(module, state, args, kwargs)

    def _value(self, ref: Ref) -> Any:
        if ref.id in self.other:
            return self.other[ref.id]
        node = self.draft.graph.by_id[ref.id]
        if ref.id in self.unknown:
            raise _Unknown
        if node.value is not None:
            return node.value
        if len(node.outputs) != 1 or any(_is_item(n, node.id) for n in self._readers(node)):
            raise _Unknown  # a structure, or nothing that has a shape
        if node.type in _TURNED and node.kind != "module":  # a view may not run on what it gives
            return self._result(
                node, map_refs(node.args, self._value), map_refs(node.kwargs, self._value)
            )
        return empty(node.outputs[0])

    def _readers(self, node: Node) -> tuple[Node, ...]:
        return self.draft.scope_of(node).users(node.id) if node.kind != "parameter" else ()

    def _note(self, node: Node, value: Any) -> None:
        """Keep a value where it differs from the recorded one in more than its numbers."""
        tensors = [t for t in _pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]
        same = bool(tensors) and [_kind(t) for t in tensors] == [
            (tuple(t.shape), str(t.dtype)) for t in node.outputs
        ]
        if not same and (tensors or value != node.value or value is None):
            self.other[node.id] = value


def _bound(scopes: Mapping[str, Scope], node: Node) -> Any:
    """What is handed over for an input of a scope."""
    scope = scopes.get(node.scope)
    return None if scope is None else scope.bindings.get(node.id)


def _given(scopes: Mapping[str, Scope], call: Node) -> Any:
    """What the scope that a node calls gives back."""
    output = scopes[call.child].output if call.child in scopes else None
    return output.args[0] if output is not None and output.args else None


def _is_item(node: Node, of: str) -> bool:
    """Whether a node reads a part of what another returns, which then is no tensor."""
    return node.glue and node.type == "getitem" and node.args[:1] == (Ref(of),)


def _channels(module: nn.Module, x: torch.Tensor) -> None:
    """Ask what torch does not ask of a transposed convolution on the meta device."""
    axis = x.dim() - len(module.kernel_size) - 1
    if axis < 0 or x.shape[axis] != module.in_channels:
        raise _Misfit


def _kind(tensor: torch.Tensor) -> tuple[tuple[int, ...], str]:
    return tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")


def empty(told: Tensor, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    """A tensor without memory like a recorded one, or like it but for its shape."""
    dtype = getattr(torch, str(told.dtype).removeprefix("torch."))
    return torch.empty(told.shape if shape is None else shape, dtype=dtype, device="meta")


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor, device="meta")
