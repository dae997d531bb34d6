"""What annotations read: a graph, its model, and nodes in execution order with their modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from nbsurgery.graph import Graph, Node, Ref, Tensor


class Subject:
    """A graph beside the model it was captured from."""

    def __init__(self, graph: Graph, model: nn.Module):
        self.graph, self.model = graph, model
        self._found: dict[str, Any] = {"": model}

    def at(self, path: str) -> Any:
        """The module, parameter or attribute at a path, or ``None``."""
        if path not in self._found:
            head, _, tail = path.rpartition(".")
            owner = self.at(head)
            value = getattr(owner, tail, None)
            if value is None or callable(value) and not isinstance(value, nn.Module):
                value = getattr(owner, "_modules", {}).get(tail, value)
            self._found[path] = value
        return self._found[path]

    def module(self, node: Node) -> nn.Module | None:
        """The module behind a module node."""
        found = self.at(node.target) if node.kind == "module" else None
        return found if isinstance(found, nn.Module) else None

    def walk(self, key: str = "") -> Iterator[Node]:
        """Every node in execution order; the call of a scope comes before what it performs."""
        for node in self.graph.scopes[key].nodes:
            yield node
            if node.child is not None and node.child in self.graph.scopes:
                yield from self.walk(node.child)

    def tensors(self, node: Node) -> list[Tensor | None]:
        """For each positional argument: what is known of the tensor, or ``None``."""
        table = self.graph.by_id
        found = []
        for arg in node.args:
            outputs = table[arg.id].outputs if isinstance(arg, Ref) and arg.id in table else ()
            found.append(outputs[0] if outputs else None)
        return found

    def tensor(self, arg: Any) -> Tensor | None:
        """What is known of one argument."""
        if isinstance(arg, Ref):
            outputs = self.graph.by_id[arg.id].outputs
            return outputs[0] if outputs else None
        return None

    def roll_up(self, values: dict[str, int]) -> dict[str, int]:
        """The same numbers, and for each call of a scope the sum over its subtree."""
        result = dict(values)

        def total(key: str) -> int:
            amount = 0
            for node in self.graph.scopes[key].nodes:
                if node.child is not None and node.child in self.graph.scopes:
                    result[node.id] = total(node.child)
                    amount += result[node.id]
                else:
                    amount += values.get(node.id, 0)
            return amount

        if "" in self.graph.scopes:
            total("")
        return result
