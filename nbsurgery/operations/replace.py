"""replace: another module in the place of modules, or of single calls."""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from .. import rewrite
from ..draft import (
    Draft,
    batch_of,
    by_scope,
    call_in_scope,
    conjoined,
    describe,
    describe_all,
    is_head,
    local_name,
    number,
    ordinal,
    overwrites,
    shape_text,
)
from ..edits import Assign, Bulk, NewModule, bulk_comment
from ..errors import EmissionError, StepError, an
from ..expression import Expression, parse, weights_said, with_values
from ..fitting import empty
from ..graph import Node, Ref, Scope, map_refs
from ..targets import Target, call_name, class_of, outermost, resolve, spelled_where
from .base import (
    Alike,
    Field,
    Offer,
    Operation,
    attribute_name,
    class_piece,
    count_classes,
    count_inputs,
    is_moded,
    literals,
    need,
    new_module,
    place_of,
    suffix_for,
    written_only,
)  # fmt: skip
from .functional import class_for, with_arguments

POLICIES = ("new", "keep")


class Replace(Operation):
    """Put what ``new`` makes in the place of ``where``."""

    name = "replace"
    order = 10
    takes = ("where", "new", "weights", "strict")
    resizes = True

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        if not nodes or any(n.kind not in ("module", "function", "method") for n in nodes):
            return []
        if any(n.kind != "module" and not _tensors(n) for n in nodes):
            return []
        served = draft.everywhere(nodes)
        where = [{"call": call_name(draft.graph, n.id)} for n in served]
        first = nodes[0]
        mixed = any((n.kind, n.type) != (first.kind, first.type) for n in nodes)
        code = _code(("nn.Identity()",) if mixed else _suggestions(draft, first, len(nodes) > 1))
        bulk = _code(_suggestions(draft, first, True))
        if first.kind == "module" and first.child is None and "Norm" in first.type:
            policy = Field(
                "weights", "Weights", "choice", "keep", ("keep", "new"),
                "keep: what has the same name and shape is carried over",
            )  # fmt: skip
            whole, in_bulk = (code, policy), (bulk, policy)
        else:
            whole, in_bulk = (code,), (bulk,)
        offers = []
        if first.kind == "module" and len(nodes) == 1:
            calls = draft.calls_of(first.target)
            k, n = call_in_scope(draft, first)
            if len(calls) > len(served):
                offers.append(
                    Offer("replace", f"Replace this call only ({k} of {n} here)", "Change", (code,),
                          {"where": where if len(where) > 1 else where[0]}, 1,
                          "the module stays for its other calls")
                )  # fmt: skip
            offers.insert(
                0,
                Offer("replace", "Replace", "Change", whole, {"where": first.target}, 1,
                      f"changes {len(calls)} calls" if len(calls) > 1 else ""),
            )  # fmt: skip
            cls = type(draft.module(first.target))
            same = [n for n in draft.live_nodes() if n.kind == "module" and n.type == first.type]
            every = {"class": f"{cls.__module__}.{cls.__qualname__}"}
            modules = outermost(draft, resolve(draft, every))
            if len(modules) > 1:
                offers.append(
                    Offer("replace", f"Replace every {first.type}", "Change", in_bulk,
                          {"where": every}, len(modules), f"{len(modules)} modules, {len(same)} calls")
                )  # fmt: skip
        else:
            targets = resolve(draft, where)
            offers.append(
                Offer("replace", "Replace" if len(nodes) == 1 else f"Replace {len(targets)} places",
                      "Change", (code,), {"where": where if len(where) > 1 else where[0]}, len(targets),
                      f"in {len(served)} calls" if len(served) > len(nodes) else "")
            )  # fmt: skip
            kind = (first.kind, first.type)
            same = [n for n in draft.live_nodes() if not n.glue and (n.kind, n.type) == kind]
            if len(nodes) == 1 and len(same) > 1 and all(map(_tensors, same)):
                every = [{"call": call_name(draft.graph, n.id)} for n in same]
                offers.append(
                    Offer("replace", f"Replace every {first.type}", "Change", (bulk,),
                          {"where": every}, len(same), f"{len(same)} calls")
                )  # fmt: skip
        return offers

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        where = need(arguments, "where", "replace")
        text = need(arguments, "new", "replace")
        targets = outermost(draft, resolve(draft, where))
        if any(n.kind in ("input", "output", "parameter") for t in targets for n in t.nodes):
            raise StepError(
                f"{targets[0].node.name!r} is {an(targets[0].node.kind)}; replace takes modules, "
                "functions and methods"
            )
        whole = [t for t in targets if t.path is not None]
        for target in [t for t in whole if not draft.exists(t.path)]:
            whole.remove(target)
            _redefine(draft, target.path, text)
        policy = arguments.get("weights") or "new"
        if policy not in POLICIES:
            raise StepError(f"weights={policy!r} is no policy; take one of {', '.join(POLICIES)}")
        keep = policy == "keep"
        for target in [t for t in whole if len(draft.aliases(t.path)) > 1]:
            whole.remove(target)
            self._assign(draft, step, target, text, keep)
        if arguments.get("strict"):
            _strict(draft, where, whole)
        if len(whole) > 1:
            self._bulk(draft, step, where, whole, text, keep)
        elif whole:
            self._assign(draft, step, whole[0], text, keep)
        _replace_calls(draft, step, [t.node for t in targets if t.path is None], text)
        return len(targets)

    def text(self, arguments: Mapping[str, Any]) -> str:
        new = arguments["new"]
        return f"replace {spelled_where(arguments['where'])} with {new if isinstance(new, str) else '…'}"

    def _assign(self, draft: Draft, step: int, target: Target, text: Any, keep: bool) -> None:
        old = draft.module(target.path)
        text = with_arguments(text, target.node, [old], draft.namespace)
        expr, made = new_module(draft, text, old)
        if not isinstance(made, nn.Module):
            _replace_calls(draft, step, target.nodes, text)
            return
        _returns_as_many(draft, target, made, text)
        _read_back(draft, target, expr, made)
        unit = "classes" if is_head(draft, target.path) else "outputs"
        kept = _kept(target.path, old, made) if keep else []
        was = (
            old  # an earlier step on the same module leaves no code: tell from where the person is
        )
        if draft.exists(target.path) and not expr.whole_old:
            was = draft.model.get_submodule(target.path)
        comment = f"{target.path}: {_what_changes(was, expr, made, unit, draft.namespace)}"
        if kept:
            comment = (
                f"{target.path}: {type(old).__name__} → {expr.short}, keeps its {conjoined(kept)}"
            )
        if len(target.nodes) > 1:
            comment += f"; {len(target.nodes)} calls change"
        draft.assign(
            Assign(
                step, comment, target.path, expr,
                literals(draft, target.path, expr, old, made), suffix_for(draft, made, target.path), is_moded(made), nests(expr, made, old),
                bool(kept), _was(expr, made, old),
            ),
            {target.path: made},
        )  # fmt: skip
        count_classes(draft, step, target.path, made)
        count_inputs(draft, step, target.path, made)
        if isinstance(old, nn.LSTM) and isinstance(made, (nn.GRU, nn.RNN)):
            for node in target.nodes:
                _without_cell(draft, step, node, type(made).__name__)

    def _bulk(
        self, draft: Draft, step: int, where: Any, targets: list[Target], text: Any, keep: bool
    ) -> None:
        first = draft.module(targets[0].path)
        olds = [draft.module(t.path) for t in targets]
        text = with_arguments(text, targets[0].node, olds, draft.namespace)
        expr, made = new_module(draft, text, first)
        if not isinstance(made, nn.Module):
            _replace_calls(draft, step, [n for t in targets for n in t.nodes], text)
            return
        paths = tuple(t.path for t in targets)
        calls = {t.path: len(t.nodes) for t in targets}
        cls = class_of(where, draft.namespace)
        if cls is not None:
            every = {p for p, m in draft.model.named_modules() if isinstance(m, cls)}
            if every != set(paths):  # some of the class never run, or went: name the places instead
                cls = None
        kept = _kept(paths[0], first, made) if keep else []
        # a second run would look for what is gone, or freeze what this one makes
        frozen = any(e.reaches(p) for e in draft.edits for p in paths)
        once = cls is None and _lacks(expr, made) or frozen and any(True for _ in made.parameters())
        comment = bulk_comment(paths, cls, expr, calls)
        if kept:
            comment += f"; {conjoined(kept)} kept"
        bulk = Bulk(
            step, comment, paths, expr, cls, suffix_for(draft, made, paths[0]), is_moded(made),
            nests(expr, made, first), bool(kept),
            _was(expr, made, first) or (type(first) if once else None),
            calls,
        )  # fmt: skip
        for target in targets:
            _read_back(draft, target, expr, made)
        own = "old" in expr.free
        each = {p: new_module(draft, text, draft.module(p))[1] if own else made for p in paths}
        for target in targets:
            _returns_as_many(draft, target, each[target.path], text)
        draft.assign(bulk, each)


