"""The emitted text executed on a structural copy, and what is true of the result."""

from .copy import structural_copy
from .execute import Built, execute
from .failure import explain
from .report import Fact, Finding, Report
from .verify import check

__all__ = [
    "Built",
    "Fact",
    "Finding",
    "Report",
    "check",
    "execute",
    "explain",
    "structural_copy",
]
