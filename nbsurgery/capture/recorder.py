"""The recording of one run: every operation filed under the module call that performed it."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import inspect
import operator
import threading
import types
import weakref
from typing import Any

import torch
from torch import nn

from nbsurgery.capture import frames, libraries, operations, regions
from nbsurgery.capture.steps import Digest, Held, InputList, Leftover, OpenScope, Seen, Step
from nbsurgery.capture.symbols import Symbol, plain, plain_all, track, track_flag
from nbsurgery.capture.values import (
    PLAIN,
    alias,
    alive,
    calls_back,
    deep,
    digest,
    facts,
    hashable,
    imprint,
    is_code,
    no_dispatch,
    parameters,
    tensors_in,
    tracked,
    version,
    worth,
)
from nbsurgery.graph import Ref

_TORCH_STATE = frozenset(nn.Module().__dict__) | {
    "_parameters",
    "_buffers",
    "_modules",
    "_non_persistent_buffers_set",
    "training",
}


_FEW = 64  # numbers of a ``tolist()`` that are followed; more are taken as data


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
        node = Step(
            f"{scope.key}#{scope.count}", scope, kind, type, target, args, kwargs or {},
            base or type, glue, frames.walk(2),
        )  # fmt: skip
        scope.count += 1
        scope.nodes.append(node)
        node.name = None if glue and type == "getitem" else self.name(node)
        return node

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
        count = self.names[base]
        self.names[base] += 1
        return base if count == 0 else f"{base}_{count}"

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

    def stow(self, scope: OpenScope, value: Any, hint: str) -> Ref | None:
        """Bring a value that only an ancestor knows down to `scope`, through each scope between."""
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
            what = f"a {type(value).__name__} that is a global or an attribute of a class"
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

    # ---- Python values as arguments

    def arg(self, scope: OpenScope, value: Any, seen: Seen, depth: int = 0) -> Any:
        """A value in terms of the scope's nodes."""
        kind = type(value)
        if kind in PLAIN:
            if kind is torch.device:  # x.device gives a new object each time: known by identity
                return self.find(scope, value) or value
            return value
        if isinstance(value, torch.Tensor):
            seen.tensors.append(value)
            if kind is not torch.Tensor and kind is not nn.Parameter:
                seen.odd = True
            entry = scope.env.get(id(value))
            if entry is not None and alive(entry[0]) is value:
                return entry[1]
            return self.resolve(scope, value)
        if isinstance(value, Symbol):
            seen.symbols = True
            return self.symbol(scope, value)
        entry = scope.env.get(id(value))
        if entry is not None and entry[0] is value and isinstance(value, self.closed):
            seen.symbols = True
            return entry[1]
        if entry is not None and entry[0] is value and entry[2] == imprint(value):
            # Known as a whole; its tensors still count, for writes.
            self.meet(value, seen)
            return entry[1]
        if kind is tuple:
            return tuple([self.arg(scope, v, seen, depth + 1) for v in value])
        if kind is list:
            return [self.arg(scope, v, seen, depth + 1) for v in value]
        if kind is slice:
            return slice(
                self.arg(scope, value.start, seen),
                self.arg(scope, value.stop, seen),
                self.arg(scope, value.step, seen),
            )
        if kind is torch.Size:
            return tuple([self.arg(scope, v, seen, depth + 1) for v in value])
        if kind is dict:
            return {k: self.arg(scope, v, seen, depth + 1) for k, v in value.items()}
        return self.odd_arg(scope, value, seen, depth)

    def odd_arg(self, scope: OpenScope, value: Any, seen: Seen, depth: int) -> Any:
        """Arguments that are neither tensors, numbers nor plain containers."""
        if isinstance(value, self.closed):
            ref = self.stow(scope, value, "cache")
            return ref or self.unknown(scope, value, f"an object of type {type(value).__name__}")
        place = self.attributes().get(id(value))
        if place is not None and place[0] is value and not place[2] and not tensors_in(value):
            node = self.parameter_node(scope, self.nearest(scope, place[1]), None)
            node.glue = True
            return Ref(node.id)
        if isinstance(value, list):
            return [self.arg(scope, v, seen, depth + 1) for v in list.__iter__(value)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            items = tuple(self.arg(scope, v, seen, depth + 1) for v in value)
            node = self.step(scope, "function", type(value).__name__, type(value), items, glue=True)
            return Ref(node.id)
        if isinstance(value, tuple):
            return tuple([self.arg(scope, v, seen, depth + 1) for v in value])
        if isinstance(value, nn.Module):
            paths = self.paths.get(id(value))
            if paths is not None:
                node = self.parameter_node(scope, self.nearest(scope, paths), None)
                node.glue, node.type = True, type(value).__name__
                return Ref(node.id)
        if isinstance(value, type) or callable(value) or isinstance(value, torch.Generator):
            return value
        if isinstance(value, collections.OrderedDict) and type(value) is collections.OrderedDict:
            items = [(k, self.arg(scope, v, seen, depth + 1)) for k, v in value.items()]
            node = self.step(
                scope, "function", "OrderedDict", collections.OrderedDict, (items,), glue=True
            )
            return Ref(node.id)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            kwargs = {
                f.name: self.arg(scope, getattr(value, f.name), seen, depth + 1)
                for f in dataclasses.fields(value)
                if f.init and getattr(value, f.name, None) is not None
            }
            node = self.step(
                scope, "function", type(value).__name__, type(value), (), kwargs, glue=True
            )
            return Ref(node.id)
        if inspect.isgenerator(value):
            return self.unknown(scope, value, "a generator")
        if tensors_in(value):
            return self.object(scope, value, seen, depth)
        return value

    def object(self, scope: OpenScope, value: Any, seen: Seen, depth: int) -> Ref:
        """An object with tensors inside: known to a caller, or rebuilt from what it holds now."""
        entry = scope.env.get(id(value))
        if entry is None or entry[0] is not value:
            ref = self.stow(scope, value, type(value).__name__.lower())
            if ref is not None:
                self.meet(value, seen)
                return ref
        name = type(value).__name__
        state = getattr(value, "__dict__", None)
        if state is None or isinstance(value, dict) or depth > 6:
            self.meet(value, seen)
            return self.unknown(scope, value, f"an object of type {name}")
        parts = {k: self.arg(scope, v, seen, depth + 1) for k, v in state.items()}
        node = self.step(scope, "function", name, regions.rebuild, (type(value), parts), glue=True)
        seen.symbols = True
        self.cloud(scope, f"it passes on an object of type {name}")
        self.bind_object(scope, value, Ref(node.id))
        return Ref(node.id)

    def meet(self, value: Any, seen: Seen, depth: int = 0) -> None:
        """Note the tensors inside a value that is passed on as a whole."""
        for tensor in tensors_in(value):
            seen.tensors.append(tensor)
            if type(tensor) is not torch.Tensor and type(tensor) is not nn.Parameter:
                seen.odd = True
        seen.symbols = True

    def symbol(self, scope: OpenScope, value: Symbol) -> Any:
        if value._tape is not self:
            return plain(value)
        if value._scope is scope:
            return Ref(value._node)
        ref = self.find(scope, value) or self.stow(scope, value, "size")
        if ref is None:  # made in a scope that is over: a number kept on a module, say
            what = "a number that another module computed and left behind"
            self.cloud(scope, f"it uses {what}")
            self.decide(scope, "constant", what, self.digest(), None, frames.walk(2))
            return plain(value)
        return ref

    # ---- results

    def bind(
        self, scope: OpenScope, value: Any, node: Step, taken: set, mutated=(), depth=0
    ) -> Any:
        """File a result under its node; what comes back is what the model gets to see.

        An operation that returns what it was given gets an alias, so that two nodes never share
        one identity. `taken` holds ids of the tensors that went in, `mutated` of those written to.
        """
        kind = type(value)
        if isinstance(value, torch.Tensor):
            key = id(value)
            if key not in mutated and (
                key in taken or key in self.tensors or self.find(scope, value) is not None
            ):
                value = alias(value)
            link = weakref.ref(value)
            ref = Ref(node.id)
            scope.env[id(value)] = (link, ref, None)
            self.homes[id(value)] = (link, scope, ref)
            if not node.outputs:
                node.outputs = (facts(value),)
            return value
        if value is None or kind is bool or kind is str:
            return value
        if isinstance(value, Symbol):
            node.value = plain(value)
            return track(node.value, self, scope, node.id)
        if kind is int or kind is float:
            node.value = value
            return track(value, self, scope, node.id)
        if kind is torch.Size:
            items = []
            for i, size in enumerate(value):
                item = self.step(scope, "function", "getitem", operator.getitem, (Ref(node.id), i))
                item.glue, item.value = True, plain(size)
                items.append(track(int.__int__(size), self, scope, item.id))
            result = torch.Size(items)
            scope.env[id(result)] = (result, Ref(node.id), None)
            return result
        if depth > 8:
            return value
        if isinstance(value, self.closed):
            scope.env[id(value)] = (value, Ref(node.id), None)
            return value
        node.outputs = tuple(facts(t) for t in tensors_in(value))
        if isinstance(value, tuple):
            items = [
                self.part(scope, v, node, operator.getitem, i, taken, mutated, depth)
                for i, v in enumerate(value)
            ]
            if hasattr(value, "_fields"):
                value = kind(*items)
            elif kind is tuple:
                value = tuple(items)
            else:
                try:
                    value = kind(items)
                except (TypeError, ValueError):  # a class of tuple with a constructor of its own
                    value = tuple(items)
        elif isinstance(value, list):
            for i, v in enumerate(list.__iter__(value)):
                list.__setitem__(
                    value, i, self.part(scope, v, node, operator.getitem, i, taken, mutated, depth)
                )
        elif isinstance(value, dict):
            for k, v in list(value.items()):
                new = self.part(scope, v, node, operator.getitem, k, taken, mutated, depth)
                if new is not v:
                    value[k] = new
        elif hasattr(value, "__dict__") and not is_code(value):
            for k, v in list(vars(value).items()):
                new = self.part(scope, v, node, getattr, k, taken, mutated, depth)
                if new is not v:
                    with contextlib.suppress(AttributeError, TypeError):  # it guards its attributes
                        object.__setattr__(value, k, new)
        else:
            return value
        self.bind_object(scope, value, Ref(node.id))
        return value

    def part(self, scope, value, node, how, key, taken, mutated, depth) -> Any:
        """One part of a result, behind a glue node, where it is worth one."""
        if not worth(value):
            return value
        name = "getitem" if how is operator.getitem else "getattr"
        item = self.step(scope, "function", name, how, (Ref(node.id), key), glue=True)
        return self.bind(scope, value, item, taken, mutated, depth + 1)

    # ---- operations

    def call(self, function, args, kwargs) -> Any:
        """Run and record one torch function, as the function mode delivers it."""
        plan = operations.plan(function)
        if plan.skip:
            if kwargs:
                kwargs = plain_all(kwargs)
            return function(*plain_all(args), **kwargs)
        scope = self.top
        seen = Seen()
        if plan.kind == "dtype":
            return self.dtype(scope, function, args)
        given = tuple([self.arg(scope, a, seen) for a in args])
        named = {k: self.arg(scope, v, seen) for k, v in kwargs.items()} if kwargs else {}
        if seen.symbols:
            args, kwargs = plain_all(args), plain_all(kwargs)
        tensors = seen.tensors
        before = [version(t) for t in tensors]
        if plan.inplace and tensors:
            self.save(tensors[0])
        if seen.odd:  # what a tensor subclass does by itself is no operation of the model
            self.paused += 1
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            if not (plan.kind == "size" or plan.kind == "read"):
                self.failed(
                    scope, self.operation(scope, plan, function, given, named), error, tensors
                )
            raise
        finally:
            if seen.odd:
                self.paused -= 1
        if result is NotImplemented:
            return result
        mutated = [t for t, v in zip(tensors, before, strict=True) if version(t) != v]
        if plan.kind == "decide":
            return self.decide_on_data(scope, plan, tensors[0], given, result)
        if type(result) is torch.Tensor and not mutated:
            node = self.operation(scope, plan, function, given, named)
            return self.bind(scope, result, node, {id(t) for t in tensors})
        if not mutated and not plan.setter and not worth(result):
            if type(result) is torch.device:
                node = self.operation(scope, plan, function, given, named)
                scope.env[id(result)] = (result, Ref(node.id), None)
            return result
        node = self.operation(scope, plan, function, given, named)
        if plan.setter:
            node.impure = True
            return result
        if mutated:
            node.impure = True
            node.writes = self.written(scope, mutated)
        ids = {id(t) for t in mutated}
        return self.bind(scope, result, node, {id(t) for t in tensors}, ids)

    def operation(self, scope, plan, function, args, kwargs) -> Step:
        kind, target, name, base, glue = plan.kind, plan.target, plan.name, plan.base, plan.glue
        if kind in ("size", "read"):
            return self.step(
                scope, "function", "getattr" if kind == "size" else target, getattr,
                (args[0], target), None, "getattr", kind == "size",
            )  # fmt: skip
        if plan.setter:
            node = self.step(scope, "function", "setattr", setattr, (args[0], target, args[1]))
            return node
        if plan.operator is not None and (plan.always or frames.is_operator(3)):
            target, base = plan.operator, plan.operator_base
            name, kind = base, "function"
            if plan.swapped:
                args = args[::-1]
        return self.step(scope, kind, name, target, args, kwargs, base, glue)

    def written(self, scope, mutated) -> tuple[str, ...]:
        refs = []
        for tensor in mutated:
            ref = self.find(scope, tensor)
            if ref is not None and ref.id not in refs:
                refs.append(ref.id)
        return tuple(refs)

    def iterate(self, original, tensor) -> Any:
        """``for row in tensor``: recorded as ``unbind``; how many there are is a decision."""
        scope = self.top
        with no_dispatch():
            if scope is None or tensor.dim() == 0:
                return original(tensor)
            ref = self.arg(scope, tensor, Seen())
            result = list(tensor.unbind(0))
            node = self.step(scope, "method", "unbind", "unbind", (ref, 0))
            self.decide(scope, "iterate", None, list.__len__(result), node.id, node.frames)
            result = self.bind(scope, result, node, set())
        return iter(result)

    def dtype(self, scope, function, args) -> torch.dtype:
        """``x.dtype``: one object for all tensors of a type cannot be followed, so a decision."""
        result = function(*args)
        where = frames.walk(3)
        key = ("dtype", scope.path, where)
        if where and key not in self.decided:
            self.decided[key] = None
            ref = self.arg(scope, args[0], Seen())
            node = self.step(scope, "function", "getattr", getattr, (ref, "dtype"), glue=True)
            value = str(result).removeprefix("torch.")
            self.decisions.append(("dtype", None, value, where, scope.key, node.id))
        return result

    # ---- decisions

    def decide(self, scope, kind, expression, value, node, where) -> None:
        key = (kind, node, expression, value if hashable(value) else None, where)
        if key not in self.decided:
            self.decided[key] = None
            self.decisions.append((kind, expression, value, where, scope.key, node))

    def decision(self, kind: str, number: Symbol, value: Any) -> None:
        """Python asked a tracked number for its value."""
        if self.paused or self.thread != threading.get_ident():
            return
        scope = self.top
        ref = self.symbol(scope, number)
        self.decide(
            scope, kind, None, value, ref.id if isinstance(ref, Ref) else None, frames.walk(3)
        )

    def comparison(self, function, left, right, value: bool) -> None:
        if self.paused or self.thread != threading.get_ident():
            return
        scope, seen = self.top, Seen()
        args = (self.arg(scope, left, seen), self.arg(scope, right, seen))
        node = self.step(scope, "function", function.__name__, function, args, glue=True)
        node.value = value
        self.decide(scope, "compare", None, value, node.id, node.frames)

    def number_operation(self, function, args, result) -> Any:
        """Arithmetic on tracked numbers."""
        if self.paused or self.thread != threading.get_ident():
            return result
        scope, seen = self.top, Seen()
        given = tuple(self.arg(scope, a, seen) for a in args)
        name = function.__name__
        node = self.step(
            scope, "function", name, function, given, None, operations.snake(name), True
        )
        node.value = result
        return track(result, self, scope, node.id)

    def decide_on_data(self, scope, plan, tensor, args, result) -> Any:
        """``if tensor.any()``, ``tensor.item()``: the run went on with a value of this data."""
        name = plan.target
        if name == "__bool__":
            node = self.step(scope, "function", "bool", bool, args, glue=True)
            node.value = result
            self.decide(scope, "bool", None, result, node.id, node.frames)
            self.cloud(scope, "{where} decides on a tensor's value")
            self.place(scope, node.frames)
            return result
        if name in ("__int__", "__index__", "__float__", "__complex__"):
            node = self.step(scope, "method", "item", "item", args, glue=True)
            node.value = result
            self.decide(scope, "int", None, result, node.id, node.frames)
            self.cloud(scope, "{where} turns a tensor's value into a number")
            self.place(scope, node.frames)
            return result
        node = self.step(scope, "method", name, name, args)
        if name == "item":
            node.glue = True
            node.value = result
            return track(result, self, scope, node.id)
        if name == "tolist" and tensor.numel() <= _FEW:  # numbers that can be followed one by one
            node.glue = True
            return self.bind(scope, result, node, set())
        self.decide(scope, "constant", f"{name}()", self.digest(), node.id, node.frames)
        self.cloud(scope, "{where} leaves torch with ." + name + "()")
        self.place(scope, node.frames)
        return result

    def place(self, scope: OpenScope, where: tuple) -> None:
        """Fill ``{where}`` in a fresh reason."""
        if scope.opaque and "{where}" in scope.opaque:
            place = frames.place(where)
            scope.opaque = scope.opaque.replace("{where}", place or "it")

    # ---- modules

    def module_call(self, original, module, args, kwargs) -> Any:
        """A module is called: a leaf becomes a node, anything else a scope."""
        if self.entering and module is self.root:  # its scope is open already
            self.entering = False
            return original(module, *args, **kwargs)
        paths = self.paths.get(id(module))
        if paths is None or self.top is None:
            return original(module, *args, **kwargs)
        if operations.is_leaf(module):
            return self.leaf_call(original, module, paths, args, kwargs)
        return self.scope_call(original, module, paths, args, kwargs)

    def leaf_call(self, original, module, paths, args, kwargs) -> Any:
        """The call of a layer of torch: one node."""
        path = self.nearest(self.top, paths)
        kind, name = "module", type(module).__name__
        return self.whole(original, (module,), args, kwargs, kind, name, path, None, module)

    def function_call(self, function, args, kwargs) -> Any:
        """The call of a function that is kept whole: one node, if it works on the run's values."""
        with no_dispatch():
            run = self.top is not None and (tracked(args) or tracked(kwargs))
        if not run or calls_back(args) or calls_back(kwargs):
            return function(*args, **kwargs)
        name = function.__name__
        base = operations.snake(name)
        return self.whole(function, (), args, kwargs, "function", name, function, base, None)

    def odd_call(self, name, target, head, function, first, args, kwargs, reason) -> Any:
        """A call that torch's function mode does not see: one node, and a scope that says so."""
        scope = self.top
        if scope is None:
            return function(*first, *args, **kwargs)
        self.cloud(scope, reason)
        before = len(scope.nodes)
        base = operations.snake(name)
        result = self.whole(function, first, args, kwargs, "function", name, target, base, None)
        for node in scope.nodes[before:]:
            if node.target is target:
                node.args = (*head, *node.args)
        return result

    def construct(self, function, made, args, kwargs) -> None:
        """A tracked object is made: the call of its class."""
        scope, seen = self.top, Seen()
        if scope is None:
            return function(made, *args, **kwargs)
        with no_dispatch():
            given = tuple([self.arg(scope, a, seen) for a in args])
            named = {k: self.arg(scope, v, seen) for k, v in kwargs.items()} if kwargs else {}
        self.paused += 1
        try:
            function(made, *plain_all(args), **plain_all(kwargs))
        finally:
            self.paused -= 1
        kind = type(made)
        node = self.step(scope, "function", kind.__name__, kind, given, named, glue=True)
        scope.env[id(made)] = (made, Ref(node.id), None)
        if kind not in self.closed:
            with no_dispatch():
                self.bind(scope, made, node, set())

    def method_call(self, function, owner, args, kwargs) -> Any:
        """A method of a tracked object: one node."""
        scope = self.top
        known = scope is not None and (
            self.find(scope, owner) is not None or self.stow(scope, owner, "cache") is not None
        )
        if not known:
            return function(owner, *args, **kwargs)
        name = function.__name__
        changed = name in libraries.CHANGES
        watch = not changed and not name.startswith(libraries.READS)
        before = deep(owner) if watch else None
        count = len(scope.nodes)
        self.paused += 1
        try:
            result = function(owner, *plain_all(args), **plain_all(kwargs))
        finally:
            self.paused -= 1
        if watch:
            changed = deep(owner) != before
        with no_dispatch():
            if not changed and not worth(result):
                del scope.nodes[count:]
                return result
            seen = Seen()
            given = tuple([self.arg(scope, a, seen) for a in (owner, *args)])
            named = {k: self.arg(scope, v, seen) for k, v in kwargs.items()} if kwargs else {}
            node = self.step(scope, "method", name, name, given, named)
            node.glue = not tensors_in(result)
            if changed:
                node.impure, node.writes = True, (given[0].id,)
            return self.bind(scope, result, node, {id(t) for t in seen.tensors})

    def region(self, name, function, args, token) -> Step:
        """One end of a ``with torch.no_grad():``."""
        scope = self.top
        given = args if token is None else (Ref(token.id),)
        node = self.step(scope, "function", name, function, given, glue=True)
        node.impure = True
        self.cloud(scope, f"it switches modes inside (torch.{name})")
        return node

    def whole(self, function, first, args, kwargs, kind, name, target, base, module) -> Any:
        """Run something as one node: what happens inside is not recorded."""
        scope, seen = self.top, Seen()
        with no_dispatch():
            given = tuple([self.arg(scope, a, seen) for a in args])
            named = {k: self.arg(scope, v, seen) for k, v in kwargs.items()} if kwargs else {}
            if seen.symbols:
                args, kwargs = plain_all(args), plain_all(kwargs)
            tensors = seen.tensors
            before = [version(t) for t in tensors]
            node = self.step(scope, kind, name, target, given, named, base)
            node.module = module
        self.paused += 1
        outer, self.products = self.products, [] if kind == "function" else None
        try:
            if seen.odd or self.how != "real" or kind == "function":
                result = function(*first, *args, **kwargs)
            else:
                with no_dispatch():
                    result = function(*first, *args, **kwargs)
        except Exception as error:
            self.failed(scope, node, error, tensors)
            raise
        finally:
            self.paused -= 1
            node.inside, self.products = tuple(self.products or ()), outer
        with no_dispatch():
            ids = {id(t) for t, v in zip(tensors, before, strict=True) if version(t) != v}
            if ids:
                node.impure = True
                node.writes = self.written(scope, [t for t in tensors if id(t) in ids])
            if kind == "function":
                self.nothing(scope, node, result)
            return self.bind(scope, result, node, {id(t) for t in tensors}, ids)

    def product(self, function, args, kwargs, result) -> None:
        """Note a product of tensors that a whole function performed, for whoever counts."""
        plan = operations.plan(function)
        if plan.name in operations.PRODUCTS and isinstance(result, torch.Tensor):
            given = tuple(facts(t) for t in tensors_in((args, kwargs or {})))
            equation = next((a for a in args if isinstance(a, str)), None)
            self.products.append((plan.name, given, facts(result), equation))

    def nothing(self, scope: OpenScope, node: Step, result: Any) -> None:
        """A function answered ``None`` or not: "no mask needed" is a decision of this run."""
        if result is None:
            node.glue = True
            self.decide(scope, "none", None, True, node.id, node.frames)
            if node.kwargs.get("attention_mask", node) is None:
                return  # nothing to decide on: it is the shapes' doing, and checked on replay
            self.cloud(scope, f"{{where}} got None from {node.type} for this example")
            self.place(scope, node.frames)
        elif node.type.startswith("create_"):
            self.decide(scope, "none", None, False, node.id, node.frames)

    def scope_call(self, original, module, paths, args, kwargs) -> Any:
        parent = self.top
        with no_dispatch():
            seen = Seen()
            given = tuple([self.arg(parent, a, seen) for a in args])
            named = {k: self.arg(parent, v, seen) for k, v in kwargs.items()} if kwargs else {}
            tensors = seen.tensors
            before = [version(t) for t in tensors]
            path = self.nearest(parent, paths)
            node = self.step(parent, "module", type(module).__name__, path, given, named)
            node.module = module
            scope = self.open(path, module, parent, node)
            args, kwargs = self.enter(scope, module, args, kwargs, given, named)
        self.top = scope
        try:
            result = self.drain(scope, self.inside(original, module, args, kwargs))
        except Exception as error:
            self.failed(parent, node, error, tensors)
            raise
        finally:
            self.top = parent
        with no_dispatch():
            self.leave(scope, result)
            ids = {id(t) for t, v in zip(tensors, before, strict=True) if version(t) != v}
            if ids:
                node.impure = True
                node.writes = self.written(parent, [t for t in tensors if id(t) in ids])
            return self.bind(parent, result, node, {id(t) for t in tensors}, ids)

    def inside(self, original, module, args, kwargs) -> Any:
        """Run a scope: the border at which the stacks of its operations end."""
        return original(module, *args, **kwargs)

    def open(self, path: str, module, parent, caller) -> OpenScope:
        count = self.keys[path]
        self.keys[path] += 1
        key = path if count == 0 else f"{path}_{count}"
        while key in self.scopes:
            count += 1
            key = f"{path}_{count}"
        scope = OpenScope(key, path, module, parent, caller)
        self.scopes[key] = scope
        if caller is not None:
            caller.child = key
        if "forward" in module.__dict__:
            self.cloud(scope, "it was assigned on the instance, so its class does not hold it")
        return scope

    def enter(self, scope, module, args, kwargs, given, named) -> tuple[tuple, dict]:
        """Bind arguments to input nodes; what the forward gets is what belongs to its scope."""
        args, kwargs = list(args), dict(kwargs)
        for name, place in parameters(module, args, kwargs):
            if isinstance(place, int):
                value, binding = args[place], given[place]
            else:
                value, binding = kwargs[place], named[place]
            node = self.input(scope, name, binding, place)
            value = self.arrive(scope, value, node)
            if isinstance(place, int):
                args[place] = value
            else:
                kwargs[place] = value
        return tuple(args), kwargs

    def arrive(self, scope: OpenScope, value: Any, node: Step) -> Any:
        """One argument enters a scope."""
        kind = type(value)
        if isinstance(value, torch.Tensor):
            node.outputs = (facts(value),)
            if self.find(scope, value) is not None:  # the same tensor given twice
                value = alias(value)
            scope.env[id(value)] = (weakref.ref(value), Ref(node.id), None)
            return value
        if value is None or kind is bool or kind is str:
            node.value = value
            return value
        if isinstance(value, Symbol):
            node.value = plain(value)
            return track(node.value, self, scope, node.id)
        if kind is int or kind is float:
            node.value = value
            return track(value, self, scope, node.id) if scope.parent is None else value
        if isinstance(value, self.closed):
            scope.env[id(value)] = (value, Ref(node.id), None)
            return value
        return self.bind_arrival(scope, value, node)

    def bind_arrival(self, scope, value, node, depth=0) -> Any:
        """A container or object enters a scope: its parts hang below the input by glue nodes."""
        found = tensors_in(value)
        node.outputs = tuple(facts(t) for t in found)
        ref = Ref(node.id)

        def inner(part, how, key):
            if not worth(part):
                return part
            name = "getitem" if how is operator.getitem else "getattr"
            item = self.step(scope, "function", name, how, (ref, key), glue=True)
            if isinstance(part, torch.Tensor):
                item.outputs = (facts(part),)
                if self.find(scope, part) is None:
                    scope.env[id(part)] = (weakref.ref(part), Ref(item.id), None)
                return part
            if isinstance(part, Symbol):  # known here by identity: containers stay the caller's
                item.value = plain(part)
                scope.env[id(part)] = (part, Ref(item.id), None)
                return part
            if type(part) in (int, float):
                item.value = part
                return track(part, self, scope, item.id) if outermost else part
            return self.bind_arrival(scope, part, item, depth + 1)

        outermost = scope.parent is None
        if depth > 8:
            return value
        if isinstance(value, tuple):
            items = [inner(v, operator.getitem, i) for i, v in enumerate(value)]
            if any(a is not b for a, b in zip(items, value, strict=True)):
                if hasattr(value, "_fields"):
                    value = type(value)(*items)
                else:
                    value = type(value)(items)
        elif isinstance(value, list):
            items = [inner(v, operator.getitem, i) for i, v in enumerate(list.__iter__(value))]
            if depth == 0 or outermost:
                original, value = value, InputList(items)
                value._origin = (self, node.id, len(items), original)
                if not outermost:
                    scope.lists.append(value)
        elif isinstance(value, dict):
            items = {k: inner(v, operator.getitem, k) for k, v in value.items()}
            if outermost and type(value) is dict and any(items[k] is not value[k] for k in items):
                value = items
        elif hasattr(value, "__dict__") and not is_code(value):
            for k, v in list(vars(value).items()):
                if isinstance(v, (torch.Tensor, tuple, list, dict)):
                    inner(v, getattr, k)
        self.bind_object(scope, value, ref)
        return value

    def drain(self, scope: OpenScope, result: Any) -> Any:
        """A generator that a forward returns runs now, while its operations can be recorded."""
        if inspect.isgenerator(result):
            self.cloud(scope, "it returns a generator, which was recorded as a list")
            return list(result)
        return result

    def leave(self, scope: OpenScope, result: Any) -> None:
        """The result of a scope becomes the argument of its output node."""
        seen = Seen()
        args = (self.arg(scope, result, seen),)
        node = self.step(scope, "output", "output", None, args)
        node.outputs = tuple(facts(t) for t in tensors_in(result))
        node.impure, node.frames = True, ()
        for items in scope.lists:  # what was appended to a list belongs to the caller's list
            original = items._origin[3]
            if len(original) != list.__len__(items) or any(
                a is not b for a, b in zip(original, list.__iter__(items), strict=True)
            ):
                original[:] = list(list.__iter__(items))
        scope.done = True
        scope.env.clear()

    def loop(self, items: InputList) -> None:
        """Python goes through a list that came as an argument: as many rounds as this run had."""
        scope = self.top
        if self.paused or self.thread != threading.get_ident() or scope is None:
            return
        where = frames.walk(3)
        if not where:
            return
        node = items._origin[1]
        self.decide(scope, "iterate", None, items._origin[2], node, where)
        if self.takes_list and tensors_in(items):  # how many images there are is anybody's choice
            self.cloud(scope, "{where} loops over a list that it was given")
            self.place(scope, where)

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

    def run(self, args: tuple, kwargs: dict) -> Any:
        """Call the root inside its scope."""
        scope = self.open("", self.root, None, None)
        self.given = (args, kwargs)
        self.takes_list = any(
            isinstance(a, list) and tensors_in(a) for a in (*args, *kwargs.values())
        )
        with no_dispatch():
            given = [None] * len(args)
            named = dict.fromkeys(kwargs)
            args, kwargs = self.enter(scope, self.root, args, kwargs, given, named)
        self.top = scope
        self.entering = True
        result = self.drain(scope, self.root(*args, **kwargs))
        self.top = scope
        with no_dispatch():
            self.leave(scope, result)
        return result


frames.border(Tape.inside)
frames.border(Tape.run)
