"""remove: a module, a block or an operation goes; its neighbours keep their names and weights."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from .. import rewrite, source
from ..draft import Draft, batch_of, by_scope, camel, conjoined, describe, describe_all, shape_text
from ..edits import Assign, Edit, Place, Shorten
from ..errors import StepError, an
from ..expression import parse
from ..graph import Node, Ref, Scope
from ..targets import Passed, Target, call_name, one, outermost, resolve, spelled_where
from .base import Field, Offer, Operation, edge, need


@dataclass(frozen=True)
class PassThrough(Edit):
    """In the place of a module that an ``nn.Identity`` cannot stand for.

    Attributes:
        path: Of the module.
        given: The parameters of its forward up to the last one that goes on; empty for the first alone.
        carried: What goes on, by name; ``None`` for ``None``. Several make a tuple.
        kept: Attributes of the module that the code around it reads.
        kind: The module's class, to name this one where it is not the plain one.
    """

    replaces = True
    path: str
    given: tuple[str, ...] = ("x",)
    carried: tuple[str | None, ...] = ("x",)
    kept: tuple[str, ...] = ()
    kind: str = ""

    def lines(self, place: Place) -> list[str]:
        place.need("from torch import nn")
        names = [f"`{n}`" for n in self.carried if n is not None]
        what = "its first argument" if self.given == ("x",) else conjoined(names)
        name = f"PassThrough{self.kind}"
        text = f'class {name}(nn.Module):\n    """Hands {what} on."""\n\n'
        if self.kept:
            text += "    def __init__(self, block):\n        super().__init__()\n"
            text += "".join(f"        self.{a} = block.{a}\n" for a in self.kept) + "\n"
        text += f"    def forward(self, {', '.join(self.given)}, *args, **kwargs):\n"
        text += f"        return {', '.join(map(str, self.carried))}"
        place.define(text)

        value = f"{name}({place.spelled(self.path) if self.kept else ''})"
        return [place.assigned_everywhere(self.path, value)]


class Remove(Operation):
    """Take ``where`` out: an ``nn.Identity()`` in its place, or a shorter container."""

    name = "remove"
    order = 20
    takes = ("where", "keep")
    resizes = True

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if not nodes or any(n.kind not in ("module", "function", "method") for n in nodes):
            return []
        if any(not n.refs for n in nodes):
            return []
        served = draft.everywhere(nodes)
        where = [
            n.target if n.kind == "module" else {"call": call_name(draft.graph, n.id)}
            for n in served
        ]
        where = [w for i, w in enumerate(where) if w not in where[:i]]
        targets = resolve(draft, where)
        calls = sum(len(t.nodes) for t in targets)
        label = "Remove" if len(nodes) == 1 else f"Remove {len(targets)} places"
        note = f"{calls} calls" if calls > len(targets) else ""
        fields = ()
        if len(served) == 1 and nodes[0].kind != "module" and (read := _operands(draft, nodes[0])):
            fields = (
                Field("keep", "Goes on", "choice", read[0], read, "the others lead nowhere then"),
            )
        return [
            Offer("remove", label, "Change", fields,
                  {"where": where if len(where) > 1 else where[0]}, len(targets), note)
        ]  # fmt: skip

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        targets = outermost(draft, resolve(draft, need(arguments, "where", "remove")))
        for target in targets:
            if target.node.kind not in ("module", "function", "method"):
                raise StepError(
                    f"{target.node.name!r} is {an(target.node.kind)}; remove takes modules, functions "
                    "and methods"
                )
        keep = arguments.get("keep")
        if keep is not None and (len(targets) > 1 or targets[0].path is not None):
            raise StepError(
                "keep= names what goes on of the values that one call reads, such as an addition"
            )
        whole = [t for t in targets if t.path is not None]
        for target in [t for t in whole if not draft.exists(t.path)]:
            whole.remove(target)
            if not draft.withdraw(draft.node(target.node.id)):
                raise StepError(f"{target.path!r} was added by an earlier step: drop that step")
        rest = self._shorten(draft, step, whole)
        for target in rest:
            self._identity(draft, step, target)
        calls = draft.once((t.node for t in targets if t.path is None), step)
        here = by_scope(calls)
        words = {key: f"without {describe_all(draft, found)}" for key, found in here.items()}
        for node in calls:  # as the removal of its neighbour left it
            self._bypass(draft, step, draft.node(node.id), keep)
        plain = {k: found for k, found in here.items() if not self._explained(draft, step, k)}
        draft.say_once(step, plain, lambda key: (words[key], words[key]))
        return len(targets)

    @staticmethod
    def _explained(draft: Draft, step: int, key: str) -> bool:
        """Whether a comment says more of a removal than that: what goes on in its place."""
        rewire = draft.rewires.get(key)
        told = zip(rewire.comments, rewire.steps, strict=True) if rewire is not None else ()
        return any(made == step and ";" in comment for comment, made in told)

    def text(self, arguments: Mapping[str, Any]) -> str:
        keep = f", {spelled_where(arguments['keep'])} goes on" if arguments.get("keep") else ""
        return f"remove {spelled_where(arguments['where'])}{keep}"

    def _shorten(self, draft: Draft, step: int, targets: list[Target]) -> list[Target]:
        """Ends of containers are cut off; gives back the targets that stand elsewhere."""
        by_parent: dict[str, list[Target]] = {}
        for t in targets:
            by_parent.setdefault(t.path.rpartition(".")[0], []).append(t)
        rest: list[Target] = []
        for parent, group in by_parent.items():
            keep = self._kept(draft, parent, group)
            if keep is None:
                rest += group
            else:
                shorten(draft, step, parent, keep)
        return rest

    def _kept(self, draft: Draft, parent: str, group: list[Target]) -> int | None:
        """How many children stay, if the group is the end of a plain container; else ``None``."""
        container = draft.module(parent)
        if type(container) not in (nn.Sequential, nn.ModuleList) or parent == "":
            return None
        names = list(container._modules)
        for edit in draft.edits:
            if isinstance(edit, Shorten) and edit.path == parent:
                names = names[: edit.keep]
        gone = {t.path.rpartition(".")[2] for t in group}
        keep = len(names)
        while keep and (names[keep - 1] in gone or _emptied(draft, f"{parent}.{names[keep - 1]}")):
            keep -= 1
        if keep == 0 or not gone <= set(names[keep:]):
            return None
        if type(container) is nn.ModuleList:
            made = any(f"{parent}.{n}" in draft.made for n in names[:keep])
            if made or not _in_a_row(draft, [f"{parent}.{n}" for n in names[keep - 1 :]]):
                return None
        return keep

    def _identity(self, draft: Draft, step: int, target: Target) -> None:
        old = draft.module(target.path)
        node = target.node
        if not node.refs:
            raise StepError(f"{target.path!r} reads no value that could take its place")
        carried = {_carried(draft, draft.node(call.id)) for call in target.nodes}
        if len(carried) > 1:
            raise StepError(
                f"{target.path!r} is called in several ways; remove its calls one by one"
            )
        (keys,), kept = carried, _read_outside(draft, target, old)
        comment = _gone(draft, target, old)
        if (
            keys == (0,)
            and not kept
            and all(len(n.args) == 1 and not n.kwargs for n in target.nodes)
        ):
            edit: Edit = Assign(step, comment, target.path, parse("nn.Identity()"))
            draft.assign(edit, {target.path: nn.Identity()})
            return
        given, names = _named(old, keys)
        kind = camel(type(old).__name__) if kept or len(names) > 1 else ""
        if not kind and given != ("x",):
            kind = camel(given[0])
        edit = PassThrough(step, comment, target.path, given, names, kept, kind)
        stands = Passed(keys if len(keys) > 1 else None)
        draft.assign(edit, {target.path: stands})

    def _bypass(self, draft: Draft, step: int, node: Node, keep: Any = None) -> None:
        if len(node.outputs) > 1:
            raise _several(node.name)
        scope = draft.scope_of(node)
        source = next((a for a in node.args if isinstance(a, Ref)), None)
        if keep is not None:
            kept = edge(draft, one(draft, keep, "keep"), node)
            if not kept:
                names = ", ".join(map(repr, _operands(draft, node))) or "one value"
                raise StepError(
                    f"{node.name!r} does not read {spelled_where(keep)}; it reads {names}"
                )
            source = Ref(kept[0])
        if source is None:
            source = next((Ref(id) for id in node.refs), None)
        if source is None:
            raise StepError(f"{node.name!r} reads no value that could take its place")
        others = [r for r in node.refs if r != source.id and draft.node(r).outputs]
        what = describe(draft, node)
        comment = f"{scope.path or 'the model'}: without {what}"
        if others:
            comment += f"; {describe(draft, draft.node(source.id))} goes on alone"
        changed = rewrite.without_dead(rewrite.bypassed(scope, node.id, source.id))
        draft.rewire(
            changed, step, suffix=f"No{_piece(node)}", doc=f"without {what}", comment=comment
        )


def _in_a_row(draft: Draft, paths: Sequence[str]) -> bool:
    """Whether a loop that ends after the first of these layers gives what bypassing the others gives.

    It does where each hands its value to the next, on the same line, and nothing collects them.
    """
    for scope in draft.graph.scopes.values():
        calls = [n for n in scope.nodes if n.kind == "module" and n.target in paths]
        if [n.target for n in calls] != list(paths):
            continue  # called elsewhere, or several times
        by_id = scope.by_id
        for before, call in itertools.pairwise(calls):
            if call.frames[-1:] != before.frames[-1:] or not call.refs:
                return False
            read = by_id[call.refs[0]]
            if read is not before and not (read.type == "getitem" and read.refs[0] == before.id):
                return False
            handed = {before.id, read.id}
            own = {n.id for n in scope.nodes if n.type == "getitem" and n.refs[:1] == (call.id,)}
            own.add(call.id)
            if any(handed & set(n.refs) and own & set(n.refs) for n in scope.nodes):
                return False
    return True


def _operands(draft: Draft, node: Node) -> tuple[str, ...]:
    """Names of the values that a call reads, where there are several of its result's shape."""
    by_id = draft.graph.by_id
    read = [by_id[id] for id in draft.graph.inputs_of(node.id)]
    names = tuple(n.name for n in read if n.outputs and n.shape == node.shape)
    return names if len(names) > 1 else ()


