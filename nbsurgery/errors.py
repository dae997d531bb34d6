"""Every deliberate error of nbsurgery, as one tree.

SurgeryError                     all of them; ``except nbs.SurgeryError`` catches what nbsurgery refuses
├── CaptureError                 the model cannot be recorded as it was given
│   └── ModelFailed              the model itself raised on the example; ``.graph`` holds what ran before it
├── SelectionError (LookupError) a ``where`` names nothing, or something of the wrong kind
├── StepError                    a step cannot be applied; nothing has changed
│   └── ShapeError               the edited model cannot run: names the node and the shapes that met
├── EmissionError                the edit has no code that would be right; says which scope, and why
├── ReplayRefused                a recorded decision does not hold for this input
├── EngineError                  Graphviz could not be run, or ran too long
└── InternalError                a fault of nbsurgery itself; nothing has changed, and it should be reported

Each message says what came, what is allowed and what to do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class SurgeryError(Exception):
    """Base of every deliberate error of nbsurgery."""


class CaptureError(SurgeryError):
    """The model cannot be recorded as it was given; the message says what to pass."""


class ModelFailed(CaptureError):
    """The model raised on the example inputs.

    Attributes:
        graph: What ran before the failure, with the failing node marked.
    """

    def __init__(self, message: str, graph=None):
        super().__init__(message)
        self.graph = graph


class SelectionError(SurgeryError, LookupError):
    """A name, glob or object selects nothing, or something of the wrong kind."""

    def __str__(self) -> str:  # LookupError would not quote, KeyError would: keep plain text
        return str(self.args[0]) if self.args else ""


class StepError(SurgeryError):
    """A step cannot be applied; the model and the other steps are as before."""


class ShapeError(StepError):
    """The edited model cannot run: the message names the node and the shapes that met there."""


class EmissionError(SurgeryError):
    """No right code exists for the edit; the message says which scope is in the way, and why."""


class ReplayRefused(SurgeryError):
    """A decision that the recorded run made does not hold for this input."""


class EngineError(SurgeryError):
    """Graphviz could not be run, failed, or ran longer than its time limit."""


class InternalError(SurgeryError):
    """Something inside nbsurgery failed that should not: the person's model and steps are as before."""


def an(word: str) -> str:
    """A word with its article: ``"a list"``, ``"an int"``, ``"an LSTM"``, ``"an Upsample"``, ``"a UNet"``."""
    return f"{'an' if _AN.match(word) else 'a'} {word}"


_AN = re.compile(
    r"[FHLMNRSX][A-Z]|nn\."  # spelled out
    r"|[AEIaei]|[Oo](?!ne)"
    r"|[Uu](?!ni(?!n)|s|t|i)[a-z]"  # not with the sound of "unit" and "use"
)


def nearest(name: str, names: Iterable[str], count: int = 3) -> str:
    """Say which known names are closest to a wrong one, as the tail of a message.

    Returns:
        ``"; nearest: 'layer1', 'layer2'"``, or an empty string when nothing is close.
    """
    names = list(dict.fromkeys(n for n in names if isinstance(n, str)))
    name = name if isinstance(name, str) else ""
    close = [n for n in names if n.lower() == name.lower()][:count]  # only the case is wrong
    close = close or difflib.get_close_matches(name, names, n=count, cutoff=0.5)
    if not close:  # a last part that is right is worth more than a spelling that is near
        tail = name.rpartition(".")[2]
        close = [n for n in names if tail and n.rpartition(".")[2] == tail][:count]
    return "; nearest: " + ", ".join(repr(n) for n in close) if close else ""
