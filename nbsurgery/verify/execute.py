"""The one way to an edited model: the emitted text, run on a structural copy."""

from __future__ import annotations

import ast
import contextlib
import itertools
import linecache
import re
import sys
import traceback
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import StepError
from .copy import Copier, storage_key, tensor_names
from .still import still

_counter = itertools.count(1)


@dataclass(frozen=True, eq=False)
class Built:
    """What the text made of a copy of the model.

    Attributes:
        model: The edited model, or a tuple of modules where the text split it.
        names: The names that the text gave them.
        text: The text that was run.
        namespace: The text's globals, as they are after the run.
        module_name: The text is registered under this name in ``sys.modules``, so that its classes
            can be pickled and inspected.
        filename: What tracebacks call the text.
        origin: For tensors that come from the original: its name there, by the identity of the tensor
            here.
        paths: The same for modules: path in the original by the identity of the module here.
        written: Names of the weights that the text writes into; they have memory of their own here.
        notes: What of the model could not be copied, one sentence each.
        variable: The name under which the text knew the model.
        given: The notebook's names that the text was given.
        stopped: The error with which a second run of the text stopped, where it was run twice.
    """

    model: nn.Module | tuple[nn.Module, ...]
    names: tuple[str, ...]
    text: str
    namespace: dict[str, Any] = field(repr=False)
    module_name: str
    filename: str
    origin: Mapping[int, str] = field(repr=False)
    paths: Mapping[int, str] = field(repr=False)
    written: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    variable: str = "model"
    given: Mapping[str, Any] | None = field(default=None, repr=False)
    stopped: Exception | None = None
    _alive: tuple = field(
        default=(), repr=False
    )  # keeps ids in `origin`, `paths` from being reused

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The built modules, one or several."""
        return self.model if isinstance(self.model, tuple) else (self.model,)


def execute(
    text: str,
    model: nn.Module,
    *,
    variable: str = "model",
    namespace: Mapping[str, Any] | None = None,
    filename: str | None = None,
    results: Sequence[str] | None = None,
    seed: int = 0,
    times: int = 1,
) -> Built:
    """Run emitted text on a structural copy of a model.

    The text never writes into the person's weights: before an operation that would, the run is
    given up, the weights that the text writes are found by a run on the meta device, and the text
    starts again on a copy that has clones of just those. New weights are drawn under `seed`; the
    random state outside is as before.

    Args:
        text: Python source that edits the model called `variable`.
        model: The person's model. It is only read.
        variable: The name under which the text knows the model.
        namespace: Names of the notebook, for those that the text uses and does not make. Modules and
            tensors among them are copied, too.
        filename: Shown in tracebacks.
        results: Names of what the text makes; without it `variable`, or, where the text makes
            ``head`` and ``tail`` or ``stage_1``, ``stage_2``, … and leaves `variable` alone, those.
        seed: For the random state during the run.
        times: How often the text is run, in one namespace, as a cell would be.

    Returns:
        What came out.

    Raises:
        StepError: The text raised; the message quotes the line.
        CaptureError: The model cannot be copied.
    """
    number = next(_counter)
    name = f"nbsurgery_text_{number}"
    filename = filename or f"<nbsurgery {number}>"
    try:
        tree = ast.parse(text, filename)
        code = compile(tree, filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise StepError(f"line {error.lineno}, {line!r}, is no Python: {error.msg}") from error

    clone: set[int] = set()
    while True:
        copier = Copier(model, clone=clone)
        module = _module(name, filename, text, code, copier, variable, namespace)
        guard = _Guard(copier.shared)
        try:
            with still(seed), guard:
                stopped = _exec(code, module, filename, text, times)
            break
        except _WouldWrite as write:
            _forget(name, filename)
            if not clone:
                clone |= _written(text, code, model, variable, namespace, seed)
            clone |= set(write.ids)
        except BaseException:
            _forget(name, filename)
            raise

    try:
        names = tuple(results) if results else _results(tree, variable, module.__dict__)
        made = tuple(_result(module.__dict__, n) for n in names)
    except StepError:
        _forget(name, filename)
        raise
    registered = tensor_names(model)
    built = Built(
        model=made[0] if len(made) == 1 else made,
        names=names,
        text=text,
        namespace=dict(module.__dict__),
        module_name=name,
        filename=filename,
        origin=copier.origin,
        paths=copier.paths,
        written=tuple(label for i, label in registered.items() if i in clone),
        notes=tuple(copier.notes),
        variable=variable,
        given=namespace,
        stopped=stopped,
        _alive=(copier,),
    )
    _loosen(module, code)
    _forget_after(made, name, filename)
    return built


# --- running ---------------------------------------------------------------------------------------


def _module(name, filename, text, code, copier, variable, namespace) -> types.ModuleType:
    """A registered module whose globals the text runs in."""
    module = types.ModuleType(name)
    module.__file__ = filename
    space = module.__dict__
    for wanted in dict.fromkeys(_names_of(code)):
        known = namespace is not None and wanted in namespace
        if known and wanted != variable and not wanted.startswith("__"):
            found = namespace[wanted]
            space[wanted] = copier.value(found) if _mine(found) else found
    space[variable] = copier.root
    sys.modules[name] = module
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return module


def _mine(value: Any) -> bool:
    """Whether a value of the notebook holds modules or tensors, that a run must not change."""
    if isinstance(value, (list, tuple)):
        return any(map(_mine, value))
    if isinstance(value, dict):
        return any(map(_mine, value.values()))
    return isinstance(value, (nn.Module, torch.Tensor, torch.Generator))


def _names_of(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names_of(const)


def _exec(code, module, filename, text, times) -> Exception | None:
    """Run the code once; a further run may stop with an error, which is returned."""
    try:
        exec(code, module.__dict__)  # noqa: S102  the text is what this package is about
    except (Exception, SystemExit) as error:
        raise StepError(quoted(error, filename, text)) from error
    for _ in range(times - 1):
        try:
            exec(code, module.__dict__)  # noqa: S102
        except Exception as error:  # noqa: BLE001
            return error
    return None


def quoted(error: BaseException, filename: str, text: str) -> str:
    """An error of a text, as one sentence that quotes the line."""
    said = " ".join(str(error).split())
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == filename]
    if not lines:
        return f"the code raised {what}"
    quote = text.splitlines()[lines[-1] - 1].strip()
    return f"line {lines[-1]}, {quote!r}, raised {what}"


class _WouldWrite(BaseException):
    """The text is about to write into shared memory; no ``except Exception`` of it sees this."""

    def __init__(self, ids: Iterable[int]):
        self.ids = tuple(ids)


class _Guard(TorchDispatchMode):
    """Sees every operation below autograd: stops those that would write into shared storage.

    Version counters miss writes through ``.data``; storages do not.
    """

    def __init__(self, shared: Mapping[int, list[int]], record: set[int] | None = None):
        super().__init__()
        self.shared, self.record = shared, record

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        if schema.is_mutable:
            for i, argument in enumerate(schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    value = args[i] if i < len(args) else kwargs.get(argument.name)
                    for tensor in value if isinstance(value, (list, tuple)) else (value,):
                        if isinstance(tensor, torch.Tensor):
                            self._write(tensor)
        return func(*args, **kwargs)

    def _write(self, tensor: torch.Tensor) -> None:
        ids = self.shared.get(storage_key(tensor))
        if ids is not None and tensor.numel():
            if self.record is None:
                raise _WouldWrite(ids)
            self.record.update(ids)


# torch wraps the method so that the first call imports its compiler, which takes seconds
_Guard.__torch_dispatch__ = getattr(
    _Guard.__torch_dispatch__, "__wrapped__", _Guard.__torch_dispatch__
)


def _written(text, code, model, variable, namespace, seed) -> set[int]:
    """Ids of the original's tensors that the text writes, as far as a run on meta tensors gets."""
    number = next(_counter)
    name, filename = f"nbsurgery_text_{number}", f"<nbsurgery dry run {number}>"
    copier = Copier(model, device="meta")
    found: set[int] = set()
    try:
        with (
            contextlib.suppress(Exception),  # no data on meta: the real runs find the rest
            still(seed),
            torch.device("meta"),
            _Guard(copier.shared, found),
        ):
            module = _module(name, filename, text, code, copier, variable, namespace)
            exec(code, module.__dict__)  # noqa: S102
    finally:
        _forget(name, filename)
    return found