def _read_back(draft: Draft, target: Target, expr: Expression, made: nn.Module) -> None:
    """A module that overwrites what it reads, where the author then reads that.

    Raises:
        StepError: The new module overwrites nothing, so that what it returns would be lost.
    """
    for node in target.nodes:
        if overwrites(made, node) or type(made) is nn.Identity:
            continue
        if written_only(draft, node):
            raise StepError(
                f"{target.path!r} works in place and the forward reads what it wrote into, not what it "
                f"returns: the result of {expr.short} would be lost; take one that works in place too"
            )


def _kept(path: str, old: nn.Module, made: nn.Module) -> list[str]:
    """Names of parameters and buffers that a new module can take over from the old one.

    Raises:
        StepError: None though it holds some, or one of another shape.
    """
    theirs, ours = dict(old.state_dict()), dict(made.state_dict())
    if not ours:  # an Identity: there is nothing to carry over
        return []
    both = [k for k in ours if k in theirs]
    odd = [k for k in both if ours[k].shape != theirs[k].shape]
    if odd:
        raise StepError(
            f'{path}: weights="keep" cannot carry {odd[0]} over: it is {tuple(theirs[odd[0]].shape)}, '
            f"and the new module takes {tuple(ours[odd[0]].shape)}"
        )
    if not both:
        raise StepError(
            f"{path}: {an(type(made).__name__)} has no weight of the same name as the "
            f"{type(old).__name__}; there is nothing to keep"
        )
    return both


