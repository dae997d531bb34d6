"""The emitted text executed on a structural copy, and what is true of the result."""

from .copy import structural_copy
from .execute import Built, execute
from .failure import explain
from .report import Fact, Finding, Report
from .subject import Subject
from .verify import Progress, after, check, finished, full, full_by_steps

__all__ = [
    "Built",
    "Fact",
    "Finding",
    "Progress",
    "Report",
    "Subject",
    "after",
    "check",
    "execute",
    "explain",
    "finished",
    "full",
    "full_by_steps",
    "structural_copy",
]
