"""Whether shapes still meet after an edit: what changed is computed again, as far as shapes differ."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree

from .draft import Draft
from .errors import SurgeryError
from .graph import Node, Ref, Tensor, iter_refs, map_refs


def fits(draft: Draft) -> bool:
    """Whether the edited graph can run on the example, as far as shapes and dtypes tell.

    Nothing is computed: tensors are on the meta device, and only operations that changed, or that read
    another shape than in the recorded run, are asked. What cannot be told counts as fitting.
    """
    state = torch.get_rng_state()
    try:
        with torch.device("meta"), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what an operation says belongs to a run
            _Shapes(draft).walk("")
    except _Misfit:
        return False
    finally:
        torch.set_rng_state(state)
    return True


class _Misfit(Exception):
    """An operation cannot take the shapes that reach it."""


class _Unknown(Exception):
    """A value that the recording does not hold."""


class _Shapes:
    """Values that differ from the recorded run, by node id."""

    def __init__(self, draft: Draft):
        self.draft = draft
        self.other: dict[str, Any] = {}
        self.unknown: set[str] = set()

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
                    self._handed(node, scope.bindings.get(node.id))
            elif node.child in scopes:
                self.walk(node.child)
                inner = scopes[node.child].output
                self._handed(node, inner.args[0] if inner is not None and inner.args else None)
            elif self._changed(node) or any(self._differs(id) for id in node.refs):
                self._computed(node)

    def _resized(self, node: Node) -> None:
        axis, size = self.draft.inputs.get(node.target, (0, None))
        if size is not None and node.shape is not None:
            shape = (*node.shape[:axis], size, *node.shape[axis + 1 :])
            self.other[node.id] = _empty(node.outputs[0], shape)

    def _differs(self, id: str) -> bool:
        return id in self.other or id in self.unknown

    def _changed(self, node: Node) -> bool:
        before = self.draft.base.by_id.get(node.id)
        if before is node:
            return False
        if before is None or node.kind == "module" and node.target in self.draft.made:
            return True
        return (before.kind, before.target, before.args, before.kwargs) != (
            node.kind, node.target, node.args, node.kwargs,
        )  # fmt: skip

    def _handed(self, node: Node, given: Any) -> None:
        """A value that is made elsewhere, under the id of an input or of a call."""
        if any(self._differs(r.id) for r in iter_refs(given)):
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
            raise _Misfit from error

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
        return _empty(node.outputs[0])

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


def _is_item(node: Node, of: str) -> bool:
    """Whether a node reads a part of what another returns, which then is no tensor."""
    return node.glue and node.type == "getitem" and node.args[:1] == (Ref(of),)


def _kind(tensor: torch.Tensor) -> tuple[tuple[int, ...], str]:
    return tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")


def _empty(told: Tensor, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    dtype = getattr(torch, str(told.dtype).removeprefix("torch."))
    return torch.empty(told.shape if shape is None else shape, dtype=dtype, device="meta")


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor, device="meta")