def _piece(node: Node) -> str:
    return camel(node.type if node.kind != "module" else node.target.rpartition(".")[2])


def _carried(draft: Draft, node: Node) -> tuple[int | str | None, ...]:
    """Where among its arguments a call finds what can go on in the place of each value it returns.

    In a loop that hands several values from layer to layer, each goes on as it came.

    Raises:
        StepError: It returns something that is not among what it reads.
    """
    child = draft.graph.scopes.get(node.child)
    result = child.output.args[0] if child is not None and child.output is not None else None
    several = len(node.outputs) > 1 if child is None else not isinstance(result, Ref)
    scope = draft.scope_of(node)
    read = set(_parts(scope, node).values())
    if not several and not any(isinstance(key, str) for key in read):
        return (0 if node.args and isinstance(node.args[0], Ref) else _first_name(node),)
    places = _places_in_loop(scope, node)
    given = {**dict(enumerate(node.args)), **node.kwargs}
    keys: list[int | str | None] = []
    for i, value in enumerate(result if isinstance(result, tuple) else ()):
        key = places.get(i)
        if key is None and (value is None or i not in read):
            keys.append(None)
        elif key is not None and isinstance(given.get(key), Ref):
            keys.append(key)
        else:
            keys.clear()
            break
    if not keys or keys[0] is None:
        raise _several(node.target)
    return tuple(keys)


