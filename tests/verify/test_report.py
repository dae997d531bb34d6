"""The report as data, as a card of text and as HTML."""

import json

from nbsurgery.verify import Fact, Finding, Report

FULL = Report.of(
    [
        Fact("Output", "(2, 5)", "(2, 2)"),
        Fact("Parameters", "185", "185"),
        Finding("ok", "fine"),
        Finding("warning", "careful", {"operation": "freeze", "arguments": {}, "label": "mend"}),
        Finding("error", "<b>wrong</b>"),
        Finding("info", "by the way"),
    ]
)


def test_the_gravest_first_and_what_counts_as_ok():
    """Errors spoil a report, warnings do not; an empty one is fine."""
    assert [f.severity for f in FULL.findings] == ["error", "warning", "info", "ok"]
    assert not FULL.ok and not FULL
    assert Report.of([Finding("warning", "x")]).ok and Report().ok
    assert FULL.headline == "1 error, 1 warning, 1 check holds"
    assert Report().headline == "nothing to report"


def test_text_card():
    """Facts in columns, unchanged ones marked, one line per finding."""
    assert str(FULL).splitlines() == [
        "1 error, 1 warning, 1 check holds",
        "  Output      (2, 5)  → (2, 2)",
        "  Parameters     185  =",
        "✗ <b>wrong</b>",
        "! careful",
        "· by the way",
        "✓ fine",
    ]


def test_html_escapes_and_names_everything():
    """What models are called cannot break out of the card."""
    text = FULL._repr_html_()
    assert "&lt;b&gt;wrong" in text and "<b>" not in text
    assert "careful" in text and "(2, 5)" in text and "unchanged" in text


def test_data_for_the_widget():
    """The form of the brief, JSON both ways."""
    data = json.loads(json.dumps(FULL.to_dict()))
    assert data["ok"] is False
    assert data["findings"][1] == {
        "severity": "warning",
        "text": "careful",
        "cure": {"operation": "freeze", "arguments": {}, "label": "mend"},
    }
    assert data["facts"][0] == {"label": "Output", "before": "(2, 5)", "after": "(2, 2)"}


def test_two_reports_in_one():
    """What both say is said once."""
    both = FULL + Report.of([Finding("ok", "fine"), Finding("ok", "more")])
    assert [f.text for f in both.findings if f.severity == "ok"] == ["fine", "more"]
    assert len(both.facts) == 2
