"""tap: inner values become the output, as a dict under names of the person's choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import nn

from .. import rewrite
from ..claims import OutputsEqual, PartEqualsOutput
from ..draft import Draft, conjoined
from ..edits import NewModule
from ..errors import StepError
from ..expression import weights_said
from ..graph import Graph, Node, Ref, Scope
from ..targets import call_name, one
from .base import (
    Field,
    Offer,
    Operation,
    attribute_name,
    is_moded,
    need,
    new_module,
    place_of,
    suffix_for,
)  # fmt: skip
from .cut import _goes, _word, sources_of


class Tap(Operation):
    """``nodes`` maps the name of a call to the key of its value; ``output`` keeps the original."""

    name = "tap"
    order = 50
    takes = ("nodes", "keys", "output", "head")

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if not nodes or any(n.kind in ("output", "parameter", "constant") for n in nodes):
            return []
        names = [call_name(draft.graph, n.id) for n in nodes]
        keys = ", ".join(_key(n) for n in names)
        fields = (
            Field("keys", "Keys", "text", keys, (), "one name for each value, with commas"),
            Field("output", "Keep the output as", "text", "", (), "empty: only the values tapped"),
        )
        label = (
            "Tap: return this value"
            if len(nodes) == 1
            else f"Tap: return these {len(nodes)} values"
        )
        found = [Offer("tap", label, "Cut", fields, {"nodes": names}, len(nodes))]
        if len(nodes) == 1 and len(nodes[0].outputs) == 1 and (head := _head(draft, nodes[0])):
            found.append(
                Offer("tap", "Add an auxiliary head", "Add",
                      (Field("head", "Head", "code", head, (head,), "reads this value"),
                       Field("keys", "Its key", "text", "aux", (), "in the dict that is returned"),
                       Field("output", "Key of the output", "text", "out")),
                      {"nodes": names}, 1)
            )  # fmt: skip
        return found

    def as_form(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        nodes = arguments.get("nodes")
        if not isinstance(nodes, Mapping):
            return arguments
        return {**arguments, "nodes": list(nodes), "keys": ", ".join(map(str, nodes.values()))}

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        wanted = _wanted(arguments)
        keep = arguments.get("output") or None
        if keep is not None and not isinstance(keep, str):
            raise StepError(
                f"output={keep!r} is no key; keep the output under a text such as 'out'"
            )
        if draft.graph.root.output is None:
            raise StepError("the run of this model failed, so there is no output to change")
        if keep in wanted.values():
            raise StepError(f"the key {keep!r} is used for a tapped value and for the output")
        alone, before = not draft.edits and not draft.rewires, set(draft.graph.by_id)
        picked: dict[str, str] = {}
        claims: dict[str, str] = {}
        places: dict[str, str] = {}
        for name, key in wanted.items():
            node = one(draft, name if not isinstance(name, str) else _where(draft, name), "tap")
            if node.kind == "output":
                raise StepError(f"the output is kept with output={key!r}")
            places[key] = node.id
        given = {
            s.caller: s.output.args[0].id
            for s in draft.graph.scopes.values()
            if s.caller and s.output is not None and isinstance(s.output.args[0], Ref)
        }
        for id in places.values():  # opens what has to be opened
            if id in draft.graph.by_id:
                to_root(draft, draft.scope_of(draft.node(id)), Ref(id))
        for key, id in places.items():
            while (
                id not in draft.graph.by_id and id in given
            ):  # a call that another place has opened
                id = given[id]
            scope, value = to_root(draft, draft.scope_of(draft.node(id)), Ref(id))
            source = sources_of(draft, scope, value)
            picked[key] = value.id
            if source:
                claims[key] = source[0]
        scope = draft.graph.root
        original = scope.output.args[0]
        new: dict[str, NewModule] = {}
        if arguments.get("head"):
            scope, new = _with_heads(draft, step, scope, picked, arguments["head"])
        value = {key: Ref(id) for key, id in picked.items()}
        if keep:
            value[keep] = original
        changed = rewrite.returning(scope, value, picked.values(), effects=bool(keep))
        names: dict[str, str] = {}
        for key, id in picked.items():
            changed, kept = _protected(changed, step, key, id)
            if key.isidentifier():
                names[kept] = key
        if keep and keep.isidentifier() and isinstance(original, Ref):
            names.setdefault(original.id, keep)
        draft.set_scope(changed)
        gone = list(_gone(draft.base, {n.id for n in changed.nodes}, before))
        what = _listed([n if isinstance(n, str) else n["call"] for n in wanted])
        rest = "; " + _goes([_word(n) for n in gone], 0) if gone else ""
        keys = _listed([f"`{k}`" for k in picked])
        if new:
            heads = _listed([f"`self.{attr}`" for attr in new])
            head = next(iter(new.values())).new
            weights = weights_said(head, draft.made[next(iter(new))], draft.namespace)
            rest = f", through {heads}: {head.short}{weights}{rest}"
        on = "" if not new else "auxiliary heads on " if len(new) > 1 else "an auxiliary head on "
        own = f", and its own output as `{keep}`" if keep else ""
        if not keep and "" in draft.rewires:  # an earlier tap is moot: nothing returns its values
            draft.rewires[""] = draft.rewires[""].without("Features")
        draft.rewire(
            changed, step, suffix="Features",
            doc=f"that returns {on}{_meaning(draft, list(wanted))} as {keys}{own}",
            comment=f"tap {what}{rest}", names=names, new=new,
        )  # fmt: skip
        draft.claims.clear()
        if new:
            if keep and alone:
                draft.claims[step] = PartEqualsOutput(keep)
        elif alone and len(claims) == len(picked):
            draft.claims[step] = OutputsEqual(claims)
        return len(picked)

    def text(self, arguments: Mapping[str, Any]) -> str:
        wanted = _wanted(arguments)
        parts = [f"{n if isinstance(n, str) else n['call']} as {k}" for n, k in wanted.items()]
        head = f", through {arguments['head']}" if arguments.get("head") else ""
        return "tap " + ", ".join(parts) + head


def _head(draft: Draft, node: Node) -> str | None:
    """An auxiliary head for a value, as wide as the model's own output; ``None`` where none fits."""
    shape, result = node.shape, draft.graph.root.output
    if shape is None or len(shape) < 2 or result is None or "float" not in node.outputs[0].dtype:
        return None
    classes = result.shape[-1] if result.shape is not None and len(result.shape) == 2 else 10
    if len(shape) in (4, 5):
        pool = f"nn.AdaptiveAvgPool{len(shape) - 2}d(1)"
        return f"nn.Sequential({pool}, nn.Flatten(), nn.Linear({shape[1]}, {classes}))"
    return f"nn.Linear({shape[-1]}, {classes})"