def _several(name: str) -> StepError:
    return StepError(
        f"{name!r} returns several values, and what it reads cannot take their place; "
        "remove a part of it, or replace it with a module that returns as many"
    )


def _places_in_loop(scope: Scope, node: Node) -> dict[int, int | str]:
    """For each value that a layer returns, the argument by which the next layer takes it."""

    def taken(giver: Node, reader: Node) -> dict[int, int | str]:
        parts = _parts(scope, giver)
        given = [*enumerate(reader.args), *reader.kwargs.items()]
        return {parts[v.id]: key for key, v in given if isinstance(v, Ref) and v.id in parts}

    layers = [n for n in scope.nodes if n.kind == "module" and n.type == node.type]
    at = next(i for i, n in enumerate(layers) if n.id == node.id)
    found = taken(layers[at - 1], node) if at else {}
    return found or (taken(node, layers[at + 1]) if at + 1 < len(layers) else {})


def _named(
    old: nn.Module, keys: tuple[int | str | None, ...]
) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """The parameters that a stand-in takes by name, and those of them that it hands on."""
    if keys == (0,):
        return ("x",), ("x",)
    if len(keys) == 1:
        return (str(keys[0]),), (str(keys[0]),)
    names = list(inspect.signature(type(old).forward).parameters)[1:]
    last = max((k for k in keys if isinstance(k, int)), default=-1)
    given = tuple(names[: last + 1]) + tuple(k for k in keys if isinstance(k, str))
    return given, tuple(names[k] if isinstance(k, int) else k for k in keys)


