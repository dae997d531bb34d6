"""cut: the model ends at a node; what comes after it goes, with its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from .. import rewrite
from ..claims import OutputEquals
from ..draft import Assign, Draft, batch_of, camel, shape_text
from ..errors import StepError
from ..expression import parse
from ..graph import Node, Ref, Scope, iter_refs
from ..targets import call_name, one, spelled_where
from .base import Offer, Operation
from .remove import _pooled, shorten


class Cut(Operation):
    """The value ``after`` a node, or what enters it (``before``), becomes the output."""

    name = "cut"
    order = 40

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if len(nodes) != 1 or nodes[0].kind in ("input", "output", "parameter", "constant"):
            return []
        node = nodes[0]
        where = {"call": call_name(draft.graph, node.id)}
        found = []
        if not (node.scope == "" and draft.graph.root.output.args[:1] == (Ref(node.id),)):
            found.append(
                Offer("cut", "Cut after: end the model here", "Cut", (), {"after": where}, 1)
            )
        if node.refs:
            found.append(
                Offer("cut", "Cut before: drop from here on", "Cut", (), {"before": where}, 1)
            )
        return found

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        after, before = arguments.get("after"), arguments.get("before")
        if (after is None) == (before is None):
            raise StepError("cut needs either after= or before=, and not both")
        node = one(draft, before if after is None else after, "cut")
        if draft.graph.root.output is None:
            raise StepError("the run of this model failed, so it has no end to cut from")
        if after is not None:
            if node.kind == "output":
                raise StepError("the output is where the model ends already")
            value: Any = Ref(node.id)
        else:
            if not node.refs:
                raise StepError(f"{node.name!r} reads no value; there is nothing before it")
            value = entering(draft, node)
        words = f"{'after' if after is not None else 'before'} {call_name(draft.graph, node.id)}"
        end_at(draft, step, draft.scope_of(node), value, words, node)
        return 1

    def text(self, arguments: Mapping[str, Any]) -> str:
        side = "after" if arguments.get("after") is not None else "before"
        return f"cut {side} {spelled_where(arguments[side])}"


def entering(draft: Draft, node: Node) -> Any:
    """What enters a node: the tensor that it reads, or a tuple of several."""
    scope = draft.scope_of(node)
    refs = [Ref(id) for id in node.refs if scope.by_id[id].outputs or not scope.by_id[id].glue]
    refs = [r for r in refs if scope.by_id[r.id].kind not in ("parameter", "constant")] or refs
    return refs[0] if len(refs) == 1 else tuple(refs)


def end_at(draft: Draft, step: int, scope: Scope, value: Any, words: str, node: Node) -> None:
    """Make `value`, seen from `scope`, the output of the model; edits the draft in the smallest way."""
    source = sources_of(draft, scope, value)
    before_ids = {n.id for n in draft.live_nodes()}
    params_before = parameters(draft)
    base = draft.graph
    kept_edits = list(draft.edits)
    opened = False
    while scope.key != "":
        up = draft.graph.parent(scope.key)
        outer = draft.graph.scopes[up]
        call = draft.graph.by_id[scope.caller]
        if isinstance(value, Ref) and scope.by_id[value.id].kind == "input":
            bound = scope.bindings.get(value.id)
            if isinstance(bound, Ref):  # it only passes through: the cut is in the caller
                scope, value = outer, bound
                continue
        if scope.output is not None and scope.output.args[:1] == (value,):
            scope, value = outer, Ref(call.id)  # it is what the scope returns: cut after its call
            continue
        if _shortened(draft, step, scope, value):
            scope, value = draft.graph.scopes[up], Ref(call.id)
            continue
        scope = draft.open_into(outer, call.id)
        draft.set_scope(scope)
        opened = True
    out = scope.output
    if out.args[:1] == (value,) and not opened:
        _claim(draft, step, source)
        return
    if not opened and draft.edits == kept_edits:
        last = _tail(draft, scope, value)
        if last is not None:
            path = last.target
            comment = _dropped(draft, path, scope, value)
            draft.assign(
                Assign(step, comment, path, parse("nn.Identity()")), path, nn.Identity(), "Identity"
            )
            _claim(draft, step, source)
            return
    changed = rewrite.returning(scope, value)
    draft.set_scope(changed)
    gone = [n for n in base.root.nodes if n.id in before_ids and not n.glue and n.kind != "output"
            and n.id not in {m.id for m in changed.nodes} and not _inside(draft, n, changed)]  # fmt: skip
    lost = params_before - parameters(draft)
    names = [_word(n) for n in gone]
    shape = shape_text(node.shape, batch_of(draft.base)) if node.shape else ""
    comment = f"cut {words}: " + _goes(names, lost)
    into = shape_text(
        next((n.shape for n in changed.inputs if n.shape), None), batch_of(draft.base)
    )
    name = words.partition(" ")[2]
    upto = "up to" if words.startswith("after") else "up to what enters"
    doc = f"{upto} `{name}`" + (f": {into} → {_shape_of(changed, value, draft)}" if shape else "")
    suffix = ("To" if words.startswith("after") else "Before") + camel(name)
    draft.rewire(changed, step, suffix=suffix, doc=doc, comment=comment)
    _claim(draft, step, source)


def _shape_of(scope: Scope, value: Any, draft: Draft) -> str:
    if isinstance(value, Ref):
        return shape_text(scope.by_id[value.id].shape, batch_of(draft.base))
    return ", ".join(
        shape_text(scope.by_id[r.id].shape, batch_of(draft.base)) for r in iter_refs(value)
    )


def _inside(draft: Draft, node: Node, changed: Scope) -> bool:
    """Whether a scope call was opened rather than dropped."""
    if node.child is None:
        return False
    inner = (
        {n.id for n in draft.base.scopes[node.child].nodes}
        if node.child in draft.base.scopes
        else set()
    )
    deep = {n.id for n in changed.nodes}
    return bool(inner & deep) or any(
        k.startswith(node.child + ".") and {n.id for n in s.nodes} & deep
        for k, s in draft.base.scopes.items()
    )


def _goes(names: list[str], lost: int) -> str:
    words = names if len(names) <= 6 else [*names[:5], f"{len(names) - 5} more"]
    text = (
        ", ".join(words[:-1]) + f" and {words[-1]}"
        if len(words) > 1
        else "".join(words) or "the rest"
    )
    verb = "go" if len(names) != 1 else "goes"
    return f"{text} {verb}" + (f", with {lost:,} parameters" if lost else "")


def _word(node: Node) -> str:
    return node.target if node.kind == "module" else node.type


def parameters(draft: Draft) -> int:
    """How many parameters the live calls of the base model reach, each once."""
    seen: dict[int, int] = {}
    for node in draft.live_nodes():
        if node.kind == "module" and node.child is None and node.target not in draft.made:
            for p in draft.model.get_submodule(node.target).parameters():
                seen[id(p)] = p.numel()
        elif node.kind == "parameter":
            owner, _, attr = str(node.target).rpartition(".")
            p = getattr(draft.model.get_submodule(owner), attr, None)
            if isinstance(p, nn.Parameter):
                seen[id(p)] = p.numel()
    return sum(seen.values())


def sources_of(draft: Draft, scope: Scope, value: Any) -> tuple[str, ...]:
    """The flat base nodes that make each part of a value; empty where a step made one of them."""
    refs = list(iter_refs(value))
    found = []
    for ref in refs:
        source = draft.graph.sources(scope.key, ref)
        if len(source) != 1 or source[0] not in draft.base.by_id:
            return ()
        found.append(source[0])
    upstream_edits = draft.edits or draft.rewires
    return () if upstream_edits else tuple(found)


def _claim(draft: Draft, step: int, source: tuple[str, ...]) -> None:
    draft.claims.clear()  # an earlier promise was about an output that is gone
    if len(source) == 1:
        draft.claims[step] = OutputEquals(source[0])


def _shortened(draft: Draft, step: int, scope: Scope, value: Any) -> bool:
    """Cut inside a plain container: its end goes, and the cut moves out to its call."""
    if not (isinstance(value, Ref) and draft.is_sequential(scope)):
        return False
    node = scope.by_id[value.id]
    if node.kind != "module" or node.target.rpartition(".")[0] != scope.path:
        return False
    if len(draft.calls_of(scope.path)) != 1:
        return False
    module = draft.module(scope.path)
    if type(module) is not nn.Sequential or node.step is not None:
        return False
    names = list(module._modules)
    keep = names.index(node.target.rpartition(".")[2]) + 1
    if any(n.startswith("@") for n in scope.by_id):
        return False
    shorten(draft, step, scope.path, keep)
    return True


def _tail(draft: Draft, scope: Scope, value: Any) -> Node | None:
    """The one module call between `value` and the output, if that is all there is."""
    if not isinstance(value, Ref):
        return None
    out = scope.output.args[0]
    if not isinstance(out, Ref):
        return None
    node = scope.by_id[out.id]
    if node.kind != "module" or node.refs != (value.id,) or len(draft.calls_of(node.target)) != 1:
        return None
    if node.kwargs or node.args != (value,):
        return None
    return node


def _dropped(draft: Draft, path: str, scope: Scope, value: Ref) -> str:
    node = scope.by_id[value.id]
    sources = draft.graph.sources(scope.key, value)
    made = draft.graph.by_id[sources[0]] if sources else node
    shape = made.shape
    kind = "vector" if shape is not None and len(shape) == 2 else "value"
    pooled = "pooled " if _pooled(draft, made) else ""
    return (
        f"drop {path}: the output is the {pooled}{kind} {shape_text(shape, batch_of(draft.base))}"
    )


OPERATION = Cut()
