"""An interpreter over the tree of scopes: evaluates a captured or edited graph on any input."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from nbsurgery.capture.steps import Digest, Held, Leftover
from nbsurgery.capture.values import digest, parameters
from nbsurgery.errors import ReplayRefused
from nbsurgery.graph import Graph, Node, Ref, Scope, map_refs


def replay(
    graph: Graph,
    model: nn.Module,
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    values: Iterable[str] | None = None,
) -> Any:
    """Evaluate a graph with the modules and parameters of `model`.

    Works on a captured graph and on an edited one: leaf calls are resolved by path on `model`,
    every other node runs as recorded.

    Args:
        graph: What to evaluate.
        model: Holds a module at each path that the graph's leaf calls name.
        args, kwargs: What the root is called with.
        values: Ids of nodes whose values are wanted as well.

    Returns:
        The root's output; with `values`, a pair of it and a dict from id to value. Values are taken
        when the node ran; tensors among them are clones, so that later writes do not show.

    Raises:
        ReplayRefused: a decision that the recorded run made does not hold for this input.
    """
    args = (args,) if isinstance(args, torch.Tensor) else tuple(args)
    run = _Run(graph, model, None if values is None else set(values))
    result = run.root(args, dict(kwargs or {}))
    return result if values is None else (result, run.taken)


class _Run:
    def __init__(self, graph: Graph, model: nn.Module, wanted: set[str] | None):
        self.graph, self.model, self.wanted = graph, model, wanted
        self.taken: dict[str, Any] = {}
        self.values: dict[str, Any] = {}  # only what other scopes read by other ways
        self.left = {
            n.target.id
            for s in graph.scopes.values()
            for n in s.nodes
            if isinstance(n.target, Leftover)
        }
        self.guards: dict[str, list] = {}
        for spec in graph.specialisations:
            if spec.node is not None and spec.kind in _CHECKS:
                self.guards.setdefault(spec.node, []).append(spec)
        self.digests = [s for s in graph.specialisations if isinstance(s.value, Digest)]
        self.watch = set(self.guards) | self.left | (wanted or set())

    def root(self, args: tuple, kwargs: dict) -> Any:
        scope = self.graph.root
        if self.digests:
            spec = self.digests[0]
            now = digest((args, kwargs))
            if now is None or now != spec.value.value:
                where = f" ({spec.source})" if spec.source else ""
                raise ReplayRefused(
                    f"the recorded run used {spec.expression}{where}, whose value may depend on "
                    "the inputs: the recording holds for the recorded inputs only"
                )
        given = {}
        for name, place in parameters(self.model, list(args), kwargs):
            given[name] = args[place] if isinstance(place, int) else kwargs[place]
        defaults = _defaults(self.model)
        inputs = {}
        for node in scope.inputs:
            if node.target in given:
                inputs[node.id] = given.pop(node.target)
            elif node.target in defaults:
                inputs[node.id] = defaults[node.target]
            else:
                raise ReplayRefused(
                    f"the graph was recorded with an argument {node.target!r}, which is missing "
                    "here; pass the arguments that it was captured with"
                )
            value = inputs[node.id]
            if (
                not node.outputs
                and not isinstance(node.value, (int, float))
                or isinstance(node.value, bool)
            ):
                if _plainly(node.value) and _plainly(value) and value != node.value:
                    raise ReplayRefused(
                        f"argument {node.target!r} was {node.value!r} in the recorded run and is "
                        f"{value!r} here: what the model does with it was recorded for that only"
                    )
                if node.value is None and isinstance(value, torch.Tensor):
                    raise ReplayRefused(
                        f"argument {node.target!r} was None in the recorded run "
                        "and is a tensor here"
                    )
        if given:
            extra = [n for n, v in given.items() if n not in defaults or defaults[n] is not v]
            if extra:
                raise ReplayRefused(
                    f"the graph was recorded without {', '.join(map(repr, extra))}; "
                    "capture the model with these arguments"
                )
        return self.scope(scope, inputs)

    def scope(self, scope: Scope, env: dict[str, Any]) -> Any:
        def value(ref: Ref):
            try:
                return env[ref.id]
            except KeyError:
                raise ReplayRefused(
                    f"scope {scope.key!r} reads node {ref.id!r} before it has run; "
                    "the graph is not in execution order"
                ) from None

        watch = self.watch
        result = None
        for node in scope.nodes:
            kind = node.kind
            if kind == "input":
                if node.id in watch:
                    self.note(scope, node, env.get(node.id))
                continue
            args = map_refs(node.args, value)
            kwargs = map_refs(node.kwargs, value) if node.kwargs else {}
            if kind == "module":
                if node.child is not None:
                    out = self.child(scope, node, args, kwargs, value)
                else:
                    out = self.module(node.target)(*args, **kwargs)
            elif kind == "function":
                out = _function(node.target, args, kwargs)
            elif kind == "method":
                out = getattr(args[0], node.target)(*args[1:], **kwargs)
            elif kind == "parameter":
                out = self.attribute(node.target)
            elif kind == "constant":
                out = node.target
                if isinstance(out, Leftover):
                    out = self.values[out.id]
                elif isinstance(out, Held):
                    out = out.value
            else:  # output
                result = out = args[0] if args else None
            env[node.id] = out
            if node.id in watch:
                self.note(scope, node, out)
            if node.type in _COUNTED and type(out) in (tuple, list):
                self.count(node, out)
        return result

    def child(self, scope: Scope, node: Node, args, kwargs, value) -> Any:
        inner = self.graph.scopes[node.child]
        inputs = {}
        for entry in inner.inputs:
            place = inner.places.get(entry.id)
            if isinstance(place, int) and place < len(args):
                inputs[entry.id] = args[place]
            elif isinstance(place, str) and place in kwargs:
                inputs[entry.id] = kwargs[place]
            else:
                inputs[entry.id] = map_refs(inner.bindings.get(entry.id), value)
        return self.scope(inner, inputs)

    def module(self, path: str):
        return self.attribute(path)

    def attribute(self, path: str) -> Any:
        found = self.model
        for part in path.split(".") if path else ():
            try:
                found = getattr(found, part)
            except AttributeError:
                modules = getattr(found, "_modules", {})
                if part in modules:  # ModuleDict subclasses may hide their children
                    found = modules[part]
                    continue
                raise ReplayRefused(
                    f"the model has no {path!r} ({type(found).__name__} has no {part!r})"
                ) from None
        return found

    def count(self, node: Node, out: Any) -> None:
        """As many parts as the recorded run unpacked."""
        if node.outputs and len(out) != len(node.outputs):
            raise ReplayRefused(
                f"{node.name} gave {len(node.outputs)} parts in the recorded run and gives "
                f"{len(out)} for this input: what follows was recorded for that many"
            )

    def note(self, scope: Scope, node: Node, out: Any) -> None:
        if node.id in self.left:
            self.values[node.id] = out
        if self.wanted is not None and node.id in self.wanted:
            self.taken[node.id] = _keep(out)
        for spec in self.guards.get(node.id, ()):
            now = _CHECKS[spec.kind](out)
            if spec.kind == "int" and isinstance(spec.value, int):
                now = int(now)
            if now != spec.value:
                where = f" at {spec.source}" if spec.source else ""
                raise ReplayRefused(
                    f"{spec.expression}{where} was {spec.value!r} in the recorded run and is "
                    f"{now!r} for this input: the recording holds only while it stays"
                )


_COUNTED = frozenset(
    {"split", "chunk", "unbind", "tensor_split", "split_with_sizes", "unsafe_chunk"}
)

_CHECKS = {
    "bool": lambda value: bool(value),
    "compare": lambda value: bool(value),
    "training": lambda value: bool(value),
    "int": lambda value: value.item() if isinstance(value, torch.Tensor) else value,
    "range": lambda value: value,
    "iterate": lambda value: len(value),
    "dtype": lambda value: str(value).removeprefix("torch."),
    "none": lambda value: value is None,
}


def _function(target, args, kwargs) -> Any:
    if target is operator.getitem or target is getattr:
        return target(*args)
    if isinstance(target, type) and issubclass(target, dict):
        return target(*args, **kwargs)
    return target(*args, **kwargs)


def _defaults(model) -> dict[str, Any]:
    try:
        found = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in found if p.default is not p.empty}


def _plainly(value: Any) -> bool:
    return value is None or isinstance(value, (bool, str))


def _keep(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_keep(v) for v in value)
    if isinstance(value, list):
        return [_keep(v) for v in value]
    if type(value) is dict:
        return {k: _keep(v) for k, v in value.items()}
    return value