def _without_cell(draft: Draft, step: int, node: Node, kind: str) -> None:
    """An LSTM returns ``(out, (h, c))``, a GRU ``(out, h)``: readers of ``h`` read one level higher.

    Raises:
        StepError: Somebody reads the cell state, which is gone.
    """
    scope = draft.scope_of(node)
    states = [n for n in scope.nodes if _item(n, node.id) == 1]
    changed = scope
    for state in states:
        for part in scope.users(state.id):
            index = _item(part, state.id)
            if index == 1 and scope.users(part.id):
                reader = scope.users(part.id)[0].name
                raise StepError(f"{reader!r} reads the cell state, which {an(kind)} does not have")
            if index == 0:
                changed = rewrite.bypassed(changed, part.id, state.id)
    if changed is not scope:
        local = local_name(draft, node)
        draft.rewire(
            changed, step, suffix=kind, doc=f"that reads the hidden state of {an(kind)} from `{local}`",
            comment=f"{scope.path or 'the model'}: `{local}` returns (out, h) now, without a cell state",
        )  # fmt: skip


def _item(node: Node, of: str) -> Any:
    """The index that a node reads from the result of another, or ``None``."""
    if node.type == "getitem" and len(node.args) == 2 and node.args[0] == Ref(of):
        return node.args[1] if isinstance(node.args[1], int) else None
    return None


def _redefine(draft: Draft, path: str, text: Any) -> None:
    """Replace a module that an earlier step added: it is made differently, and that is all."""
    expr, made = new_module(draft, text, draft.module(path))
    expr = with_values(expr, draft.module(path))
    if not isinstance(made, nn.Module) or "old" in expr.free:
        raise StepError(f"{path!r} was added by an earlier step: change that step instead")
    changes = {"new": expr, "suffix": suffix_for(draft, made, path), "moded": is_moded(made)}
    if not draft.redefine(path, made, **changes):
        raise StepError(f"{path!r} was added by an earlier step: change that step instead")


def _strict(draft: Draft, where: Any, found: list[Target]) -> None:
    """Refuse where modules that are meant stay as they are, since this run never calls them.

    Raises:
        StepError: Names some of them.
    """
    cls = class_of(where, draft.namespace)
    if cls is None:
        return
    done = {t.path for t in found}
    left = [p for p, m in draft.model.named_modules() if isinstance(m, cls) and p not in done]
    if left:
        names = ", ".join(left[:3]) + (", …" if len(left) > 3 else "")
        raise StepError(
            f"strict: {len(left)} of {len(left) + len(done)} {cls.__name__} modules are not called as a "
            f"whole in this run and would stay: {names}"
        )


