"""The captured model as frozen data: nodes, scopes and pure queries on them. Imports no torch.

A model is a tree of small graphs. Every call of a module that is not a plain ``torch.nn`` layer is
a *scope* with its own graph: the operations that this ``forward`` performed, in order, with the
calls of its children as single nodes. A reference never crosses a border: what enters a scope does
so through its ``input`` nodes, what leaves it is the argument of its ``output`` node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from . import places

KINDS = ("input", "module", "function", "method", "parameter", "constant", "output")
_EMPTY: Mapping = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Ref:
    """An argument that is the result of another node of the same scope."""

    id: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """What is known of one tensor of the run: no data, only facts.

    ``dtype`` and ``device`` are spelled as torch prints them, without ``torch.``: ``"float32"``,
    ``"cuda:0"``.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    requires_grad: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of the call stack at an operation: where the author wrote it.

    ``code`` is the code object of the function; ``position`` is ``(line, end_line, column,
    end_column)`` of the expression, columns in UTF-8 bytes, ``None`` where Python does not know
    them (before 3.11 only lines are known).
    """

    file: str
    line: int
    code: Any
    position: tuple[int | None, int | None, int | None, int | None]

    @property
    def place(self) -> str:
        """What people call the line: ``"resnet.py:102"``, ``"cell [3], line 27"``."""
        return places.place(self.file, self.line)


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of one scope, as the run performed it.

    Attributes:
        id: Never shifts: ``"layer1.0#3"`` (scope key, ordinal in the base graph), or ``"@7#0"`` for a
            node that step 7 made.
        scope: Key of the scope whose ``forward`` performed it; ``""`` is the root.
        kind: One of `KINDS`. A ``module`` node with a `child` is the call of a scope, without one the
            call of a leaf. A ``constant`` is a tensor or object of unknown origin, held in `target`.
        name: The public name, as torchvision's ``get_graph_node_names`` gives it.
        type: What a reader calls it: ``"Conv2d"``, ``"add"``, ``"flatten"``.
        target: module: path of the module from the root; function: the callable; method: the method's
            name; parameter: path of the parameter, buffer or attribute from the root; input: the name of
            the parameter of ``forward`` (``"args[0]"`` style names do not occur: ``*xs`` gives ``xs_0``).
        args, kwargs: As passed, nested containers included, with `Ref` in place of recorded values.
        outputs: Every tensor of the result, flattened in order.
        value: The result where it is a plain number or string (a size, an index), else ``None``.
        glue: Plumbing that pictures and tables leave out: unpacking of tuples, reads of ``.shape`` and
            ``.device``, arithmetic on sizes, entering ``no_grad``. Printed and replayed like any other.
        child: Key of the scope that this call opened.
        call, calls: This is call `call` of `calls` of that module (1-based), over the whole model.
        frames: The author's call stack from the scope's forward (first) to the operation (last).
        writes: Ids of the nodes of this scope whose value the operation overwrites in place.
        impure: Must run although nobody reads it.
        step: The number of the step that made it; ``None`` for nodes of the base graph.
        facts: Annotations by name: ``params``, ``trainable``, ``macs``, …
    """

    id: str
    scope: str
    kind: str
    name: str
    type: str
    target: Any = None
    args: tuple = ()
    kwargs: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    outputs: tuple[Tensor, ...] = ()
    value: Any = None
    glue: bool = False
    child: str | None = None
    call: int = 1
    calls: int = 1
    frames: tuple[Frame, ...] = ()
    writes: tuple[str, ...] = ()
    impure: bool = False
    step: int | None = None
    facts: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    @property
    def refs(self) -> tuple[str, ...]:
        """Ids of the nodes that this one reads, in the order of its arguments, each once."""
        seen: dict[str, None] = {}
        for ref in iter_refs((self.args, self.kwargs)):
            seen.setdefault(ref.id)
        return tuple(seen)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the first output, or ``None``."""
        return self.outputs[0].shape if self.outputs else None

    def with_(self, **changes) -> Node:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Scope:
    """One call of a module, as a graph of its own.

    Attributes:
        key: ``"layer1.0"``; a second call of the same module is ``"layer1.0_1"``; the root is ``""``.
        path: Path of the module from the root.
        type: Name of the module's class.
        nodes: In execution order: the inputs first, the one output last (missing after a failure).
        caller: Id of the node of the parent scope that is this call; ``None`` for the root.
        bindings: For each input node's id, the argument in terms of the PARENT's nodes. Values that
            entered by another way than the call (closures, attributes) have an input node too, listed
            in `stowaways`.
        stowaways: Ids of input nodes that are no parameters of ``forward``.
        opaque: ``None``, or one sentence: why this ``forward`` cannot be re-expressed as code.
        places: For each input node that is a parameter, where the call passes it: an index of
            ``args`` or a name in ``kwargs``. The call node's arguments are what counts when they differ
            from `bindings` (after an edit).
    """

    key: str
    path: str
    type: str
    nodes: tuple[Node, ...]
    caller: str | None = None
    bindings: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    stowaways: tuple[str, ...] = ()
    opaque: str | None = None
    places: Mapping[str, int | str] = field(default_factory=lambda: _EMPTY)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(n for n in self.nodes if n.kind == "input")

    @property
    def output(self) -> Node | None:
        return next((n for n in reversed(self.nodes) if n.kind == "output"), None)

    @property
    def by_id(self) -> dict[str, Node]:
        return {n.id: n for n in self.nodes}

    def users(self, id: str) -> tuple[Node, ...]:
        """The nodes of this scope that read node `id`."""
        return tuple(n for n in self.nodes if id in n.refs)

    def with_(self, **changes) -> Scope:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Specialisation:
    """A place where the run decided on a concrete value, so that the recording holds only while it stays.

    ``kind`` is one of ``bool``, ``int``, ``compare``, ``range``, ``iterate``, ``training``, ``dtype``,
    ``constant``, ``none``; ``expression`` reads like the source, ``value`` is what it gave, ``source``
    is ``"net.py:31"``, ``node`` the id of the node that computed it, where there is one, ``frame`` the
    line of `source`.
    """

    kind: str
    expression: str
    value: Any
    source: str
    scope: str
    node: str | None = None
    frame: Frame | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """Where and why a run stopped: the node that failed, and the model's own error."""

    node: str | None
    scope: str
    error: str
    shapes: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A captured model: scopes by key, the root under ``""``.

    ``how`` is ``"real"``, ``"fake"`` or ``"meta"``: the kind of tensors of the run. ``totals`` holds
    whole-model facts by annotation name.
    """

    scopes: Mapping[str, Scope]
    specialisations: tuple[Specialisation, ...] = ()
    how: str = "real"
    failure: Failure | None = None
    totals: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    _cache: dict = field(default_factory=dict, repr=False)

    @property
    def root(self) -> Scope:
        return self.scopes[""]

    def _memo(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    @property
    def by_id(self) -> dict[str, Node]:
        """Every node of every scope by its id."""
        return self._memo("by_id", lambda: {n.id: n for s in self.scopes.values() for n in s.nodes})

    @property
    def flat(self) -> tuple[Node, ...]:
        """What people call the nodes: in execution order, across scopes, without plumbing.

        The root's inputs, leaf module calls, functions, methods, parameters read, constants and the
        root's output. Calls of scopes are not among them: their own operations are.
        """
        return self._memo("flat", lambda: tuple(self._walk("")))

    def _walk(self, key: str) -> Iterator[Node]:
        for node in self.scopes[key].nodes:
            if node.child is not None and node.child in self.scopes:
                yield from self._walk(node.child)
            elif not node.glue and (key == "" or node.kind not in ("input", "output")):
                yield node

    @property
    def by_name(self) -> dict[str, Node]:
        """The flat nodes by public name."""
        return self._memo("by_name", lambda: {n.name: n for n in self.flat})

    def children(self, key: str) -> tuple[Scope, ...]:
        """The scopes that the scope `key` calls, in order."""
        return tuple(self.scopes[n.child] for n in self.scopes[key].nodes if n.child in self.scopes)

    def parent(self, key: str) -> str | None:
        """Key of the scope that calls `key`; ``None`` for the root, and where a part begins."""
        caller = self.by_id.get(self.scopes[key].caller)
        return None if caller is None else caller.scope

    def ancestors(self, key: str) -> tuple[str, ...]:
        """Keys from the scope itself up to the root, both included."""
        chain = [key]
        while (up := self.parent(chain[-1])) is not None:
            chain.append(up)
        return tuple(chain)

    def within(self, key: str) -> frozenset[str]:
        """Ids of what runs inside a scope, however deep."""
        return self._memo(f"within {key}", lambda: frozenset(self._inside(key)))

    def _inside(self, key: str) -> Iterator[str]:
        for node in self.scopes[key].nodes:
            if node.kind not in ("input", "output"):
                yield node.id
            if node.child in self.scopes:
                yield from self._inside(node.child)

    def sources(self, scope: str, arg: Any, path: tuple = ()) -> tuple[str, ...]:
        """Ids of the flat nodes that make the value of `arg`, seen from `scope`, through every border.

        `path` is the chain of item accesses still to apply, outermost last.
        """
        found: dict[str, None] = {}
        self._sources(scope, arg, path, found, set())
        return tuple(found)

    def _sources(
        self, scope: str, arg: Any, path: tuple, found: dict, seen: set, sizes: bool = True
    ) -> None:
        if not isinstance(arg, Ref):
            if path and isinstance(arg, (tuple, list, Mapping)):
                try:
                    self._sources(scope, arg[path[-1]], path[:-1], found, seen, sizes)
                    return
                except (KeyError, IndexError, TypeError):
                    pass
            for ref in iter_refs(arg):
                self._sources(scope, ref, (), found, seen, sizes)
            return
        if (scope, arg.id, path) in seen:
            return
        seen.add((scope, arg.id, path))
        node = self.by_id.get(arg.id)
        if node is None:  # an edit took it away
            return
        if node.kind == "input" and scope != "":
            here = self.scopes[scope]
            up = self.parent(scope)
            if up is not None and node.id in here.bindings:
                self._sources(up, here.bindings[node.id], path, found, seen, sizes)
            return
        if node.child is not None and node.child in self.scopes:
            inner = self.scopes[node.child].output
            if inner is not None:
                self._sources(
                    node.child, inner.args[0] if inner.args else None, path, found, seen, sizes
                )
            return
        if node.glue and not sizes and is_size(node):
            return
        if node.glue:
            if (
                node.type == "getitem"
                and len(node.args) == 2
                and not isinstance(node.args[1], Ref)
                or node.type == "getattr"
                and node.outputs
                and len(node.args) == 2
            ):
                self._sources(scope, node.args[0], (*path, node.args[1]), found, seen, sizes)
            elif path and (item := built_item(node, path[-1])) is not None:
                self._sources(scope, item, path[:-1], found, seen, sizes)
            else:
                for ref in iter_refs((node.args, node.kwargs)):
                    self._sources(scope, ref, (), found, seen, sizes)
            return
        found.setdefault(node.id)

    def inputs_of(self, id: str) -> tuple[str, ...]:
        """Ids of the flat nodes that feed node `id`, across scope borders, in argument order.

        Whose size alone is read is no predecessor, unless nothing else is read.
        """
        return self._reads(id)[0]

    def sizes_only(self, id: str) -> bool:
        """Whether node `id` reads no data of its predecessors, just their shapes, dtypes or devices."""
        return self._reads(id)[1]

    def _reads(self, id: str) -> tuple[tuple[str, ...], bool]:
        table = self._memo("inputs_of", dict)
        if id not in table:
            node = self.by_id[id]
            for sizes in (False, True):
                found: dict[str, None] = {}
                for ref in iter_refs((node.args, node.kwargs)):
                    self._sources(node.scope, ref, (), found, set(), sizes)
                if found:
                    break
            table[id] = tuple(found), sizes and bool(found)
        return table[id]

    def users_of(self, id: str) -> tuple[str, ...]:
        """Ids of the flat nodes that read node `id`, across scope borders, in execution order."""

        def build() -> dict[str, list[str]]:
            table: dict[str, list[str]] = {}
            for node in self.flat:
                for source in self.inputs_of(node.id):
                    table.setdefault(source, []).append(node.id)
            return table

        return tuple(self._memo("users_of", build).get(id, ()))

    def with_scopes(self, changed: Mapping[str, Scope]) -> Graph:
        """A graph with some scopes exchanged or added; the facts of the whole are dropped."""
        return Graph({**self.scopes, **changed}, self.specialisations, self.how, self.failure)


_SIZES = frozenset(
    {"shape", "size", "dim", "ndim", "numel", "nelement", "device", "dtype", "stride", "len"}
)


def is_size(node: Node) -> bool:
    """Whether plumbing gives a number, a shape or a device, and no data."""
    if node.outputs:
        return False
    if node.type == "getattr":
        return len(node.args) == 2 and node.args[1] in _SIZES
    return node.value is not None or node.type in _SIZES


def built_item(node: Node, key: Any) -> Any:
    """What an output object built by `node` from keywords holds under a name or index, or ``None``.

    As Hugging Face's outputs do, an index counts the fields that are not ``None``.
    """
    if isinstance(key, str):
        return node.kwargs.get(key)
    if isinstance(key, int) and node.kwargs and not node.args:
        given = [item for item in node.kwargs.values() if item is not None]
        return given[key] if -len(given) <= key < len(given) else None
    return None


def iter_refs(arg: Any) -> Iterator[Ref]:
    """Every `Ref` in an argument, in order, through tuples, lists, mappings and slices."""
    if isinstance(arg, Ref):
        yield arg
    elif isinstance(arg, (tuple, list)):
        for item in arg:
            yield from iter_refs(item)
    elif isinstance(arg, Mapping):
        for item in arg.values():
            yield from iter_refs(item)
    elif isinstance(arg, slice):
        yield from iter_refs((arg.start, arg.stop, arg.step))


def map_refs(arg: Any, change: Callable[[Ref], Any]) -> Any:
    """The argument with every `Ref` exchanged for ``change(ref)``; containers are rebuilt."""
    if isinstance(arg, Ref):
        return change(arg)
    if isinstance(arg, tuple):
        items = [map_refs(item, change) for item in arg]
        return type(arg)(*items) if hasattr(arg, "_fields") else tuple(items)
    if isinstance(arg, list):
        return [map_refs(item, change) for item in arg]
    if isinstance(arg, Mapping):
        return {key: map_refs(item, change) for key, item in arg.items()}
    if isinstance(arg, slice):
        return slice(*(map_refs(a, change) for a in (arg.start, arg.stop, arg.step)))
    return arg
