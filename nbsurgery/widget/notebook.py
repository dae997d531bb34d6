"""What the kernel knows of the notebook around it: the running cell, the person's names, the next cell."""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Callable
from typing import Any


def shell() -> Any:
    """The running IPython shell, or ``None`` outside of one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def cell_id() -> str:
    """Id of the cell that runs now; empty where the host does not say."""
    kernel = getattr(shell(), "kernel", None)
    try:
        return kernel.get_parent("shell")["metadata"].get("cellId") or ""
    except Exception:  # noqa: BLE001 - other kernels have other shapes of parent, or none
        return ""


def running_cell() -> bool:
    """Whether a cell is being executed, and not a widget's message."""
    kernel = getattr(shell(), "kernel", None)
    try:
        return kernel.get_parent("shell")["header"]["msg_type"] == "execute_request"
    except Exception:  # noqa: BLE001 - as above
        return shell() is not None


def main_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop between whose turns cells run; ``None`` where there is none, as in a script."""
    kernel = getattr(shell(), "kernel", None)
    return getattr(getattr(kernel, "io_loop", None), "asyncio_loop", None)


def on_loop(loop: asyncio.AbstractEventLoop | None) -> bool:
    """Whether this very code runs in a turn of a loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def where_cells_run(call: Callable[[], None]) -> None:
    """Make a call where cells run, never beside one: at once, or as soon as the cell at work ends.

    JupyterLab sends the messages of widgets to a thread of their own, where they are heard while a cell
    runs. What runs a model there would meet the cell's: both share the random state and torch's modes.
    """
    loop = main_loop()
    if loop is None or on_loop(loop):
        call()
    else:
        loop.call_soon_threadsafe(call)


def variable_of(model: Any, default: str = "model") -> str:
    """The person's own name for a model; the newest one where there are several."""
    names = getattr(shell(), "user_ns", None) or {}
    found = [n for n, v in list(names.items()) if v is model and n.isidentifier()]
    found = [n for n in found if not n.startswith("_")]
    return found[-1] if found else default


def next_cell(text: str) -> bool:
    """Put text into the next cell; ``False`` where there is no notebook.

    Only from an executed cell: from a widget's message the payload would leak into the cell that is
    executed next.
    """
    here = shell()
    if here is None or not hasattr(here, "set_next_input") or not running_cell():
        return False
    here.set_next_input(text, replace=False)
    return True


def after_each_cell(method: Callable[[], None]) -> None:
    """Call a bound method after each executed cell, as long as its object lives."""
    here, held = shell(), weakref.WeakMethod(method)
    if here is None:
        return

    def call(*_: Any) -> None:
        alive = held()
        if alive is None:
            here.events.unregister("post_run_cell", call)
        else:
            alive()

    here.events.register("post_run_cell", call)
