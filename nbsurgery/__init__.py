"""See how a PyTorch model is wired, click what should change, get the plain code that does it."""

from __future__ import annotations

from .errors import (
    CaptureError,
    EmissionError,
    EngineError,
    InternalError,
    ModelFailed,
    ReplayRefused,
    SelectionError,
    ShapeError,
    StepError,
    SurgeryError,
)

# `capture` is a package of the same name as well: views loads it first, then the name is bound.
from .views import ModelGraph, Node, Scope, Table, capture

__version__ = "0.1.0"

__all__ = [
    "CaptureError",
    "EmissionError",
    "EngineError",
    "InternalError",
    "ModelFailed",
    "ModelGraph",
    "Node",
    "ReplayRefused",
    "Scope",
    "SelectionError",
    "ShapeError",
    "StepError",
    "Surgery",
    "SurgeryError",
    "Table",
    "capture",
]


def __getattr__(name: str):
    if name == "Surgery":  # the widget stack loads when it is first asked for
        from .widget import Surgery

        return Surgery
    raise AttributeError(f"module 'nbsurgery' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