def _read_outside(draft: Draft, target: Target, old: nn.Module) -> tuple[str, ...]:
    """Plain attributes of a module that the forward around it reads (``layer.attention_type``)."""
    read = set()
    for frame in {f for n in target.nodes for f in n.frames}:
        _, call = source.expression(frame)
        definition = source.function_def(frame.code)
        if not isinstance(call, ast.Call) or definition is None:
            continue
        name = ast.unparse(call.func)  # the variable that holds the module there
        read |= {
            n.attr for n in ast.walk(definition)
            if isinstance(n, ast.Attribute) and ast.unparse(n.value) == name
        }  # fmt: skip
    plain = {k for k in vars(old) if not k.startswith("_") and k != "training"}
    return tuple(sorted(k for k in read & plain if not callable(vars(old)[k])))


def _parts(scope: Scope, node: Node) -> dict[str, Any]:
    """The readers of single parts of what a node returns, with the key or number of the part."""
    return {
        n.id: n.args[1] for n in scope.users(node.id)
        if n.type == "getitem" and n.args[:1] == (Ref(node.id),)
    }  # fmt: skip


def _first_name(node: Node) -> str:
    """The name of the first value that is handed over by name."""
    if node.args:
        raise StepError(f"{node.target!r} does not read a value in first place that could go on")
    return next(k for k, v in node.kwargs.items() if isinstance(v, Ref))


def _emptied(draft: Draft, path: str) -> bool:
    """Whether an earlier step left nothing but a placeholder there."""
    return any(
        isinstance(e, PassThrough)
        and e.path == path
        or isinstance(e, Assign)
        and e.path == path
        and e.new.text == "nn.Identity()"
        for e in draft.edits
    )


