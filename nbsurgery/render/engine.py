"""The one door to Graphviz: DOT text in, coordinates out, with a time limit.

The engine is the executable of the ``graphviz-pure`` wheel, else a ``dot`` on the path. Nothing is
looked for before the first layout, so that a machine without either can import everything.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import EngineError

TIME_LIMIT = 20.0  # seconds for one call: an ordinary wave needs a few hundredths


@functools.cache
def _from_wheel() -> str | None:
    """The executable that the graphviz-pure wheel brought, wherever it was installed."""
    try:
        files = importlib.metadata.files("graphviz-pure") or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if Path(str(file)).stem == "graphviz-pure" and "dist-info" not in str(file):
            path = Path(str(file.locate()))
            if path.is_file() and os.access(path, os.X_OK):
                return str(path.resolve())
    return shutil.which("graphviz-pure")


@dataclass(frozen=True, slots=True)
class Engine:
    """A Graphviz command line.

    Attributes:
        command: The executable.
        name: What the notices call it.
        limit: Seconds that one call may take.
    """

    command: str
    name: str
    limit: float = TIME_LIMIT

    def layout(self, sources: Sequence[str]) -> list[dict]:
        """Lay out several graphs in one call.

        Args:
            sources: DOT texts, one graph each.

        Returns:
            Graphviz's ``json0`` of each graph, in order.

        Raises:
            EngineError: The engine does not start, refuses a graph, or runs past its limit.
        """
        text = self._run(["-Tjson0", "-q"], "\n".join(sources)).decode("utf-8", "replace")
        decoder, found, at = json.JSONDecoder(), [], 0
        try:
            while True:
                while at < len(text) and text[at].isspace():
                    at += 1
                if at >= len(text):
                    break
                graph, at = decoder.raw_decode(text, at)
                found.append(graph)
        except json.JSONDecodeError as error:
            raise EngineError(f"{self.name} wrote something that is not JSON: {error}") from error
        if len(found) != len(sources):
            raise EngineError(f"{self.name} laid out {len(found)} of {len(sources)} graphs")
        return found

    def render(self, source: str, format: str = "svg") -> bytes:
        """One DOT text as a finished file, in a format that Graphviz knows.

        Raises:
            EngineError: As for `layout`; what Graphviz warned of is in the message.
        """
        return self._run([f"-T{format}"], source)

    def _run(self, options: list[str], text: str) -> bytes:
        try:
            done = subprocess.run(
                [self.command, *options],
                input=text.encode(),
                capture_output=True,
                timeout=self.limit,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(
                f"{self.name} needed more than {self.limit:g} s for one picture; "
                "close some modules, or open them one at a time"
            ) from error
        except OSError as error:
            raise EngineError(
                f"{self.name} ({self.command}) does not start: {error}; reinstall it with "
                "`pip install --force-reinstall graphviz-pure`"
            ) from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()[:300]
            raise EngineError(f"{self.name} stopped with exit status {done.returncode}: {said}")
        return done.stdout


def find_engine() -> Engine | None:
    """The first Graphviz that can be run here, or ``None``."""
    if (path := _from_wheel()) is not None:
        return Engine(path, "graphviz-pure")
    if (path := shutil.which("dot")) is not None:
        return Engine(path, "dot")
    return None
