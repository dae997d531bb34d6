"""What a ``where`` means: a name, glob, class, node, module, function or list → nodes or module paths.

A name is looked up among module paths first (a path means the module with ALL its calls), then
among the names of calls, then among scope keys. In a glob ``*`` and ``?`` stay inside one part of
a name, ``**`` crosses dots (``**.relu`` is any relu, at the top as well); a glob matches by the
name of a call or by the path of its module.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import nn

from nbsurgery.errors import SelectionError, an, nearest
from nbsurgery.graph import Graph, Node

_ALLOWED = (
    "a name, a glob such as 'layer*.*.relu', a module class, a node, a module, "
    "a function of a node, or a list of these"
)


def select(
    graph: Graph,
    model: nn.Module,
    where: Any,
    *,
    empty: bool = False,
    view: Callable[[Node], Any] | None = None,
) -> list[str]:
    """Find the calls that `where` means.

    Args:
        graph: The captured model.
        model: The model of the graph; classes and modules are looked up in it.
        where: A name (a module's path means all its calls, a call's name only that call), a glob, a
            module class, an operation such as ``torch.flatten``, a node, a scope, a module, a
            function of a node that returns a truth value, or a list of any of these.
        empty: Whether a class, glob or function may match nothing. A wrong name never may.
        view: What a function of a node is called with, made from the recorded node; by default the
            recorded node itself.

    Returns:
        Ids of flat nodes, and of the nodes that call a scope where a scope was meant, each once, in
        execution order.

    Raises:
        SelectionError: `where` names nothing, or is of a kind that selects nothing.
    """
    found = _Selector(graph, model, view).ids(where)
    if not found and not empty:
        raise SelectionError(_nothing(graph, where))
    order = execution_order(graph)
    return sorted(found, key=order.__getitem__)


def modules(
    graph: Graph,
    model: nn.Module,
    where: Any,
    *,
    empty: bool = False,
    view: Callable[[Node], Any] | None = None,
) -> list[str]:
    """Find the modules that `where` means, also those that the run never called.

    Args:
        graph: The captured model.
        model: The model of the graph.
        where: As for `select`; names, globs and classes are looked up among all modules.
        empty: Whether a class, glob or function may match nothing.
        view: As for `select`.

    Returns:
        Paths, each module once, in the order of ``model.named_modules()``; the root is ``""``.

    Raises:
        SelectionError: `where` names nothing, or the call of a function, which has no module.
    """
    found = _Selector(graph, model, view).paths(where)
    if not found and not empty:
        raise SelectionError(_nothing(graph, where))
    return [path for path, _ in model.named_modules() if path in found]


def is_glob(name: str) -> bool:
    """Whether a name holds wildcards."""
    return any(mark in name for mark in "*?[")


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Translate a glob into a regular expression for whole names.

    Example:
        >>> bool(glob_pattern("layer*.*.relu*").fullmatch("layer1.0.relu_1"))
        True
        >>> bool(glob_pattern("layer*").fullmatch("layer1.0"))
        False
        >>> bool(glob_pattern("layer1.**").fullmatch("layer1.0.conv1"))
        True
    """
    parts = {"**.": r"(?:.*\.)?", "**": ".*", "*": "[^.]*", "?": "[^.]"}
    out = []
    for piece in re.findall(r"\*\*\.|\*\*|\*|\?|\[[^\]]+\]|.", glob, flags=re.DOTALL):
        if piece in parts:
            out.append(parts[piece])
        elif len(piece) > 2 and piece[0] == "[":
            inner = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            out.append("[" + ("^" + inner[1:] if inner[0] == "!" else inner) + "]")
        else:
            out.append(re.escape(piece))
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error as error:
        raise SelectionError(f"the glob {glob!r} cannot be read: {error}") from None


def execution_order(graph: Graph) -> dict[str, int]:
    """Position of every node by id: in execution order, the call of a scope before what it runs."""

    def build() -> dict[str, int]:
        order: dict[str, int] = {}

        def walk(key: str) -> None:
            for node in graph.scopes[key].nodes:
                order[node.id] = len(order)
                if node.child is not None and node.child in graph.scopes:
                    walk(node.child)

        walk("")
        return order

    return graph._memo("execution_order", build)