def _gone(draft: Draft, target: Target, old: nn.Module) -> str:
    """The comment for a module that goes."""
    params = sum(p.numel() for p in old.parameters())
    node = target.node
    out = draft.graph.root.output
    if out is not None and out.args and out.args[0] == Ref(node.id) and node.scope == "":
        sources = draft.graph.inputs_of(node.id)
        value = draft.graph.by_id[sources[0]] if len(sources) == 1 else None
        if value is not None and value.shape is not None:
            kind = "vector" if len(value.shape) == 2 else "value"
            pooled = "pooled " if _pooled(draft, value) else ""
            shape = shape_text(draft.shape(value), batch_of(draft.base))
            return f"drop {target.path}: the output is the {pooled}{kind} {shape}"
    weights = f" ({params:,} parameters)" if params else ""
    calls = f", called {len(target.nodes)} times," if len(target.nodes) > 1 else ""
    if any(True for _ in old.children()):
        return f"bypass {target.path}{weights}; its neighbours keep their names and weights"
    return f"{target.path}{weights}{calls} goes; its neighbours keep their names"


def _pooled(draft: Draft, node: Node) -> bool:
    """Whether a value comes from a pooling, through flattening only."""
    while node is not None:
        if "pool" in node.type.lower() or node.type == "mean":
            return True
        if node.type not in ("flatten", "Flatten", "view", "reshape", "squeeze", "Dropout"):
            return False
        sources = draft.graph.inputs_of(node.id)
        node = draft.graph.by_id[sources[0]] if len(sources) == 1 else None
    return False


def shorten(draft: Draft, step: int, path: str, keep: int, comment: str | None = None) -> None:
    """Cut the end of the container at `path` off: graph, code, and what a library keeps beside it."""
    container = draft.module(path)
    names = list(container._modules)
    gone = [f"{path}.{n}" if path else n for n in names[keep:]]
    params = sum(p.numel() for n in names[keep:] for p in container._modules[n].parameters())
    what = "layers" if isinstance(container, nn.ModuleList) else "modules"
    kind = _kinds(path, what)
    kept = f"the first {keep}" if keep > 1 else "only the first"
    lost = f"; {params:,} parameters go" if params else ""
    comment = comment or f"keep {kept} of {len(names)} {kind}{lost}"
    draft._drop_below(tuple(gone), keep_old=False)
    draft.edits = [e for e in draft.edits if not (isinstance(e, Shorten) and e.path == path)]
    draft.edits.append(Shorten(step, comment, path, keep))
    from ..libraries import beside_container

    for value_path, value in beside_container(draft.model, path, keep):
        draft.set_value(step, value_path, value)
    for key in list(draft.graph.scopes):
        if key not in draft.graph.scopes:  # it went with the end of the container
            continue
        scope = draft.graph.scopes[key]
        for node in list(scope.nodes):
            if node.kind == "module" and node.target in gone:
                source = _passed_on(scope, scope.by_id[node.id], path)  # it may read another by now
                scope = rewrite.bypassed(scope, node.id, source)
        if scope is not draft.graph.scopes[key]:
            draft.set_scope(rewrite.without_dead(scope))


def _passed_on(scope: Scope, node: Node, path: str) -> str:
    """What stands for a call that goes: what it reads, or all that its neighbour gives."""
    if not node.refs:
        raise StepError(f"{node.name!r} reads no value that could take its place")
    read = scope.by_id[node.refs[0]]
    items = any(n.type == "getitem" and n.refs[:1] == (node.id,) for n in scope.nodes)
    if items and read.type == "getitem" and read.refs:
        giver = scope.by_id[read.refs[0]]
        if giver.kind == "module" and giver.target.rpartition(".")[0] == path:
            return giver.id
    return read.id


def _kinds(path: str, what: str) -> str:
    """``encoder layers`` for ``encoder.layer``, ``modules of layer4`` for ``layer4``."""
    if not path:
        return what
    parts = path.split(".")
    if parts[-1] in ("layer", "layers", "blocks", "block", "h") and len(parts) > 1:
        word = {"layer": "layers", "h": "layers", "block": "blocks"}.get(parts[-1], parts[-1])
        return f"{word} of {'.'.join(parts[:-1])}" if parts[-2].isdigit() else f"{parts[-2]} {word}"
    if parts[-1] in ("layers", "blocks"):
        return parts[-1]
    return f"{what} of {path}"


OPERATION = Remove()
