"""The facts of a selection as rows for the side panel: label, value, names to follow."""

from __future__ import annotations

import linecache
from collections import Counter
from typing import Any

from ..errors import SelectionError, nearest
from ..graph import Graph, Node, Scope, Tensor
from .subject import number
from .words import explain, kinds_of, module_of, operations


def facts(graph: Graph, model: Any, names: list[str]) -> dict[str, Any]:
    """Describe nodes and scopes for a panel.

    Args:
        graph: The graph shown.
        model: Its model (anything with ``get_submodule``); ``None`` leaves out what needs it.
        names: Public node names and scope keys; none means the model as a whole.

    Returns:
        ``{"title", "subtitle", "type", "kind", "names", "rows", "text", "source"}``: ``rows`` are
        ``{"label", "value", "links": [{"text", "name"}]}``, ``text`` is the explanation in words,
        ``source`` is ``None`` or ``{"place": "resnet.py:102", "line": the line's text}``.

    Raises:
        SelectionError: A name that the graph does not have.
    """
    found = [_look_up(graph, name) for name in names] or [graph.root]
    if len(found) > 1:
        return _many(graph, model, names, found)
    one = found[0]
    if isinstance(one, Scope):
        return _scope(graph, model, one)
    return _node(graph, model, one)


def _look_up(graph: Graph, name: str) -> Node | Scope:
    if name in graph.by_name:
        return graph.by_name[name]
    if name in graph.scopes:
        return graph.scopes[name]
    known = [*graph.by_name, *graph.scopes]
    raise SelectionError(f"{name!r} names nothing in the picture{nearest(name, known)}")


def _row(label: str, value: Any = "", links: list[dict] | None = None) -> dict[str, Any]:
    return {"label": label, "value": str(value), "links": links or []}


def _links(graph: Graph, ids) -> list[dict[str, str]]:
    return [{"text": graph.by_id[i].name, "name": graph.by_id[i].name} for i in ids]


def spell_tensor(tensor: Tensor) -> str:
    """``2×64×56×56``, with the dtype where it is not the usual one."""
    text = "×".join(map(str, tensor.shape)) or "scalar"
    return text if tensor.dtype == "float32" else f"{text} {tensor.dtype}"


def _tensors(tensors: tuple[Tensor, ...]) -> str:
    shown = ", ".join(spell_tensor(t) for t in tensors[:4])
    return shown + (f", … {len(tensors)} tensors" if len(tensors) > 4 else "")


def _node(graph: Graph, model: Any, node: Node) -> dict[str, Any]:
    rows = []
    module = module_of(model, node) if model is not None else None
    label = "Size of" if graph.sizes_only(node.id) else "Input"
    for id in graph.inputs_of(node.id):
        rows.append(_row(label, _tensors(graph.by_id[id].outputs), _links(graph, [id])))
    if node.outputs:
        rows.append(_row("Output", _tensors(node.outputs)))
    elif node.value is not None:
        rows.append(_row("Value", node.value))
    users = [u for u in graph.users_of(node.id) if not graph.sizes_only(u)]
    if users:
        rows.append(_row("Read by", "", _links(graph, users)))
    if settings := _settings(module):
        rows.append(_row("Settings", settings))
    rows += _counts(*_parameters([module]), node.facts.get("macs") or 0)
    if module is not None and _moded(module):
        rows.append(_row("Mode", "train" if module.training else "eval"))
    if node.calls > 1:
        rows.append(_row("Call", f"{node.call} of {node.calls} of {node.target}"))
    if node.scope:
        rows.append(_row("Inside", graph.scopes[node.scope].type, _link(node.scope)))
    if node.writes:
        seen = [i for i in node.writes if graph.by_id[i].name in graph.by_name]
        rows.append(_row("In place", "overwrites its input", _links(graph, seen)))
    failure = graph.failure
    if failure is not None and failure.node == node.id:
        rows.insert(0, _row("Failed here", failure.error))
    return _panel(node.name, node.type, node.kind, [node.name], rows,
                  explain(graph, model, node.id, brief=True), _source(node))  # fmt: skip


def _link(name: str) -> list[dict[str, str]]:
    return [{"text": name, "name": name}]


