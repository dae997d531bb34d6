"""`capture`: checks what came, runs the model once under the hooks, hands back the graph."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from nbsurgery.capture import fakes, hooks, inputs
from nbsurgery.capture.freeze import freeze
from nbsurgery.capture.recorder import Tape, tensors_in
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


def _capture(model: nn.Module, args: tuple, kwargs: dict, how: str) -> Graph:
    inputs.check(model, args, kwargs)
    if how not in ("auto", "real", "fake"):
        raise CaptureError(f"how={how!r} is not known: 'auto', 'real' or 'fake'")
    tensors = tensors_in((args, kwargs))
    ways = [how]
    if how == "auto":
        first = fakes.choose(model, tensors)
        meta = any(t.is_meta for t in tensors) or any(p.is_meta for p in model.parameters())
        ways = ["fake"] if meta else [first, "fake" if first == "real" else "real"]
    failures: list[ModelFailed] = []
    for way in ways:
        for grad in (False, True):
            try:
                return _record(model, args, kwargs, way, grad)
            except ModelFailed as error:
                failures.append(error)
                if grad or not _wants_gradients(error):
                    break
    chosen = _telling(failures, ways)
    raise ModelFailed(
        f"{type(model).__name__} itself raised on this example: {chosen}"
        f"{inputs.hint(model, tensors)}",
        chosen.graph,
    ) from chosen.__cause__


@contextlib.contextmanager
def _quiet():
    """Torch logs every operation that fails on fake tensors: the error itself says it better."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _wants_gradients(error: Exception) -> bool:
    return "does not require grad" in str(error) or "require_grad" in str(error)


def _telling(failures: list[ModelFailed], ways: list[str]) -> ModelFailed:
    """Of the failures of both ways, the one of the run with numbers: it is the model's own."""
    return next((f for f in failures if f.graph.how == "real"), failures[0])


def _record(model: nn.Module, args: tuple, kwargs: dict, how: str, grad: bool) -> Graph:
    with contextlib.ExitStack() as stack:
        modules = list(model.modules())
        snapshot = Snapshot(modules, copy_buffers=how == "real")
        stack.callback(snapshot.restore)
        if how == "fake":
            fake = fakes.Fakes()
            fake.exchange(modules)
            args, kwargs = fake.value(args), fake.value(kwargs)
            stack.enter_context(fake.mode)
            stack.enter_context(_quiet())
        tape = Tape(model, how)
        stack.enter_context(torch.enable_grad() if grad else torch.no_grad())
        failure = None
        with hooks.installed(tape):
            try:
                tape.run(args, kwargs)
            except Exception as error:
                failure = error
    graph = freeze(tape, failure)
    if failure is not None:
        raise ModelFailed(graph.failure.error, graph) from failure
    return graph
