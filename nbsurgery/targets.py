"""What a step's ``where`` means on a draft: modules with all their calls, or single calls.

``where`` travels as JSON: a name or glob, ``{"class": "torch.nn.ReLU"}``, ``{"call": "layer1.0.relu_1"}``,
or a list of these.
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from .draft import Draft
from .errors import SelectionError, StepError, an, nearest
from .graph import Graph, Node
from .paths import outermost_paths
from .select import execution_order, is_glob, known_names, select


@dataclass(frozen=True)
class Target:
    """One place: the module at `path` with all its calls, or (``path is None``) a single call.

    ``nodes`` are the calls, in execution order.
    """

    path: str | None
    nodes: tuple[Node, ...]

    @property
    def node(self) -> Node:
        return self.nodes[0]


def encode(graph: Graph, model: nn.Module, where: Any) -> Any:
    """`where` as JSON.

    Raises:
        SelectionError: It selects nothing, or is of a kind that cannot.
    """
    if isinstance(where, (str, dict)):
        return where
    if isinstance(where, type):
        return {"class": f"{where.__module__}.{where.__qualname__}"}
    if isinstance(where, (list, tuple, set, frozenset)):
        return [encode(graph, model, w) for w in where]
    if hasattr(where, "name") and isinstance(getattr(where, "id", None), str):
        return {"call": where.name}
    if hasattr(where, "key") and hasattr(where, "path"):
        return where.key
    ids = select(graph, model, where)  # a module, an operation or a function of a node
    if isinstance(where, nn.Module):
        target = graph.by_id[ids[0]].target
        return target
    return [{"call": call_name(graph, id)} for id in ids]


def call_name(graph: Graph, id: str) -> str:
    """The public name of a call: a scope's key for the call of a scope."""
    node = graph.by_id[id]
    return node.child if node.child is not None else node.name


def spelled_where(where: Any) -> str:
    """`where` in words, for the list of steps."""
    if isinstance(where, list):
        words = [spelled_where(w) for w in where]
        return ", ".join(words) if len(words) <= 3 else f"{words[0]}, {words[1]}, … ({len(words)})"
    if isinstance(where, Mapping):
        if "class" in where:
            name = where["class"].rpartition(".")[2]
            return f"every nn.{name}" if where["class"].startswith("torch.nn.") else f"every {name}"
        return where["call"]
    return str(where)


def class_of(where: Any, namespace: Mapping[str, Any]) -> type | None:
    """The class that an encoded `where` names, or ``None``."""
    if not (isinstance(where, Mapping) and "class" in where):
        return None
    home, _, name = str(where["class"]).rpartition(".")
    if not home and name in vars(builtins):
        found = getattr(builtins, name)
    elif (
        home == "__main__"
        or name in namespace
        and getattr(namespace[name], "__module__", "") == home
    ):
        found = namespace.get(name)
    else:
        try:
            found = getattr(importlib.import_module(home), name, None)
        except (ImportError, ValueError):
            found = None
    if not isinstance(found, type):
        raise SelectionError(f"the class {where['class']!r} cannot be found; is it defined here?")
    return found


def resolve(
    draft: Draft, where: Any, fits: Callable[[Node], bool] = lambda node: True
) -> list[Target]:
    """The places that `where` means on the draft, in execution order.

    A module's path means the module with all its calls; a node means that call only, unless it is the
    only one. A class or glob means the modules whose every call it matches, and single calls else.
    A glob leaves out what an earlier step took away, and what does not fit beside what does.

    Args:
        draft: The edits so far.
        where: What is asked for.
        fits: Whether the operation can take a call.

    Raises:
        SelectionError: Nothing matches; the nearest names are offered.
    """
    if where in ("", []):
        raise SelectionError("an empty name or list selects nothing; name a node, scope or module")
    live = {n.id: n for n in draft.live_nodes()}
    paths = {n.target for n in live.values() if n.kind == "module"}
    ids: dict[str, None] = {}
    single: set[str] = set()
    for item in where if isinstance(where, list) else [where]:
        found, calls_only = _ids(draft, item)
        if isinstance(item, str) and not calls_only and item not in paths:
            found = [i for i in found if i in live and not taken_away(draft, live[i])]
            found = [i for i in found if fits(live[i])] or found
            if not found:
                raise _away(item)
        ids.update(dict.fromkeys(found))
        if calls_only:
            single.update(found)
    ids = {id: None for id in ids if id in live}
    if not ids:
        raise _away(where)
    order = execution_order(draft.graph)
    targets: list[Target] = []
    done: set[str] = set()
    for id in sorted(ids, key=lambda i: order.get(i, 0)):
        if id in done:
            continue
        node = live[id]
        if node.kind != "module":
            targets.append(Target(None, (node,)))
            continue
        calls = draft.calls_of(node.target)
        whole = [c.id for c in calls]
        if (
            len(calls) == 1
            or (all(c in ids for c in whole) and not single & set(whole))
            or all(c in ids for c in whole)
        ):
            targets.append(Target(node.target, tuple(calls)))
            done.update(whole)
        else:
            targets.append(Target(None, (node,)))
    return targets