def _scope(graph: Graph, model: Any, scope: Scope) -> dict[str, Any]:
    rows = []
    inside = list(operations(graph, scope.key))
    own = {node.id for node in inside}
    caller = graph.by_id.get(scope.caller) if scope.caller else None
    if caller is None:
        for node in scope.inputs:
            rows.append(_row("Input", _tensors(node.outputs), _link(node.name)))
        if scope.output is not None:
            rows.append(_row("Output", _tensors(scope.output.outputs)))
    else:
        for id in graph.sources(caller.scope, (caller.args, caller.kwargs)):
            rows.append(_row("Input", _tensors(graph.by_id[id].outputs), _links(graph, [id])))
        if caller.outputs:
            rows.append(_row("Output", _tensors(caller.outputs)))
        made = graph.sources(scope.key, scope.output.args) if scope.output else ()
        users = dict.fromkeys(u for m in made for u in graph.users_of(m) if u not in own)
        users = [u for u in users if not graph.sizes_only(u)]
        if users:
            rows.append(_row("Read by", "", _links(graph, users)))
    module = _submodule(model, scope.path)
    rows += _counts(*_parameters([module]), sum(n.facts.get("macs") or 0 for n in inside))
    if inside:
        rows.append(_row("Operations", f"{len(inside)}: {kinds_of(inside)}"))
    if module is not None:
        rows.append(_row("Mode", "train" if module.training else "eval"))
    if caller is not None and caller.calls > 1:
        rows.append(_row("Call", f"{caller.call} of {caller.calls} of {scope.path}"))
    up = graph.parent(scope.key)
    if up:
        rows.append(_row("Inside", graph.scopes[up].type, _link(up)))
    if scope.opaque:
        rows.append(_row("Cannot be rewritten", scope.opaque))
    if caller is None and graph.failure is not None:
        rows.insert(0, _row("The run failed", graph.failure.error))
    decided = [s for s in graph.specialisations if s.scope == scope.key]
    for one in decided[:5]:
        rows.append(_row("Decided in this run", f"{one.expression} = {one.value} ({one.source})"))
    return _panel(scope.key or scope.type, scope.type if scope.key else "the whole model", "scope",
                  [scope.key], rows, explain(graph, model, scope.key, brief=True),
                  _source(caller) if caller is not None else None)  # fmt: skip


def _many(graph: Graph, model: Any, names: list[str], found: list) -> dict[str, Any]:
    nodes: dict[str, Node] = {}
    for one in found:
        inside = operations(graph, one.key) if isinstance(one, Scope) else [one]
        nodes.update((node.id, node) for node in inside)
    links = [{"text": name or found[i].type, "name": name} for i, name in enumerate(names)]
    modules = [module_of(model, node) for node in nodes.values()] if model is not None else []
    types = Counter(one.type for one in found)
    shown = ", ".join(f"{n} {t}" if n > 1 else t for t, n in types.most_common(3))
    shown += ", …" if len(types) > 3 else ""
    macs = sum(node.facts.get("macs") or 0 for node in nodes.values())
    shapes = Counter(spell_tensor(one.outputs[0]) for one in nodes.values() if one.outputs)
    rows = [_row("Selected", "", links), *_counts(*_parameters(modules), macs)]
    if len(shapes) == 1:
        rows.append(_row("Output", f"each {next(iter(shapes))}"))
    return _panel(f"{len(found)} selected", shown, "many", names, rows, "", None)


def _panel(title, type_, kind, names, rows, text, source) -> dict[str, Any]:
    return {
        "title": title,
        "subtitle": type_ if type_ != title else kind,
        "type": type_,
        "kind": kind,
        "names": list(names),
        "rows": rows,
        "text": text,
        "source": source,
    }


def _submodule(model: Any, path: str) -> Any:
    try:
        return None if model is None else model.get_submodule(path)
    except AttributeError:
        return None


def _settings(module: Any) -> str:
    """How the layer was made, as its own repr says it: ``3, 64, kernel_size=(7, 7)``."""
    try:
        return " ".join(module.extra_repr().split())[:300]
    except Exception:  # noqa: BLE001, a person's own repr may raise anything; the rest is still known
        return ""


def _moded(module: Any) -> bool:
    """Whether the train/eval mode changes what the layer does."""
    name = type(module).__name__
    return any(mark in name for mark in ("Dropout", "BatchNorm", "InstanceNorm", "RReLU"))


def _parameters(modules: list) -> tuple[int, int]:
    """All parameters of some modules, each once, and how many of them are trainable."""
    found = {id(p): p for m in modules if m is not None for p in m.parameters()}.values()
    sized = [
        p for p in found if hasattr(p, "shape") and type(p).__name__ != "UninitializedParameter"
    ]
    return sum(p.numel() for p in sized), sum(p.numel() for p in sized if p.requires_grad)


def _counts(params: int, trainable: int, macs: int) -> list[dict[str, Any]]:
    rows = []
    if params:
        frozen = ""
        if trainable == 0:
            frozen = ", frozen"
        elif trainable != params:
            frozen = f", {trainable:,} trainable"
        rows.append(_row("Parameters", f"{params:,}{frozen}"))
    if macs:
        rows.append(_row("Multiply-accumulates", number(macs)))
    return rows


def _source(node: Node) -> dict[str, str] | None:
    if not node.frames:
        return None
    frame = node.frames[-1]
    line = linecache.getline(frame.file, frame.line).strip()
    return {"place": frame.place, "line": line}