def _with_heads(
    draft: Draft, step: int, scope: Scope, picked: dict[str, str], text: Any
) -> tuple[Scope, dict[str, NewModule]]:
    """A new module behind each picked value, read by the output alone; `picked` names them then."""
    expr, made = new_module(draft, text, None)
    if not isinstance(made, nn.Module):
        raise StepError(f"a head is a module, and {expr.text!r} makes a function")
    new: dict[str, NewModule] = {}
    for key, id in picked.items():
        wanted = key if key.isidentifier() else attribute_name(made, expr)
        attr = rewrite.unique_name(draft.attribute(scope, wanted), new)
        node = scope.by_id[id]
        head = Node(
            f"@{step}#{attr}", scope.key, "module", attr, type(made).__name__, attr, (Ref(id),), step=step
        )  # fmt: skip
        scope = rewrite.placed(scope, head, rewrite.position_after(scope, id))
        new[attr] = NewModule(expr, suffix_for(draft, made, place_of(draft, node)), is_moded(made))
        draft.made[attr] = made
        picked[key] = head.id
    return scope, new


def _key(name: str) -> str:
    return name.replace(".", "_")


def _wanted(arguments: Mapping[str, Any]) -> dict[Any, str]:
    """Call name → key, from a dict, a list of names, or a list with a text of keys."""
    nodes = need(arguments, "nodes", "tap")
    if not nodes:
        raise StepError("tap needs at least one node, such as {'layer1': 'c2'}")
    if isinstance(nodes, Mapping):
        keys = [str(k) if type(k) is int else k for k in nodes.values()]
        for key in keys:
            if not isinstance(key, str) or not key:
                raise StepError(f"{key!r} is no key; a value is tapped under a text such as 'c2'")
        if len(set(keys)) != len(keys):
            raise StepError(f"each tapped value needs a key of its own; given are {keys}")
        return dict(zip(nodes, keys, strict=True))
    nodes = [
        n["call"] if isinstance(n, Mapping) else n
        for n in (nodes if isinstance(nodes, list) else [nodes])
    ]
    if not all(isinstance(n, str) for n in nodes):
        raise StepError(f"tap takes names of nodes, not {nodes!r}")
    text = arguments.get("keys")
    keys = [k.strip() for k in text.split(",")] if text else [_key(n) for n in nodes]
    if len(keys) != len(nodes):
        raise StepError(f"{len(nodes)} values are tapped, and {len(keys)} keys given: {text!r}")
    if len(set(keys)) != len(keys):
        raise StepError(f"each tapped value needs a key of its own; given are {keys}")
    return dict(zip(nodes, keys, strict=True))


