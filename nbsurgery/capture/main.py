"""`capture`: checks what came, runs the model once under the hooks, hands back the graph."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from nbsurgery.capture import hooks
from nbsurgery.capture.freeze import freeze
from nbsurgery.capture.recorder import Tape
from nbsurgery.capture.state import Snapshot
from nbsurgery.errors import CaptureError, ModelFailed
from nbsurgery.graph import Graph

_lock = threading.Lock()
_holder: int | None = None


def capture(
    model: nn.Module,
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    how: str = "auto",
) -> Graph:
    """Record one run of a model.

    Args:
        model: Any module. Its mode, state, hooks and gradients are as before afterwards.
        args, kwargs: What it is called with.
        how: ``"real"``, ``"fake"`` (shapes only, no numbers), or ``"auto"``: real where a forward pass
            is cheap.

    Returns:
        The run as a tree of scopes.

    Raises:
        CaptureError: the model or the arguments cannot be used; the message says what to pass.
        ModelFailed: the model itself raised; the error's ``graph`` holds what ran before.
    """
    with _alone():
        return _capture(model, tuple(args), dict(kwargs or {}), how)


@contextlib.contextmanager
def _alone():
    """One capture at a time: another thread waits, a capture inside a capture is refused."""
    global _holder
    me = threading.get_ident()
    if _holder == me:
        raise CaptureError(
            "a capture is running already: the model's forward (or one of its hooks) calls "
            "nbsurgery itself; capture the inner model on its own"
        )
    with _lock:
        _holder = me
        try:
            yield
        finally:
            _holder = None


def _capture(model, args, kwargs, how) -> Graph:
    tape = Tape(model, "real")
    return _record(tape, args, kwargs)


def _record(tape: Tape, args: tuple, kwargs: dict) -> Graph:
    snapshot = Snapshot(tape.modules)
    failure = None
    try:
        with torch.no_grad(), hooks.installed(tape):
            try:
                tape.run(args, kwargs)
            except Exception as error:
                failure = error
    finally:
        snapshot.restore()
    graph = freeze(tape, failure)
    if failure is not None:
        raise ModelFailed(f"{graph.failure.error}", graph) from failure
    return graph
