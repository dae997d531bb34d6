"""Where an author's code takes parts of a list by a number: C does that, and tells no number.

``table[n]``, ``self.layers[: x.shape[1]]`` and ``x.shape[1:].numel()`` read a tracked number without
a word. Bytecode says where they stand, and the values of the running frame what they are about.
"""

from __future__ import annotations

import builtins
import dis
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import nn

from nbsurgery.capture.symbols import Symbol

LISTS = (list, tuple, str, bytes, range, nn.ModuleList, nn.Sequential, nn.ParameterList)
_LITERAL = ("BUILD_LIST", "BUILD_TUPLE", "LIST_EXTEND", "BUILD_STRING")
_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME")
_ENDS = ("STORE", "POP_TOP", "RETURN", "FOR_ITER", "JUMP", "POP_JUMP", "UNPACK", "RESUME")


class Use(NamedTuple):
    """One place where numbers are read unseen."""

    path: tuple[str, ...] | None  # how to reach the list: a variable and attributes; None: is one
    names: tuple[str, ...]  # variables that stand alone as an index
    first: int  # where the index is computed, from here …
    last: int  # … up to here
    part: Any = None  # of a size that is read there: which item, or which slice


class _Op(NamedTuple):
    offset: int
    name: str
    value: Any
    effect: int


def uses(code: CodeType) -> tuple[Use, ...]:
    """The places in a function at which a list may be indexed with a number."""
    ops = [op for i in dis.get_instructions(code) for op in _ops(i)]
    found = []
    for at, op in enumerate(ops):
        if op.name in ("BINARY_SUBSCR", "BINARY_SLICE") or op.value == "[]":
            found.append(_subscript(ops, at, 2 if op.name == "BINARY_SLICE" else 1))
        elif op.name in ("LOAD_METHOD", "LOAD_ATTR") and op.value == "numel" and at:
            found.append(_product(ops, at))
    return tuple(use for use in found if use is not None)


def _ops(instruction: dis.Instruction) -> list[_Op]:
    """An instruction; one that does the work of two as two."""
    name, value = instruction.opname, instruction.argval
    if isinstance(value, tuple) and name.count("_FAST") == 2:  # LOAD_FAST_LOAD_FAST and its kin
        kinds = ["LOAD_FAST" if part else "STORE_FAST" for part in _loads(name)]
        effects = [1 if kind == "LOAD_FAST" else -1 for kind in kinds]
        parts = zip(kinds, value, effects, strict=True)
        return [_Op(instruction.offset, *part) for part in parts]
    if name.startswith("LOAD_FAST"):
        name = "LOAD_FAST"
    if name == "BINARY_OP":
        value = instruction.argrepr
    effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
    return [_Op(instruction.offset, name, value, effect)]


def _loads(name: str) -> list[bool]:
    """For each half of the name of a double instruction: whether it loads."""
    return [word == "LOAD" for word in name.split("_") if word in ("LOAD", "STORE")]


def _start(ops: list[_Op], end: int, count: int = 1) -> int | None:
    """Where the expressions begin that leave `count` values on the stack before `end`."""
    for at in range(end - 1, -1, -1):
        if ops[at].name.startswith(_ENDS):
            return None
        count -= ops[at].effect
        if count <= 0:
            return at
    return None


def _subscript(ops: list[_Op], at: int, values: int) -> Use | None:
    begin = _start(ops, at, values)
    owner = None if begin is None else _start(ops, begin)
    if owner is None:
        return None
    index = ops[begin:at]
    kinds = {op.name for op in index} - {"LOAD_CONST", "BUILD_SLICE", "EXTENDED_ARG"}
    if not kinds or "BUILD_TUPLE" in kinds:
        return None
    path = _path(ops[owner:begin])
    if path == ():
        return None
    bare = kinds <= {"LOAD_FAST", "LOAD_DEREF"}
    names = tuple(op.value for op in index if bare and op.name != "LOAD_CONST" and op.value)
    names = tuple(name for name in names if isinstance(name, str))
    ends = [op for op in index if op.name != "BUILD_SLICE"][-2:]
    part = None
    if [op.name for op in ends] == ["LOAD_CONST", "BINARY_SUBSCR"]:  # x.shape[0]
        part = ends[0].value
    return Use(path, names, index[0].offset, ops[at].offset, part)


def _path(owner: list[_Op]) -> tuple[str, ...] | None:
    """A variable and its attributes; ``None`` for a literal list, empty for anything else."""
    if owner[-1].name in _LITERAL or (
        len(owner) == 1 and owner[0].name == "LOAD_CONST" and isinstance(owner[0].value, LISTS)
    ):
        return None
    attributes = owner[1:]
    if owner[0].name in _VARIABLES and all(op.name == "LOAD_ATTR" for op in attributes):
        return tuple(op.value for op in owner)
    return ()


def _product(ops: list[_Op], at: int) -> Use | None:
    """``x.shape.numel()``, perhaps of a slice."""
    part = None
    before = at - 1
    if ops[before].name in ("BINARY_SUBSCR", "BINARY_SLICE"):
        begin = _start(ops, before, 2 if ops[before].name == "BINARY_SLICE" else 1)
        if begin is None:
            return None
        bounds = [op.value for op in ops[begin:before] if op.name == "LOAD_CONST"]
        if len(bounds) == 1 and isinstance(bounds[0], slice):
            part = bounds[0]
        elif len(bounds) in (2, 3):
            part = slice(*bounds)
        before = begin - 1
    getter = ops[before]
    if getter.value == "shape" or getter.name.startswith("CALL"):
        return Use(None, (), getter.offset, ops[at].offset, part)
    return None


def takes(use: Use, item: int | None, length: int) -> bool:
    """Whether a use reads this item of a size of so many items."""
    if item is None or use.part is None:
        return True
    if isinstance(use.part, slice):
        return item in range(*use.part.indices(length))
    return not isinstance(use.part, int) or use.part % length == item


def list_at(use: Use, frame) -> bool:
    """Whether what a use indexes is a list now: a tensor records for itself."""
    if use.path is None:
        return True
    value = _variable(use.path[0], frame)
    for name in use.path[1:]:
        if isinstance(value, torch.Tensor):
            return name == "shape"
        value = _attribute(value, name)
    return isinstance(value, LISTS)


def _attribute(value: Any, name: str) -> Any:
    """An attribute as it is stored: looking must run no code of anybody."""
    own = getattr(value, "__dict__", {})
    for space in (own, own.get("_modules") or {}, *map(vars, type(value).__mro__)):
        if name in space:
            return space[name]
    return None


def numbers(use: Use, frame) -> list[Symbol]:
    """The tracked numbers among the variables that stand alone as an index."""
    values = [frame.f_locals.get(name) for name in use.names]
    return [value for value in values if isinstance(value, Symbol)]


def _variable(name: str, frame) -> Any:
    for space in (frame.f_locals, frame.f_globals, vars(builtins)):
        if name in space:
            return space[name]
    return None