def nests(expr: Expression, made: Any, old: nn.Module) -> str:
    """The class to check for where a second run would wrap the wrapper."""
    return expr.callee if _wraps(expr, made) and type(made).__name__ == expr.callee else ""


def _was(expr: Expression, made: Any, old: nn.Module) -> type | None:
    """The class to check for where a function such as ``weight_norm(old)`` changes what it is given."""
    if _wraps(expr, made) and type(made).__name__ != expr.callee and type(made) is not type(old):
        return type(old)
    return None


def _lacks(expr: Expression, made: nn.Module) -> bool:
    """Whether the text reads something of the old module that the new one does not have."""
    return any(not hasattr(made, attribute) for attribute in expr.old_attributes)


def _wraps(expr: Expression, made: Any) -> bool:
    return expr.whole_old and isinstance(made, nn.Module)


def _tensors(node: Node) -> list[Ref]:
    """What a call reads directly, so that a module could take it: not what lies in a list."""
    own = [r for r in node.args if isinstance(r, Ref)]
    return own or [r for r in node.kwargs.values() if isinstance(r, Ref)]


def _handed(draft: Draft, made: Any, tensors: Sequence[Ref]) -> tuple[Ref, ...]:
    """What a function gets of the tensors that a call read: all where it takes as many, else the first."""
    told = [draft.node(r.id).outputs[:1] for r in tensors]
    if len(tensors) > 1 and all(told):
        with contextlib.suppress(Exception), torch.no_grad():
            made(*(empty(known) for (known,) in told))
            return tuple(tensors)
    return tuple(tensors[:1])


def _replace_calls(draft: Draft, step: int, nodes: Sequence[Node], text: Any) -> None:
    """Exchange calls; those of one scope are told in one sentence."""
    nodes = draft.once((draft.node(n.id) for n in nodes), step)
    alike = Alike(draft, nodes)
    here = by_scope(nodes)
    words = {key: describe_all(draft, found) for key, found in here.items()}
    for node in nodes:
        name = _replace_call(draft, step, draft.node(node.id), text, alike)
    alike.counted(draft)
    instead = {key: f"{name} in place of {said}" for key, said in words.items()}
    draft.say_once(step, here, lambda key: (f"with {instead[key]}", instead[key]))


def _replace_call(draft: Draft, step: int, node: Node, text: Any, alike: Alike) -> str:
    """Exchange one call: the scope that performs it gets a class of its own; what comes, in short."""
    scope = draft.scope_of(node)
    if scope.opaque and node.kind != "module":  # which operand goes on is not told by its text
        raise EmissionError(
            f"{call_name(draft.graph, node.id)!r} cannot be replaced: {scope.opaque}; modules there can"
        )
    old = draft.module(node.target) if node.kind == "module" else None
    expr, made = new_module(
        draft, with_arguments(text, node, [old] if old else [], draft.namespace), old
    )
    suffix = class_piece(made, expr)
    tensors = _tensors(node)
    if not tensors:
        raise StepError(f"{node.name!r} reads no tensor that a module could take")
    what = _this(draft, node)
    place = scope.path or "the model"
    if isinstance(getattr(made, "__self__", None), nn.Module):
        _by_method(draft, step, scope, node, expr, made, what, place)
        return expr.text
    if not isinstance(made, nn.Module):
        changed = node.with_(
            kind="function", target=made, type=expr.callee, args=_handed(draft, made, tensors), kwargs={},
            child=None, step=step, frames=(), writes=(), calls=1, call=1, facts={},
        )  # fmt: skip
        draft.rewire(
            _exchanged(scope, changed), step, suffix=suffix,
            doc=f"whose {_short_this(draft, node)} is {expr.text}",
            comment=f"{place}: {what} becomes {expr.text}",
        )  # fmt: skip
        return expr.text
    attr = alike.attribute(draft, scope, node, expr, made)
    path = f"{scope.path}.{attr}" if scope.path else attr
    changed = node.with_(
        kind="module", target=path, name=path, type=type(made).__name__, args=tuple(tensors[:1]),
        kwargs={}, child=None, step=step, calls=1, call=1, facts={},
        writes=(tensors[0].id,) if getattr(made, "inplace", False) is True else (),
    )  # fmt: skip
    rest = _still_serves(draft, node)
    draft.rewire(
        _exchanged(scope, changed), step, suffix=suffix,
        doc=f"whose {_short_this(draft, node)} is {an(type(made).__name__)} of its own" + rest,
        comment=f"{place}: {what} becomes {expr.short}",
        new={attr: NewModule(expr, suffix_for(draft, made, place_of(draft, node)), is_moded(made),
                             node.target if node.kind == "module" else None)},
    )  # fmt: skip
    draft.made[path] = made
    return expr.short