def scope_calls(graph: Graph) -> dict[str, Node]:
    """The node that calls each scope, by the scope's key; the root has none."""
    return graph._memo(
        "scope_calls",
        lambda: {s.key: graph.by_id[s.caller] for s in graph.scopes.values() if s.caller},
    )


def known_names(graph: Graph) -> list[str]:
    """Every name that can be asked for: of flat nodes, then of scopes."""
    return [n.name for n in graph.flat] + [key for key in graph.scopes if key]


def unknown_name(graph: Graph, name: str) -> SelectionError:
    """The error for a name that means nothing, with the nearest ones."""
    return SelectionError(
        f"{name!r} names no node, scope or module of this model"
        + (nearest(name, known_names(graph)) or "; graph.table() lists all names")
    )


def _nothing(graph: Graph, where: Any) -> str:
    if isinstance(where, str) and is_glob(where):
        bare = re.sub(r"[*?\[\]]+", "", where)
        return f"the glob {where!r} matches no name" + (
            nearest(bare, known_names(graph)) or "; graph.table() lists all names"
        )
    if isinstance(where, type):
        types_ = list(dict.fromkeys(n.type for n in graph.flat if n.kind == "module"))
        return f"no module of the class {where.__name__} is called; called are: " + (
            ", ".join(types_[:12]) + (", …" if len(types_) > 12 else "")
        )
    if isinstance(where, (list, tuple, set, frozenset)) and not where:
        return f"an empty list selects nothing; pass {_ALLOWED}"
    return f"{_spell(where)} matches nothing in this model"


def _spell(where: Any) -> str:
    return getattr(where, "__qualname__", None) or repr(where)[:80]


def is_operation(where: Any) -> bool:
    """Whether a callable is an operation such as `torch.flatten`, not a person's own predicate."""
    if isinstance(where, (types.BuiltinFunctionType, types.MethodDescriptorType)):
        return True
    owner = getattr(where, "__module__", None) or ""
    return owner.split(".")[0] in ("torch", "_operator", "torchvision")


