"""Every patch of torch that the recording needs, put in and taken out; nothing else patches."""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import inspect
import itertools
import linecache
import math
import random
import re
import sys
import threading
import types
import warnings
from collections.abc import Iterator

import torch
import torch.fx
import torch.utils.checkpoint
from torch import nn
from torch.overrides import TorchFunctionMode, handle_torch_function

from nbsurgery.capture import calls, decisions, libraries, regions, shims
from nbsurgery.capture.symbols import Symbol, TrackedBool, apply, plain
from nbsurgery.capture.values import tracked

_MISSING = object()
_active = None  # the Tape that records now


def active():
    """The tape that is recording in this thread, or ``None``."""
    tape = _active
    if tape is None or tape.paused or tape.thread != threading.get_ident():
        return None
    return tape


class RecordingMode(TorchFunctionMode):
    """Delivers every torch function of the run to the tape."""

    def __init__(self, tape):
        super().__init__()
        self.tape = tape

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if self.tape.paused:
            result = function(*args, **(kwargs or {}))
            if self.tape.products is not None:
                calls.product(self.tape, function, args, kwargs, result)
            return result
        return calls.call(self.tape, function, args, kwargs or {})


class _Patches:
    """Attributes exchanged for a while, in order."""

    def __init__(self):
        self.done: list[tuple] = []

    def set(self, owner, name: str, value) -> None:
        self.done.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self.done:
            owner, name, old = self.done.pop()
            if old is _MISSING:
                with contextlib.suppress(AttributeError):
                    delattr(owner, name)
            else:
                setattr(owner, name, old)


def _module_call(patches: _Patches) -> None:
    original = nn.Module.__call__

    def __call__(self, *args, **kwargs):
        tape = active()
        if tape is None:
            return original(self, *args, **kwargs)
        return calls.module_call(tape, original, self, args, kwargs)

    patches.set(nn.Module, "__call__", __call__)


@functools.cache
def _asks_identity(code: types.CodeType) -> bool:
    """Whether a function asks ``… is True`` or ``… is False``: no tracked flag answers that."""
    before = None
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and before is not None and isinstance(before.argval, bool):
            return True
        before = step
    return False


def _training(patches: _Patches) -> None:
    def get(self):
        try:
            value = self.__dict__["training"]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} has no attribute 'training'") from None
        tape = active()
        if tape is None:
            return value
        flag = tape.training(self, value)
        return bool(flag) if _asks_identity(sys._getframe(1).f_code) else flag

    def put(self, value):
        self.__dict__["training"] = plain(value)

    patches.set(nn.Module, "training", property(get, put))