def _exchanged(scope: Scope, node: Node) -> Scope:
    """The scope with another node under the same id; what the old one alone made of weights goes."""
    scope, gone = rewrite.exchanged(scope, node), None
    weights: set[str] = set()
    for n in scope.nodes:
        computed = n.kind in ("function", "method") and n.refs and not n.impure and not n.writes
        if n.kind == "parameter" or computed and weights.issuperset(n.refs):
            weights.add(n.id)
    while gone or gone is None:
        read = {id for n in scope.nodes for id in n.refs}
        gone = weights - read
        weights -= gone
        scope = scope.with_(nodes=tuple(n for n in scope.nodes if n.id not in gone))
    return scope


def _by_method(
    draft: Draft,
    step: int,
    scope: Scope,
    node: Node,
    expr: Expression,
    made: Any,
    what: str,
    place: str,
) -> None:
    """``FloatFunctional().add``: a new module of its own, called by one of its methods."""
    body = expr.tree.body
    if not isinstance(body, ast.Attribute):
        raise StepError(f"{expr.text!r} makes a method in a way that cannot be written in a class")
    owner = parse(ast.unparse(body.value))
    module = made.__self__
    attr = draft.attribute(scope, attribute_name(module, owner))
    path = f"{scope.path}.{attr}" if scope.path else attr
    held = Node(f"@{step}#{attr}", scope.key, "parameter", path, attr, path, glue=True, step=step)
    changed = node.with_(
        kind="method", target=body.attr, type=body.attr, args=(Ref(held.id), *node.args), child=None,
        step=step, frames=(), writes=(), calls=1, call=1, facts={},
    )  # fmt: skip
    draft.made[path] = module
    new = NewModule(owner, suffix_for(draft, module, place_of(draft, node)), is_moded(module))
    scope = rewrite.exchanged(scope, changed)
    draft.rewire(
        rewrite.placed(scope, held, rewrite.position(scope, changed.id)), step,
        suffix=class_piece(module, owner),
        doc=f"whose {_short_this(draft, node)} is {an(type(module).__name__)} of its own",
        comment=f"{place}: {what} becomes {expr.text}", new={attr: new},
    )  # fmt: skip


def _still_serves(draft: Draft, node: Node) -> str:
    """``; `relu` still serves the first two``: what the shared module goes on doing."""
    if node.kind != "module" or node.calls < 2:
        return ""
    k, n = call_in_scope(draft, node)
    others = [ordinal(i, None) for i in range(1, n + 1) if i != k]
    if not others:
        return ""
    if [i for i in range(1, n + 1) if i != k] == list(range(1, n)):
        words = f"the first {number(n - 1)}" if n > 2 else "the first"
    else:
        words = "the " + " and ".join(others)
    return f"; `{local_name(draft, node)}` still serves {words}"


def _this(draft: Draft, node: Node) -> str:
    if node.kind == "module":
        k, n = call_in_scope(draft, node)
        if n > 1:
            return f"the {ordinal(k)} of {number(n)} calls of `{local_name(draft, node)}`"
    return describe(draft, node)


def _short_this(draft: Draft, node: Node) -> str:
    words = describe(draft, node)
    if node.kind == "module":
        k, n = call_in_scope(draft, node)
        if "relu" in node.type.lower() or "gelu" in node.type.lower() or node.type in _ACTIVATIONS:
            return f"{ordinal(k, n)} activation" if n > 1 else "activation"
        if n > 1:
            return f"{ordinal(k, n)} `{local_name(draft, node)}`"
    return words.removeprefix("the ")


_ACTIVATIONS = {"SiLU", "Tanh", "Sigmoid", "Hardswish", "Mish", "ELU", "Softplus"}


def _what_changes(
    old: nn.Module, expr: Expression, made: nn.Module, unit: str, namespace: Mapping[str, Any]
) -> str:
    """``1000 → 10 classes, new weights`` for a head, else the two types."""
    weights = "" if expr.whole_old else weights_said(expr, made, namespace)
    if isinstance(old, nn.Linear) and type(made) is nn.Linear:
        if old.in_features == made.in_features and old.out_features != made.out_features:
            return f"{old.out_features} → {made.out_features} {unit}{weights}"
    if type(made) is type(old) and getattr(old, "inplace", False) and not made.inplace:
        return f"{type(old).__name__}, no longer in place"
    if type(old) is type(made) and weights in ("", ", new weights"):
        return f"a new {expr.short}{weights}"
    return f"{type(old).__name__} → {expr.short}{weights}"


