"""Equality where nothing may change: what the operations promise, against the original's own run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from nbsurgery.capture import capture, replay

from ...claims import Claim, OutputEquals, OutputsEqual, PartEqualsOutput, SameOutput
from ...errors import ReplayRefused, SurgeryError
from ...graph import Graph
from .. import runs
from ..compare import Difference, difference, shapes, tensors
from ..copy import structural_copy
from ..double import in_double
from ..report import Finding
from ..still import still
from ..subject import Subject


def check(subject: Subject) -> Iterator[Finding]:
    """Each claim on the example; without one, how far the output has moved."""
    output, original = subject.run.output, subject.original_run
    if original.error is not None:
        yield Finding("info", f"the original does not run on this example: {original.error}")
        return
    if subject.claims and _random(subject):
        yield Finding("info", "the model draws random numbers in this mode: no values are compared")
        return
    try:
        verdicts = judged(subject, output, original)
    except (SurgeryError, RuntimeError, TypeError, AttributeError, KeyError) as error:
        yield Finding("warning", f"inner values of the original cannot be had: {error}")
        return
    if any(found.close and not found.equal for found, _ in verdicts):
        verdicts = _confirmed(subject, verdicts)
    yield from (finding for _, finding in verdicts)
    if not subject.claims:
        found = difference(output, original.output)
        if found.equal and not found.numbers:
            yield Finding("warning", _empty("the output", output))
        elif found.equal:
            yield Finding("info", "on the example the output equals the original's, bit for bit")
        elif found.problem is None:
            yield Finding("info", f"against the original the output shows {found}")


Verdict = tuple[Difference, Finding]


def judged(
    subject: Subject, output: Any, original: runs.Run, example: tuple | None = None
) -> list[Verdict]:
    """Every claim held to a run of the edited model and one of the original on the same example."""
    ids = [i for claim in subject.claims for i in _wanted(claim)]
    example = example or (subject.original_args, subject.original_kwargs)
    inner: Mapping[str, Any] = {}
    if ids:
        replayed, inner = inner_values(subject, ids, example)
        if not difference(replayed, original.output, tensors_only=True).close:
            raise ReplayRefused("the recorded run does not give the model's output for this input")
    return [
        verdict
        for claim in dict.fromkeys(map(_hashable, subject.claims))
        for verdict in _judge(claim, output, original.output, inner, subject.before)
    ]


def _confirmed(subject: Subject, verdicts: list[Verdict]) -> list[Verdict]:
    """What looks like round-off, judged in double precision; as it is where that cannot run."""
    if _derived(
        subject
    ):  # what enters was computed in single precision: it stays as coarse as that
        return verdicts
    wide = in_double(subject)
    if wide is None:
        return verdicts
    try:
        again = judged(wide, wide.run.output, wide.original_run)
    except (SurgeryError, RuntimeError, TypeError, AttributeError, KeyError):
        return verdicts
    return verdicts if all(found.close for found, _ in again) else again


def _derived(subject: Subject) -> bool:
    """Whether the edited model takes other values than the original, not just fewer or more channels."""
    mine = tensors((subject.args, dict(subject.kwargs)))
    theirs = tensors((subject.original_args, dict(subject.original_kwargs)))
    if len(mine) != len(theirs) or any(a.dim() != b.dim() for a, b in zip(mine, theirs)):
        return True
    for a, b in zip(mine, theirs):
        common = tuple(slice(min(n, m)) for n, m in zip(a.shape, b.shape))
        if a.device.type != "meta" and not torch.equal(a[common], b[common]):
            return True
    return False


def inner_values(subject: Subject, ids: list[str], example: tuple) -> tuple[Any, Mapping[str, Any]]:
    """The ORIGINAL's output and values of its nodes, each as it was when its node had run.

    Where the recorded run does not hold for the example, one on the example itself tells, by name.
    """
    args, kwargs = runs.cloned(example)
    try:
        return _replayed(subject, subject.before, ids, args, kwargs)
    except ReplayRefused:
        args, kwargs = runs.cloned(example)
        graph = capture(structural_copy(subject.original), args, kwargs, how="real")
        own = {id: graph.by_name[subject.before.by_id[id].name].id for id in ids}
        args, kwargs = runs.cloned(example)
        output, values = _replayed(subject, graph, list(own.values()), args, kwargs)
        return output, {id: values[there] for id, there in own.items()}


def _replayed(
    subject: Subject, graph: Graph, ids: list[str], args: tuple, kwargs: Mapping[str, Any]
) -> tuple[Any, Mapping[str, Any]]:
    with still(), torch.no_grad():
        model = structural_copy(subject.original)  # fresh: a run may have moved its buffers
        return replay(graph, model, args, kwargs, values=ids)


def _hashable(claim: Claim) -> Any:
    return tuple(claim.nodes.items()) if isinstance(claim, OutputsEqual) else claim


def _wanted(claim: Claim) -> list[str]:
    if isinstance(claim, OutputEquals):
        return [claim.node]
    return list(claim.nodes.values()) if isinstance(claim, OutputsEqual) else []


def _judge(claim, output, original, inner, graph: Graph) -> Iterator[Verdict]:
    if isinstance(claim, SameOutput):
        found = difference(output, original)
        yield _verdict(found, "the output", "the original's", output)
    elif isinstance(claim, OutputEquals):
        what = f"the original's value of {_name(graph, claim.node)}"
        yield _verdict(difference(output, inner[claim.node]), "the output", what, output)
    elif isinstance(claim, PartEqualsOutput):
        part = _part(output, claim.key)
        found = difference(part, original)
        yield _verdict(found, f"part {claim.key!r}", "the original's output", part)
    else:
        parts = [(k, difference(_part(output, k), inner[node]), node) for k, node in claim]
        if all(found.equal and found.numbers for _, found, _ in parts):
            names = ", ".join(_name(graph, node) for _, _, node in parts)
            many = f"{len(parts)} outputs equal the original's values"
            one = f"the output {parts[0][0]!r} equals the original's value"
            text = f"{many if len(parts) > 1 else one} of {names}, bit for bit"
            yield parts[0][1], Finding("ok", text)
            return
        for key, found, node in parts:
            what = f"the original's value of {_name(graph, node)}"
            yield _verdict(found, f"part {key!r}", what, _part(output, key))


def _empty(what: str, value: Any) -> str:
    return (
        f"{what} holds no numbers on this example, {shapes(value)}: nothing was compared there; set "
        "surgery.example to one for which it does"
    )


def _verdict(found: Difference, what: str, reference: str, value: Any) -> Verdict:
    if found.equal and not found.numbers:
        return found, Finding("warning", _empty(what, value))
    if found.equal:
        return found, Finding("ok", f"{what} equals {reference}, bit for bit")
    if found.close:
        text = f"{what} equals {reference} up to round-off ({found.max_abs:.1g})"
        return found, Finding("ok", text)
    return found, Finding("error", f"{what} was to equal {reference}, and shows {found}")


def _part(output: Any, key: Any) -> Any:
    if isinstance(output, Mapping):
        return output.get(key)
    if isinstance(output, (list, tuple)) and isinstance(key, int) and key < len(output):
        return output[key]
    return getattr(output, str(key), None)


def _name(graph: Graph, id: str) -> str:
    node = graph.by_id.get(id)
    return node.name if node is not None else id


def _random(subject: Subject) -> bool:
    """Whether the original itself gives other numbers under another seed."""
    if not any(m.training for m in subject.original.modules()):
        return False
    first, second = (
        runs.run(
            (structural_copy(subject.original),),
            subject.original_args,
            subject.original_kwargs,
            seed=seed,
        )
        for seed in (0, 1)
    )
    return not difference(first.output, second.output).close
