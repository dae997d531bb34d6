"""What is true of an edited model: findings and facts, as a card of text or HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MARKS = {"error": "✗", "warning": "!", "info": "·", "ok": "✓"}
_ORDER = tuple(_MARKS)
_COLOURS = {"error": "#d1242f", "warning": "#9a6700", "info": "#6e7781", "ok": "#1a7f37"}


@dataclass(frozen=True)
class Finding:
    """One sentence about the edited model, with a number where there is one.

    Attributes:
        severity: ``"error"`` (the edit is not what it says), ``"warning"`` (surgery broke something that
            people miss), ``"info"`` (good to know) or ``"ok"`` (checked, and it holds).
        text: The sentence.
        cure: ``{"operation", "arguments", "label"}`` of the step that mends it, or ``None``.
    """

    severity: str
    text: str
    cure: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Fact:
    """One row of before and after."""

    label: str
    before: str
    after: str


@dataclass(frozen=True)
class Report:
    """All findings, the gravest first, and the facts before and after."""

    findings: tuple[Finding, ...] = ()
    facts: tuple[Fact, ...] = ()

    @classmethod
    def of(cls, items) -> Report:
        """Sort what the checks said into findings and facts."""
        items = tuple(items)
        findings = [item for item in items if isinstance(item, Finding)]
        findings.sort(key=lambda f: _ORDER.index(f.severity))
        return cls(tuple(findings), tuple(item for item in items if isinstance(item, Fact)))

    def __add__(self, other: Report) -> Report:
        """Both reports in one; what both say is said once."""
        items: list[Finding | Fact] = []
        for item in (*self.facts, *other.facts, *self.findings, *other.findings):
            if item not in items:
                items.append(item)
        return Report.of(items)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong: warnings are allowed, errors are not."""
        return not any(f.severity == "error" for f in self.findings)

    def __bool__(self) -> bool:
        return self.ok

    def count(self, severity: str) -> int:
        """How many findings are of this severity."""
        return sum(f.severity == severity for f in self.findings)

    @property
    def headline(self) -> str:
        """``"2 warnings, 7 checks hold"``."""
        said = [
            f"{n} {word if n == 1 else word + 's'}"
            for word in ("error", "warning")
            if (n := self.count(word))
        ]
        if n := self.count("ok"):
            said.append(f"{n} checks hold" if n > 1 else "1 check holds")
        return ", ".join(said) or "nothing to report"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the widget and for JSON."""
        return {
            "ok": self.ok,
            "findings": [
                {"severity": f.severity, "text": f.text, "cure": dict(f.cure) if f.cure else None}
                for f in self.findings
            ],
            "facts": [{"label": f.label, "before": f.before, "after": f.after} for f in self.facts],
        }

    def __str__(self) -> str:
        rows = [(f.label, f.before, f.after) for f in self.facts]
        # a long structure in one row does not push the numbers of the others away
        wide = [max((len(r[i]) for r in rows if len(r[i]) <= 24), default=0) for i in (0, 1)]
        lines = [self.headline]
        lines += [
            f"  {label:<{wide[0]}}  {a:>{wide[1]}}  {'=' if a == b else '→ ' + b}"
            for label, a, b in rows
        ]
        lines += [f"{_MARKS[f.severity]} {f.text}" for f in self.findings]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Report: {self.headline}>"

    def _repr_html_(self) -> str:
        def cell(text: str, style: str = "") -> str:
            return f'<td style="text-align:left;padding:1px 12px 1px 0;{style}">{html.escape(text)}</td>'

        rows = "".join(
            f"<tr>{cell(f.label, 'opacity:.7')}{cell(f.before)}"
            f"{cell('unchanged', 'opacity:.5') if f.before == f.after else cell(f.after)}</tr>"
            for f in self.facts
        )
        if rows:
            head = "".join(cell(text, "opacity:.7") for text in ("", "Before", "After"))
            rows = f"<tr>{head}</tr>{rows}"
        items = "".join(
            f'<div style="padding:1px 0"><span style="color:{_COLOURS[f.severity]};font-weight:600;'
            f'display:inline-block;width:1.3em">{_MARKS[f.severity]}</span>{html.escape(f.text)}</div>'
            for f in self.findings
        )
        colour = _COLOURS["ok" if self.ok else "error"]
        return (
            f'<div style="border-left:3px solid {colour};padding-left:10px">'
            f'<div style="font-weight:600">{html.escape(self.headline)}</div>'
            f'<table style="border:0;margin:4px 0">{rows}</table>{items}</div>'
        )