def _as_module(draft: Draft, node: Node) -> tuple[str, ...]:
    """The module that does what a functional call does, its arguments moved into the constructor."""
    name = class_for(node)
    if name is None:
        return ()
    try:
        return (with_arguments(name, node, [], draft.namespace),)
    except StepError:
        return ()


def _returns_as_many(draft: Draft, target: Target, made: nn.Module, text: Any) -> None:
    """Refuse one tensor in the place of a tuple: taken apart, it would fall into its rows.

    Raises:
        StepError: It would.
    """
    for node in target.nodes:
        users = draft.scope_of(node).users(node.id)
        parts = [
            n for n in users if n.glue and n.type == "getitem" and n.args[:1] == (Ref(node.id),)
        ]
        if not parts:
            continue
        try:
            args, kwargs = (map_refs(given, lambda r: _on_meta(draft.node(r.id))) for given in
                            (node.args, node.kwargs))  # fmt: skip
            with torch.no_grad():
                result = made(*args, **kwargs)
        except Exception:  # noqa: BLE001 - whether it can run is found out where it is built
            continue
        if isinstance(result, torch.Tensor):
            batch = batch_of(draft.base)
            shapes = [shape_text(t.shape, batch) for t in node.outputs]
            raise StepError(
                f"{target.path!r} returns a tuple, {conjoined(shapes)}, and its readers take it apart; "
                f"{text} returns one tensor: put a module there that returns such a tuple, or "
                "replace what reads it as well"
            )


def _on_meta(node: Node) -> torch.Tensor:
    """A tensor without memory like the one value of a node."""
    (told,) = node.outputs
    return empty(told)


def _code(suggestions: tuple[str, ...]) -> Field:
    return Field("new", "New", "code", suggestions[0], suggestions,
                 "what makes the new module; old is the one that it replaces")  # fmt: skip


def _suggestions(draft: Draft, node: Node, many: bool) -> tuple[str, ...]:
    """What may stand there, the likeliest first; of `many` the neighbours go on fitting."""
    if node.kind != "module":
        table = {"relu": ("nn.GELU()", "nn.SiLU()"), "gelu": ("nn.ReLU()",)}
        return (*table.get(node.type, ()), *_as_module(draft, node), "nn.Identity()")
    old = draft.module(node.target)
    if isinstance(old, nn.Linear):
        outs = "old.out_features" if many or not is_head(draft, node.target) else "10"
        return (f"nn.Linear(old.in_features, {outs})", "nn.Identity()")
    if isinstance(old, nn.Conv2d):
        return (
            "nn.Conv2d(old.in_channels, old.out_channels, 3, old.stride, 1)",
            "nn.Identity()",
        )
    if isinstance(old, nn.BatchNorm2d):
        # fits every one of them, also where all are replaced
        widths = [m.num_features for m in draft.model.modules() if isinstance(m, nn.BatchNorm2d)]
        groups = math.gcd(32, old.num_features, *widths)
        return (
            f"nn.GroupNorm({groups}, old.num_features)",
            "nn.SyncBatchNorm(old.num_features)",
            "nn.Identity()",
        )
    if isinstance(old, nn.LayerNorm):
        return ("nn.RMSNorm(old.normalized_shape)", "nn.Identity()")
    if type(old).__name__ in ("ReLU", "ReLU6", *_ACTIVATIONS):
        return ("nn.GELU()", "nn.SiLU()", "nn.LeakyReLU(0.1)", "nn.Identity()")
    if isinstance(old, nn.GELU):
        return ("nn.ReLU()", "nn.SiLU()", "nn.Identity()")
    if isinstance(old, nn.Dropout):
        return ("nn.Dropout(0.5)", "nn.Identity()")
    if isinstance(old, (nn.MaxPool2d, nn.AvgPool2d)):
        return ("nn.AvgPool2d(old.kernel_size, old.stride, old.padding)", "nn.Identity()")
    if isinstance(old, nn.AdaptiveAvgPool2d):
        return ("nn.AdaptiveMaxPool2d(1)", "nn.Identity()")
    return ("nn.Identity()",)


OPERATION = Replace()
