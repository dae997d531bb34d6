"""One call of a module whose forward was opened, as people hold it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import graph as data
from .node import Node, nearest

if TYPE_CHECKING:
    from torch import nn

    from .model_graph import ModelGraph


class Scope:
    """One call of a module: a small graph of its own.

    Made by `ModelGraph`; the same call is always the same object.
    """

    __slots__ = ("_graph", "_scope")

    kind = "scope"

    def __init__(self, graph: ModelGraph, scope: data.Scope):
        self._graph = graph
        self._scope = scope

    @property
    def id(self) -> str:
        """Identity of the node that makes this call; ``""`` for the root."""
        return self._scope.caller or ""

    @property
    def key(self) -> str:
        """``"layer1.0"``; a second call of the same module is ``"layer1.0_1"``; the root is ``""``."""
        return self._scope.key

    @property
    def name(self) -> str:
        """The same as `key`."""
        return self._scope.key

    @property
    def path(self) -> str:
        """Path of the module from the root."""
        return self._scope.path

    @property
    def type(self) -> str:
        """Name of the module's class."""
        return self._scope.type

    @property
    def module(self) -> nn.Module | None:
        """The module that is called."""
        return self._graph._module(self._scope.path)

    @property
    def parent(self) -> Scope | None:
        """The scope that makes this call; ``None`` for the root."""
        up = self._graph.data.parent(self.key)
        return None if up is None else self._graph.scopes[up]

    @property
    def nodes(self) -> tuple[Node | Scope, ...]:
        """What its own ``forward`` does, in order: operations, and the calls that it makes."""
        own = []
        for node in self._scope.nodes:
            if node.child is not None and node.child in self._graph.data.scopes:
                own.append(self._graph.scopes[node.child])
            elif node.id in self._graph._flat_ids:
                own.append(self._graph._view(node.id))
        return tuple(own)

    def walk(self) -> Iterator[Node]:
        """Every operation inside, also of the calls below, in execution order."""
        for item in self.nodes:
            if isinstance(item, Scope):
                yield from item.walk()
            else:
                yield item

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes outside that feed it, in the order of its inputs."""
        found: dict[str, None] = {}
        for node in self._scope.inputs:
            if self.key == "":
                found.setdefault(node.id)
                continue
            up = self._graph.data.parent(self.key)
            if up is not None and node.id in self._scope.bindings:
                for id in self._graph.data.sources(up, self._scope.bindings[node.id]):
                    found.setdefault(id)
        return self._graph._views(found)

    @property
    def results(self) -> tuple[Node, ...]:
        """The nodes whose values it returns (inside it, or before it where a value passes through)."""
        end = self._scope.output
        if end is None:
            return ()
        return self._graph._views(self._graph.data.sources(self.key, (end.args, end.kwargs)))

    @property
    def users(self) -> tuple[Node, ...]:
        """The nodes outside that read what it makes, in execution order."""
        inside = {node.id for node in self.walk()}
        found = {
            user.id: user
            for node in self.results
            if node.id in inside
            for user in node.users
            if user.id not in inside
        }
        order = self._graph._order
        return tuple(sorted(found.values(), key=lambda user: order[user.id]))

    @property
    def outputs(self) -> tuple[data.Tensor, ...]:
        """Every tensor of the result: shape, dtype, device."""
        if self._scope.caller is not None:
            caller = self._graph.data.by_id[self._scope.caller]
            if caller.outputs:
                return caller.outputs
        end = self._scope.output
        if end is not None and end.outputs:
            return end.outputs
        return tuple(tensor for node in self.results for tensor in node.outputs[:1])

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the first output, with the batch size of the example; ``None`` if no tensor."""
        return self.outputs[0].shape if self.outputs else None

    @property
    def params(self) -> int:
        """Parameters of the module and all below it, shared ones counted once."""
        return self._graph._module_count(self.path).params

    @property
    def trainable(self) -> int:
        """How many of `params` have ``requires_grad``."""
        return self._graph._module_count(self.path).trainable

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all operations inside, on the example."""
        return sum(node.macs for node in self.walk())

    @property
    def call(self) -> int:
        """Which call of its module this is, from 1."""
        return self._graph.data.by_id[self.id].call if self.id else 1

    @property
    def calls(self) -> int:
        """How often its module is called in the whole model."""
        return self._graph.data.by_id[self.id].calls if self.id else 1

    @property
    def opaque(self) -> str | None:
        """``None``, or why its ``forward`` cannot be re-expressed as code."""
        return self._scope.opaque

    def upstream(self, of: Any) -> tuple[Node | Scope, ...]:
        """Find the nearest producers of a class before this call; see `Node.upstream`."""
        return self._nearest(of, self.inputs, lambda node: node.inputs)

    def downstream(self, of: Any) -> tuple[Node | Scope, ...]:
        """Find the nearest consumers of a class after this call; see `Node.upstream`."""
        return self._nearest(of, self.users, lambda node: node.users)

    def _nearest(self, of, first, step):
        inside = frozenset(self._graph._enclosing(self.key))
        return nearest(self._graph, (self,), inside, of, lambda n: first if n is self else step(n))

    def explain(self) -> str:
        """What this module does, in plain words and numbers."""
        from ..explain import explain

        return explain(self._graph.data, self._graph._modules, self.key)

    def __repr__(self) -> str:
        from .table import spell_shapes

        shape = f" {spell_shapes(self.outputs)}" if self.outputs else ""
        call = f" call {self.call} of {self.calls}" if self.calls > 1 else ""
        name = repr(self.key) if self.key else "(root)"
        opaque = ", opaque" if self.opaque else ""
        return f"<Scope {name}: {self.type}{call}{shape}, {self.params:,} parameters{opaque}>"
