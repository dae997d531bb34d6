"""The recording of one run: every operation filed under the module call that performed it."""

from __future__ import annotations

import collections
import operator
import threading
import types
import weakref
from typing import Any

import torch
from torch import nn

from nbsurgery.capture import crossing, decisions, frames, indexing, libraries
from nbsurgery.capture.steps import Digest, Held, Leftover, OpenScope, Step
from nbsurgery.capture.symbols import Symbol, TrackedBool, plain, track_flag
from nbsurgery.capture.values import PLAIN, alive, digest, facts, hashable, imprint
from nbsurgery.errors import an
from nbsurgery.graph import Ref

_TORCH_STATE = frozenset(nn.Module().__dict__) | {
    "_parameters",
    "_buffers",
    "_modules",
    "_non_persistent_buffers_set",
    "training",
}


class Tape:
    """Records one run of `root`. Filled by the hooks while `recording`, read by `freeze`."""

    def __init__(self, root: nn.Module, how: str, save):
        self.root, self.how, self.save = root, how, save
        self.thread = threading.get_ident()
        self.recording = False
        self.entering = False
        self.paused = 0
        self.products: list | None = None  # matrix products within a function that is kept whole
        self.scopes: dict[str, OpenScope] = {}
        self.top: OpenScope | None = None
        self.paths: dict[int, list[str]] = {}
        self.tensors: dict[int, list[str]] = {}
        self.modules: list[nn.Module] = []
        self.decisions: list[tuple] = []
        self.decided: dict[tuple, None] = {}
        self.failure: tuple | None = None
        self.indexed: tuple | None = None  # where the number made now is read unseen
        self.keys: collections.Counter = collections.Counter()
        self.names: collections.Counter = collections.Counter()
        self.homes: dict[int, tuple] = {}
        self.given: tuple = ()
        self.takes_list = False
        self.changed: dict[int, list[str]] = {}
        self.digested: Digest | None = None
        self.closed = tuple(libraries.classes(libraries.CLOSED))
        self._attributes: dict[int, tuple] | None = None
        self.loose: dict[int, torch.Tensor] = {}  # of layers that no module registers
        self._walk(root, "", ())
        self.every_path = {path for paths in self.paths.values() for path in paths}

    def _walk(self, module: nn.Module, path: str, chain: tuple) -> None:
        key = id(module)
        if key in chain:
            return
        known = self.paths.setdefault(key, [])
        if not known:
            self.modules.append(module)
        elif len(known) >= 16:
            return
        known.append(path)
        prefix = path + "." if path else ""
        tables = module.__dict__
        for table in ("_parameters", "_buffers"):
            for name, value in (tables.get(table) or {}).items():
                if value is not None:
                    self.tensors.setdefault(id(value), []).append(prefix + name)
        children = tables.get("_modules")
        if children:
            chain = (*chain, key)
            for name, child in children.items():
                if child is not None:
                    self._walk(child, prefix + name, chain)

    # ---- nodes

    def step(self, scope, kind, type, target, args=(), kwargs=None, base=None, glue=False) -> Step:
        """File a new node at the end of a scope."""
        self.indexed = None
        where = frames.walk(2, self.meet)
        node = Step(
            f"{scope.key}#{scope.count}", scope, kind, type, target, args, kwargs or {},
            base or type, glue, where,
        )  # fmt: skip
        scope.count += 1
        scope.nodes.append(node)
        node.name = None if glue and type == "getitem" else self.name(node)
        return node

    def meet(self, frame, uses, innermost: bool) -> None:
        """A running function of the author may take parts of a list by a number: does it now?"""
        for use in uses:
            inside = innermost and use.first <= frame.f_lasti < use.last
            if not (inside or use.names) or not indexing.list_at(use, frame):
                continue
            if inside:
                self.indexed = (use, frame.f_code)
            for number in indexing.numbers(use, frame):
                key = (use, number._node)
                if number._tape is self and key not in self.decided:
                    self.decided[key] = None
                    where = frames.at(frame.f_code, use.last)
                    decisions.decision(self, "int", number, plain(number), where)

    def made(self, number: Symbol, item: int | None, count: int) -> None:
        """A tracked number was made where it is read unseen; or it is an item of a size that is."""
        use, code = self.indexed
        if indexing.takes(use, item, count):
            where = frames.at(code, use.last)
            decisions.decision(self, "int", number, plain(number), where)

    def spelled(self, number: Symbol, frame) -> None:
        """A number becomes a text or a key in a function of the author."""
        if frames.uses(frame):
            kind = "training" if isinstance(number, TrackedBool) else "int"
            self.decision(kind, number, plain(number))

    def input(self, scope: OpenScope, name: str, binding: Any, place=None) -> Step:
        """Add an input node to a scope."""
        id = f"{scope.key}#{scope.count}"
        scope.count += 1
        node = Step(id, scope, "input", "input", name, (), {}, name, False, ())
        node.name = self.name(node)
        scope.inputs.append(node)
        scope.bindings[id] = binding
        if place is None:
            scope.stowaways.append(id)
        else:
            scope.places[id] = place
        return node

    def name(self, node: Step) -> str:
        """The public name: path and operation, with ``_1``, ``_2`` for the further ones."""
        path = node.scope.path
        if node.kind in ("module", "parameter"):
            base = node.target
        else:
            base = f"{path}.{node.base}" if path else node.base
        return self.numbered(self.names, base)

    def numbered(self, counts: collections.Counter, base: str) -> str:
        """`base`, or with ``_1``, ``_2`` from its second use on; never the path of another module."""
        count = counts[base]
        counts[base] += 1
        if count == 0:
            return base
        while f"{base}_{count}" in self.every_path:  # the layers ``conv`` and ``conv_1``
            count = counts[base]
            counts[base] += 1
        return f"{base}_{count}"

    # ---- which node made a value

    def find(self, scope: OpenScope, value: Any) -> Ref | None:
        entry = scope.env.get(id(value))
        if entry is not None and (entry[0] is value or alive(entry[0]) is value):
            return entry[1]
        return None

    def bind_tensor(self, scope: OpenScope, value: torch.Tensor, ref: Ref) -> None:
        link = weakref.ref(value)
        scope.env[id(value)] = (link, ref, None)
        self.homes[id(value)] = (link, scope, ref)

    def bind_object(self, scope: OpenScope, value: Any, ref: Ref) -> None:
        """Remember a container or object by identity, as long as its contents stay."""
        scope.env[id(value)] = (value, ref, imprint(value))

    def part(self, scope: OpenScope, value: Any) -> Ref | None:
        """An object that hangs on another one that is known here: ``cache.self_attention_cache``."""
        for owner, ref, _ in list(scope.env.values()):
            if not isinstance(owner, self.closed):
                continue
            for name, held in vars(owner).items():
                if held is value:
                    node = self.step(scope, "function", "getattr", getattr, (ref, name), glue=True)
                    scope.env[id(value)] = (value, Ref(node.id), None)
                    return Ref(node.id)
        return None

    def stow(self, scope: OpenScope, value: Any, hint: str) -> Ref | None:
        """Bring a value that only an ancestor knows down to `scope`, through each scope between."""
        if isinstance(value, self.closed) and (part := self.part(scope, value)) is not None:
            return part
        chain = [scope]
        up = scope.parent
        ref = None
        while up is not None:
            if isinstance(value, Symbol) and value._scope is up:
                ref = Ref(value._node)
            else:
                ref = self.find(up, value)
            if ref is not None:
                break
            chain.append(up)
            up = up.parent
        if ref is None:
            return None
        for inner in reversed(chain):
            node = self.input(inner, hint, ref)
            ref = Ref(node.id)
            if isinstance(value, torch.Tensor):
                node.outputs = (facts(value),)
                inner.env[id(value)] = (weakref.ref(value), ref, None)
            else:
                node.value = plain(value) if isinstance(value, Symbol) else None
                inner.env[id(value)] = (value, ref, None)
        return ref

    def resolve(self, scope: OpenScope, value: torch.Tensor) -> Ref:
        """The node for a tensor that no operation of this scope made."""
        paths = self.tensors.get(id(value))
        if paths is not None:
            return self.parameter(scope, self.nearest(scope, paths), value)
        ref = self.stow(scope, value, "captured")
        if ref is not None:
            return ref
        place = self.attributes().get(id(value))
        if place is not None and place[0] is value:
            path, keys = self.nearest(scope, place[1]), place[2]
            if not keys:
                return self.parameter(scope, path, value)
            node = Ref(self.parameter_node(scope, path, None).id)
            for key in keys:
                item = self.step(
                    scope, "function", "getitem", operator.getitem, (node, key), glue=True
                )
                node = Ref(item.id)
            item.outputs = (facts(value),)
            self.bind_tensor(scope, value, node)
            return node
        home = self.homes.get(id(value))
        if home is not None and home[0]() is value:
            return self.leftover(scope, value, home)
        return self.unknown(scope, value, "a tensor made outside of torch's operations")

    def leftover(self, scope, value, home) -> Ref:
        """A value that another scope left behind: reached by no argument and no return."""
        node = self.step(scope, "constant", "Tensor", Leftover(home[2].id), base="leftover")
        node.outputs = (facts(value),)
        self.cloud(
            scope,
            f"it reads a value that {home[1].path or 'the root'} left behind, "
            "not one that was passed to it",
        )
        self.bind_tensor(scope, value, Ref(node.id))
        return Ref(node.id)

    def digest(self) -> Digest | None:
        """What this run was given, so that values baked in can be refused for anything else."""
        if self.digested is None:
            self.digested = Digest(digest(self.given))
        return self.digested

    def unknown(self, scope: OpenScope, value: Any, what: str) -> Ref:
        """A value of unknown origin: kept as it was, and its scope cannot be re-expressed.

        One that stood there before the run (a global, an attribute of the class) stays what it is;
        any other may depend on the inputs, so that the recording holds for these inputs only.
        """
        known = frames.stands_in_globals(value) or any(
            v is value for c in type(scope.module).__mro__ for v in vars(c).values()
        )
        if self.loose.get(id(value)) is value:
            known, what = True, "weights of a layer that is kept in a plain list, not registered"
        elif known:
            what = f"{an(type(value).__name__)} that is a global or an attribute of a class"
        node = self.step(scope, "constant", type(value).__name__, value, base="constant")
        if isinstance(value, torch.Tensor):
            node.outputs = (facts(value),)
            self.bind_tensor(scope, value, Ref(node.id))
            node.target = Held(value)
        else:
            scope.env[id(value)] = (value, Ref(node.id), None)
            node.target = Held(value)
        self.cloud(scope, f"it uses {what}")
        if not known:
            self.decide(scope, "constant", what, self.digest(), node.id, node.frames)
        return Ref(node.id)

    def cloud(self, scope: OpenScope, reason: str) -> None:
        """Say why a scope cannot be re-expressed; the first reason stands."""
        if scope.opaque is None:
            scope.opaque = f"{type(scope.module).__name__}.forward cannot be rewritten: {reason}"

    def nearest(self, scope: OpenScope, paths: list[str]) -> str:
        """Of several paths to one thing, the one below the calling module."""
        if len(paths) == 1 or not scope.path:
            return paths[0]
        prefix = scope.path + "."
        return next((p for p in paths if p.startswith(prefix)), paths[0])

    def parameter_node(self, scope: OpenScope, path: str, value) -> Step:
        node = self.step(scope, "parameter", path.rpartition(".")[2], path)
        if isinstance(value, torch.Tensor):
            node.type = "Parameter" if isinstance(value, nn.Parameter) else "Tensor"
            node.outputs = (facts(value),)
        return node

    def parameter(self, scope: OpenScope, path: str, value: torch.Tensor) -> Ref:
        node = self.parameter_node(scope, path, value)
        ref = Ref(node.id)
        scope.env[id(value)] = (weakref.ref(value), ref, None)
        return ref

    def attributes(self) -> dict[int, tuple]:
        """Tensors and objects that modules hold as plain attributes: id to (value, paths, keys)."""
        if self._attributes is None:
            table: dict[int, tuple] = {}
            for module in self.modules:
                path = self.paths[id(module)][0]
                prefix = path + "." if path else ""
                for name, value in list(module.__dict__.items()):
                    if name in _TORCH_STATE or value is None or type(value) in PLAIN:
                        continue
                    if isinstance(value, (nn.Module, type, types.FunctionType)):
                        continue
                    # one config hangs on many modules: the nearest path is the one to read
                    entry = table.setdefault(id(value), (value, [], ()))
                    if not entry[2]:
                        entry[1].append(prefix + name)
                    items = ()
                    if isinstance(value, (list, tuple)):
                        items = enumerate(value)
                    elif isinstance(value, dict):
                        items = value.items()
                    for key, item in items:
                        if isinstance(item, nn.Module) and id(item) not in self.paths:
                            for tensor in (*item.parameters(), *item.buffers()):
                                self.loose[id(tensor)] = tensor
                        if isinstance(item, torch.Tensor):
                            table.setdefault(id(item), (item, [prefix + name], (key,)))
            self._attributes = table
        return self._attributes

    def written(self, scope, mutated) -> tuple[str, ...]:
        refs = []
        for tensor in mutated:
            ref = self.find(scope, tensor)
            if ref is not None and ref.id not in refs:
                refs.append(ref.id)
        return tuple(refs)

    # ---- decisions

    def decide(self, scope, kind, expression, value, node, where) -> None:
        key = (kind, node, expression, value if hashable(value) else None, where)
        if key not in self.decided:
            self.decided[key] = None
            self.decisions.append((kind, expression, value, where, scope.key, node))

    def place(self, scope: OpenScope, where: tuple) -> None:
        """Fill ``{where}`` in a fresh reason."""
        if scope.opaque and "{where}" in scope.opaque:
            frame = frames.innermost(where)
            scope.opaque = scope.opaque.replace("{where}", frame.place if frame else "it")

    def decision(self, kind: str, number: Symbol, value: Any) -> None:
        """Python asked a tracked number for its value."""
        decisions.decision(self, kind, number, value)

    def comparison(self, function, left: Any, right: Any, value: bool) -> None:
        """Python compared tracked numbers."""
        decisions.comparison(self, function, left, right, value)

    def number_operation(self, function, args: tuple, result: Any) -> Any:
        """Python computed with tracked numbers."""
        return decisions.number_operation(self, function, args, result)

    def loop(self, items: list) -> None:
        """Python goes through a list that came as an argument."""
        crossing.loop(self, items)

    # ---- failure

    def failed(self, scope, node: Step, error: Exception, tensors) -> None:
        node.failed = True
        if self.failure is None or self.failure[2] is not error:
            shapes = tuple(tuple(int(s) for s in t.shape) for t in tensors)
            self.failure = (node, scope, error, shapes)

    # ---- flags

    def training(self, module: nn.Module, value: bool):
        """``module.training`` while recording: a node, and a flag that tells when it is asked."""
        scope = self.top
        paths = self.paths.get(id(module))
        if paths is None or scope is None:
            return value
        path = self.nearest(scope, paths)
        path = f"{path}.training" if path else "training"
        key = ("training", path)
        entry = scope.env.get(key)
        if entry is None:
            node = self.step(scope, "parameter", "training", path, glue=True)
            node.value = value
            entry = scope.env[key] = (None, node.id, None)
        return track_flag(value, self, scope, entry[1])

    # ---- the run

    def forget(self) -> None:
        """Let go of everything: numbers that somebody kept still point here."""
        for scope in self.scopes.values():
            scope.module = scope.parent = scope.caller = None
            scope.nodes, scope.inputs, scope.lists, scope.env = [], [], [], {}
        self.root = None
        self.scopes, self.top, self.homes, self.given = {}, None, {}, ()
        self.paths, self.tensors, self.modules, self._attributes = {}, {}, [], None
        self.loose = {}
        self.decisions, self.decided, self.failure, self.save = [], {}, None, None
