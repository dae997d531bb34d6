"""The reports on an edited model: the immediate one with every step, the full one on request."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from nbsurgery.capture import capture

from ..errors import CaptureError, ModelFailed
from ..graph import Graph
from . import runs
from .checks import FULL, HOLDING, IMMEDIATE
from .execute import Built
from .failure import explain
from .report import Finding, Report
from .still import still
from .subject import Subject


class Progress(NamedTuple):
    """The check that comes next, which of how many it is, and whether it holds the kernel for seconds."""

    name: str
    number: int
    of: int
    holds: bool = False


Checking = Generator[Progress, None, Report]


def check(subject: Subject) -> Report:
    """Check everything about an edit that can be checked at once.

    Raises:
        ShapeError: The edited model cannot run on the example; the message names the node and the
            shapes that met there.
        StepError: It fails for another reason.
    """
    return Report.of(item for one in IMMEDIATE for item in _guarded(one, _running(subject)))


def full(subject: Subject) -> Report:
    """The immediate report and everything that needs more runs.

    Another batch size and, where the original allows it, another image size or sequence length; train
    mode with a backward pass; bfloat16; deepcopy and pickle; ``torch.export``. A check is left out
    where the original fails it too. Beside activations it needs the gradients of one copy, and one copy
    of the weights in bfloat16, one after the other. It raises what `check` raises.
    """
    return finished(full_by_steps(subject))


def full_by_steps(subject: Subject) -> Checking:
    """The same as `full`, one check at a time, so that something else can be done in between.

    Between two checks nothing of them is in force: random state, modes and hooks are the person's. When
    weights were written meanwhile, runs made so far are of another model, and the checks begin again.

    Yields:
        A `Progress` before each check; the report is what the generator returns.
    """
    groups = (("what every step checks", IMMEDIATE), *((_name(one), (one,)) for one in FULL))
    models = (subject.original, *subject.built.modules)
    while True:
        state, found, now = runs.versions(models), [], None
        for number, (name, checks) in enumerate(groups, 1):
            yield Progress(name, number, len(groups), any(one in HOLDING for one in checks))
            if runs.versions(models) != state:
                break
            now = now or _running(subject.anew())
            found += [item for one in checks for item in _guarded(one, now)]
        else:
            return Report.of(found)


def finished(checking: Checking) -> Report:
    """Do all checks that are left, and give the report."""
    while True:
        try:
            next(checking)
        except StopIteration as end:
            return end.value


def after(built: Built, args: tuple, kwargs: Mapping[str, Any] | None = None):
    """Capture the built model on the example; each part of a split on what reaches it.

    Returns:
        A graph, or a tuple of graphs for a split.

    Raises:
        ShapeError: It cannot run on the example; the message names the node and the shapes that met.
        StepError: It fails for another reason.
    """
    args, kwargs, parts = tuple(args), dict(kwargs or {}), built.modules
    trial = runs.Trial.of(built, parts, args, kwargs)
    if trial.run.error is not None:
        raise explain(trial.run.error, trial.parts, _so_far(parts, args, kwargs)) from (
            trial.run.error
        )
    examples = [(args, kwargs)]
    examples += [(runs.handed_on(m, v), {}) for m, v in zip(parts[1:], trial.run.crossing)]
    try:
        with still():
            graphs = tuple(capture(m, *example) for m, example in zip(parts, examples))
    except ModelFailed as error:
        raise explain(error, parts) from error
    return graphs if len(parts) > 1 else graphs[0]


def _so_far(parts, args: tuple, kwargs: dict) -> Graph | None:
    """What a failing model recorded up to the failure: it knows the name of the node."""
    if len(parts) > 1:
        return None
    try:
        with still():
            capture(parts[0], args, kwargs, how="real")
    except ModelFailed as error:
        return error.graph
    except CaptureError:
        return None
    return None


def _running(subject: Subject) -> Subject:
    """The subject, which runs on the example."""
    if subject.run.error is not None:
        raise explain(subject.run.error, subject.parts) from subject.run.error
    return subject


def _guarded(one, subject: Subject):
    """What a check says; a check that fails itself says so and spoils nothing else."""
    try:
        yield from one(subject)
    except Exception as error:  # noqa: BLE001  a report must come, whatever the model does
        yield Finding(
            "warning", f"the check of {_name(one)} failed: {type(error).__name__}: {error}"
        )


def _name(check: Callable) -> str:
    """What a check is called, from its file; one that is not the file's main one by what it looks at."""
    name = check.__module__.rpartition(".")[2].replace("_", " ")
    return name if check.__name__ == "check" else f"{name} of the {check.__name__}"
