"""cut: the model ends at a node; what comes after it goes, with its parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from .. import rewrite
from ..claims import OutputEquals
from ..draft import Draft, batch_of, camel, shape_text
from ..edits import Assign
from ..errors import StepError
from ..expression import parse
from ..graph import Node, Ref, Scope, iter_refs, map_refs
from ..targets import call_name, one, spelled_where
from .base import Offer, Operation
from .remove import _pooled, shorten


class Cut(Operation):
    """The value ``after`` a node, or what enters it (``before``), becomes the output."""

    name = "cut"
    order = 40
    takes = ("after", "before")

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
    """Make `value`, seen from `scope`, the output of the model; edits the draft in the smallest way.

    Every level ends at the value in turn: a container loses its end, a block gets a class that holds
    only what it still uses, and the level above is cut after its call.
    """
    source = sources_of(draft, scope, value)
    shape = _shapes(draft, scope, value)
    before, name = words.startswith("before"), words.partition(" ")[2]
    edits = len(draft.edits)
    while scope.key != "":
        up = draft.graph.parent(scope.key)
        call = scope.caller
        inputs = {n.id for n in scope.inputs}
        if all(r.id in inputs and r.id in scope.bindings for r in iter_refs(value)):
            value = map_refs(value, lambda r, s=scope: s.bindings[r.id])
            scope = draft.graph.scopes[up]  # it only passes through: the cut is in the caller
            continue
        if scope.output.args[:1] == (value,):
            scope, value = draft.graph.scopes[up], Ref(call)  # it is what the scope returns
            continue
        if not _shortened(draft, step, scope, value):
            place = name[len(scope.path) + 1 :] if name.startswith(scope.path + ".") else name
            _rewired(draft, step, scope, value, before, place, f"{scope.path}: ends {words}", shape)
        scope, value = draft.graph.scopes[up], Ref(call)
    if scope.output.args[:1] == (value,):
        _claim(draft, step, source)
        return
    if len(scope.inputs) == 1 and _shortened(draft, step, scope, value):
        _claim(draft, step, source)
        return
    last = _tail(draft, scope, value)
    if last is not None and len(draft.edits) == edits and not draft.rewires:
        path = last.target
        draft.assign(
            Assign(step, _dropped(draft, path, scope, value), path, parse("nn.Identity()")),
            {path: nn.Identity()},
        )
    else:
        held = parameters(draft)
        kept = {n.id for n in rewrite.returning(scope, value).nodes}
        gone = [n for n in scope.nodes if n.id not in kept and not n.glue]
        _rewired(draft, step, scope, value, before, name, "", shape)
        rewire = draft.rewires[""]
        comment = f"cut {words}: " + _goes([_word(n) for n in gone], held - parameters(draft))
        draft.rewires[""] = dataclasses.replace(rewire, comments=(*rewire.comments[:-1], comment))
    _claim(draft, step, source)


def _rewired(
    draft: Draft,
    step: int,
    scope: Scope,
    value: Any,
    before: bool,
    place: str,
    comment: str,
    shape: str,
) -> None:
    """The class of a scope that ends at `value`."""
    batch = batch_of(draft.base)
    into = next((draft.shape(n) for n in scope.inputs if n.shape), None)
    upto = f"{'up to what enters' if before else 'up to'} `{place}`"
    draft.rewire(
        rewrite.returning(scope, value), step,
        suffix=("Before" if before else "To") + camel(place),
        doc=f"{upto}: {shape_text(into, batch)} → {shape}", comment=comment,
    )  # fmt: skip


def _shapes(draft: Draft, scope: Scope, value: Any) -> str:
    """The shapes of a value, as it is made."""
    batch, parts = batch_of(draft.base), []
    for ref in iter_refs(value):
        made = draft.graph.sources(scope.key, ref)
        node = draft.graph.by_id[made[0]] if len(made) == 1 else scope.by_id[ref.id]
        parts.append(shape_text(draft.shape(node), batch))
    return (
        parts[0] if len(parts) == 1 else f"{len(parts)} values, {', '.join(dict.fromkeys(parts))}"
    )


def _goes(names: list[str], lost: int) -> str:
    names = [n for n in dict.fromkeys(names) if n not in ("getitem", "getattr")] or names
    words = names if len(names) <= 6 else [*names[:5], f"{len(names) - 5} more"]
    text = (
        ", ".join(words[:-1]) + f" and {words[-1]}"
        if len(words) > 1
        else "".join(words) or "the rest"
    )
    verb = "go" if len(names) != 1 else "goes"
    return f"{text} {verb}" + (f", with {lost:,} parameters" if lost else "")


def _word(node: Node) -> str:
    return node.target if node.kind in ("module", "parameter") else node.type


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
        if len(source) != 1 or source[0] not in draft.base.by_id or _built(draft, scope, ref):
            return ()
        if draft.base.by_id[source[0]].kind == "input":
            return ()  # what comes in says nothing about the model
        if len(draft.base.by_id[source[0]].outputs) != 1:
            return ()  # a part of what it returns: the whole is another value
        found.append(source[0])
    upstream_edits = draft.edits or draft.rewires
    return () if upstream_edits else tuple(found)


def _built(draft: Draft, scope: Scope, ref: Ref) -> bool:
    """Whether a value is something made around another: an output object with one tensor in it."""
    node = draft.graph.by_id[ref.id]
    while node.child in draft.graph.scopes or node.kind == "input" and scope.key:
        if node.kind == "input":
            value, scope = (
                scope.bindings.get(node.id),
                draft.graph.scopes[draft.graph.parent(scope.key)],
            )
        else:
            scope = draft.graph.scopes[node.child]
            value = scope.output.args[0] if scope.output is not None else None
        if not isinstance(value, Ref):
            return True
        node = draft.graph.by_id[value.id]
    return node.glue and node.type not in ("getitem", "getattr")


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
    if scope.path and len(draft.calls_of(scope.path)) != 1:
        return False
    module = draft.module(scope.path)
    if node.step is not None:
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
    shape = draft.shape(made)
    kind = "vector" if shape is not None and len(shape) == 2 else "value"
    pooled = "pooled " if _pooled(draft, made) else ""
    return (
        f"drop {path}: the output is the {pooled}{kind} {shape_text(shape, batch_of(draft.base))}"
    )


OPERATION = Cut()
