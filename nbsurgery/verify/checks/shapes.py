"""What comes out, before and after, in its own structure; MACs and activation memory beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..compare import shapes
from ..report import Fact, Finding
from ..subject import Subject


def check(subject: Subject) -> Iterator[Fact | Finding]:
    """The output's shape, the parts of a split with what crosses, and the cost of a run."""
    run, original = subject.run, subject.original_run
    after = shapes(run.output)
    before = shapes(original.output) if original.error is None else "cannot run"
    taken, took = (_entering(*x) for x in (
        (subject.args, subject.kwargs), (subject.original_args, subject.original_kwargs)
    ))  # fmt: skip
    if taken != took:
        yield Fact("Input", took, taken)
        yield Finding("info", f"the input is {taken} where it was {took}")
    yield Fact("Output", before, after)
    if run.crossing:
        crossing = "; ".join(map(shapes, run.crossing))
        yield Fact("Handed on", "", crossing)
    if before == after:
        yield Finding("ok", f"the output keeps its shape, {after}")
    else:
        yield Finding("info", f"the output is {after} where it was {before}")
    macs = subject.before.totals.get("macs")
    now = [g.totals.get("macs") for g in subject.after]
    if macs is not None and now and None not in now:
        yield Fact("MACs", f"{macs:,}", f"{sum(now):,}")


def _entering(args: tuple, kwargs: Mapping[str, Any]) -> str:
    return ", ".join(map(shapes, (*args, *kwargs.values())))
