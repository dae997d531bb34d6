"""`capture`: checks what came, runs the model once under the hooks, hands back the graph."""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from nbsurgery.capture import fakes, hooks, inputs
from nbsurgery.capture.crossing import run_root
from nbsurgery.capture.freeze import freeze
from nbsurgery.capture.recorder import Tape
from nbsurgery.capture.state import Snapshot, private
from nbsurgery.capture.values import tensors_in
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
        how: ``"real"``, ``"fake"`` (shapes only, no numbers), or ``"auto"``: real where a forward
            pass is cheap.

    Returns:
        The run as a tree of scopes.

    Raises:
        CaptureError: the model or the arguments cannot be used; the message says what to pass.
        ModelFailed: the model itself raised; the error's ``graph`` holds what ran before.
    """
    with _alone(), _no_collection():
        args = (args,) if isinstance(args, torch.Tensor) else tuple(args)
        return _capture(model, args, dict(kwargs or {}), how)


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


@contextlib.contextmanager
def _no_collection():
    """A full garbage collection in the middle takes longer than the recording."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _capture(model: nn.Module, args: tuple, kwargs: dict, how: str) -> Graph:
    inputs.check(model, args, kwargs)
    if how not in ("auto", "real", "fake"):
        raise CaptureError(f"how={how!r} is not known: 'auto', 'real' or 'fake'")
    tensors = tensors_in((args, kwargs))
    way = fakes.choose(model, tensors) if how == "auto" else how
    try:
        return _attempt(model, args, kwargs, way)
    except ModelFailed as error:
        chosen = error
    # Shapes alone fail on data (``.item()``), numbers fail for want of memory: try the other way. A
    # model that fails on numbers fails: shapes alone would forgive what torch does not.
    if how == "auto" and (way == "fake" or _out_of_memory(chosen)) and not _meta(model, tensors):
        try:
            return _attempt(model, args, kwargs, "real" if way == "fake" else "fake")
        except ModelFailed as error:
            if error.graph.how == "real":
                chosen = error
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


def _attempt(model: nn.Module, args: tuple, kwargs: dict, how: str) -> Graph:
    """One run, without gradients; with them where the model differentiates inside."""
    try:
        return _record(model, args, kwargs, how, grad=False)
    except ModelFailed as error:
        if "does not require grad" not in str(error):
            raise
    return _record(model, args, kwargs, how, grad=True)


def _out_of_memory(error: ModelFailed) -> bool:
    cause = error.__cause__
    return isinstance(cause, MemoryError) or "memory" in str(cause).lower()


def _meta(model: nn.Module, tensors: list[torch.Tensor]) -> bool:
    return any(t.is_meta for t in (*tensors, *model.parameters()))


def _record(model: nn.Module, args: tuple, kwargs: dict, how: str, grad: bool) -> Graph:
    with contextlib.ExitStack() as stack:
        modules = list(model.modules())
        snapshot = Snapshot(modules, copy_tensors=how == "real")
        stack.callback(snapshot.restore)
        if how == "fake":
            fake = fakes.Fakes()
            fake.exchange(modules)
            args, kwargs = fake.value(args), fake.value(kwargs)
            stack.enter_context(fakes.caches_emptied())
            stack.enter_context(fake.mode)
            stack.enter_context(_quiet())
        else:
            args, kwargs = private(args), private(kwargs)
        tape = Tape(model, how, snapshot.save)
        stack.enter_context(torch.enable_grad() if grad else torch.no_grad())
        failure = None
        with hooks.installed(tape):
            try:
                run_root(tape, args, kwargs)
            except Exception as error:  # noqa: BLE001 whatever the model raises is the answer
                failure = error
        tape.changed = snapshot.changed()
    graph = freeze(tape, failure)
    tape.forget()
    if failure is not None:
        raise ModelFailed(graph.failure.error, graph) from failure
    return graph
