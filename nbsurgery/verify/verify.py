"""The immediate report on an edited model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from ..claims import Claim
from ..graph import Graph
from .checks import IMMEDIATE
from .execute import Built
from .failure import explain
from .report import Finding, Report
from .subject import Subject


def check(
    before: Graph,
    original: nn.Module,
    built: Built,
    after: Graph | Iterable[Graph] | None = None,
    edited: Graph | None = None,
    args: tuple = (),
    kwargs: Mapping[str, Any] | None = None,
    claims: Iterable[Claim] = (),
    *,
    original_args: tuple | None = None,
    original_kwargs: Mapping[str, Any] | None = None,
) -> Report:
    """Check everything about an edit that can be checked at once.

    Args:
        before: The graph of the original's run.
        original: The model before the edit. It is only read: runs happen on structural copies.
        built: What `execute` made of the emitted text.
        after: The graph of the built model's run; one per module of a split; ``None`` leaves out what
            needs it.
        edited: The draft's edited graph, for the oracle; ``None`` leaves the oracle out.
        args, kwargs: The example, as the edited model takes it.
        claims: What the operations promise; a mapping from steps to claims will do.
        original_args, original_kwargs: The example as the original takes it, where that differs.

    Returns:
        The report.

    Raises:
        ShapeError: The edited model cannot run on the example; the message names the node and the
            shapes that met there.
        StepError: It fails for another reason.
    """
    kwargs = dict(kwargs or {})
    subject = Subject(
        before=before,
        original=original,
        built=built,
        after=() if after is None else (after,) if isinstance(after, Graph) else tuple(after),
        edited=edited,
        args=tuple(args),
        kwargs=kwargs,
        original_args=tuple(args if original_args is None else original_args),
        original_kwargs=kwargs if original_kwargs is None else dict(original_kwargs),
        claims=tuple(_flat(claims)),
    )
    if subject.run.error is not None:
        parts = [copier.root for copier in subject.copies]
        raise explain(subject.run.error, parts) from subject.run.error
    return Report.of(item for one in IMMEDIATE for item in _guarded(one, subject))


def _guarded(one, subject: Subject):
    """What a check says; a check that fails itself says so and spoils nothing else."""
    try:
        yield from one(subject)
    except Exception as error:  # noqa: BLE001  a report must come, whatever the model does
        name = one.__module__.rpartition(".")[2].replace("_", " ")
        yield Finding("warning", f"the check of {name} failed: {type(error).__name__}: {error}")


def _flat(claims: Any) -> Iterable[Claim]:
    if isinstance(claims, Claim):
        yield claims
    elif isinstance(claims, Mapping):
        for item in claims.values():
            yield from _flat(item)
    elif claims is not None:
        for item in claims:
            yield from _flat(item)
