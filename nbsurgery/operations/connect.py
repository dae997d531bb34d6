"""connect: a new skip, from any value to any later node."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .. import rewrite
from ..claims import SameOutput
from ..draft import Draft, camel, describe, shape_text
from ..edits import NewModule
from ..errors import StepError, an
from ..expression import evaluate, parse
from ..graph import Node, Ref, Scope
from ..targets import call_name, one, spelled_where
from .base import Field, Offer, Operation, need, place_of, suffix_for

WAYS = ("add", "cat", "replace")


class Connect(Operation):
    """The value of ``source`` joins what enters ``into``: ``how`` is add, cat or replace."""

    name = "connect"
    order = 35
    takes = ("source", "into", "how", "project")
    resizes = True

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if len(nodes) != 2:
            return []
        order = {n.id: i for i, n in enumerate(draft.live_nodes())}
        first, second = sorted(nodes, key=lambda n: order[n.id])
        if first.kind == "output" or second.kind in ("input", "parameter", "constant"):
            return []
        if not second.refs:
            return []
        arguments = {
            "source": {"call": call_name(draft.graph, first.id)},
            "into": {"call": call_name(draft.graph, second.id)},
        }
        entering = draft.scope_of(second).by_id[second.refs[0]]
        if len(first.outputs) != 1 or len(entering.outputs) != 1:
            return []  # several values, of which a part would have to be named
        a, b = first.shape, entering.shape
        if a is None or b is None or (a != b and projection(a, b) is None):
            return []
        fields = (
            Field(
                "how",
                "How",
                "choice",
                "add",
                ("add", "replace") if a == b else ("add",),
                "what the value does to what enters",
            ),
            Field(
                "project",
                "Project",
                "bool",
                a != b,
                (),
                "a zero-initialised layer where shapes differ",
            ),
        )
        label = (
            f"Connect {call_name(draft.graph, first.id)} into {call_name(draft.graph, second.id)}"
        )
        return [Offer("connect", label, "Add", fields, arguments, 1)]

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        how = arguments.get("how") or "add"
        if how not in WAYS:
            raise StepError(f"how={how!r} is no way to connect; take one of {', '.join(WAYS)}")
        source = one(draft, need(arguments, "source", "connect"), "connect", step)
        into = one(draft, need(arguments, "into", "connect"), "connect", step)
        if source.kind == "output":
            raise StepError("the output is where the model ends; connect from a value before it")
        if not into.refs:
            raise StepError(f"{into.name!r} reads no value that another could join")
        if len(source.outputs) > 1:
            raise StepError(
                f"{source.name!r} gives {len(source.outputs)} values; connect one of its parts"
            )
        order = {n.id: i for i, n in enumerate(draft.live_nodes())}
        inside = source.child is not None and source.child in draft.graph.ancestors(into.scope)
        if order[source.id] >= order[into.id] or inside:
            raise StepError(
                f"{source.name!r} is made after {into.name!r} runs; a skip goes forward only"
            )
        names = (call_name(draft.graph, source.id), call_name(draft.graph, into.id))
        apart = source.scope != into.scope or draft.is_sequential(draft.scope_of(into))
        if apart and step in draft.serves.values():
            raise StepError(
                f"{names[0]!r} and {names[1]!r} are not both made in one forward, so that they cannot "
                "be joined in every call: name one call of each"
            )
        scope, value, into = together(draft, source, into)
        scope, value = _kept(scope, step, value, into)
        entering = scope.by_id[into.refs[0]]
        self._connect(
            draft, step, scope, scope.by_id[value.id], entering, into, how, names, arguments
        )
        return 1

    def text(self, arguments: Mapping[str, Any]) -> str:
        how = arguments.get("how") or "add"
        source, into = spelled_where(arguments["source"]), spelled_where(arguments["into"])
        return f"connect {source} into {into} ({how})"

    def _connect(
        self, draft: Draft, step: int, scope: Scope, value: Node, entering: Node, into: Node, how: str,
        names: tuple[str, str], arguments: Mapping[str, Any],
    ) -> None:  # fmt: skip
        a, b = value.shape, entering.shape
        fresh: dict[str, NewModule] = {}
        words = f"{scope.path or 'the model'}: {names[0]} joins {names[1]} ({how})"
        if how == "replace":
            if a is not None and b is not None and a != b:
                raise StepError(
                    f"{names[0]} is {shape_text(a, None)} and would enter {names[1]} in the place of "
                    f"{shape_text(b, None)}: the shapes differ"
                )
            changed = rewrite.reading(scope, entering.id, value.id, only=[into.id])
            changed = rewrite.without_dead(changed)
        else:
            skip = value.id
            project = arguments.get("project")
            if how == "add" and a is not None and b is not None and a != b:
                layer = projection(a, b)
                if not project:
                    hint = (
                        f"; with project=True a zero-initialised {layer} joins them"
                        if layer
                        else ""
                    )
                    raise StepError(
                        f"{names[0]} is {shape_text(a, None)} and {names[1]} takes "
                        f"{shape_text(b, None)}: they cannot be added{hint}"
                    )
                if layer is None:
                    raise StepError(
                        f"no single layer takes {shape_text(a, None)} to {shape_text(b, None)}; insert "
                        "what fits, then connect"
                    )
                scope, skip, fresh = self._project(draft, step, scope, value, into, layer)
                words += f" through {an(layer)}, zero at first: same output"
                if not draft.edits and not draft.rewires:
                    draft.claims[step] = SameOutput()
            args: tuple = (Ref(entering.id), Ref(skip))
            kind, target = ("add", operator.add) if how == "add" else ("cat", torch.cat)
            if how == "cat":
                args = ((Ref(entering.id), Ref(skip)), 1)
            base = f"{scope.key}.{kind}" if scope.key else kind
            new = Node(
                f"@{step}#join", scope.key, "function",
                rewrite.unique_name(base, draft.graph.by_name), kind, target, args, step=step,
            )  # fmt: skip
            changed = rewrite.insert_before(scope, into.id, entering.id, new)
        draft.rewire(
            changed, step, suffix="Skip" + (camel(how) if how != "add" else ""),
            doc=f"with a skip from `{names[0]}` into {describe(draft, into)}", comment=words, new=fresh,
        )  # fmt: skip

    def _project(
        self, draft: Draft, step: int, scope: Scope, value: Node, into: Node, layer: str
    ) -> tuple[Scope, str, dict[str, NewModule]]:
        attr = draft.attribute(scope, "project")
        path = f"{scope.path}.{attr}" if scope.path else attr
        expr = parse(layer)
        made = evaluate(expr, None, draft.namespace)
        node = Node(
            f"@{step}#project", scope.key, "module", path, type(made).__name__, path, (Ref(value.id),),
            step=step,
        )  # fmt: skip
        draft.made[path] = made
        suffix = suffix_for(draft, made, place_of(draft, value))
        new = NewModule(expr, suffix, False, None, zero=True)
        return rewrite.placed(scope, node, rewrite.position(scope, into.id)), node.id, {attr: new}


def together(draft: Draft, source: Node, into: Node) -> tuple[Scope, Ref, Node]:
    """Bring a value and its new reader into one scope; what lies between them is opened."""
    above = draft.graph.ancestors(into.scope)
    common = next(k for k in draft.graph.ancestors(source.scope) if k in above)
    value = Ref(source.id)
    scope = draft.graph.scopes[source.scope]
    while scope.key != common:
        up = draft.graph.parent(scope.key)
        outer = draft.graph.scopes[up]
        if scope.output is not None and scope.output.args[:1] == (value,):
            scope, value = outer, Ref(scope.caller)
            continue
        if scope.by_id[value.id].kind == "input" and isinstance(scope.bindings.get(value.id), Ref):
            scope, value = outer, scope.bindings[value.id]
            continue
        scope = draft.open_into(outer, scope.caller)
        draft.set_scope(scope)
    while into.scope != common:
        inner = draft.graph.scopes[into.scope]
        up = draft.graph.parent(inner.key)
        first = next(
            (n for n in inner.nodes if n.kind not in ("input", "output") and not n.glue), None
        )
        entering = inner.by_id[into.refs[0]]
        alone = len(inner.users(entering.id)) == 1
        if first is not None and first.id == into.id and entering.kind == "input" and alone:
            into = draft.graph.by_id[inner.caller]  # what enters it enters the whole call
            continue
        draft.set_scope(draft.open_into(draft.graph.scopes[up], inner.caller))
        into = draft.graph.by_id[into.id]
    scope = draft.graph.scopes[common]
    if draft.is_sequential(scope):  # a chain has no place for a skip: it is opened further out
        if common == "":
            return scope, value, scope.by_id[into.id]
        up = draft.graph.parent(common)
        draft.set_scope(draft.open_into(draft.graph.scopes[up], scope.caller))
        if scope.by_id[value.id].kind == "input":
            value = scope.bindings[value.id]
        scope = draft.graph.scopes[up]
    return scope, value, scope.by_id[into.id]


def _kept(scope: Scope, step: int, value: Ref, into: Node) -> tuple[Scope, Ref]:
    """A value that is overwritten in place on the way to ``into`` is kept as a clone made before that."""
    writer = rewrite.overwritten_later(scope, value.id)
    if writer is None or rewrite.position(scope, writer.id) >= rewrite.position(scope, into.id):
        return scope, value
    clone = f"@{step}#kept"
    return rewrite.kept(scope, value.id, clone, step), Ref(clone)


def projection(a: tuple[int, ...], b: tuple[int, ...]) -> str | None:
    """The layer that takes one shape to another, ``nn.Conv2d(8, 16, 1, 2, bias=False)``; or ``None``."""
    if len(a) != len(b) or a[0] != b[0]:
        return None
    if len(a) == 4 and all(x % y == 0 for x, y in zip(a[2:], b[2:])):
        strides = {x // y for x, y in zip(a[2:], b[2:])}
        stride = strides.pop() if len(strides) == 1 else tuple(x // y for x, y in zip(a[2:], b[2:]))
        return f"nn.Conv2d({a[1]}, {b[1]}, 1{f', {stride}' if stride != 1 else ''}, bias=False)"
    if len(a) in (2, 3) and a[:-1] == b[:-1]:
        return f"nn.Linear({a[-1]}, {b[-1]}, bias=False)"
    return None


OPERATION = Connect()
