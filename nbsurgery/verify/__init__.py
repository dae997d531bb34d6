"""The emitted text executed on a structural copy, and what is true of the result."""

from .copy import structural_copy
from .execute import Built, execute

__all__ = ["Built", "execute", "structural_copy"]
