"""One operation of a captured model, as people hold it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import graph as data
from ..errors import an

if TYPE_CHECKING:
    from torch import nn

    from .model_graph import ModelGraph
    from .scope import Scope


class Node:
    """One operation that ran: an input, a module's call, a function, a method, a parameter, an output.

    Made by `ModelGraph`; the same operation is always the same object.
    """

    __slots__ = ("_graph", "_node")

    def __init__(self, graph: ModelGraph, node: data.Node):
        self._graph = graph
        self._node = node

    @property
    def id(self) -> str:
        """The internal identity, which no edit shifts."""
        return self._node.id

    @property
    def name(self) -> str:
        """Public name: ``"layer1.0.add"``; further calls end in ``_1``, ``_2``."""
        return self._node.name

    @property
    def kind(self) -> str:
        """One of input, module, function, method, parameter, constant, output."""
        return self._node.kind

    @property
    def type(self) -> str:
        """What a reader calls it: ``"Conv2d"``, ``"add"``."""
        return self._node.type

    @property
    def scope(self) -> str:
        """Key of the module call whose ``forward`` performed it; the root is ``""``."""
        return self._node.scope

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that feed this one, across scope borders, in the order of its arguments."""
        return self._graph._views(self._graph.data.inputs_of(self.id))

    @property
    def users(self) -> tuple[Node, ...]:
        """The nodes that read this one, across scope borders, in execution order."""
        return self._graph._views(self._graph.data.users_of(self.id))

    @property
    def outputs(self) -> tuple[data.Tensor, ...]:
        """Every tensor of the result: shape, dtype, device."""
        return self._node.outputs

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the first output, with the batch size of the example; ``None`` if no tensor."""
        return self._node.shape

    @property
    def dtype(self) -> Any:
        """The ``torch.dtype`` of the first output, or ``None``."""
        import torch

        return getattr(torch, self.outputs[0].dtype, None) if self.outputs else None

    @property
    def params(self) -> int:
        """Number of parameters read here first: shared weights count where they are first used."""
        return self._graph._count(self.id).params

    @property
    def trainable(self) -> int:
        """How many of `params` have ``requires_grad``."""
        return self._graph._count(self.id).trainable

    @property
    def macs(self) -> int:
        """Multiply-accumulates on the example; 0 where nothing is multiplied and summed."""
        return int(self._node.facts.get("macs") or 0)

    @property
    def module(self) -> nn.Module | None:
        """The module that this node calls, or ``None``."""
        return self._graph._module(self.path)

    @property
    def path(self) -> str | None:
        """Path of the called module from the root, or ``None``."""
        return self._node.target if self.kind == "module" else None

    @property
    def call(self) -> int:
        """Which call of its module this is, from 1."""
        return self._node.call

    @property
    def calls(self) -> int:
        """How often its module is called in the whole model."""
        return self._node.calls

    @property
    def source(self) -> str | None:
        """Where the call stands: ``"resnet.py:102"``, ``"cell [3], line 27"``."""
        if not self._node.frames:
            return None
        return self._node.frames[-1].place

    def upstream(self, of: Any) -> tuple[Node | Scope, ...]:
        """Find the nearest producers of a class.

        Args:
            of: A module class, a type's name (``"add"``), a function of a node, or a tuple of these.
                For a class whose ``forward`` was opened, the result holds its scopes.

        Returns:
            Nearest first, breadth first; the search goes on behind a match on no branch.

        Example:
            >>> import nbsurgery as nbs, torch
            >>> from torch import nn
            >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
            >>> nbs.capture(model, torch.zeros(1, 4))["2"].upstream(nn.Linear)[0].module.out_features
            8
        """
        return self._nearest(of, lambda node: node.inputs)

    def downstream(self, of: Any) -> tuple[Node | Scope, ...]:
        """Find the nearest consumers of a class; as `upstream`, in the other direction."""
        return self._nearest(of, lambda node: node.users)

    def _nearest(self, of: Any, step: Callable[[Node], tuple[Node, ...]]) -> tuple:
        return nearest(
            self._graph, (self,), frozenset(self._graph._enclosing(self.scope)), of, step
        )

    def explain(self) -> str:
        """What this operation does, in plain words and numbers."""
        from ..explain import explain

        return explain(self._graph.data, self._graph._modules, self.id)

    def __repr__(self) -> str:
        from .table import spell_shapes

        shape = f" {spell_shapes(self.outputs)}" if self.outputs else ""
        call = f" call {self.call} of {self.calls}" if self.calls > 1 else ""
        what = self.type if self.type != self.kind else self.kind
        return f"<Node {self.name!r}: {what}{call}{shape}>"


def nearest(graph: ModelGraph, start, inside: frozenset[str], of: Any, step) -> tuple:
    """Breadth-first search from some nodes; what encloses the start (`inside`) is no find."""
    found: dict[str, Any] = {}
    seen = {node.id for node in start}
    queue = deque(start)
    while queue:
        for node in step(queue.popleft()):
            if node.id in seen:
                continue
            seen.add(node.id)
            hit = _match(graph, node, inside, of)
            if hit is None:
                queue.append(node)
            else:
                found.setdefault(hit.id, hit)
    return tuple(found.values())


def _match(graph: ModelGraph, node: Node, inside: frozenset[str], of: Any):
    """The node itself, or the innermost scope around it, if it is of the class."""
    if isinstance(of, tuple):
        hits = (_match(graph, node, inside, one) for one in of)
        return next((hit for hit in hits if hit is not None), None)
    if isinstance(of, str):
        if node.type == of:
            return node

        def matches(scope):
            return scope.type == of

    elif isinstance(of, type):
        if isinstance(node.module, of):
            return node

        def matches(scope):
            return isinstance(scope.module, of)

    elif callable(of):
        return node if of(node) else None
    else:
        raise TypeError(
            f"{an(type(of).__name__)} is no class; pass a module class, a type's name, "
            "a function of a node, or a tuple of these"
        )
    for key in graph._enclosing(node.scope):
        if key not in inside and matches(graph.scopes[key]):
            return graph.scopes[key]
    return None