def _where(draft: Draft, name: str) -> Any:
    return {"call": name} if name in draft.graph.by_name or name in draft.graph.scopes else name


def to_root(draft: Draft, scope: Scope, value: Ref) -> tuple[Scope, Ref]:
    """Bring a value up to the root's own graph, opening scopes only where it does not come out."""
    while scope.key != "":
        up = draft.graph.parent(scope.key)
        outer = draft.graph.scopes[up]
        if scope.by_id[value.id].kind == "input":
            bound = scope.bindings.get(value.id)
            if isinstance(bound, Ref):
                scope, value = outer, bound
                continue
        if scope.output is not None and scope.output.args[:1] == (value,):
            scope, value = outer, Ref(scope.caller)
            continue
        opened = draft.open_into(outer, scope.caller)
        draft.set_scope(opened)
        scope = opened
    return scope, value


def _protected(scope: Scope, step: int, key: str, id: str) -> tuple[Scope, str]:
    """A value that a later node overwrites in place is kept as a clone, made before that happens."""
    if rewrite.overwritten_later(scope, id) is None:
        return scope, id
    clone, out = f"@{step}#{key}", scope.output
    value = {k: (Ref(clone) if k == key else v) for k, v in out.args[0].items()}
    changed = rewrite.exchanged(scope, out.with_(args=(value,)))
    return rewrite.kept(changed, id, clone, step), clone


def _listed(names: list[str]) -> str:
    if len(names) > 3:
        return f"{names[0]} … {names[-1]}"
    return conjoined(names)


def _meaning(draft: Draft, names: list[Any]) -> str:
    words = [n if isinstance(n, str) else n["call"] for n in names]
    if words == [f"layer{i}" for i in range(1, 5)]:
        return "the outputs of its four stages"
    return f"the output{'s' if len(words) > 1 else ''} of {_listed([f'`{w}`' for w in words])}"


def _gone(base: Graph, live: set[str], before: set[str], key: str = "") -> Iterator[Node]:
    """What ran before a step and runs no more, from outside in; of opened modules, their layers."""
    for node in base.scopes[key].nodes:
        if node.glue or node.kind in ("output", "input") or node.id in live:
            continue
        if node.child in base.scopes and base.within(node.child) & live:
            yield from (n for n in _gone(base, live, before, node.child) if n.kind == "module")
        elif node.id in before:
            yield node


OPERATION = Tap()
