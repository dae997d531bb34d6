"""The emitted text executed on a structural copy, and what is true of the result."""

from .copy import structural_copy
from .execute import Built, execute
from .failure import explain
from .report import Fact, Finding, Report
from .verify import after, check, full

__all__ = [
    "Built",
    "Fact",
    "Finding",
    "Report",
    "after",
    "check",
    "execute",
    "explain",
    "full",
    "structural_copy",
]
