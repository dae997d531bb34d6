"""The tape of a run becomes a `Graph`: frozen, without the glue that nobody reads."""

from __future__ import annotations

import collections
import functools
import inspect
from types import MappingProxyType

from nbsurgery.capture import frames
from nbsurgery.capture.steps import Leftover
from nbsurgery.capture.symbols import plain
from nbsurgery.graph import Failure, Graph, Node, Scope, Specialisation, iter_refs


def freeze(tape, error: Exception | None = None) -> Graph:
    """The graph of what the tape recorded."""
    failure = None
    if error is not None:
        failure = _failure(tape, error)
    needed = {node for *_, node in tape.decisions if node is not None}
    calls: collections.Counter = collections.Counter()
    totals: collections.Counter = collections.Counter()
    for scope in tape.scopes.values():
        for step in scope.nodes:
            if step.kind == "module":
                totals[id(step.module)] += 1
    for scope in tape.scopes.values():
        caught = next((step for step in scope.nodes if step.failed), None)
        if failure is None and caught is not None:
            tape.cloud(scope, "it catches an error that an operation raised in this run")
            what = f"an error that {caught.type} raised and that was caught"
            tape.decide(scope, "constant", what, tape.digest(), None, caught.frames)
        names = tape.changed.get(id(scope.module))
        if names:
            tape.cloud(scope, f"it keeps what it computed on itself (self.{names[0]})")
        if _hooks_changed(scope):
            tape.cloud(scope, "a forward hook changes its values")
    live = _live(tape, needed, failure is not None)
    order = _execution_order(tape)
    numbers: dict[str, int] = {}
    for step in order:
        if step.kind == "module":
            calls[id(step.module)] += 1
            numbers[step.id] = calls[id(step.module)]
    scopes = {}
    for key, scope in tape.scopes.items():
        nodes = []
        for step in (*scope.inputs, *scope.nodes):
            if step.id in live:
                nodes.append(_node(tape, step, numbers, totals))
        inputs = {n.id for n in nodes if n.kind == "input"}
        scopes[key] = Scope(
            key,
            scope.path,
            type(scope.module).__name__,
            tuple(nodes),
            scope.caller.id if scope.caller is not None else None,
            MappingProxyType({k: plain(v) for k, v in scope.bindings.items() if k in inputs}),
            tuple(s for s in scope.stowaways if s in inputs),
            scope.opaque,
            MappingProxyType({k: v for k, v in scope.places.items() if k in inputs}),
        )
    return Graph(scopes, tuple(_specialisations(tape)), tape.how, failure)


def _hooks_changed(scope) -> bool:
    """Whether hooks of a module that is a scope performed operations of their own."""
    module = scope.module
    if not (module._forward_hooks or module._forward_pre_hooks):
        return False
    code = _forward_code(type(module))
    return any(
        step.frames and all(entry[0] is not code for entry in step.frames)
        for step in scope.nodes
        if step.kind in ("function", "method", "module") and not step.glue
    )


def _live(tape, needed: set[str], keep_all: bool) -> set[str]:
    """Ids to keep: everything but glue and parameter reads without a reader."""
    live: set[str] = set()
    wanted: set[str] = set(needed)
    for scope in reversed(list(tape.scopes.values())):
        for binding in scope.bindings.values():
            wanted.update(r.id for r in iter_refs(binding))
    for scope in tape.scopes.values():
        for step in scope.nodes:
            if isinstance(step.target, Leftover):
                wanted.add(step.target.id)
    for scope in tape.scopes.values():
        for step in reversed(scope.nodes):
            plumbing = step.glue or step.kind in ("parameter", "constant")
            if step.failed and not keep_all:
                continue
            if plumbing and not step.impure and not step.failed and step.id not in wanted:
                continue
            live.add(step.id)
            wanted.update(r.id for r in iter_refs((step.args, step.kwargs)))
        live.update(step.id for step in scope.inputs)
    return live


def _execution_order(tape):
    found = []

    def visit(scope):
        for step in scope.nodes:
            found.append(step)
            if step.child is not None:
                visit(tape.scopes[step.child])

    if "" in tape.scopes:
        visit(tape.scopes[""])
    return found


_EMPTY = MappingProxyType({})


def _node(tape, step, numbers, totals) -> Node:
    name = step.name
    if name is None:
        name = step.name = tape.name(step)
    module = step.kind == "module"
    return Node(
        id=step.id,
        scope=step.scope.key,
        kind=step.kind,
        name=name,
        type=step.type,
        target=step.target,
        args=step.args,
        kwargs=MappingProxyType(step.kwargs) if step.kwargs else _EMPTY,
        outputs=step.outputs,
        value=plain(step.value),
        glue=step.glue,
        child=step.child,
        call=numbers.get(step.id, 1),
        calls=totals[id(step.module)] if module else 1,
        frames=_frames(step),
        writes=step.writes,
        impure=step.impure,
        facts=_facts(step),
    )


def _facts(step) -> MappingProxyType:
    """``inside``: what ran in it unseen; ``same``: the node whose very tensor it handed on."""
    if not step.inside and step.same is None:
        return _EMPTY
    told = {"inside": step.inside, "same": step.same}
    return MappingProxyType({name: fact for name, fact in told.items() if fact})


@functools.cache
def _forward_code(kind: type):
    """The code of a class's own forward, below its decorators."""
    return getattr(inspect.unwrap(getattr(kind, "forward", len)), "__code__", None)


def _frames(step):
    raw = step.frames
    if len(raw) > 1:
        code = _forward_code(type(step.scope.module))
        for i, entry in enumerate(raw):
            if entry[0] is code:
                raw = raw[i:]
                break
    return frames.resolve(raw)


def _failure(tape, error) -> Failure:
    text = f"{type(error).__name__}: {error}"
    cause = tape.failure
    if cause is not None and (cause[2] is error or _caused(error, cause[2])):
        step, scope, _, shapes = cause
        return Failure(step.id, scope.key, text, shapes)
    return Failure(None, "", text, ())


def _caused(error, cause) -> bool:
    seen = set()
    while error is not None and id(error) not in seen:
        if error is cause:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _specialisations(tape):
    steps = {s.id: s for scope in tape.scopes.values() for s in (*scope.inputs, *scope.nodes)}
    for kind, expression, value, where, scope, node in tape.decisions:
        if expression is None:
            expression = _expression(where) or _spell(steps, node, kind)
        frame = frames.innermost(where)
        source = frame.place if frame is not None else ""
        yield Specialisation(kind, expression, plain(value), source, scope, node, frame)


def _expression(where) -> str:
    """The author's own text of the decision, where Python knows its place."""
    return frames.text(where)


def _spell(steps, node, kind) -> str:
    step = steps.get(node)
    return f"{kind}({step.name or step.type})" if step is not None else kind
