"""`explain`: one operation or one module, in plain words and numbers."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from functools import lru_cache
from typing import Any

from ..errors import SelectionError, an, nearest
from ..graph import Graph, Node, Scope
from . import kinds
from .subject import Subject, find, known, number, plural, sentences, shape


@lru_cache(maxsize=1)
def _load() -> None:
    """Import every file of `kinds` once: each registers what it explains."""
    for found in pkgutil.iter_modules(kinds.__path__):
        importlib.import_module(f"{kinds.__name__}.{found.name}")


def explain(graph: Graph, model: Any, which: str, *, brief: bool = False) -> str:
    """Say what one operation or one module does.

    Args:
        graph: The captured model.
        model: The model of the graph (anything with ``get_submodule``).
        which: Id or public name of a node, or the key of a scope.
        brief: Leave out what stands in the rows of `facts`: counts, costs, calls.

    Returns:
        A few sentences: what it computes, how the shape changes, what it costs.

    Raises:
        SelectionError: Nothing of the graph is called `which`.
    """
    _load()
    node = graph.by_name.get(which) or graph.by_id.get(which)
    if which in graph.scopes and (node is None or which == ""):
        return _scope(graph, model, graph.scopes[which], brief)
    if node is None:
        raise SelectionError(f"{which!r} names no node{nearest(which, graph.by_name)}")
    if node.child is not None and node.child in graph.scopes:
        return _scope(graph, model, graph.scopes[node.child], brief)
    return _node(graph, model, node, brief)


def module_of(model: Any, node: Node) -> Any:
    """The module that a node calls, or ``None``."""
    if node.kind != "module":
        return None
    try:
        return model.get_submodule(node.target)
    except (AttributeError, TypeError):
        return None


def _node(graph: Graph, model: Any, node: Node, brief: bool) -> str:
    subject = Subject(graph, node, module_of(model, node))
    if node.kind in ("input", "output", "parameter", "constant"):
        return _ends(subject)
    special = find(subject)
    text = special(subject) if special is not None else None
    more = () if brief else (_cost(subject), _calls(subject), _writes(subject))
    return sentences(text or _generic(subject), *more)


def _ends(subject: Subject) -> str:
    node = subject.node
    what = f"{shape(subject.y, batch=True)} {node.outputs[0].dtype}" if node.outputs else ""
    if node.kind == "input":
        users = graph_users(subject)
        return sentences(f"What the model is called with, here {what or 'no tensor'}", users)
    if node.kind == "output":
        return sentences(f"What the model returns{', here ' + what if what else ''}")
    if node.kind == "parameter":
        return sentences(f"The value of {node.target}, read directly{': ' + what if what else ''}")
    return sentences(
        f"A value that the recording found and did not see being made{': ' + what if what else ''}",
        "It stays as it is for every input",
    )


def graph_users(subject: Subject) -> str:
    """Who reads a value, where it is more than one."""
    graph = subject.graph
    found = [id for id in graph.users_of(subject.node.id) if not graph.sizes_only(id)]
    users = [graph.by_id[id].name for id in found]
    return (
        f"{plural(len(users), 'operation')} read it: {', '.join(users)}" if len(users) > 1 else ""
    )


def _generic(subject: Subject) -> str:
    """What can be said of an operation that nobody has explained."""
    node = subject.node
    what = {"module": "The layer", "method": "The method"}.get(node.kind, "The function")
    change = ""
    if subject.x and subject.y:
        a, b = shape(subject.x, batch=True), shape(subject.y, batch=True)
        change = f" keeps the shape {a}" if a == b else f" turns {a} into {b}"
    elif subject.y:
        change = f" makes {shape(subject.y, batch=True)}"
    elif node.value is not None:
        change = f" gives {node.value!r}"
    reads = len(subject.inputs)
    more = f", from {reads} tensors" if reads > 1 else ""
    return f"{what} {node.type}{change}{more}"


def _cost(subject: Subject) -> str:
    macs = known(subject.node.facts, "macs")
    return f"It costs {number(macs)} multiply-accumulates on the example" if macs else ""


def _calls(subject: Subject) -> str:
    node = subject.node
    if node.calls < 2:
        return ""
    return f"This is call {node.call} of {node.calls} of the same module {node.target}"


def _writes(subject: Subject) -> str:
    return "It works in place: its input is overwritten" if subject.node.writes else ""


def _scope(graph: Graph, model: Any, scope: Scope, brief: bool) -> str:
    if brief:
        return sentences(_skip(graph, scope))
    inside = list(operations(graph, scope.key))
    try:
        module = model.get_submodule(scope.path)
        params = Subject(graph, graph.root.nodes[0], module).params if graph.root.nodes else 0
    except AttributeError:
        params = 0
    macs = sum(known(node.facts, "macs") for node in inside)
    end = scope.output
    caller = graph.by_id.get(scope.caller) if scope.caller else None
    outputs = (caller.outputs if caller else ()) or (end.outputs if end else ())
    entering = [n.outputs[0].shape for n in scope.inputs if n.outputs]
    change = ""
    if entering and outputs:
        a, b = shape(entering[0], batch=True), shape(outputs[0].shape, batch=True)
        change = f"It keeps the shape {a}" if a == b else f"It turns {a} into {b}"
    weights = f", {plural(params, 'parameter')}" if params else ""
    skip = _skip(graph, scope)
    return sentences(
        f"A{an(scope.type)[1:]} of {plural(len(inside), 'operation')} ({kinds_of(inside)}){weights}",
        change,
        skip,
        f"It costs {number(macs)} multiply-accumulates on the example" if macs else "",
        f"Its forward is edited only in its author's own text: {scope.opaque}"
        if scope.opaque
        else "",
    )


def _skip(graph: Graph, scope: Scope) -> str:
    """A residual block in words: its own addition reads what entered, directly or projected."""
    entered = {node.id for node in scope.inputs}
    nodes = scope.by_id
    for node in scope.nodes:
        if node.type not in ("add", "iadd", "add_") or len(node.refs) != 2:
            continue
        if any(ref in entered for ref in node.refs):
            return "What entered it is added again at the end: an identity shortcut"
        for ref in node.refs:
            if any(r in entered for r in nodes[ref].refs) and _is_projection(graph, nodes[ref]):
                return (
                    f"What entered it is added again after {nodes[ref].name}, which changes its "
                    "shape to fit: a projection shortcut"
                )
    return ""


def _is_projection(graph: Graph, node: Node) -> bool:
    if node.child is not None and node.child in graph.scopes:
        return len(graph.scopes[node.child].nodes) <= 4
    return node.kind == "module" and node.type.startswith("Conv")


def operations(graph: Graph, key: str):
    """Every operation below a scope in execution order, without plumbing and values that are only read."""
    for node in graph.scopes[key].nodes:
        if node.child is not None and node.child in graph.scopes:
            yield from operations(graph, node.child)
        elif not node.glue and node.kind in ("module", "function", "method"):
            yield node


def kinds_of(nodes: list[Node], most: int = 6) -> str:
    """``53 Conv2d, 49 ReLU in 17 modules, 16 add``: layers with weights first, then other layers, functions."""
    first = {}
    for node in nodes:
        weighs = known(
            node.facts, "params" if node.kind == "module" else "macs"
        )  # F.conv2d as well
        rank = 0 if weighs else 2 if node.kind != "module" else 3 if node.type == "Identity" else 1
        first[node.type] = min(rank, first.get(node.type, rank))
    calls = Counter(node.type for node in nodes)
    shown = []
    for type in sorted(calls, key=lambda t: (first[t], -calls[t]))[:most]:
        modules = {n.target for n in nodes if n.type == type and n.kind == "module"}
        text = f"{calls[type]} {type}" if calls[type] > 1 else type
        if 0 < len(modules) < calls[type]:
            text += f" in {plural(len(modules), 'module')}"
        shown.append(text)
    return ", ".join(shown) + (", …" if len(calls) > most else "")
