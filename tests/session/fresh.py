"""Emitted code in a fresh process: a server that has torch but not nbsurgery, and forks for each text."""

from __future__ import annotations

import inspect
import os
import pickle
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

SECONDS = 120  # for one text


class Server:
    """The parent's side: one text with its model goes there, one answer comes back."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(
        self, name: str, code: str, results: tuple[str, ...], args: tuple, kwargs: dict
    ) -> dict:
        """What the text makes of the fresh model `name`.

        Returns:
            ``error`` (a traceback, or ``None``), ``output`` of the model or of its parts one after the
            other, ``once`` and ``twice``: the model's structure after one and two runs of the text,
            ``stopped``: what a second run raised, and whether the text itself raised it.
        """
        pickle.dump((name, code, results, args, kwargs), self._process.stdin)
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def serve() -> None:
    """Answer until the other side closes; models are built once, and every text gets a fork."""
    sys.path[:0] = [str(Path(__file__).parents[2])]
    import torch

    from tests.session.zoo import build, names_for

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a model prints is no answer
    models: dict[str, Any] = {}
    while True:
        try:
            name, *rest = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if name not in models:
            models[name] = build(name)[0]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            try:
                space = {"__name__": "__main__", **names_for(models[name]), "model": models[name]}
                answer = pickle.dumps(_answer(space, *rest))
            except BaseException:  # noqa: BLE001  whatever it is, the other side reports it
                answer = pickle.dumps({"error": traceback.format_exc()})
            with os.fdopen(write, "wb") as pipe:
                pipe.write(answer)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        answers.write(answer or pickle.dumps({"error": f"no answer within {SECONDS} s"}))
        answers.flush()


def _answer(space: dict, code: str, results: tuple[str, ...], args: tuple, kwargs: dict) -> dict:
    import torch

    assert "nbsurgery" not in sys.modules
    model = space["model"]
    alive = [*model.parameters(), *model.buffers()]  # so that no new tensor takes a place of theirs
    own = {t.data_ptr() for t in alive}
    compiled = compile(code, "<cell>", "exec")
    torch.manual_seed(0)
    exec(compiled, space)
    once = _picture(space, results, own)
    torch.manual_seed(0)
    with torch.no_grad():
        output = space[results[0]](*args, **kwargs)
        for name in results[1:]:
            output = space[name](*_handed_on(space[name], output))
    stopped = None
    try:
        exec(compiled, space)
    except Exception as error:  # noqa: BLE001
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = code.splitlines()[last.lineno - 1].strip() if last.filename == "<cell>" else ""
        stopped = f"{type(error).__name__}: {error}", line.startswith(("raise ", "assert "))
    return {
        "error": None, "output": output, "once": once, "twice": _picture(space, results, own),
        "stopped": stopped,
    }  # fmt: skip


def _handed_on(part, value: Any) -> tuple:
    """A part of a split takes what the part before returned as arguments, or as the one that it has."""
    if not isinstance(value, tuple):
        return (value,)
    places = inspect.signature(part.forward).parameters.values()
    many = len(places) >= len(value) or any(p.kind is p.VAR_POSITIONAL for p in places)
    return value if many else (value,)


def _picture(space: dict, results: tuple[str, ...], own: set[int]) -> dict[str, tuple]:
    """Classes and modes of modules; shapes of tensors, and which of the model's own they are."""
    found: dict[str, tuple] = {}
    for name in results:
        for path, m in space[name].named_modules():
            found[f"{name}:{path}"] = (type(m).__qualname__, m.training, m.extra_repr())
        for key, t in (*space[name].named_parameters(), *space[name].named_buffers()):
            kept = t.data_ptr() if t.data_ptr() in own else None
            found[f"{name}:{key}"] = (tuple(t.shape), str(t.dtype), t.requires_grad, kept)
    return found


if __name__ == "__main__":
    serve()