class _Selector:
    """One look-up; holds what several kinds of `where` share."""

    def __init__(self, graph: Graph, model: nn.Module, view: Callable[[Node], Any] | None):
        self.graph = graph
        self.model = model
        self.view = view or (lambda node: node)
        self.by_path = dict(model.named_modules(remove_duplicate=False))
        self.canonical = {id(module): path for path, module in model.named_modules()}

    def path_of(self, node: Node) -> str | None:
        """The canonical path of the module that a node calls."""
        if node.kind != "module" or not isinstance(node.target, str):
            return None
        module = self.by_path.get(node.target)
        return node.target if module is None else self.canonical[id(module)]

    def calls(self) -> Iterable[Node]:
        """Flat nodes and calls of scopes."""
        yield from self.graph.flat
        yield from scope_calls(self.graph).values()

    # -- calls ------------------------------------------------------------------------------

    def ids(self, where: Any) -> set[str]:
        if isinstance(where, str):
            return self.ids_by_glob(where) if self._globs(where) else self.ids_by_name(where)
        if isinstance(where, type):
            return {n.id for n in self.calls() if self._is_a(n, where)}
        if isinstance(where, nn.Module):
            return self.ids_by_path(self._path_in_model(where), str(type(where).__name__))
        if isinstance(where, (list, tuple, set, frozenset)) or (
            isinstance(where, Mapping) and not hasattr(where, "id")
        ):
            return {id for item in where for id in self._all(item, self.ids)}
        if isinstance(getattr(where, "id", None), str):
            return {self._id_of(where)}
        if callable(where):
            if is_operation(where):
                return {n.id for n in self.graph.flat if n.target is where}
            return {n.id for n in self.graph.flat if where(self.view(n))}
        raise self._wrong_kind(where)

    def ids_by_name(self, name: str) -> set[str]:
        if name in self.by_path and name:
            found = self._calls_of(name)
            if found:
                return found
        node = self.graph.by_name.get(name)
        if node is not None:
            return {node.id}
        if name in scope_calls(self.graph):
            return {scope_calls(self.graph)[name].id}
        if name in self.by_path:
            return self.ids_by_path(name, name)  # exists, and this run never calls it: says so
        raise unknown_name(self.graph, name)

    def ids_by_path(self, path: str, shown: str) -> set[str]:
        if path == "":
            raise SelectionError(
                "this selects the whole model, which no node calls; name a part of it"
            )
        found = self._calls_of(path)
        if not found:
            inner = [p for p in scope_calls(self.graph) if p.startswith(path + ".")]
            raise SelectionError(
                f"the module {path or shown!r} is not called in this run"
                + (f"; what it holds is: {', '.join(map(repr, inner[:3]))}" if inner else "")
            )
        return found

    def ids_by_glob(self, glob: str) -> set[str]:
        pattern = glob_pattern(glob)
        flat = {n.id for n in self.graph.flat if self._matches(pattern, n, n.name)}
        if (
            "**" in glob and flat
        ):  # with ** a scope and what it holds would both match: the parts win
            return flat
        scopes = scope_calls(self.graph).items()
        return flat | {n.id for key, n in scopes if self._matches(pattern, n, key)}

    def _calls_of(self, path: str) -> set[str]:
        path = self.canonical[id(self.by_path[path])]
        return {n.id for n in self.calls() if self.path_of(n) == path}

    def _matches(self, pattern: re.Pattern[str], node: Node, name: str) -> bool:
        if pattern.fullmatch(name):
            return True
        return isinstance(node.target, str) and bool(
            node.kind == "module" and pattern.fullmatch(node.target)
        )

    def _globs(self, name: str) -> bool:
        known = name in self.by_path or name in self.graph.by_name or name in self.graph.scopes
        return is_glob(name) and not known

    def _is_a(self, node: Node, cls: type) -> bool:
        return node.kind == "module" and isinstance(self.by_path.get(node.target), cls)

    def _id_of(self, where: Any) -> str:
        if where.id == "":
            return next(iter(self.ids_by_path("", "")))
        if where.id not in self.graph.by_id:
            name = getattr(where, "name", where.id)
            raise SelectionError(
                f"the node {name!r} belongs to another graph"
                + nearest(name, known_names(self.graph))
            )
        return where.id

    def _path_in_model(self, module: nn.Module) -> str:
        if id(module) not in self.canonical:
            raise SelectionError(
                f"this {type(module).__name__} is no part of the captured model; pass a module "
                "of the very model that was captured, or its path"
            )
        return self.canonical[id(module)]

    def _all(self, item: Any, find: Callable[[Any], set[str]]) -> set[str]:
        """One entry of a list: each must match, or a typing error would go unseen."""
        found = find(item)
        if not found:
            raise SelectionError(_nothing(self.graph, item))
        return found

    def _wrong_kind(self, where: Any) -> SelectionError:
        return SelectionError(
            f"{an(type(where).__name__)} ({repr(where)[:60]}) selects nothing; pass {_ALLOWED}"
        )

    # -- modules ----------------------------------------------------------------------------

    def paths(self, where: Any) -> set[str]:
        if isinstance(where, str):
            if where in self.by_path:
                return {self.canonical[id(self.by_path[where])]}
            if self._globs(where):
                pattern = glob_pattern(where)
                found = {p for p in self.by_path if p and pattern.fullmatch(p)}
                found = {self.canonical[id(self.by_path[p])] for p in found}
                return found or self._paths_of(self.ids_by_glob(where), where)
            return self._paths_of(self.ids_by_name(where), where)
        if isinstance(where, type):
            return {p for p, m in self.model.named_modules() if isinstance(m, where)}
        if isinstance(where, nn.Module):
            return {self._path_in_model(where)}
        if isinstance(where, (list, tuple, set, frozenset)) or (
            isinstance(where, Mapping) and not hasattr(where, "id")
        ):
            return {path for item in where for path in self._all(item, self.paths)}
        if getattr(where, "id", None) == "":
            return {""}
        return self._paths_of(self.ids(where), where)

    def _paths_of(self, ids: set[str], where: Any) -> set[str]:
        found = set()
        for id in ids:
            node = self.graph.by_id[id]
            path = self.path_of(node)
            if path is not None:
                found.add(path)
            elif len(ids) == 1:
                raise SelectionError(
                    f"{node.name!r} is {an(node.kind)} ({node.type}), not a module; "
                    "this needs a module, a class or a path"
                )
        return found