# --- what came out ---------------------------------------------------------------------------------


def _results(tree: ast.Module, variable: str, space: Mapping[str, Any]) -> tuple[str, ...]:
    """The names under which the text leaves its modules."""
    stored = dict.fromkeys(
        node.id
        for statement in tree.body
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    if variable in stored:
        return (variable,)
    made = [n for n in stored if isinstance(space.get(n), nn.Module)]
    if {"head", "tail"} <= set(made):
        return ("head", "tail")
    stages = sorted((n for n in made if re.fullmatch(r"stage_\d+", n)), key=lambda n: int(n[6:]))
    return tuple(stages) if len(stages) > 1 else (variable,)


def _result(space: Mapping[str, Any], name: str) -> nn.Module:
    if name not in space:
        raise StepError(f"the code was to make {name!r}, and does not")
    if not isinstance(space[name], nn.Module):
        raise StepError(
            f"after the code {name!r} is {type(space[name]).__name__}; it must be a torch.nn.Module"
        )
    return space[name]


def _forget(name: str, filename: str) -> None:
    sys.modules.pop(name, None)
    linecache.cache.pop(filename, None)


def _loosen(module: types.ModuleType, code: types.CodeType) -> None:
    """Let the registered text hold no model that its functions do not read: it would never die."""
    inner = {
        name
        for const in code.co_consts
        if isinstance(const, types.CodeType)
        for name in _names_of(const)
    }
    for name, value in list(vars(module).items()):
        if name not in inner and _mine(value):
            del vars(module)[name]


def _forget_after(made: Sequence[nn.Module], name: str, filename: str) -> None:
    """Unregister the text once the last of its modules is gone."""
    left = len(made)

    def one_less() -> None:
        nonlocal left
        left -= 1
        if not left:
            _forget(name, filename)

    for module in made:
        weakref.finalize(module, one_less).atexit = False
