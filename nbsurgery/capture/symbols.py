"""Numbers that remember where they came from: sizes and flags that stay symbolic in Python.

``x.shape[0] // 2`` runs on subclasses of `int` and `float`. They are numbers to everybody (C code,
``range``, ``isinstance``) and call back into the recording with each arithmetic operation. Where
Python needs a decision (``if``, ``range``, a comparison) the recording notes a specialisation.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any


class Symbol:
    """What tracked numbers share: `_node` made it, in `_scope`, of the recording `_tape`."""

    _tape: Any
    _scope: Any
    _node: Any

    def _plain(self):
        raise NotImplementedError

    def _live(self):
        """The recording, while it records; afterwards the number is an ordinary one."""
        tape = self._tape
        return tape if tape.recording else None


def plain(value: Any) -> Any:
    """The ordinary number behind a tracked one; anything else unchanged."""
    return value._plain() if isinstance(value, Symbol) else value


def plain_all(value: Any) -> Any:
    """The value with every tracked number in its containers made ordinary."""
    if isinstance(value, Symbol):
        return value._plain()
    kind = type(value)
    if kind is tuple:
        return tuple(plain_all(v) for v in value)
    if isinstance(value, tuple):
        items = [plain_all(v) for v in value]
        return kind(*items) if hasattr(value, "_fields") else kind(items)
    if isinstance(value, list):
        return [plain_all(v) for v in list.__iter__(value)]
    if kind is dict:
        return {k: plain_all(v) for k, v in value.items()}
    if kind is slice:
        return slice(plain_all(value.start), plain_all(value.stop), plain_all(value.step))
    return value


def apply(function, *args):
    """Call `function` on numbers; the result is tracked where one of them is."""
    result = function(*[plain(a) for a in args])
    for a in args:
        if isinstance(a, Symbol):
            tape = a._live()
            if tape is not None:
                return tape.number_operation(function, args, result)
    return result


class TrackedInt(int, Symbol):
    """An `int` of the run: a size, or arithmetic on sizes."""

    numerator = real = property(lambda self: self)

    def _plain(self):
        return int.__int__(self)

    def __int__(self):
        tape = self._live()
        if tape is not None:
            tape.decision("int", self, int.__int__(self))
        return int.__add__(self, 0)

    def __float__(self):
        return float(int(self))

    def __complex__(self):
        return complex(int(self))

    def bit_length(self):
        return apply(int.bit_length, self)

    def bit_count(self):
        return apply(int.bit_count, self)

    def conjugate(self):
        return self

    def __bool__(self):
        value = int.__bool__(self)
        tape = self._live()
        if tape is not None:
            tape.decision("bool", self, value)
        return value

    def __floor__(self):
        return self

    __ceil__ = __trunc__ = __floor__

    def __round__(self, digits=None):
        return self

    def __reduce__(self):
        return (int, (self._plain(),))


class TrackedFloat(float, Symbol):
    """A `float` of the run: a scale made from sizes."""

    real = property(lambda self: self)

    def _plain(self):
        return float.__add__(self, 0.0)

    def __float__(self):
        value = self._plain()
        tape = self._live()
        if tape is not None:
            tape.decision("int", self, value)
        return value

    def __complex__(self):
        return complex(self.__float__())

    def is_integer(self):
        value = float.is_integer(self)
        tape = self._live()
        if tape is not None:
            tape.decision("int", self, self._plain())
        return value

    def __int__(self):
        value = float.__int__(self)
        tape = self._live()
        if tape is not None:
            tape.decision("int", self, value)
        return value

    def __bool__(self):
        value = float.__bool__(self)
        tape = self._live()
        if tape is not None:
            tape.decision("bool", self, value)
        return value

    def __floor__(self):
        return apply(math.floor, self)

    def __ceil__(self):
        return apply(math.ceil, self)

    def __trunc__(self):
        return apply(math.trunc, self)

    def __round__(self, digits=None):
        return apply(round, self) if digits is None else apply(round, self, digits)

    def __reduce__(self):
        return (float, (self._plain(),))


class TrackedBool(int, Symbol):
    """``module.training`` in the run: `bool` has no subclasses, so a number that reads as one."""

    def _plain(self):
        return int.__bool__(self)

    def __bool__(self):
        value = int.__bool__(self)
        tape = self._live()
        if tape is not None:
            tape.decision("training", self, value)
        return value

    def __reduce__(self):
        return (bool, (self._plain(),))


def _binary(function, swapped: bool):
    def method(self, other):
        if not isinstance(other, (int, float)):
            if isinstance(other, (list, tuple, str, bytes)):  # [0] * n: the length is decided here
                tape = self._live()
                if tape is not None:
                    tape.decision("range", self, plain(self))
                return function(other, plain(self)) if swapped else function(plain(self), other)
            return NotImplemented
        return apply(function, other, self) if swapped else apply(function, self, other)

    return method


def _comparison(function):
    def method(self, other):
        if not isinstance(other, (int, float)):
            return NotImplemented
        value = function(plain(self), plain(other))
        tape = self._live()
        if tape is not None:
            tape.comparison(function, self, other, value)
        return value

    return method


def _text(number, made):
    """A number as text, or as a key: a value that leaves arithmetic, unless it is only told."""
    tape = number._live()
    if tape is not None:
        tape.spelled(number, sys._getframe(2))
    return made


def _finish(cls):
    arithmetic = ["add", "sub", "mul", "floordiv", "truediv", "mod", "pow"]
    if cls is not TrackedFloat:
        arithmetic += ["lshift", "rshift", "and_", "or_", "xor"]
        cls.__divmod__ = lambda self, other: (self // other, self % other)
    for name in arithmetic:
        function = getattr(operator, name)
        dunder = name.strip("_")
        setattr(cls, f"__{dunder}__", _binary(function, False))
        setattr(cls, f"__r{dunder}__", _binary(function, True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(cls, f"__{name}__", _comparison(getattr(operator, name)))
    base = float if cls is TrackedFloat else int
    cls.__hash__ = lambda self: _text(self, base.__hash__(self))
    cls.__neg__ = lambda self: apply(operator.neg, self)
    cls.__pos__ = lambda self: self
    cls.__abs__ = lambda self: apply(abs, self)
    cls.__repr__ = cls.__str__ = lambda self: _text(self, repr(plain(self)))
    cls.__format__ = lambda self, spec: _text(self, format(plain(self), spec))
    cls.__copy__ = lambda self: self
    cls.__deepcopy__ = lambda self, memo: plain(self)


for _cls in (TrackedInt, TrackedFloat, TrackedBool):
    _finish(_cls)


def track(value: float, tape, scope, node, item: int | None = None, count: int = 0):
    """A tracked number for `value`; booleans and anything else come back as they are.

    Args:
        item, count: Of an item of a size: which one, of how many.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        number = TrackedInt(value)
    elif isinstance(value, float):
        number = TrackedFloat(value)
    else:
        return value
    number._tape, number._scope, number._node = tape, scope, node
    if tape.indexed is not None:
        tape.made(number, item, count)
    return number


def track_flag(value: bool, tape, scope, node) -> TrackedBool:
    """A tracked truth value."""
    flag = TrackedBool(value)
    flag._tape, flag._scope, flag._node = tape, scope, node
    return flag
