"""Every patch of torch that the recording needs, put in and taken out again; nothing else patches."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from nbsurgery.capture.symbols import plain

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
            return function(*args, **(kwargs or {}))
        return self.tape.call(function, args, kwargs or {})


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
        return tape.module_call(original, self, args, kwargs)

    patches.set(nn.Module, "__call__", __call__)


def _training(patches: _Patches) -> None:
    def get(self):
        try:
            value = self.__dict__["training"]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} has no attribute 'training'") from None
        tape = active()
        return value if tape is None else tape.training(self, value)

    def put(self, value):
        self.__dict__["training"] = plain(value)

    patches.set(nn.Module, "training", property(get, put))


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
        _active = tape
        tape.recording = True
        with torch.compiler.set_stance("force_eager"), RecordingMode(tape):
            yield
    finally:
        tape.recording = False
        _active = None
        patches.undo()
        torch.backends.mha.set_fastpath_enabled(fastpath)
