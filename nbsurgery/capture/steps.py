"""What a tape is made of while the run lasts: nodes, scopes and marked values."""

from __future__ import annotations

import dataclasses
from typing import Any


class Step:
    """A node while the run lasts."""

    __slots__ = (
        "args", "base", "child", "failed", "frames", "glue", "id", "impure", "inside", "kind",
        "kwargs", "module", "name", "outputs", "same", "scope", "target", "type", "value", "writes",
    )  # fmt: skip

    def __init__(self, id, scope, kind, type, target, args, kwargs, base, glue, frames):
        self.id, self.scope, self.kind, self.type, self.target = id, scope, kind, type, target
        self.args, self.kwargs, self.base, self.glue, self.frames = args, kwargs, base, glue, frames
        self.outputs: tuple = ()
        self.value = self.child = self.module = self.name = None
        self.writes: tuple = ()
        self.impure = self.failed = False
        self.inside: tuple = ()
        self.same: str | None = None  # the node whose very tensor came out again


class OpenScope:
    """A scope while the run lasts: its nodes, and which of its nodes made each live value."""

    __slots__ = (
        "bindings", "caller", "count", "done", "env", "inputs", "key", "lists", "module", "nodes",
        "opaque", "parent", "path", "places", "stowaways", "tensors",
    )  # fmt: skip

    def __init__(self, key, path, module, parent, caller):
        self.key, self.path, self.module, self.parent, self.caller = (
            key, path, module, parent, caller,
        )  # fmt: skip
        self.inputs: list[Step] = []
        self.nodes: list[Step] = []
        self.bindings: dict[str, Any] = {}
        self.places: dict[str, int | str] = {}
        self.stowaways: list[str] = []
        self.lists: list[InputList] = []
        self.env: dict[int, tuple] = {}  # id of a value: (the value or a way to it, its Ref, state)
        self.count = 0
        self.opaque: str | None = None
        self.done = False


class Seen:
    """What a walk over arguments met."""

    __slots__ = ("odd", "symbols", "tensors")

    def __init__(self):
        self.tensors: list = []
        self.symbols = False
        self.odd = False  # a tensor subclass: must be dispatched


class InputList(list):
    """A list argument while recording: tells when Python loops over it."""

    def __iter__(self):
        tape = self._origin[0]
        if tape.recording:
            tape.loop(self)
        return list.__iter__(self)

    def __reduce__(self):
        return (list, (list(list.__iter__(self)),))


@dataclasses.dataclass(frozen=True, eq=False)
class Held:
    """A value of unknown origin, kept as it was in the run."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Digest:
    """The inputs of a run, as a fingerprint; ``None`` where they had no numbers."""

    value: str | None

    def __repr__(self):
        return "<these inputs>"


@dataclasses.dataclass(frozen=True)
class Leftover:
    """The value that another scope's node made: read by way of an attribute or a closure."""

    id: str
