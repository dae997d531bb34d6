"""Stand-ins for ``int``, ``float``, ``range`` and ``type`` in the globals of the model's packages.

``int(h / 2)`` and ``int(lengths.max())`` must stay symbolic, ``range(n)`` is a decision, and
``type(n)`` is `int`. They read as the real types to ``isinstance``, ``issubclass`` and annotations,
and call the real ones for anything untracked.
"""

from __future__ import annotations

import sys

import torch

from nbsurgery.capture.symbols import (
    Symbol,
    TrackedBool,
    TrackedFloat,
    TrackedInt,
    apply,
    plain,
)


def _meta(real):
    class Meta(type):
        def __instancecheck__(cls, value):
            return isinstance(value, real)

        def __subclasscheck__(cls, kind):
            return issubclass(kind, real)

        def __getattr__(cls, name):
            return getattr(real, name)

        def __hash__(cls):
            return hash(real)

        def __eq__(cls, other):
            return other is real or other is cls

        def __or__(cls, other):
            return real | other

        def __ror__(cls, other):
            return other | real

    return Meta


class _IntMeta(_meta(int)):
    def __call__(cls, *args, **kwargs):
        if len(args) == 1 and not kwargs:
            if isinstance(args[0], torch.Tensor) and args[0].numel() == 1:
                args = (args[0].item(),)
            if isinstance(args[0], TrackedInt):
                return args[0]
            if isinstance(args[0], TrackedFloat):
                return apply(int, args[0])
        return int(*args, **kwargs)


class Int(metaclass=_IntMeta):
    """``int`` that keeps tracked numbers."""


class _FloatMeta(_meta(float)):
    def __call__(cls, *args):
        if len(args) == 1:
            if isinstance(args[0], torch.Tensor) and args[0].numel() == 1:
                args = (args[0].item(),)
            if isinstance(args[0], TrackedFloat):
                return args[0]
            if isinstance(args[0], TrackedInt):
                return apply(float, args[0])
        return float(*args)


class Float(metaclass=_FloatMeta):
    """``float`` that keeps tracked numbers."""


class _RangeMeta(_meta(range)):
    def __call__(cls, *args):
        for value in args:
            if isinstance(value, Symbol):
                tape = value._live()
                if tape is not None:
                    tape.decision("range", value, plain(value))
        return range(*[plain(a) for a in args])


class Range(metaclass=_RangeMeta):
    """``range`` that notes how far it went."""


class _TypeMeta(_meta(type)):
    def __call__(cls, *args, **kwargs):
        kind = type(*args, **kwargs)
        kind = _TRACKED.get(kind, kind)
        if kind is int or kind is float:  # compared with what the author's file calls that
            return sys._getframe(1).f_globals.get(kind.__name__, kind)
        return kind


_TRACKED = {TrackedInt: int, TrackedFloat: float, TrackedBool: bool}


class Type(metaclass=_TypeMeta):
    """``type`` that takes a tracked number for the number that it is."""


BY_NAME = {"int": Int, "float": Float, "range": Range, "type": Type}
for _name, _shim in BY_NAME.items():
    _shim.__name__ = _shim.__qualname__ = _name