def _away(where: Any) -> SelectionError:
    return SelectionError(
        f"{spelled_where(where)} matches nothing in the edited model: an earlier step took it away"
    )


def unpacked(draft: Draft, where: Any) -> Any:
    """A container that no forward calls (an ``nn.ModuleList``) as the modules in it that are called."""
    if isinstance(where, list):
        found = [unpacked(draft, w) for w in where]
        return [w for item in found for w in (item if isinstance(item, list) else [item])]
    if not isinstance(where, str) or is_glob(where) or not where or not draft.exists(where):
        return where
    called = {n.target for n in draft.live_nodes() if n.kind == "module"}
    module = draft.model.get_submodule(where)
    if where in called or not isinstance(module, nn.Module):
        return where
    held = [f"{where}.{path}" for path, _ in module.named_modules() if f"{where}.{path}" in called]
    return outermost_paths(held) or where


def outermost(draft: Draft, targets: list[Target]) -> list[Target]:
    """The places that lie in no other of them: what goes with another needs no edit of its own."""
    inside = {n.child for t in targets for n in t.nodes if n.child is not None}
    return [t for t in targets if not inside & set(draft.graph.ancestors(t.node.scope))]


def _ids(draft: Draft, where: Any) -> tuple[list[str], bool]:
    """Ids that one entry means, and whether it means single calls."""
    graph = draft.graph
    if isinstance(where, Mapping) and "call" in where:
        name = where["call"]
        if name in graph.by_name:
            return [graph.by_name[name].id], True
        scope = graph.scopes.get(name)
        if scope is not None and scope.caller is not None:
            return [scope.caller], True
        raise SelectionError(f"no call is named {name!r}" + nearest(name, known_names(graph)))
    cls = class_of(where, draft.namespace)
    if cls is not None:
        calls = [
            n for n in draft.live_nodes() if n.kind == "module" and _is_a(draft, n.target, cls)
        ]
        if not calls:
            types = list(dict.fromkeys(n.type for n in graph.flat if n.kind == "module"))
            raise SelectionError(
                f"no module of the class {cls.__name__} is called; called are: "
                + ", ".join(types[:12])
            )
        return [n.id for n in calls], False
    if not isinstance(where, str):
        raise SelectionError(
            f"{an(type(where).__name__)} selects nothing; pass a name, a glob such as "
            "'layer*.*.relu', a class, a node, a module or a list of these"
        )
    paths = {n.target for n in draft.live_nodes() if n.kind == "module"}
    if where in paths:
        return [n.id for n in draft.calls_of(where)], False
    return select(graph, draft.model, where), not is_glob(where)


def taken_away(draft: Draft, node: Node) -> bool:
    """Whether something that only hands on what it is given stands there, by an earlier step."""
    made = draft.made.get(node.target) if node.kind == "module" else None
    return type(made) is nn.Identity or isinstance(made, Passed)


class Passed(nn.Module):
    """What stands for a module in the draft that hands on what it is given: one value, or a tuple.

    ``carried`` says where each value is found among the arguments: a place, a name, or ``None``.
    """

    def __init__(self, carried: tuple[int | str | None, ...] | None = None):
        super().__init__()
        self.carried = carried

    def forward(self, *args, **kwargs):
        if self.carried is None:
            return args[0] if args else next(iter(kwargs.values()))
        return tuple(
            None if key is None else args[key] if isinstance(key, int) else kwargs[key]
            for key in self.carried
        )


def _is_a(draft: Draft, path: str, cls: type) -> bool:
    try:
        return isinstance(draft.module(path), cls)
    except (StepError, AttributeError):
        return False


def one(draft: Draft, where: Any, what: str, step: int | None = None) -> Node:
    """The single call that `where` means; with `step` also one place, named in every call around it.

    Raises:
        SelectionError: It means several; says which.
    """
    targets = resolve(draft, where)
    nodes = [n for t in targets for n in t.nodes]
    if len(nodes) > 1 and step is not None:
        nodes = draft.once(nodes, step)
    if len(nodes) > 1:
        names = [call_name(draft.graph, n.id) for n in nodes]
        raise SelectionError(
            f"{what} needs one place, and {spelled_where(where)} means {len(nodes)}: "
            + ", ".join(names[:4])
            + (", …" if len(names) > 4 else "")
            + "; name one call"
        )
    return nodes[0]