def _functions(patches: _Patches, tape) -> None:
    """Functions that stay one call: their authors said so, or their library's rule does."""
    whole = whole_functions()
    if not whole:
        return
    wrappers: dict[int, object] = {}

    def wrap(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            tape = active()
            if tape is None:
                return function(*args, **kwargs)
            return calls.function_call(tape, function, args, kwargs)

        return call

    names = {f.__module__ for f in whole.values()} | _homes(tape)
    for space in {id(m): m for m in map(sys.modules.get, names) if m is not None}.values():
        for name, value in list(vars(space).items()):
            key = id(value)
            if key in whole:
                if key not in wrappers:
                    wrappers[key] = wrap(value)
                patches.set(space, name, wrappers[key])


def whole_functions() -> dict[int, object]:
    """By id: functions that are recorded as one call, as torch.fx and torchvision treat them."""
    found: dict[int, object] = {}
    registered = getattr(torch.fx._symbolic_trace, "_wrapped_fns_to_patch", {})
    for (_, name), space in list(registered.items()):
        _add(found, space.get(name))
    for module_name, names in libraries.WHOLE.items():
        module = sys.modules.get(module_name)
        if module is not None:
            public = [name for name in vars(module) if not name.startswith("_")]
            for name in names if names is not None else public:
                _add(found, vars(module).get(name))
    return found


def _add(found: dict[int, object], function) -> None:
    if isinstance(function, types.FunctionType) and not function.__module__.startswith("torch."):
        found[id(function)] = function


def _homes(tape) -> set[str]:
    """The names of the Python modules that define the classes of the model."""
    kinds = {base for m in tape.modules for base in type(m).__mro__}
    names = {kind.__module__ for kind in kinds}
    return {n for n in names if not n.startswith(("torch.", "builtins", "nbsurgery."))}


def _spaces(tape) -> list[types.ModuleType]:
    """The modules whose code the model may run: its classes', and of their packages what these use."""
    todo = [m for m in map(sys.modules.get, _homes(tape)) if m is not None]
    found: dict[str, types.ModuleType] = {}
    while todo:
        module = todo.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
            todo += [m for m in map(sys.modules.get, _of(module).uses) if m is not None]
    return list(found.values())


class _Contents:
    """What a module's namespace holds that matters here; each looked up once."""

    def __init__(self, space: types.ModuleType):
        self.space, self.count = space, len(vars(space))
        self.cached = [k for k, v in list(vars(space).items()) if _is_cached(v)]

    @functools.cached_property
    def math(self) -> list[str]:
        return [k for k, v in list(vars(self.space).items()) if type(v) is _BUILTIN and v in _MATH]

    @functools.cached_property
    def uses(self) -> set[str]:
        """The modules of the same package whose functions or submodules it imports."""
        package = self.space.__name__.partition(".")[0]
        values = list(vars(self.space).values())
        names = {v.__module__ for v in values if type(v) is types.FunctionType and v.__module__}
        names |= {v.__name__ for v in values if type(v) is types.ModuleType}
        return {name for name in names if name.startswith(f"{package}.")}

    @functools.cached_property
    def dtypes(self) -> frozenset[str]:
        return _as_dtype(self.space)


_contents: dict[types.ModuleType, _Contents] = {}


def _of(space: types.ModuleType) -> _Contents:
    known = _contents.get(space)
    if known is None or known.count != len(vars(space)):  # a notebook's grows
        known = _contents[space] = _Contents(space)
    return known


def _as_dtype(space: types.ModuleType) -> frozenset[str]:
    """Of ``int`` and ``float`` those that a file hands to torch as types: no stand-in passes there."""
    files = {getattr(space, "__file__", None)}
    for kind in list(vars(space).values()):
        if isinstance(kind, type) and kind.__module__ == space.__name__:
            codes = [getattr(f, "__code__", None) for f in vars(kind).values()]
            files.update(code.co_filename for code in codes if code is not None)
    text = "".join("".join(linecache.getlines(file)) for file in files if file)
    return frozenset(name for pair in _DTYPE.findall(text) for name in pair)


_BUILTIN = type(math.sqrt)
_MATH = {f: f.__name__ for f in vars(math).values() if type(f) is _BUILTIN}
_DTYPE = re.compile(r"\bdtype\s*=\s*(int|float)\b|\.(?:to|type|astype)\(\s*(int|float)\b")


def _caches(patches: _Patches, tape) -> None:
    """What an ``lru_cache`` keeps from another run has no origin in this one.

    Functions and methods of the model's own modules compute afresh. Any other compute afresh where
    they are given a tracked number: it must neither be kept nor be answered with an older one.
    """
    homes = _homes(tape)
    for owner in {base for m in tape.modules for base in type(m).__mro__}:
        if owner.__module__ in homes:
            for name, value in list(vars(owner).items()):
                kind = type(value) if isinstance(value, (staticmethod, classmethod)) else None
                function = value if kind is None else value.__func__
                if _is_cached(function):
                    fresh = function.__wrapped__
                    patches.set(owner, name, fresh if kind is None else kind(fresh))
    for home in map(sys.modules.get, homes):
        for name in _of(home).cached if home is not None else ():
            patches.set(home, name, vars(home)[name].__wrapped__)
    for module, name in _cached_elsewhere():
        if module.__name__ not in homes and name in vars(module):
            patches.set(module, name, _passing_by(vars(module)[name]))


_elsewhere: dict[int, list[tuple[types.ModuleType, str]]] = {}  # by how many modules there are


def _cached_elsewhere() -> list[tuple[types.ModuleType, str]]:
    """Cached functions that take arguments, of modules outside of torch."""
    count = len(sys.modules)
    if count not in _elsewhere:
        _elsewhere.clear()
        _elsewhere[count] = [
            (module, name)
            for key, module in list(sys.modules.items())
            if isinstance(module, types.ModuleType)
            and key.partition(".")[0] not in ("torch", "nbsurgery")
            for name in _of(module).cached
            if _takes_arguments(vars(module)[name])
        ]
    return _elsewhere[count]


def _takes_arguments(function) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is None or bool(code.co_argcount or code.co_kwonlyargcount or code.co_flags & 0xC)


@functools.cache
def _passing_by(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if active() is not None and (tracked(args) or tracked(kwargs)):
            return function.__wrapped__(*args, **kwargs)
        return function(*args, **kwargs)

    return wrapper


def _is_cached(value) -> bool:
    kind = type(value)
    if kind is functools._lru_cache_wrapper:
        return True
    if kind is not types.FunctionType or not hasattr(value, "__wrapped__"):
        return False
    for cell in value.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            if isinstance(cell.cell_contents, functools._lru_cache_wrapper):
                return True
    return False


def _objects(patches: _Patches) -> None:
    """Constructors and methods of objects that libraries pass along, such as key-value caches."""

    def constructor(function):
        @functools.wraps(function)
        def __init__(self, *args, **kwargs):
            tape = active()
            if tape is None:
                return function(self, *args, **kwargs)
            return calls.construct(tape, function, self, args, kwargs)

        return __init__

    def method(function):
        @functools.wraps(function)
        def call(self, *args, **kwargs):
            tape = active()
            if tape is None:
                return function(self, *args, **kwargs)
            return calls.method_call(tape, function, self, args, kwargs)

        return call

    for table in (libraries.CLOSED, libraries.OPEN):
        for cls in libraries.classes(table):
            for name, value in list(vars(cls).items()):
                if not isinstance(value, types.FunctionType):
                    continue
                if name == "__init__":
                    patches.set(cls, name, constructor(value))
                elif not name.startswith("__"):
                    patches.set(cls, name, method(value))


def _regions(patches: _Patches) -> None:
    """``with torch.no_grad()`` and its kin become a pair of nodes."""

    def pair(cls, describe, enter, leave):
        old_enter, old_exit = cls.__enter__, cls.__exit__

        def __enter__(self):
            tape = active()
            if tape is not None:
                token = calls.region(tape, cls.__name__, enter, describe(self), None)
                self.__dict__.setdefault("_nbsurgery", []).append(token)
            return old_enter(self)

        def __exit__(self, *error):
            tape = active()
            tokens = self.__dict__.get("_nbsurgery")
            if tape is not None and tokens:
                calls.region(tape, cls.__name__, leave, (), tokens.pop())
            return old_exit(self, *error)

        patches.set(cls, "__enter__", __enter__)
        patches.set(cls, "__exit__", __exit__)

    pair(torch.no_grad, lambda self: (False,), regions.enter_grad, regions.leave_grad)
    pair(torch.enable_grad, lambda self: (True,), regions.enter_grad, regions.leave_grad)
    pair(
        torch.autocast,
        lambda self: (self.device, self.fast_dtype, self._enabled, self._cache_enabled),
        regions.enter_autocast,
        regions.leave_autocast,
    )


def _autograd_functions(patches: _Patches) -> None:
    function = torch.autograd.Function
    own = function.__dict__.get("apply")

    def plain_apply(cls, *args, **kwargs):
        if own is not None:
            return own.__get__(None, cls)(*args, **kwargs)
        return super(function, cls).apply(*args, **kwargs)

    def apply(cls, *args, **kwargs):
        tape = active()
        if tape is None:
            return plain_apply(cls, *args, **kwargs)
        if cls is torch.utils.checkpoint.CheckpointFunction:  # run_function, preserve_rng, *args
            return args[0](*args[2:])
        return calls.odd_call(tape, 
            cls.__name__, regions.apply_function, (cls,), plain_apply, (cls,), args, kwargs,
            None,
        )  # fmt: skip

    patches.set(function, "apply", classmethod(apply))


def _scripted_functions(patches: _Patches) -> None:
    script = torch._C.ScriptFunction
    old = script.__call__

    def call(self, *args, **kwargs):
        tape = active()
        if tape is None:
            return old(self, *args, **kwargs)
        name = getattr(self, "name", "script")
        return calls.odd_call(tape, 
            name, regions.call_script, (self,), old, (self,), args, kwargs,
            "it calls a scripted function",
        )  # fmt: skip

    patches.set(script, "__call__", call)


def _subclasses(patches: _Patches) -> None:
    old = torch.Tensor.as_subclass

    def as_subclass(self, cls):
        tape = active()
        if tape is None:
            return old(self, cls)
        return calls.odd_call(
            tape,
            "as_subclass",
            old,
            (),
            old,
            (),
            (self, cls),
            {},
            "it works on a subclass of Tensor",
        )

    patches.set(torch.Tensor, "as_subclass", as_subclass)


def _iteration(patches: _Patches) -> None:
    old = torch.Tensor.__iter__

    def __iter__(self):
        tape = active()
        return old(self) if tape is None else decisions.iterate(tape, old, self)

    patches.set(torch.Tensor, "__iter__", __iter__)


def _whole_call(patches: _Patches, owners: tuple, name: str, reason: str) -> None:
    """Keep a function of torch one call, wherever it is looked up."""
    old = getattr(owners[0], name)

    @functools.wraps(old)
    def wrapper(*args, **kwargs):
        tape = active()
        if tape is None:
            return old(*args, **kwargs)
        return calls.odd_call(tape, name, old, (), old, (), args, kwargs, reason)

    for owner in owners:
        patches.set(owner, name, wrapper)


def _vmap(patches: _Patches) -> None:
    from torch._functorch import apis

    _whole_call(patches, (apis,), "vmap_impl", "it uses torch.vmap")


def _functional_call(patches: _Patches) -> None:
    from torch._functorch import functional_call as functional

    owners = (functional, torch.func)
    _whole_call(patches, owners, "functional_call", "it uses torch.func.functional_call")


_MODED = (
    "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout", "rrelu",
    "batch_norm", "instance_norm",
)  # fmt: skip


def _mode_flags(patches: _Patches) -> None:
    """``torch.dropout(x, p, self.training)``: C functions take a real `bool` only, and the mode is tracked."""

    def taking(old):
        @functools.wraps(old)
        def wrapper(*args, **kwargs):
            flags = any(isinstance(a, TrackedBool) for a in (*args, *kwargs.values()))
            if active() is None or not flags:
                return old(*args, **kwargs)
            given = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]
            return handle_torch_function(old, given, *args, **kwargs)

        return wrapper

    for name in _MODED:
        for full in (name, f"{name}_"):
            if hasattr(torch, full):
                patches.set(torch, full, taking(getattr(torch, full)))


# What a function mode does not see, by the name that a warning would give it.
_BESIDE = {
    "custom autograd functions": _autograd_functions,
    "scripted functions": _scripted_functions,
    "Tensor.as_subclass": _subclasses,
    "iteration over tensors": _iteration,
    "mode flags of C functions": _mode_flags,
    "torch.vmap": _vmap,
    "torch.func.functional_call": _functional_call,
    "no_grad, enable_grad and autocast": _regions,
}
missing: dict[str, str] = {}  # hooks that this version of torch does not take, and why


def _beside(patches: _Patches) -> None:
    """Install what can be; a private part of torch that is gone is told once, by name."""
    for name, install in _BESIDE.items():
        try:
            install(patches)
        except (AttributeError, ImportError, TypeError) as error:
            if name not in missing:
                missing[name] = str(error)
                warnings.warn(
                    f"nbsurgery cannot follow {name} in torch {torch.__version__} ({error}): "
                    "models that use it may be captured in part only",
                    stacklevel=2,
                )


def _numbers(patches: _Patches, tape) -> None:
    """Builtins that would turn a tracked number into an ordinary one."""
    old_len = builtins.len

    def length(value):
        if isinstance(value, torch.Tensor) and active() is not None:
            return value.shape[0]
        return old_len(value)

    patches.set(builtins, "len", length)

    def choose(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if not kwargs and old_len(args) > 1 and active() is not None:
                for a in args:
                    if isinstance(a, Symbol):
                        if all(isinstance(b, (int, float)) for b in args):
                            return apply(function, *args)
                        break
            return function(*args, **kwargs)

        return wrapper

    patches.set(builtins, "min", choose(min))
    patches.set(builtins, "max", choose(max))
    wrapped = {function: _on_numbers(function) for function in _MATH}
    for function, name in _MATH.items():
        patches.set(math, name, wrapped[function])
    for name in ("repeat", "islice", "combinations", "permutations"):
        patches.set(itertools, name, _counting(getattr(itertools, name)))
    for space in _spaces(tape):
        names, known = vars(space), _of(space)
        for name, shim in shims.BY_NAME.items():
            if name not in names and name not in known.dtypes:
                patches.set(space, name, shim)
        for name in known.math:  # from math import sqrt
            patches.set(space, name, wrapped[names[name]])


def _draws(patches: _Patches) -> None:
    """Random numbers of Python and numpy are drawn anew with each run, as those of torch are."""

    def wrap(function):
        @functools.wraps(function)
        def draw(*args, **kwargs):
            tape = active()
            if tape is None:
                return function(*args, **kwargs)
            return decisions.draw(tape, function, args, kwargs)

        return draw

    for space in (random, getattr(sys.modules.get("numpy"), "random", None)):
        for name in _DRAWS:
            function = getattr(space, name, None)
            if function is not None:
                patches.set(space, name, wrap(function))


_DRAWS = (
    "random", "uniform", "randint", "randrange", "gauss", "normalvariate", "betavariate", "choice",
    "choices", "sample", "shuffle", "rand", "randn", "normal", "beta", "permutation", "binomial",
)  # fmt: skip


def _counting(function):
    """How often something is repeated is a decision."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        for a in (*args, *kwargs.values()):
            if isinstance(a, Symbol) and active() is not None:
                a._tape.decision("range", a, plain(a))
        return function(*args, **kwargs)

    return wrapper


def _on_numbers(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if active() is not None and not kwargs and any(isinstance(a, Symbol) for a in args):
            return apply(function, *args)
        return function(*args, **kwargs)

    return wrapper


def _eager():
    """Compiled modules run their Python; importing dynamo takes long, and only they need it."""
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
        return torch.compiler.set_stance("force_eager")
    return contextlib.nullcontext()


@contextlib.contextmanager
def installed(tape) -> Iterator[None]:
    """Record into `tape` while the body runs."""
    global _active
    patches = _Patches()
    fastpath = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)  # it would hide what attention does
        _module_call(patches)
        _training(patches)
        _functions(patches, tape)
        _caches(patches, tape)
        _objects(patches)
        _beside(patches)
        _numbers(patches, tape)
        _draws(patches)
        _active = tape
        tape.recording = True
        with _eager(), RecordingMode(tape):
            yield
    finally:
        tape.recording = False
        _active = None
        patches.undo()
        torch.backends.mha.set_fastpath_enabled(fastpath)
