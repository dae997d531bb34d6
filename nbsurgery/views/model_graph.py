"""A captured model, as people hold it: nodes and scopes by name, searches, replay, table, picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from torch import nn

from .. import graph as data
from ..annotate import annotate
from ..capture import capture as record
from ..capture import make, replay
from ..errors import CaptureError, ModelFailed, SelectionError, SurgeryError, an
from ..select import execution_order, is_glob, select, unknown_name
from .node import Node
from .scope import Scope
from .table import Table


class Picture(str):
    """SVG text; as the last line of a cell it is shown as the picture."""

    __slots__ = ()

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {
            "image/svg+xml": str(self),
            "text/plain": f"<SVG picture, {len(self):,} characters>",
        }


class _Count(NamedTuple):
    params: int = 0
    trainable: int = 0


class _Modules:
    """The modules by path as they stood at the capture: the person's model may be edited later."""

    def __init__(self, model: nn.Module):
        self.by_path = dict(model.named_modules(remove_duplicate=False))
        self.first = list(model.named_modules())
        self.root = model

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, nn.Module]]:
        """Paths and modules, as ``nn.Module.named_modules`` gives them."""
        return iter(self.first if remove_duplicate else self.by_path.items())

    def get_submodule(self, path: str) -> nn.Module:
        """The module at a path."""
        if path not in self.by_path:
            raise AttributeError(path)
        return self.by_path[path]


