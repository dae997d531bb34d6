"""What a run decided on concrete values: harmless for the printed text, guarded in it, or refused."""

from __future__ import annotations

from .expressions import Writer


def guards(writer: Writer, allowed: bool) -> list[str]:
    """The lines that stop the printed forward where another decision would be right."""
    return []
