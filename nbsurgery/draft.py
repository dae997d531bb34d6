"""The edits so far, as data: modules assigned, containers edited, scopes whose wiring changed.

A draft starts from the base graph and is changed by operations, step by step. It knows the edited
graph (node ids and names of the base stay), what code must say, and what the result must keep. It
holds no torch state of the person: `model` is the session's own structural copy, read only.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from . import rewrite
from .children import InsertChild
from .edits import Assign, Edit, NewModule, SetValue, by_attribute, listed
from .errors import EmissionError, StepError
from .expression import Expression, parse, with_values
from .graph import Graph, Node, Ref, Scope
from .regions import Part


@dataclass(frozen=True)
class Rewire:
    """A scope whose wiring changed: it is printed as a class.

    Attributes:
        key: Of the scope.
        steps: Who changed it, in order.
        suffixes: What the class name ends in, one per step: ``("GELU",)``.
        docs: What the docstring says, one clause per step.
        comments: One line per step for the place where the class is put in.
        new: Attribute → the new module's source, for ``__init__``.
        names: Node id → the variable name wanted for it.
    """

    key: str
    steps: tuple[int, ...] = ()
    suffixes: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    new: Mapping[str, NewModule] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def without(self, suffix: str) -> Rewire:
        """The same without what steps of that suffix said."""
        stay = [i for i, s in enumerate(self.suffixes) if s != suffix]

        def only(items: tuple) -> tuple:
            return tuple(items[i] for i in stay)

        return dataclasses.replace(
            self,
            steps=only(self.steps),
            suffixes=only(self.suffixes),
            docs=only(self.docs),
            comments=only(self.comments),
        )

    def said_once(self, step: int, doc: str, comment: str) -> Rewire:
        """The same with one sentence for all that a step says in it."""
        mine = [i for i, s in enumerate(self.steps) if s == step]
        first = mine[0]

        def one(items: tuple, word: Any = None) -> tuple:
            at = items[first] if word is None else word
            rest = tuple(x for i, x in enumerate(items) if i > first and i not in mine)
            return (*items[:first], at, *rest)

        return dataclasses.replace(
            self,
            steps=one(self.steps),
            suffixes=one(self.suffixes),
            docs=one(self.docs, doc),
            comments=one(self.comments, comment),
        )


@dataclass(frozen=True)
class Piece:
    """One module of a split model, as the code makes it.

    ``variable`` is the name it is assigned to (empty: the person's own), ``suffix`` what its class
    name ends in (inner classes too), ``doc`` what its docstring says. ``first`` is the path of a module
    that is not in it but was in the model: where the same variable is read and written, the text checks
    that it is still there.
    """

    part: Part
    variable: str
    suffix: str
    doc: str
    comment: str = ""
    first: str = ""


@dataclass
class Draft:
    """The model as the steps so far leave it.

    Attributes:
        base: The graph of the untouched model.
        model: The session's copy of the untouched model; read only.
        graph: The edited graph.
        edits: What the code says about attributes and containers, in order.
        rewires: Scopes whose wiring changed, by key.
        made: Module path → the new module made once on the meta device, to ask it things.
        claims: What must hold for the result (see `claims`).
        notes: Sentences for the report.
        namespace: The notebook's names.
        division: How the model is divided in the end, worked out on the graph as all steps leave it.
        inputs: How the example must change: input name → ``(axis, size)``.
        sizes: Shapes as all steps leave them, by node id, where that is known already.
        asked: Ids of the nodes whose shapes the text names.
        serves: Modules that are called several times → the step that edits all their calls alike.
    """

    base: Graph
    model: nn.Module
    graph: Graph
    namespace: Mapping[str, Any] = field(default_factory=dict)
    edits: list[Edit] = field(default_factory=list)
    rewires: dict[str, Rewire] = field(default_factory=dict)
    made: dict[str, Any] = field(default_factory=dict)
    claims: dict[int, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    inputs: dict[str, tuple[int, int]] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    serves: dict[str, int] = field(default_factory=dict)
    division: Callable[[Draft], tuple[Piece, ...]] | None = None
    _paths: dict[int, list[str]] = field(default_factory=dict, repr=False)  # by module; all copies'

    def pieces(self) -> tuple[Piece, ...]:
        """The modules that the model is divided into; none where it stays one.

        Raises:
            StepError: A place where it should be divided went with a later step.
            EmissionError: A border runs through something that cannot be divided.
        """
        return () if self.division is None else self.division(self)

    @classmethod
    def start(
        cls,
        base: Graph,
        model: nn.Module,
        namespace: Mapping[str, Any] | None = None,
        sizes: Mapping[str, tuple[int, ...]] | None = None,
    ):
        return cls(base, model, base, namespace or {}, sizes=sizes or {})

    def copy(self) -> Draft:
        """A draft of its own: a step that fails half-way leaves this one as it was."""
        return dataclasses.replace(
            self,
            edits=list(self.edits),
            rewires=dict(self.rewires),
            made=dict(self.made),
            claims=dict(self.claims),
            notes=list(self.notes),
            inputs=dict(self.inputs),
            serves=dict(self.serves),
        )

    # -- looking ----------------------------------------------------------------------------

    def node(self, id: str) -> Node:
        if id not in self.graph.by_id:
            raise StepError(f"{id!r} is no longer part of the edited model")
        return self.graph.by_id[id]

    def shape(self, node: Node) -> tuple[int, ...] | None:
        """The shape of a value as a comment says it: after all steps, where a run has told it."""
        self.asked.add(node.id)
        return self.sizes.get(node.id, node.shape)

    def scope_of(self, node: Node) -> Scope:
        return self.graph.scopes[node.scope]

    def module(self, path: str) -> nn.Module:
        """The module at `path` as the draft has it (a new one lives on the meta device).

        Raises:
            StepError: An earlier step took it away.
        """
        parts = path.split(".") if path else []
        for n in range(len(parts), -1, -1):
            head = ".".join(parts[:n])
            if head in self.made:
                try:
                    return self.made[head].get_submodule(".".join(parts[n:]))
                except AttributeError:
                    raise StepError(
                        f"{path!r} is gone: an earlier step put a "
                        f"{type(self.made[head]).__name__} in the place of {head!r}"
                    ) from None
        return self.model.get_submodule(path)

    def is_new(self, path: str) -> bool:
        """Whether the module at `path` was made by a step and keeps no old weights."""
        return any(
            isinstance(e, Assign) and e.path == path and not e.new.whole_old for e in self.edits
        )

    def is_kept(self, path: str) -> bool:
        """Whether the module at `path` is the person's: its widths at most were changed."""
        if path not in self.made:
            return True
        made = [e for e in self.edits if path in e.touched and (e.replaces or e.reshapes)]
        return self.exists(path) and bool(made) and all(e.reshapes for e in made)

    def expressions(self) -> Iterator[Expression]:
        """What persons wrote for new modules, of all steps."""
        for edit in self.edits:
            for name in vars(edit):
                if isinstance(value := getattr(edit, name), Expression):
                    yield value
        for rewire in self.rewires.values():
            yield from (made.new for made in rewire.new.values())

    def aliases(self, path: str) -> tuple[str, ...]:
        """All paths of the module at `path`, itself first."""
        if not self._paths:
            for p, module in self.model.named_modules(remove_duplicate=False):
                self._paths.setdefault(id(module), []).append(p)
        return (path, *(p for p in self._paths[id(self.model.get_submodule(path))] if p != path))

    def calls_of(self, path: str) -> list[Node]:
        """The calls of the module at `path` in the edited graph, in order."""
        names = set(self.aliases(path)) if self.exists(path) else {path}
        return [n for n in self.live_nodes() if n.kind == "module" and n.target in names]

    def exists(self, path: str) -> bool:
        """Whether the base model has a module at `path`."""
        try:
            self.model.get_submodule(path)
        except AttributeError:
            return False
        return True

    def live_nodes(self, graph: Graph | None = None) -> list[Node]:
        """Every node that still runs: of the scopes that the root reaches."""
        scopes = (graph or self.graph).scopes
        nodes: list[Node] = []

        def walk(key: str) -> None:
            for node in scopes[key].nodes:
                nodes.append(node)
                if node.child is not None and node.child in scopes:
                    walk(node.child)

        walk("")
        return nodes

    def live_scopes(self) -> set[str]:
        return {""} | {n.child for n in self.live_nodes() if n.child}

    def is_sequential(self, scope: Scope) -> bool:
        """Whether a scope is a plain container: its wiring is the order of its children."""
        if scope.key in self.rewires:
            return False
        try:
            module = self.module(scope.path)
        except (StepError, AttributeError):
            return False
        return isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward

    def other_calls(self, scope: Scope) -> list[Scope]:
        """The other calls of a scope's module: one class serves them all."""
        every = self.graph.scopes.values()  # those that still run: who is called no more goes
        return [s for s in every if s.path == scope.path and s.key != scope.key]

    # -- editing ----------------------------------------------------------------------------

    def once(self, nodes: Iterable[Node], step: int) -> list[Node]:
        """Of places inside a module that is called several times, one for all its calls.

        What the step then changes in that call it changes in the others too.

        Raises:
            EmissionError: Some of the calls are not among the places; the message names them all.
        """
        nodes = list(nodes)
        wanted, done, found = {n.id for n in nodes}, set(), []
        for node in nodes:
            if node.id in done:
                continue
            places = self._same_places(node)
            if len(places) > 1:
                scope = self.scope_of(node)
                if not all(p.id in wanted for p in places):
                    order = {n.id: i for i, n in enumerate(self.live_nodes())}
                    places.sort(key=lambda n: order[n.id])
                    paths = {n.target for n in places if n.kind == "module"}
                    names = [n.child or n.name for n in places]  # a path would mean every call
                    names = [f'{{"call": "{n}"}}' if n in paths else n for n in names]
                    raise EmissionError(
                        f"{scope.path!r} is called {len(places)} times, and its class serves every "
                        f"call: an edit inside it changes them all; name all of {conjoined(names)}, "
                        "in one list or by a pattern"
                    )
                self.serves[scope.path] = step
                done |= {p.id for p in places}
            found.append(node)
        return found

    def everywhere(self, nodes: Iterable[Node]) -> list[Node]:
        """Places, and where a class that is edited there serves several calls, the same in those."""
        found: dict[str, Node] = {}
        for node in nodes:
            places = [node]
            with contextlib.suppress(EmissionError):  # one class cannot serve them: told when tried
                places = self._same_places(node)
            found |= {place.id: place for place in places}
        return list(found.values())

    def _same_places(self, node: Node) -> list[Node]:
        """A node, and what ran in the other calls of its module where it ran in this one.

        Raises:
            EmissionError: They did not run the same operations.
        """
        scope = self.scope_of(node)
        at, found = scope.nodes.index(node), [node]
        for other in self.other_calls(scope):
            if [(n.kind, n.type) for n in other.nodes] != [(n.kind, n.type) for n in scope.nodes]:
                raise EmissionError(
                    f"{scope.path!r} is called several times, and the calls did not run the same "
                    "operations: no class with an edit inside could serve them all"
                )
            found.append(other.nodes[at])
        return found

    def set_scope(self, scope: Scope) -> None:
        self._exchange({scope.key: scope})

    def set_calls(self, scope: Scope, step: int) -> None:
        """Exchange a scope's graph, and those of the other calls of its module alike.

        Raises:
            EmissionError: There are others, and the step was not asked for all of them.
        """
        changed, old = {scope.key: scope}, self.graph.scopes[scope.key]
        names = set(self.graph.by_name)

        def named(name: str) -> str:
            made = rewrite.unique_name(name, names)
            names.add(made)
            return made

        for other in self.other_calls(scope):
            if self.serves.get(scope.path) != step:
                raise EmissionError(
                    f"{scope.path!r} is called several times, and its class serves every call: this "
                    "step would change the others too, and is made for one"
                )
            changed[other.key] = rewrite.mirrored(old, scope, other, named)
        self._exchange(changed)

    def _exchange(self, changed: Mapping[str, Scope]) -> None:
        """Take scopes over; what their calls read now binds the called; who is called no more goes."""
        changed = dict(changed)
        for scope in list(changed.values()):
            for node in scope.nodes:
                before = self.graph.by_id.get(node.id)
                child = changed.get(node.child) or self.graph.scopes.get(node.child)
                if child is not None and before is not None and before is not node:
                    changed[child.key] = rewrite.rebound(child, before, node)
        self.graph = self.graph.with_scopes(changed)
        live = self.live_scopes()
        if len(live) < len(self.graph.scopes):
            kept = {k: s for k, s in self.graph.scopes.items() if k in live}
            self.graph = dataclasses.replace(self.graph, scopes=kept, _cache={})

    def assign(self, edit: Edit, modules: Mapping[str, nn.Module]) -> None:
        """Put new modules at their paths: their calls become leaf calls, what was inside goes."""
        keep_old = getattr(getattr(edit, "new", None), "whole_old", False)
        where = {p: self.aliases(p) if self.exists(p) else (p,) for p in modules}
        self._drop_below([a for paths in where.values() for a in paths], keep_old)
        self.edits.append(edit)
        for path, made in modules.items():
            self.made |= dict.fromkeys(where[path], made)
            self.leaf_calls(where[path], made)

    def leaf_calls(self, paths: Iterable[str], made: Any) -> None:
        """Take the calls of the modules at `paths` as they run: what was recorded inside is forgotten."""
        changed: dict[str, Scope] = {}
        for key, scope in self.graph.scopes.items():
            nodes = tuple(
                n.with_(child=None, type=type(made).__name__, writes=overwrites(made, n), facts={})
                if n.kind == "module" and n.target in paths
                else n
                for n in scope.nodes
            )
            if nodes != scope.nodes:
                changed[key] = scope.with_(nodes=nodes)
        self._exchange(changed)
        for key in changed:
            self._passed_writes(key)

    def set_value(self, step: int, path: str, value: str | None) -> None:
        """Set a plain attribute that a library keeps beside its modules; ``None``: leave it as it was."""
        self.edits = [e for e in self.edits if not (isinstance(e, SetValue) and e.path == path)]
        if value is not None:
            self.edits.append(SetValue(step, "", path, value))

    def set_in_place(self, path: str, on: bool) -> None:
        """Say of the calls of the module at `path` whether they overwrite what they read."""
        for node in self.calls_of(path):
            changed = node.with_(writes=node.refs[:1] if on else ())
            self.set_scope(rewrite.exchanged(self.scope_of(node), changed))
            self._passed_writes(node.scope)

    def _passed_writes(self, key: str) -> None:
        """Who calls a scope that overwrites what it was given overwrites it as well."""
        scope = self.graph.scopes.get(key)
        if scope is None or scope.caller is None:
            return
        call = self.graph.by_id[scope.caller]
        given = (scope.bindings.get(id) for id in rewrite.written_inputs(scope))
        writes = {r.id: None for r in given if isinstance(r, Ref)}
        if not set(writes) <= set(call.writes):
            changed = call.with_(writes=(*dict.fromkeys((*call.writes, *writes)),))
            self.set_scope(rewrite.exchanged(self.scope_of(call), changed))
            self._passed_writes(call.scope)

    def _drop_below(self, paths: Iterable[str], keep_old: bool) -> None:
        """Edits of something that goes are moot: they leave no code."""

        def gone(path: str) -> bool:
            return any(path.startswith(p + ".") or (path == p and not keep_old) for p in paths)

        if not keep_old:
            self.edits = [e for e in (e.without(gone) for e in self.edits) if e is not None]
            self.rewires = {
                k: r
                for k, r in self.rewires.items()
                if k in self.graph.scopes and not gone(self.graph.scopes[k].path)
            }
        self.made = {p: m for p, m in self.made.items() if not gone(p)}

    def rewire(
        self,
        scope: Scope,
        step: int,
        *,
        suffix: str,
        doc: str,
        comment: str,
        new: Mapping[str, NewModule] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Exchange a scope's graph, and say how its class shall be called and explained.

        Raises:
            EmissionError: The scope cannot be re-expressed, or its module serves several calls.
        """
        base = self.base.scopes.get(scope.key)
        if base is not None and base.nodes == scope.nodes:  # the steps cancel
            self.set_calls(scope, step)
            self.rewires.pop(scope.key, None)
            return
        self.set_calls(scope, step)
        old = self.rewires.get(scope.key, Rewire(scope.key))
        self.rewires[scope.key] = Rewire(
            scope.key,
            (*old.steps, step),
            (*old.suffixes, suffix),
            (*old.docs, doc),
            (*old.comments, comment),
            {**old.new, **(new or {})},
            {**old.names, **(names or {})},
        )

    def say_once(
        self,
        step: int,
        places: Mapping[str, Sequence[Node]],
        told: Callable[[str], tuple[str, str]],
    ) -> None:
        """Where a step changed several places of one scope, its class and comment tell of them at once.

        Args:
            step: The step.
            places: Key of a scope → the places there.
            told: Gives for a key the docstring's part and the comment's, which names the scope itself.
        """
        for key, nodes in places.items():
            rewire = self.rewires.get(key)
            if rewire is not None and rewire.steps.count(step) == len(nodes) > 1:
                doc, comment = told(key)
                comment = f"{self.graph.scopes[key].path or 'the model'}: {comment}"
                self.rewires[key] = rewire.said_once(step, doc, comment)

    def redefine(self, path: str, made: Any, **changes: Any) -> bool:
        """Change how a module that an earlier step added is made; ``False`` if no step added it."""
        for i, edit in enumerate(self.edits):
            if isinstance(edit, InsertChild) and _below(edit.path, edit.name) == path:
                self.edits[i] = dataclasses.replace(edit, **changes)
                self.made[path] = made
                self.leaf_calls((path,), made)
                return True
        for key, rewire in self.rewires.items():
            for attr, new in rewire.new.items():
                if _below(self.graph.scopes[key].path, attr) == path:
                    fresh = {**rewire.new, attr: dataclasses.replace(new, **changes)}
                    self.rewires[key] = dataclasses.replace(rewire, new=fresh)
                    self.made[path] = made
                    self.leaf_calls((path,), made)
                    return True
        return False

    def withdraw(self, node: Node) -> bool:
        """Take a module that an earlier step added out again; ``False`` if no step added it."""
        path, scope = node.target, self.scope_of(node)
        for edit in self.edits:
            if isinstance(edit, InsertChild) and _below(edit.path, edit.name) == path:
                self.edits.remove(edit)
                self.set_scope(rewrite.bypassed(scope, node.id, node.refs[0]))
                return True
        rewire = self.rewires.get(scope.key)
        name = path[len(scope.path) + 1 :] if scope.path else path
        if rewire is None or name not in rewire.new:
            return False
        new = {k: v for k, v in rewire.new.items() if k != name}
        self.rewires[scope.key] = dataclasses.replace(rewire, new=new)
        for call in [n.id for n in self.calls_of(path)]:
            read = self.graph.by_id[call].refs[0]
            self.set_scope(rewrite.bypassed(self.graph.scopes[scope.key], call, read))
        base = self.base.scopes.get(scope.key)
        if base is not None and base.nodes == self.graph.scopes[scope.key].nodes:
            del self.rewires[scope.key]
        return True

    def open_into(self, scope: Scope, call: str) -> Scope:
        """Open the scope that `call` calls into `scope`; new modules of the opened one move along."""
        child = self.graph.scopes[self.graph.by_id[call].child]
        opened = rewrite.inline(self.graph, scope, call)
        inner = self.rewires.pop(child.key, None)
        others = self.other_calls(child)
        if inner is not None and others:  # they still need the class, which makes the modules
            self._inherit(inner, others[0].key)
        elif inner is not None:
            self._made_apart(inner, child.path)
        return opened

    def _inherit(self, rewire: Rewire, key: str) -> None:
        """Let another call of the module stand for its class; names were those of the first's values."""
        self.rewires[key] = dataclasses.replace(rewire, key=key, names={})

    def _made_apart(self, rewire: Rewire, owner: str, called: Container[str] | None = None) -> None:
        """The new modules of a scope whose class is not written, each with a statement of its own.

        With `called`, those that are.
        """
        for attr, group in by_attribute(rewire.new).items():
            path, made = f"{owner}.{attr}", next(iter(group.values()))
            if called is not None and path not in called:
                continue
            new = made.new if "" in group else self._listed(group)
            layer = self.made.get(path)
            weights = not isinstance(layer, nn.Module) or any(True for _ in layer.parameters())
            comment = f"{path}: {new.text}" + (", new weights" if weights else "")
            self.edits.append(
                Assign(rewire.steps[0], comment, path, new, {}, made.suffix, made.moded)
            )

    def _listed(self, group: Mapping[str, NewModule]) -> Expression:
        """Several new modules as one list, with the numbers of what `old` is."""
        values = {
            name: new.new if new.old is None else with_values(new.new, self.module(new.old))
            for name, new in group.items()
        }
        return parse(listed({name: new.text for name, new in values.items()}))

    def attribute(self, scope: Scope, wanted: str) -> str:
        """A name for a new attribute of the scope's module that nothing there has yet."""
        module = self.model.get_submodule(scope.path)
        new = self.rewires.get(scope.key, Rewire(scope.key)).new
        taken = {*dir(module), *(name.partition(".")[0] for name in new)}
        taken |= {e.name for e in self.edits if isinstance(e, InsertChild) and e.path == scope.path}
        return rewrite.unique_name(wanted, taken)

    def finish(self) -> None:
        """Leave out what later steps made moot: edits of modules that are no longer called."""
        graphs = [p.part.graph for p in self.pieces()] or [self.graph]
        nodes = [n for g in graphs for n in self.live_nodes(g)]
        live = _reached(nodes)
        called = _reached(self.base.by_id.values())

        def gone(path: str) -> bool:
            was = any(t == path or t.startswith(path + ".") for t in called)
            is_ = any(t == path or t.startswith(path + ".") for t in live)
            return was and not is_

        def stays(edit: Edit | None) -> bool:
            if isinstance(edit, InsertChild):
                return _below(edit.path, edit.name) in live
            if isinstance(edit, Assign) and not self.exists(edit.path):  # a step made it
                return edit.path in live
            return edit is not None

        self.edits = [e for e in (e.without(gone) for e in self.edits) if stays(e)]
        reach = {""} | {n.child for n in nodes if n.child}
        for key in [k for k in self.rewires if k not in reach and k in self.base.scopes]:
            rewire, path = self.rewires.pop(key), self.base.scopes[key].path
            same = [k for k in reach if k in self.base.scopes and self.base.scopes[k].path == path]
            if same:  # another call of the module goes on
                self._inherit(rewire, min(same))
            elif path:
                self._made_apart(rewire, path, live)
        self.rewires = {
            k: dataclasses.replace(
                r,
                new={
                    a: m for a, m in r.new.items() if _below(self.graph.scopes[k].path, a) in live
                },
            )
            for k, r in self.rewires.items()
            if k in reach
        }


def _reached(nodes: Iterable[Node]) -> set[str]:
    """Paths of the modules and parameters that some nodes use, and of the modules that own those."""
    read = {str(n.target) for n in nodes if n.kind == "parameter"}
    return (
        {n.target for n in nodes if n.kind == "module"}
        | read
        | {p.rpartition(".")[0] for p in read}
    )


def overwrites(made: Any, node: Node) -> tuple[str, ...]:
    """What a call of a new module overwrites: what it reads, where the module works in place."""
    return node.refs[:1] if getattr(made, "inplace", False) is True else ()


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# -- words ----------------------------------------------------------------------------------


def by_scope(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Nodes by the key of their scope, in order."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.scope, []).append(node)
    return found


def describe(draft: Draft, node: Node) -> str:
    """A node in the words of a comment: ``the addition``, ```relu` ``, ``the third of three calls of `relu` ``."""
    if node.kind in ("function", "method"):
        words = {"add": "addition", "cat": "concatenation", "mul": "multiplication"}
        scope = draft.scope_of(node)
        same = [
            n for n in scope.nodes if n.type == node.type and n.kind == node.kind and not n.glue
        ]
        word = words.get(node.type, f"`{node.type}`")
        if len(same) > 1:
            word = f"{ordinal(same.index(node) + 1)} {word}" if node in same else word
        return f"the {word}" if node.type in words or len(same) > 1 else word
    if node.kind == "input":
        return f"the input `{node.target}`"
    if node.kind == "output":
        return "the output"
    local = local_name(draft, node)
    k, n = call_in_scope(draft, node)
    if n > 1:
        return f"the {ordinal(k, n)} call of `{local}`"
    return f"`{local}`"


def describe_all(draft: Draft, nodes: Sequence[Node]) -> str:
    """Several nodes of one scope: ``each of the three calls of `relu` ``, ```conv1` and `conv2` ``."""
    first, scope = nodes[0], draft.base.scopes.get(nodes[0].scope)
    modules = all(n.kind == "module" for n in nodes)
    if modules and {n.target for n in nodes} == {first.target}:
        every = call_in_scope(draft, first)[1] == len(nodes)
        calls = f"{'the ' if every else ''}{number(len(nodes))} calls"
        return f"each of {calls} of `{local_name(draft, first)}`"
    if modules and len({n.target.rpartition(".")[0] for n in nodes}) == 1 and len(nodes) > 1:
        home = local_name(draft, first).rpartition(".")[0]
        every = len(draft.module(first.target.rpartition(".")[0])._modules)
        if home and len({n.target for n in nodes}) == every == len(nodes):
            return f"each of the {number(every)} modules in `{home}`"
    kind = {(n.kind, n.type) for n in nodes}
    same = [n for n in scope.nodes if {(n.kind, n.type)} == kind and not n.glue] if scope else []
    if not modules and len(same) == len(nodes) > 1:
        return f"each `{first.type}`"
    if len(nodes) > 3:
        return f"each of {number(len(nodes))} operations"
    return conjoined([describe(draft, n) for n in nodes])


def call_in_scope(draft: Draft, node: Node) -> tuple[int, int]:
    """This call is the k-th of n calls of its module within its scope."""
    same = [n for n in draft.scope_of(node).nodes if n.kind == "module" and n.target == node.target]
    return [n.id for n in same].index(node.id) + 1, len(same)


def local_name(draft: Draft, node: Node) -> str:
    """The path of a called module below its scope's own module."""
    path = draft.scope_of(node).path
    return node.target[len(path) + 1 :] if path else node.target


def ordinal(k: int, n: int | None = None) -> str:
    """``first``, ``second``, …; the last of several is ``last``."""
    if n is not None and n > 1 and k == n:
        return "last"
    words = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
    return words[k - 1] if k <= len(words) else f"{k}th"


def conjoined(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]


def number(n: int) -> str:
    """Small counts in words."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[n] if n < len(words) else f"{n:,}"


def camel(name: str) -> str:
    """``layer4.0`` → ``Layer40``, ``avg_pool`` → ``AvgPool``: a piece of a class name."""
    parts = [p for piece in name.split(".") for p in piece.split("_") if p]
    return "".join(p[:1].upper() + p[1:] for p in parts)


def shape_text(shape: tuple[int, ...] | None, batch: int | None) -> str:
    """``(N, 2048)``: a shape with the batch size of the example written as N."""
    if shape is None:
        return "an unknown shape"
    parts = [str(s) for s in shape]
    if shape and batch is not None and shape[0] == batch:
        parts[0] = "N"
    return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"


def batch_of(graph: Graph) -> int | None:
    """The batch size of the example: the first axis that all tensor inputs of the root share."""
    sizes = {n.shape[0] for n in graph.root.inputs if n.shape}
    return sizes.pop() if len(sizes) == 1 else None


def is_head(draft: Draft, path: str) -> bool:
    """Whether what the layer makes is the model's answer: at most softmax and the like come after."""
    after: set[str] = set()
    for node in draft.calls_of(path):
        todo = list(draft.graph.users_of(node.id))
        while todo:
            id = todo.pop()
            if id not in after:
                after.add(id)
                todo += draft.graph.users_of(id)
    return not any(_works_on(draft, draft.graph.by_id[id]) for id in after)


_PASSED_ON = {
    "softmax", "log_softmax", "sigmoid", "tanh", "dropout", "interpolate", "flatten", "squeeze", "view",
    "reshape", "permute", "transpose", "getitem", "contiguous", "float", "to", "mean", "add", "div",
    "chunk", "split", "unbind",
}  # fmt: skip


def _works_on(draft: Draft, node: Node) -> bool:
    """Whether a node does more than hand an answer on, or computes with parameters."""
    if node.kind == "module":
        return any(True for _ in draft.module(node.target).parameters())
    return node.kind in ("function", "method") and node.type not in _PASSED_ON