class ModelGraph(Mapping):
    """What one run of a model did: every operation, in order, filed under the module that did it.

    Made by `capture`. It is a mapping from public names to nodes; ``graph[…]`` takes the key of a
    scope or a module as well.

    Attributes:
        data: The same as frozen data, for code that works on graphs.
        model: The model that was captured; never changed.
    """

    def __init__(self, graph: data.Graph, model: nn.Module):
        self.data = graph
        self.model = model
        self._modules = _Modules(model)
        self._flat_ids = {node.id for node in graph.flat}
        self._made: dict[str, Node] = {}
        self._counts: dict[str, _Count] | None = None
        self._scopes = MappingProxyType({k: Scope(self, s) for k, s in graph.scopes.items()})

    # -- what is in it ----------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node in execution order, across scopes, without plumbing."""
        return tuple(self._view(node.id) for node in self.data.flat)

    @property
    def scopes(self) -> Mapping[str, Scope]:
        """Every call of a module that was opened, by key; the root under ``""``."""
        return self._scopes

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The model's inputs."""
        return tuple(node for node in self.nodes if node.kind == "input")

    @property
    def output(self) -> Node | None:
        """The model's output; ``None`` where the run failed before it."""
        end = self.data.root.output
        return None if end is None else self._view(end.id)

    @property
    def specialisations(self) -> tuple[data.Specialisation, ...]:
        """What this run decided: kind, expression, value, source line, scope."""
        return self.data.specialisations

    @property
    def failure(self) -> data.Failure | None:
        """Where and why the run stopped, or ``None``."""
        return self.data.failure

    @property
    def totals(self) -> dict[str, Any]:
        """Whole-model facts: parameters (shared ones once), trainable ones, unused ones, MACs."""
        whole = self._module_count("")
        read = self._all_counts()
        used = sum(count.params for count in read.values())
        more = {k: v for k, v in self.data.totals.items() if k not in ("params", "trainable")}
        return {
            "params": whole.params,
            "trainable": whole.trainable,
            "unused": max(whole.params - used, 0),
            "macs": sum(node.macs for node in self.nodes),
            **more,
        }

    # -- look-up ----------------------------------------------------------------------------

    def __getitem__(self, key: str | nn.Module | Node | Scope) -> Node | Scope:
        """The node of a name, the scope of a key, or the first call of a module.

        Raises:
            SelectionError: Nothing has this name; the message gives the nearest ones.
        """
        if isinstance(key, (Node, Scope)):
            return (
                self.scopes[""]
                if key.id == ""
                else self._item(select(self.data, self._modules, key)[0])
            )
        if isinstance(key, nn.Module):
            if key is self._modules.root:
                return self.scopes[""]
            return self._item(select(self.data, self._modules, key)[0])
        if not isinstance(key, str):
            raise SelectionError(
                f"{an(type(key).__name__)} is no name; pass a node's name, a scope's key or a module"
            )
        if key in self.data.by_name:
            return self._view(self.data.by_name[key].id)
        if key in self.scopes:
            return self.scopes[key]
        if is_glob(key):
            raise SelectionError(f"{key!r} is a glob, which may match several; use graph.find(…)")
        if key in self._modules.by_path:  # an alias, or a module that is not called, which says so
            return self._item(select(self.data, self._modules, key)[0])
        raise unknown_name(self.data, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.data.by_name)

    def __len__(self) -> int:
        return len(self.data.flat)

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except SelectionError:
            return False
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def find(self, where: Any = None, *, type: str | None = None) -> tuple[Node | Scope, ...]:
        """Search for nodes, and for scopes where the search names them.

        Args:
            where: A glob (``*`` stays inside one part of a name, ``**`` crosses dots), a name, a
                module class, an operation such as ``torch.flatten``, a module, a function of a node,
                or a list of these. A module's path means all its calls.
            type: A type's name in any case: ``"relu"`` finds ``nn.ReLU`` and ``F.relu``.

        Returns:
            In execution order; empty where a glob, class or function matches nothing.

        Raises:
            SelectionError: `where` is a name that does not exist, or of a wrong kind.
        """
        if where is None and type is None:
            raise SelectionError("find needs something to look for: where=… or type=…")
        if where is None:
            found = tuple(self.nodes)
        else:
            ids = select(
                self.data, self._modules, where, empty=True, view=lambda n: self._view(n.id)
            )
            found = tuple(self._item(id) for id in ids)
        if type is None:
            return found
        wanted = type.lower()
        if where is None:
            found += tuple(s for k, s in self.scopes.items() if k and s.type.lower() == wanted)
            found = tuple(sorted(found, key=lambda item: self._order[item.id]))
        return tuple(item for item in found if item.type.lower() == wanted)

    # -- running and showing ----------------------------------------------------------------

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the captured graph on any input.

        Returns:
            What the model would return.

        Raises:
            ReplayRefused: A decision of the recorded run does not hold for this input.
        """
        return replay(self.data, self.model, args, kwargs)

    def table(self, *, width: int | None = None) -> Table:
        """Layer, type, output shape, parameters and predecessors of every node, with totals.

        Args:
            width: Columns of the text form; by default the terminal's.
        """
        return Table(self, width=width)

    def to_graphviz(self, depth: int = 2):
        """The graph as people's own DOT.

        Args:
            depth: How many levels of modules are opened; deeper ones are one box each.

        Returns:
            A ``graphviz.Digraph`` with nested clusters, shapes and counts. Rendering it by its own
            ``render`` needs Graphviz on the system; its ``source`` is the DOT text.
        """
        from ..render import to_graphviz

        return to_graphviz(self.data, depth=depth)

    def to_svg(self, open: Iterable[str] | None = None, *, dark: bool | None = None) -> Picture:
        """The picture as SVG text, which a notebook shows.

        Args:
            open: Keys of the scopes to open; by default what stays readable.
            dark: Light strokes on a dark ground, or the other way round; by default as the page
                that shows the picture.
        """
        from .. import render

        if open is None:
            chosen = {"", *render.default_open(self.data)}
        else:
            chosen = {""}
            for key in open:
                if key not in self.scopes:
                    raise unknown_name(self.data, key)
                chosen |= set(self.data.ancestors(key))
        return Picture(render.to_svg(render.compose(self.data, set(chosen)), dark=dark))

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        """The picture where it can be drawn, else the table; text for consoles."""
        try:
            return {"image/svg+xml": str(self.to_svg()), "text/plain": repr(self)}
        except (SurgeryError, ImportError, OSError, RuntimeError):  # no engine: still the model
            return {"text/html": self.table()._repr_html_(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        failed = ", the run FAILED" if self.failure else ""
        return (
            f"<ModelGraph {self.data.root.type}: {len(self)} nodes, {len(self.scopes)} scopes, "
            f"{self.totals['params']:,} parameters{failed}>"
        )

    # -- shared by the views ----------------------------------------------------------------

    @property
    def _order(self) -> dict[str, int]:
        return execution_order(self.data)

    def _view(self, id: str) -> Node:
        if id not in self._made:
            self._made[id] = Node(self, self.data.by_id[id])
        return self._made[id]

    def _views(self, ids: Iterable[str]) -> tuple[Node, ...]:
        return tuple(self._view(id) for id in ids)

    def _item(self, id: str) -> Node | Scope:
        """The view of a node, or of the scope that it calls."""
        node = self.data.by_id[id]
        if node.child is not None and node.child in self.scopes:
            return self.scopes[node.child]
        return self._view(id)

    def _enclosing(self, key: str) -> tuple[str, ...]:
        """Keys of a scope and what is around it, the root left out."""
        return self.data.ancestors(key)[:-1]

    def _module(self, path: str | None) -> nn.Module | None:
        return None if path is None else self._modules.by_path.get(path)

    def _module_count(self, path: str) -> _Count:
        module = self._module(path)
        if module is None:
            return _Count()
        return _count(module.parameters())

    def _count(self, id: str) -> _Count:
        return self._all_counts().get(id, _Count())

    def _all_counts(self) -> dict[str, _Count]:
        """Parameters by the node that reads them first; computed from the modules, once."""
        if self._counts is None:
            seen: set[int] = set()
            counts = {}
            for node in self.data.flat:
                fresh = [p for p in self._read(node) if id(p) not in seen]
                if fresh:
                    seen |= {id(p) for p in fresh}
                    counts[node.id] = _count(fresh)
            self._counts = counts
        return self._counts

    def _read(self, node: data.Node) -> Sequence[nn.Parameter]:
        if node.kind == "module":
            module = self._module(node.target)
            return [] if module is None else list(module.parameters())
        if node.kind == "parameter" and isinstance(node.target, str):
            owner, _, name = node.target.rpartition(".")
            value = getattr(self._module(owner), name, None)
            return [value] if isinstance(value, nn.Parameter) else []
        return []


def _count(parameters: Iterable[nn.Parameter]) -> _Count:
    """Elements of some parameters, each object once; lazy ones, which have no shape yet, are 0."""
    total = trainable = 0
    for p in {id(p): p for p in parameters}.values():
        if isinstance(p, nn.parameter.UninitializedParameter):
            continue
        total += p.numel()
        trainable += p.numel() if p.requires_grad else 0
    return _Count(total, trainable)


def capture(
    model: nn.Module,
    *args: Any,
    input_size: Sequence[int] | Sequence[Sequence[int]] | None = None,
    **kwargs: Any,
) -> ModelGraph:
    """Record one run of a model.

    Args:
        model: Any module that can be called. It is left exactly as it was.
        *args: What the model is called with.
        input_size: Instead of `args`: the size of one input with the batch axis, or a list of
            sizes. Makes tensors of seeded normal noise, on the model's device and dtype.
        **kwargs: What the model is called with by keyword.

    Returns:
        The graph of everything that ran.

    Raises:
        CaptureError: The arguments do not describe a call.
        ModelFailed: The model itself raised; the error's ``graph`` holds what ran before.

    Example:
        >>> import nbsurgery as nbs
        >>> from torch import nn
        >>> graph = nbs.capture(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), input_size=(1, 4))
        >>> [node.name for node in graph.nodes]
        ['input', '0', '1', 'output']
    """
    if not isinstance(model, nn.Module):
        raise CaptureError(
            f"capture takes a torch.nn.Module, not {an(type(model).__name__)}; "
            "to see a plain function, wrap it in a module's forward"
        )
    if input_size is not None:
        if args:
            raise CaptureError("pass either the inputs themselves or input_size, not both")
        args = make(model, input_size)
    try:
        return ModelGraph(annotate(record(model, args, kwargs), model), model)
    except ModelFailed as error:
        if isinstance(error.graph, data.Graph):
            error.graph = ModelGraph(annotate(error.graph, model), model)
        raise
