"""The full report beside other work: one check after the other, the kernel free in between.

Checks run a model: they seed the random state, set modes and patch torch while they last, so a thread
of its own would meddle with a cell that trains. They run where cells run instead, on the kernel's event
loop, each from its beginning to its end in one turn. Hence no check ever overlaps a cell, a step or a
check of another widget, and none is broken off halfway; and since the loop is given back after each,
cells and clicks wait for one check at most, not for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from nbsurgery.widget import notebook

# s; turns that a waiting cell or click needs to be heard: a message comes over two sockets
PAUSE = 0.05


class Beside:
    """At most one generator of checks at work.

    Args:
        told: Called before each check with what the generator says of it.
        done: Called with the result, or with the error that ended it.
    """

    def __init__(self, told: Callable[[Any], None], done: Callable[[Any, Exception | None], None]):
        self._told, self._done = told, done
        self._task: asyncio.Task | None = None

    @property
    def busy(self) -> bool:
        """Whether checks are left to do."""
        return self._task is not None

    def start(self, checks: Generator[Any, None, Any]) -> bool:
        """Begin, after an end of what was at work.

        Returns:
            ``False`` outside of the loop, as in a script: nothing was begun.
        """
        self.stop()
        loop = notebook.main_loop()
        if loop is None or not notebook.on_loop(loop):
            return False
        self._task = loop.create_task(self._walk(checks))
        return True

    def stop(self) -> None:
        """End it before the next check."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _walk(self, checks: Generator[Any, None, Any]) -> None:
        mine = asyncio.current_task()
        try:
            while True:
                # a check is done inside of next(), which awaits nothing
                said = next(checks)
                if self._task is not mine:
                    return  # stopped meanwhile, from another thread: nothing more is told
                self._told(said)
                await asyncio.sleep(PAUSE)
        except StopIteration as end:
            result, error = end.value, None
        except Exception as failure:  # noqa: BLE001 - whatever the model raises is told, not lost in a task
            result, error = None, failure
        if self._task is mine:
            self._task = None
            self._done(result, error)
