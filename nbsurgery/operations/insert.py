"""insert: something new on a value, after the node that makes it or on the way into one reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from .. import rewrite
from ..children import InsertChild
from ..draft import (
    Draft,
    by_scope,
    call_in_scope,
    describe,
    describe_all,
    ordinal,
    overwrites,
)  # fmt: skip
from ..edits import Assign, NewModule
from ..errors import StepError, an
from ..expression import Expression, parse, stateless_source, weights_said
from ..graph import Node, Ref, Scope
from ..targets import call_name, one, resolve, spelled_where
from .base import (
    Alike,
    Field,
    Offer,
    Operation,
    attribute_name,
    class_piece,
    edge,
    is_moded,
    literals,
    need,
    new_module,
    place_of,
    suffix_for,
    written_only,
)  # fmt: skip


class Insert(Operation):
    """Put what ``new`` makes ``after`` or ``before`` the places named."""

    name = "insert"
    order = 30
    takes = ("new", "after", "before")
    resizes = True

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if not nodes or any(n.kind not in ("module", "function", "method", "input") for n in nodes):
            return []
        if any(_handed_in_parts(draft, n) for n in nodes):
            return []  # a tuple or a dict of tensors: pick the part that is meant
        served = draft.everywhere(nodes)
        names = [{"call": call_name(draft.graph, n.id)} for n in served]
        where = names if len(names) > 1 else names[0]
        code = _field(nodes[0])
        many = f" ({len(nodes)} places)" if len(nodes) > 1 else ""
        note = f"in {len(served)} calls" if len(served) > len(nodes) else ""
        found = [
            Offer(
                "insert", f"Insert after{many}", "Add", (code,), {"after": where}, len(nodes), note
            )
        ]
        if len(nodes) == 2 and edge(draft, nodes[0], nodes[1]):
            found.insert(
                0,
                Offer("insert", "Insert between these two", "Add", (code,),
                      {"after": names[0], "before": names[1]}, 1),
            )  # fmt: skip
        if all(entering(draft.scope_of(n), n) for n in nodes):
            scope = draft.scope_of(nodes[0])
            read = scope.by_id[entering(scope, nodes[0])]
            found.append(
                Offer("insert", f"Insert before{many}", "Add", (_field(read),),
                      {"before": where}, len(nodes), note)
            )  # fmt: skip
        return found

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        text = need(arguments, "new", "insert")
        after, before = arguments.get("after"), arguments.get("before")
        if after is None and before is None:
            raise StepError("insert needs after= or before=; with both, it goes on that one edge")
        if after is not None and before is not None:
            _between_two(
                draft,
                step,
                one(draft, after, "insert", step),
                one(draft, before, "insert", step),
                text,
            )
            return 1
        where = before if after is None else after
        targets = resolve(draft, where)
        nodes = draft.once((n for t in targets for n in t.nodes), step)
        alike = Alike(draft, nodes)
        many = max(Counter(n.scope for n in nodes).values(), default=0) > 1
        for node in nodes:
            if node.kind == "output" and after is not None:
                raise StepError("nothing comes after the output; insert before it")
            place(
                draft, step, draft.node(node.id), text, before=after is None, many=many, alike=alike
            )
        alike.counted(draft)
        _say_once(draft, step, [draft.node(n.id) for n in nodes], text, after is None)
        return len(nodes)

    def text(self, arguments: Mapping[str, Any]) -> str:
        sides = [s for s in ("after", "before") if arguments.get(s) is not None]
        places = " and ".join(f"{s} {spelled_where(arguments[s])}" for s in sides)
        return f"insert {arguments['new']} {places}"


def _say_once(draft: Draft, step: int, nodes: list[Node], text: Any, before: bool) -> None:
    """Where several places lie in one scope, its class and its comment tell of them in one sentence."""
    places = by_scope(nodes)

    def told(key: str) -> tuple[str, str]:
        first = places[key][0]
        old = draft.module(first.target) if first.kind == "module" else None
        expr, made = new_module(draft, text, old)
        where = f"{'before' if before else 'after'} {describe_all(draft, places[key])}"
        name = type(made).__name__ if isinstance(made, nn.Module) else expr.text
        weights = weights_said(expr, made, draft.namespace, " each")
        return f"with {an(name)} {where}", f"{expr.text} {where}{weights}"

    draft.say_once(step, places, told)


def _between_two(draft: Draft, step: int, first: Node, second: Node, text: Any) -> None:
    """One insertion on the edge from `first` to `second`; other readers of `first` stay as they are.

    Raises:
        StepError: There is no such edge.
    """
    sources = edge(draft, first, second)
    if not sources:
        raise StepError(
            f"{second.name!r} does not read what {first.name!r} makes; it reads "
            + (
                ", ".join(repr(draft.node(i).name) for i in draft.graph.inputs_of(second.id))
                or "nothing"
            )
        )
    if len(second.refs) == 1:
        place(draft, step, second, text, before=True)
        return
    old = draft.module(second.target) if second.kind == "module" else None
    expr, made = new_module(draft, text, old)
    _rewire(draft, step, draft.scope_of(second), second, expr, made, True, sources[0])


def place(
    draft: Draft,
    step: int,
    node: Node,
    text: Any,
    *,
    before: bool,
    many: bool = False,
    alike: Alike | None = None,
) -> None:
    """One insertion, in the smallest form that keeps every key of every kept weight.

    Where it is one of `many`, a new child of a container is called after its neighbour; those that are
    `alike` share a name.
    """
    scope = draft.scope_of(node)
    old = draft.module(node.target) if node.kind == "module" else None
    expr, made = new_module(draft, text, old)
    if before and entering(scope, node) is None:
        raise StepError(f"{node.name!r} reads no value; insert after it instead")
    if isinstance(made, nn.Module) and node.kind == "module":
        # together they would write into what the new one makes, and not into what is read again
        apart = before and written_only(draft, node)
        if not apart and _joined(draft, step, node, expr, made, old, before):
            return
        if draft.is_sequential(scope) and _into_container(
            draft, step, scope, node, expr, made, before, many
        ):
            return
    _rewire(draft, step, scope, node, expr, made, before, alike=alike)


def _joined(
    draft: Draft,
    step: int,
    node: Node,
    expr: Expression,
    made: nn.Module,
    old: nn.Module,
    before: bool,
) -> bool:
    """Beside a module that keeps no weights: both in one ``nn.Sequential`` in its place."""
    if len(draft.calls_of(node.target)) != 1 or node.child is not None or node.kwargs:
        return False
    if len([a for a in node.args if a is not None]) != 1:
        return False
    path = node.target
    if expr.whole_old:
        return False
    earlier = next(
        (
            e
            for e in draft.edits
            if isinstance(e, Assign) and e.path == path and not e.new.whole_old
        ),
        None,
    )
    if earlier is not None:
        first = earlier.new.text
        moded = earlier.moded or is_moded(made)
        base_old = draft.model.get_submodule(path)
        comment = f"{earlier.comment}; {expr.text} {'before' if before else 'after'} it"
        edit_step = step
    elif draft.is_sequential(draft.scope_of(node)):
        return False  # a container has a better way
    else:
        first = stateless_source(old)
        if first is None:
            return False
        moded, base_old = is_moded(made) or is_moded(old), old
        comment = f"{path}: {expr.text} {'before' if before else 'after'} it"
        edit_step = step
    # `old` names the base module inside both texts
    parts = _parts(first)
    texts = [expr.text, *parts] if before else [*parts, expr.text]
    joined = parse(f"nn.Sequential({', '.join(texts)})")
    from ..expression import evaluate

    both = evaluate(joined, base_old, draft.namespace)
    values = literals(draft, path, joined, base_old, both)
    draft._drop_below((path,), keep_old=False)
    draft.assign(
        Assign(edit_step, comment, path, joined, values, suffix_for(draft, both, path), moded),
        {path: both},
    )
    return True


def _parts(text: str) -> list[str]:
    """The arguments of an ``nn.Sequential(…)`` text, or the text itself."""
    import ast

    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Call) and ast.unparse(tree.func) == "nn.Sequential" and tree.args:
        return [ast.get_source_segment(text, a) or ast.unparse(a) for a in tree.args]
    return [text]


def _into_container(
    draft: Draft,
    step: int,
    scope: Scope,
    node: Node,
    expr: Expression,
    made: nn.Module,
    before: bool,
    many: bool,
) -> bool:
    """Into a plain ``nn.Sequential``: a new child with a name of its own."""
    if expr.whole_old:
        return False
    parent, _, anchor = node.target.rpartition(".")
    if parent != scope.path:
        return False
    wanted = attribute_name(made, expr)
    attr = draft.attribute(scope, f"{wanted}_{anchor}" if many else wanted)
    taken = set(draft.module(scope.path)._modules) | {
        e.name for e in draft.edits if isinstance(e, InsertChild) and e.path == scope.path
    }
    attr = rewrite.unique_name(attr, taken)
    path = f"{scope.path}.{attr}" if scope.path else attr
    where = f"{scope.path or 'the model'}: {expr.text} {'before' if before else 'after'} `{anchor}`"
    weights = weights_said(expr, made, draft.namespace)
    draft.edits.append(
        InsertChild(
            step,
            where + weights,
            scope.path,
            attr,
            anchor,
            before,
            expr,
            suffix_for(draft, made, place_of(draft, node)),
            is_moded(made),
            bool(weights) and any(e.reaches(scope.path) for e in draft.edits),
        )
    )
    source = entering(scope, node) if before else node.id
    new = _new_node(draft, step, scope, expr, made, source, path)
    draft.set_calls(_edited(scope, node, new, before), step)
    draft.made[path] = made
    return True


def _rewire(
    draft: Draft,
    step: int,
    scope: Scope,
    node: Node,
    expr: Expression,
    made: Any,
    before: bool,
    source: str | None = None,
    alike: Alike | None = None,
) -> None:
    """In a class for the scope; on the edge from `source` where several lead to the node."""
    where = f"{'before' if before else 'after'} {describe(draft, node)}"
    source = source or (entering(scope, node) if before else node.id)
    name = type(made).__name__ if isinstance(made, nn.Module) else expr.text
    doc = f"with {an(name)} {_between(draft, scope, node, before, source)}"
    comment = f"{scope.path or 'the model'}: {expr.text} {where}"
    comment += weights_said(expr, made, draft.namespace)
    if isinstance(made, nn.Module):
        alike = alike or Alike(draft, ())
        attr = alike.attribute(draft, scope, node, expr, made)
        path = f"{scope.path}.{attr}" if scope.path else attr
        new = _new_node(draft, step, scope, expr, made, source, path)
        fresh = {
            attr: NewModule(expr, suffix_for(draft, made, place_of(draft, node)), is_moded(made),
                            node.target if node.kind == "module" else None)
        }  # fmt: skip
        draft.made[path] = made
    else:
        new = _new_node(draft, step, scope, expr, made, source, None)
        fresh = {}
    draft.rewire(
        _edited(scope, node, new, before), step, suffix=class_piece(made, expr), doc=doc,
        comment=comment, new=fresh,
    )  # fmt: skip


def _new_node(
    draft: Draft,
    step: int,
    scope: Scope,
    expr: Expression,
    made: Any,
    source: str,
    path: str | None,
) -> Node:
    count = sum(1 for n in draft.graph.by_id if n.startswith(f"@{step}#"))
    if path is not None:
        new = Node(
            f"@{step}#{count}", scope.key, "module", path, type(made).__name__, path, (Ref(source),),
            step=step,
        )  # fmt: skip
        return new.with_(writes=overwrites(made, new))
    base = f"{scope.key}.{expr.callee}" if scope.key else expr.callee
    name = rewrite.unique_name(base, draft.graph.by_name)
    return Node(
        f"@{step}#{count}",
        scope.key,
        "function",
        name,
        expr.callee,
        made,
        (Ref(source),),
        step=step,
    )


def _edited(scope: Scope, node: Node, new: Node, before: bool) -> Scope:
    if before:
        return rewrite.insert_before(scope, node.id, new.refs[0], new)
    return rewrite.insert_after(scope, node.id, new)


def _between(draft: Draft, scope: Scope, node: Node, before: bool, source: str) -> str:
    """``between the addition and the last ReLU``, where the place has one neighbour on each side."""
    if before:
        first, second = scope.by_id[source], node
    else:
        users = [n for n in scope.users(node.id) if not n.glue]
        if len(users) != 1 or users[0].kind == "output":
            return f"after {describe(draft, node)}"
        first, second = node, users[0]
    if first.kind == "input" or first.glue:
        return f"before {describe(draft, second)}"
    return f"between {_spoken(draft, first)} and {_spoken(draft, second)}"


def _spoken(draft: Draft, node: Node) -> str:
    if node.kind == "module" and node.calls > 1:
        k, n = call_in_scope(draft, node)
        if n > 1:
            return f"the {ordinal(k, n)} {node.type}"
    return describe(draft, node)


def _field(value: Node) -> Field:
    """What may be put behind the node that makes a value."""
    choices = _suggestions(value)
    return Field("new", "New", "code", choices[0], choices, "a module or a function")


def _suggestions(node: Node) -> tuple[str, ...]:
    shape = node.shape or ()
    if not any("float" in tensor.dtype for tensor in node.outputs[:1]):
        return ("nn.Identity()",)  # numbers of words, masks: no layer reads them
    if len(shape) == 4:
        c = shape[1]
        return (f"nn.BatchNorm2d({c})", "nn.Dropout2d(0.1)", "nn.ReLU()", f"nn.Conv2d({c}, {c}, 1)")
    if len(shape) >= 2:
        c = shape[-1]
        return (f"nn.LayerNorm({c})", "nn.Dropout(0.2)", "nn.ReLU()", f"nn.Linear({c}, {c})")
    return ("nn.Dropout(0.2)", "nn.ReLU()", "nn.Identity()")


def entering(scope: Scope, node: Node) -> str | None:
    """The first tensor that a node reads: not a configuration or a number."""
    values = (scope.by_id[id] for id in node.refs)
    return next((n.id for n in values if n.outputs or n.step is not None), None)


def _handed_in_parts(draft: Draft, node: Node) -> bool:
    """Whether a node returns several values, or one that its readers take apart."""
    readers = draft.scope_of(node).users(node.id)
    return len(node.outputs) > 1 or any(
        n.glue and n.type == "getitem" and n.args[:1] == (Ref(node.id),) for n in readers
    )


OPERATION = Insert()
