"""A node or a module in plain words and numbers, and the facts of a selection."""

from .facts import facts
from .words import explain

__all__ = ["explain", "facts"]
