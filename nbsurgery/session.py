"""The only holder of state: a base model, an example, the steps; do, undo, redo, toggle, drop, move."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import functools
import itertools
import json
import math
import numbers
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from . import forms, regions, verify
from .annotate import annotate
from .capture import capture, replay
from .consequence import consequence
from .cures import cure
from .draft import Draft
from .emit.statements import EMPTY, Style, emit
from .errors import (
    CaptureError,
    EmissionError,
    InternalError,
    ModelFailed,
    SelectionError,
    ShapeError,
    StepError,
    SurgeryError,
    an,
    nearest,
)
from .expression import parse
from .fitting import fits
from .graph import Graph, Node
from .operations import OPERATIONS
from .operations.base import Offer
from .targets import call_name, encode, resolve
from .verify.compare import cloned
from .verify.failure import explain
from .verify.still import still

FORMAT = "nbsurgery/1"


@dataclass(frozen=True)
class Step:
    """One edit as the person asked for it: an operation and its arguments, JSON both ways."""

    uid: int
    operation: str
    arguments: Mapping[str, Any]
    enabled: bool = True

    def to_json(self) -> dict:
        return {
            "operation": self.operation,
            "arguments": dict(self.arguments),
            "enabled": self.enabled,
        }

    @property
    def text(self) -> str:
        try:
            return OPERATIONS[self.operation].text(self.arguments)
        except (SurgeryError, LookupError, TypeError, AttributeError):  # a recipe written by hand
            return f"{self.operation} {dict(self.arguments)}"


@dataclass(frozen=True)
class Outcome:
    """What became of a step when all steps were folded.

    ``state`` is ``"ok"``, ``"off"`` or ``"failed"``; ``count`` how many places it changed.
    """

    state: str
    count: int = 0
    reason: str = ""


@dataclass(frozen=True, eq=False)
class State:
    """Everything that follows from a list of steps; made at once, never changed."""

    steps: tuple[Step, ...]
    outcomes: Mapping[int, Outcome]
    draft: Draft
    code: str
    built: Any
    after: Graph | tuple[Graph, ...]
    report: Any


class Session:
    """A model under surgery.

    Args:
        model: The person's model. It is read, run once on the example, and never changed.
        args, kwargs: What the model is called with.
        variable: The person's own name for it, used in the code.
        namespace: The notebook's names, or a function that gives them; IPython's by default.
        show_failure: Keep a model that fails on the example, to be looked at up to the failing node;
            `failure` then holds the error in words, and every step is refused.

    Raises:
        CaptureError: The model cannot be recorded with this example.
    """

    def __init__(
        self,
        model: nn.Module,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        variable: str = "model",
        namespace: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        show_failure: bool = False,
    ):
        self._show_failure = show_failure
        self._style = Style()
        self.variable = _assignable(variable)
        self._namespace = namespace
        self._example = (tuple(args), dict(kwargs or {}))
        self._counter = itertools.count(1)
        self._together: list[Step] | None = None  # steps of a change that is not at its end
        self._start(model)

    def _start(self, model: nn.Module) -> None:
        self.base, self.failure = self._captured(model)
        self.model = model
        self.original = verify.structural_copy(model)
        self._fingerprint = fingerprint(model)
        self._past: list[tuple[Step, ...]] = []
        self._future: list[tuple[Step, ...]] = []
        self._state = self._fold(())
        # what was found to fit the selections made since the steps are as they are
        self._tried: tuple[State, dict[tuple[str, ...], list]] = (self._state, {})

    def _captured(self, model: nn.Module) -> tuple[Graph, str | None]:
        """The annotated graph; where the model itself fails, what ran before and the error in words."""
        try:
            return annotate(capture(model, *self._example), model), None
        except ModelFailed as error:
            if not self._show_failure or error.graph is None:
                raise
            return annotate(error.graph, model), str(error)

    # -- what follows from the steps --------------------------------------------------------

    @property
    def current(self) -> Graph:
        """The graph of the edited model, captured from it; of its first part after a split."""
        after = self._state.after
        return after[0] if isinstance(after, tuple) else after

    @property
    def after(self) -> Graph | tuple[Graph, ...]:
        return self._state.after

    @property
    def edited(self) -> bool:
        """Whether the steps leave anything to do."""
        return self._state.built is not None

    @property
    def models(self) -> dict[str, tuple[Graph, nn.Module]]:
        """The models that there are, by name, each with the graph that was captured from it.

        ``before`` and ``after``; once the model is split its parts stand in the place of ``after``, under
        the names that the code gives them.
        """
        state, before = self._state, (self.base, self.original)
        if state.built is None:
            return {"before": before, "after": before}
        if not isinstance(state.after, tuple):
            return {"before": before, "after": (state.after, state.built.model)}
        parts = zip(state.after, state.built.model, strict=True)
        return {"before": before, **dict(zip(state.built.names, parts, strict=True))}

    @property
    def draft(self) -> Draft:
        return self._state.draft

    @property
    def code(self) -> str:
        """The whole recipe as source; a comment where there is no step."""
        return self._state.code

    @property
    def report(self):
        """The immediate report on the edited model."""
        return self._state.report

    @property
    def recipe(self) -> tuple[Step, ...]:
        return self._state.steps

    @property
    def steps(self) -> list[dict]:
        """The steps in order, with what became of each."""
        rows = []
        for step in self._state.steps:
            outcome = self._state.outcomes[step.uid]
            places = f"{outcome.count} places" if outcome.count > 1 else ""
            rows.append(
                {
                    "uid": step.uid,
                    "operation": step.operation,
                    "text": step.text,
                    "detail": places,
                    "enabled": step.enabled,
                    "state": outcome.state,
                    "reason": outcome.reason,
                }
            )
        return rows

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The notebook's names, as they are now."""
        if callable(self._namespace):
            return self._namespace()
        if self._namespace is not None:
            return self._namespace
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        return shell.user_ns if shell is not None else vars(sys.modules["__main__"])

    @property
    def example(self) -> tuple[tuple, dict]:
        """The example inputs of the model as it was: positional ones, then keywords."""
        return self._example

    @example.setter
    def example(self, value: Any) -> None:
        old, args = self._example, value
        if (
            isinstance(value, tuple)
            and len(value) == 2
            and isinstance(value[1], Mapping)
            and isinstance(value[0], tuple)
        ):
            args, kwargs = value
        elif isinstance(value, Mapping):
            args, kwargs = (), value
        else:
            args, kwargs = value if isinstance(value, tuple) else (value,), {}
        self._example = (tuple(args), dict(kwargs))
        steps, before, failure = self._state.steps, self.base, self.failure
        try:
            self.base, self.failure = self._captured(self.original)
            if self.failure is not None and failure is None and steps:
                raise StepError(
                    "the example is given as the model took it before the steps, which then adapt it; "
                    f"it fails on this one: {self.failure}"
                )
            self._state = self._fold(steps)
        except BaseException:
            self._example, self.base, self.failure = old, before, failure
            raise

    @property
    def adapted(self) -> tuple[tuple, dict]:
        """The example as the edited model takes it; for several models, as the first one does."""
        return self._adapted(self._state.draft)

    @property
    def changed_outside(self) -> str | None:
        """One sentence if the person's variable is no longer the model that this session began with."""
        live = self.namespace.get(self.variable, self.model)
        if not isinstance(live, nn.Module):
            return f"the variable {self.variable!r} no longer holds a model"
        if live is not self.model and fingerprint(live) != self._fingerprint:
            return (
                f"the variable {self.variable!r} holds the edited model now; the recipe is for the "
                "model as it was: undo changes the recipe, not the variable"
            )
        if live is self.model and fingerprint(live) != self._fingerprint:
            return (
                f"{self.variable!r} has been changed since this picture was made; the recipe is for "
                "the model as it was"
            )
        return None

    @property
    def style(self) -> Style:
        """How the code is written where tastes differ."""
        return self._style

    @style.setter
    def style(self, style: Style) -> None:
        old, self._style = self._style, style
        try:
            self._state = self._fold(self._state.steps)
        except BaseException:
            self._style = old
            raise

    def rebase(self, model: nn.Module | None = None) -> None:
        """Go on from the model as it is now (by default the person's variable), with no steps."""
        live = model if model is not None else self.namespace.get(self.variable, self.model)
        args, kwargs = self._adapted(self._state.draft)
        old = self._example
        self._example = (args, kwargs)
        try:
            self._start(live)
        except BaseException:
            self._example = old
            raise

    # -- folding ----------------------------------------------------------------------------

    def _fold(self, steps: tuple[Step, ...], must: Collection[int] = ()) -> State:
        """Apply all steps to the base, print, build, run and check.

        Args:
            steps: The recipe.
            must: The steps that may not fail: their error is raised. Others are marked.
        """
        outcomes: dict[int, Outcome] = {}
        off: dict[int, str] = {}
        while True:
            draft, outcomes = self._drafted(steps, off, must)
            try:
                with _internal("writing and checking the code"):
                    code = emit(draft, self.variable, self._style)
                    if sizes := self._sizes(steps, outcomes, draft):
                        draft, outcomes = self._drafted(steps, off, must, sizes)
                        code = emit(draft, self.variable, self._style)
                    return self._proven(steps, outcomes, draft, code)
            except (EmissionError, StepError, CaptureError, InternalError) as error:
                applied = [s.uid for s in steps if outcomes[s.uid].state == "ok"]
                if not applied or any(uid in must for uid in applied):
                    raise
                off[applied[-1]] = str(error)  # the last one that still applied is in the way

    def _drafted(
        self,
        steps: tuple[Step, ...],
        off: Mapping[int, str],
        must: Collection[int],
        sizes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> tuple[Draft, dict[int, Outcome]]:
        draft = Draft.start(self.base, self.original, self.namespace, sizes)
        outcomes: dict[int, Outcome] = {}
        for step in steps:
            if not step.enabled:
                outcomes[step.uid] = Outcome("off")
            elif step.uid in off:
                outcomes[step.uid] = Outcome("failed", 0, off[step.uid])
            else:
                trial = draft.copy()
                try:
                    with _internal(step.text):
                        count = OPERATIONS[step.operation].apply(trial, step.uid, step.arguments)
                except SurgeryError as error:
                    if step.uid in must:
                        raise
                    outcomes[step.uid] = Outcome("failed", 0, str(error))
                    continue
                if (
                    step.uid not in trial.claims and not OPERATIONS[step.operation].neutral
                ):  # what an earlier step promised may no longer hold
                    trial.claims.clear()
                draft = trial
                outcomes[step.uid] = Outcome("ok", count)
        return draft, outcomes

    def _proven(self, steps, outcomes, draft: Draft, code: str) -> State:
        if code == EMPTY:
            return State(steps, outcomes, draft, code, None, self.base, verify.Report())
        built = verify.execute(
            code, self.original, variable=self.variable, namespace=self.namespace,
            results=self._results(draft), times=1,
        )  # fmt: skip
        args, kwargs = self._adapted(draft)
        after = _annotated(verify.after(built, args, kwargs), built.model)
        state = State(steps, outcomes, draft, code, built, after, verify.Report())
        return dataclasses.replace(state, report=verify.check(self._subject(state, args, kwargs)))

    def _subject(self, state: State, args: tuple, kwargs: Mapping[str, Any]) -> verify.Subject:
        """What the checks look at: the steps as they are, with the example that the model now takes."""
        draft, after = state.draft, state.after
        return verify.Subject(
            self.base, self.original, state.built,
            after if isinstance(after, tuple) else (after,),
            None if draft.division else draft.graph,
            args, kwargs, tuple(draft.claims.values()), *self._example,
            entering=functools.partial(self._entering, draft) if self._begins(draft) else None,
        )  # fmt: skip

    def _results(self, draft: Draft) -> tuple[str, ...] | None:
        """The names under which the text leaves what it makes; ``None``: the person's own."""
        names = tuple(p.variable for p in draft.pieces() if p.variable)
        return names or self._style.results(self.variable)

    def _adapted(self, draft: Draft, example: tuple | None = None) -> tuple[tuple, dict]:
        """An example for the edited model: an edit may have changed the width of an input.

        Args:
            draft: The edited model.
            example: One for the original; the session's own by default.
        """
        args, kwargs = example or self._example
        if self._begins(draft):
            return self._entering(draft, args, kwargs), {}
        if not draft.inputs:
            return args, dict(kwargs)
        names = [n.target for n in self.base.root.inputs]
        args = tuple(
            _resized(a, *draft.inputs[names[i]])
            if i < len(names) and names[i] in draft.inputs
            else a
            for i, a in enumerate(args)
        )
        kwargs = {
            k: _resized(v, *draft.inputs[k]) if k in draft.inputs else v for k, v in kwargs.items()
        }
        return args, kwargs

    def _begins(self, draft: Draft) -> bool:
        """Whether the model begins inside, where the person's input does not enter."""
        divided = draft.division is not None
        return divided and draft.pieces()[0].part.partial[""].inputs != self.base.root.inputs

    def _sizes(self, steps, outcomes, draft: Draft) -> dict[str, tuple[int, ...]]:
        """The shapes that the text names, where steps changed them: of a run of the edited model."""
        resized = any(
            outcomes[s.uid].state == "ok" and OPERATIONS[s.operation].resizes for s in steps
        )
        if not resized or not draft.asked:
            return {}
        try:
            _, values = self._replayed(draft, draft.graph, values=draft.asked)
        except Exception:  # noqa: BLE001 - it cannot run: the proof tells why
            return {}
        shapes = {id: _shape(value) for id, value in values.items()}
        return {
            id: shape
            for id, shape in shapes.items()
            if shape is not None and shape != draft.graph.by_id[id].shape
        }

    def _replayed(self, draft: Draft, graph: Graph, example: tuple | None = None, **options) -> Any:
        """A graph evaluated with the whole model as the steps leave it, on its example or another."""
        whole = dataclasses.replace(draft, division=None)
        if draft.edits or draft.rewires:
            code = emit(whole, self.variable)
            model = verify.execute(
                code, self.original, variable=self.variable, namespace=self.namespace
            ).model
        else:
            model = verify.structural_copy(self.original)
        try:
            with still(), torch.no_grad():
                return replay(graph, model, *cloned(self._adapted(whole, example)), **options)
        except SurgeryError:
            raise
        except Exception as error:  # whatever the edited layers raise
            raise StepError(
                f"what enters the model now cannot be computed: {explain(error, (model,))}"
            ) from error

    def _entering(self, draft: Draft, args: tuple, kwargs: Mapping[str, Any]) -> tuple:
        """What crosses into a model that begins inside, when the original gets these arguments."""
        part = draft.pieces()[0].part
        taken = [part.taken.get(n.id, n.id) for n in part.partial[""].inputs]
        leading, ids = regions.leading(draft.graph, part.first)
        crossing = self._replayed(draft, leading, (args, kwargs))
        values = dict(zip(ids, crossing if len(ids) > 1 else (crossing,), strict=True))
        return tuple(
            tuple(values[i] for i in t) if isinstance(t, tuple) else values[t] for t in taken
        )

    # -- editing ----------------------------------------------------------------------------

    def do(self, operation: str, arguments: Mapping[str, Any]) -> Step:
        """Add a step. All or nothing: when it is refused, everything is as before.

        Raises:
            SurgeryError: The step cannot be applied, written or run; the message says why.
        """
        step = self._step(operation, arguments)
        if self._together is not None:
            self._drafted((*self._state.steps, *self._together, step), {}, (step.uid,))
            self._together.append(step)
            return step
        try:
            self._to((*self._state.steps, step), must=(step.uid,))
        except ShapeError as error:
            told = "where another edit belongs to it, make both in `with surgery.together():`"
            with contextlib.suppress(Exception):  # the refusal is told, whatever happens here
                told = cure(self._state.draft, step.operation, step.arguments) or told
            raise ShapeError(f"{str(error).rstrip('.')}; {told}") from error.__cause__
        return step

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Make the steps inside one change: their shapes need to fit at its end only.

        All or nothing, as for one step; `undo` takes all of them back.

        Raises:
            SurgeryError: At the end, what `do` raises.
        """
        if self._together is not None:
            raise StepError("one change of several steps cannot hold another one")
        self._together = []
        try:
            yield
            steps = tuple(self._together)
        finally:
            self._together = None
        if steps:
            self._to((*self._state.steps, *steps), must=[s.uid for s in steps])

    def _step(self, operation: str, arguments: Mapping[str, Any]) -> Step:
        self._check(operation, arguments)
        nones = OPERATIONS[operation].nones
        given = {k: v for k, v in arguments.items() if v is not None or nones}
        call = given.pop("call", None)
        encoded = self._encoded(given)
        if call is not None:
            encoded["where"] = self._one_call(encoded.get("where"), call)
        return Step(next(self._counter), operation, encoded)

    def _check(self, operation: str, arguments: Mapping[str, Any]) -> None:
        """Refuse what no step can hold, whatever the model."""
        if self.failure is not None:
            raise StepError(
                f"this model cannot be edited, since it fails on the example: {self.failure}"
            )
        if not isinstance(operation, str) or operation not in OPERATIONS:
            raise StepError(f"there is no operation {operation!r}" + nearest(operation, OPERATIONS))
        if not isinstance(arguments, Mapping):
            raise StepError(f"arguments are a dict of names and values, not {arguments!r}")
        takes = OPERATIONS[operation].takes
        given = {k for k, v in arguments.items() if v is not None} - {"call"}
        unknown = [k for k in arguments if k in given and takes is not None and k not in takes]
        if unknown:
            raise StepError(
                f"{operation} takes no {unknown[0]!r}"
                + nearest(unknown[0], takes)
                + f"; it takes {', '.join(takes) or 'nothing'}"
            )

    def _one_call(self, where: Any, call: Any) -> dict:
        """``call=2``: the second call of the one module that `where` names."""
        if not isinstance(where, str):
            raise StepError("call= goes with the path of one module, such as 'layer1.0.relu'")
        calls = [n for t in resolve(self._state.draft, where) for n in t.nodes]
        if type(call) is not int or not 1 <= call <= len(calls):
            times = "once" if len(calls) == 1 else f"{len(calls)} times"
            raise StepError(
                f"{where!r} is called {times}; call={call!r} is none of them, they count from 1"
            )
        return {"call": call_name(self._state.draft.graph, calls[call - 1].id)}

    def _encoded(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as JSON, in the names of the draft (the picture may show other ones)."""
        out: dict[str, Any] = {}
        for key, value in arguments.items():
            if key in ("where", "after", "before", "into", "source", "until", "at"):
                value = self._named(encode(self._state.draft.graph, self.model, value))
            elif key == "nodes":
                value = self._nodes(value)
            elif key in ("new", "head") and value is not None and not isinstance(value, str):
                value = parse(value, self.namespace).text
            out[key] = value
        return {k: _plain(k, v) for k, v in out.items()}

    def _nodes(self, value: Any) -> Any:
        graph = self._state.draft.graph

        def name(item: Any) -> str:
            item = self._named(encode(graph, self.model, item))
            if isinstance(item, list) and len(item) == 1:
                item = item[0]
            if isinstance(item, Mapping):
                item = item.get("call")
            if not isinstance(item, str) or not item:
                raise SelectionError(
                    "tap takes names of nodes, or nodes, one for each value; a list, class or glob of "
                    "several names none"
                )
            return item

        if isinstance(value, Mapping):
            for node, key in value.items():
                if self._unknown(node) and isinstance(key, str) and not self._unknown(key):
                    raise SelectionError(
                        f"{node!r} names no node of this model, and {key!r} does: tap takes "
                        f"{{node: key}}, such as {{{key!r}: {node!r}}}"
                    )
            return {name(k): v for k, v in value.items()}
        return [name(v) for v in (value if isinstance(value, (list, tuple)) else [value])]

    def _unknown(self, name: Any) -> bool:
        """Whether a text names no call, scope or module."""
        if not isinstance(name, str) or self._is_call(self.translate(name)):
            return False
        return all(name != path for path, _ in self.original.named_modules())

    def _named(self, where: Any) -> Any:
        if isinstance(where, list):
            return [self._named(w) for w in where]
        if isinstance(where, str):
            return self.translate(where)
        if isinstance(where, Mapping) and "call" in where:
            return {"call": self.translate(where["call"])}
        return where

    def translate(self, name: str) -> str:
        """A name of the picture (captured from the edited model) as the steps know it.

        Printed classes open scopes and wrap modules, so the picture's names may differ from those of
        the base, and a name of one may mean another node there; the two sequences of operations are
        aligned.
        """
        return _pictured(self._state).get(name, name)

    def origin(self, node: Node) -> Node | None:
        """The node of the base that one of a picture was, whatever the steps did to it; ``None`` for a
        new one."""
        mine = self._state.draft.graph.by_name.get(self.translate(node.name))
        return None if mine is None else self.base.by_id.get(mine.id)

    def _to(self, steps: tuple[Step, ...], must: Collection[int] = ()) -> None:
        state = self._fold(steps, must)
        self._past.append(self._state.steps)
        self._future.clear()
        self._state = state

    @property
    def can_undo(self) -> bool:
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        return bool(self._future)

    def undo(self) -> None:
        """Take the last change of the list of steps back.

        Raises:
            StepError: There is none.
        """
        if not self._past:
            raise StepError("there is nothing to undo")
        state = self._fold(self._past[-1])
        self._future.append(self._state.steps)
        self._past.pop()
        self._state = state

    def redo(self) -> None:
        """Make the change that was last taken back again.

        Raises:
            StepError: There is none.
        """
        if not self._future:
            raise StepError("there is nothing to redo")
        state = self._fold(self._future[-1])
        self._past.append(self._state.steps)
        self._future.pop()
        self._state = state

    def toggle(self, uid: int) -> None:
        """Switch a step off, or on again; the others are folded anew."""
        step = self._find(uid)
        self._to(
            tuple(
                dataclasses.replace(s, enabled=not s.enabled) if s is step else s
                for s in self._state.steps
            )
        )

    def drop(self, uid: int) -> None:
        """Take a step out of the list; the others are folded anew."""
        step = self._find(uid)
        self._to(tuple(s for s in self._state.steps if s is not step))

    def move(self, uid: int, index: int) -> None:
        """Put a step at another place of the list (0 is the first)."""
        step = self._find(uid)
        rest = [s for s in self._state.steps if s is not step]
        if not 0 <= index <= len(rest):
            raise StepError(f"a step can be moved to 0 … {len(rest)}, not to {index}")
        self._to((*rest[:index], step, *rest[index:]))

    def change(self, uid: int, arguments: Mapping[str, Any]) -> None:
        """Edit the arguments of a step; the others are folded anew.

        Args:
            uid: The step.
            arguments: Those that change; ``None`` takes one away.

        Raises:
            SurgeryError: The step does not apply any more; everything is as before.
        """
        step = self._find(uid)
        new = dataclasses.replace(step, arguments=self._changed(step, arguments))
        self._to(tuple(new if s is step else s for s in self._state.steps), must=(uid,))

    def _changed(self, step: Step, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._check(step.operation, arguments)
        new = self._encoded(arguments)
        return forms.changed(step.arguments, new, OPERATIONS[step.operation].nones)

    def form(self, uid: int) -> Offer:
        """The form of a step, filled in with its arguments, for `change`."""
        step = self._find(uid)
        return forms.filled(self._before(step), step.operation, step.arguments)

    def _before(self, step: Step) -> Draft:
        """What the steps before one made."""
        return self._drafted(self._state.steps[: self._state.steps.index(step)], {}, ())[0]

    def _find(self, uid: int) -> Step:
        for step in self._state.steps:
            if step.uid == uid:
                return step
        known = ", ".join(str(s.uid) for s in self._state.steps) or "none"
        raise StepError(f"there is no step {uid!r}; the steps are: {known}")

    # -- asking -----------------------------------------------------------------------------

    def nodes(self, names: Sequence[str]) -> list[Node]:
        """The draft's nodes for names of the picture.

        Raises:
            SelectionError: A name means nothing.
        """
        found: list[Node] = []
        for name in names:
            name = self.translate(name)
            if name == "":
                continue
            where = {"call": name} if self._is_call(name) else name
            found += [n for t in resolve(self._state.draft, where) for n in t.nodes]
        return found

    def _is_call(self, name: str) -> bool:
        graph = self._state.draft.graph
        return name in graph.by_name or name in graph.scopes

    def offers(self, names: Sequence[str], seconds: float = math.inf) -> list[dict]:
        """The operations that fit a selection, with their forms.

        Args:
            names: The selection, in names of the picture.
            seconds: Time to find out which of them can be made as offered. What is not tried by then
                is marked ``"pending"``; the next call goes on with it. Nothing is tried twice.
        """
        if self.failure is not None:
            return []  # do and preview say why
        nodes = self.nodes(names)
        if self._tried[0] is not self._state:
            self._tried = (self._state, {})
        known = self._tried[1].setdefault(tuple(n.id for n in nodes), [])
        if not known:
            known += [(offer, True) for offer in self._offered(nodes)]
        end = time.monotonic() + seconds
        few_first = sorted(range(len(known)), key=lambda i: known[i][0].count)
        for i in [i for i in few_first if known[i][1]]:
            known[i] = (self._fitting(known[i][0]), False)
            if time.monotonic() > end:
                break
        known[:] = [(offer, pending) for offer, pending in known if offer is not None]
        return [{**o.to_dict(), "pending": True} if wait else o.to_dict() for o, wait in known]

    def _offered(self, nodes: list[Node]) -> list[Offer]:
        """What every operation offers on some nodes, untried."""
        offers: list[Offer] = []
        for operation in OPERATIONS.values():
            try:
                with _internal(f"offering {operation.name}"):
                    offers += operation.offers(self._state.draft, nodes)
            except SurgeryError:
                continue  # it makes no sense on this selection
        return offers

    def _fitting(self, offer: Offer) -> Offer | None:
        """An offer with the suggestions that can work; ``None`` where it cannot as it is offered."""
        code = next((f for f in offer.fields if f.type == "code" and f.choices), None)
        if code is None:
            return offer if self._fits(offer, {}, write=True) else None
        choices = [c for c in dict.fromkeys(code.choices) if self._fits(offer, {code.name: c})]
        if not choices or not self._fits(offer, {code.name: choices[0]}, write=True):
            return None
        fitting = dataclasses.replace(code, default=choices[0], choices=tuple(choices))
        fields = tuple(fitting if f is code else f for f in offer.fields)
        return dataclasses.replace(offer, fields=fields)

    def _fits(self, offer: Offer, filled: Mapping[str, Any], write: bool = False) -> bool:
        """Whether a step can be made as offered: its shapes meet and, with `write`, it has code."""
        operation, trial = OPERATIONS[offer.operation], self._state.draft.copy()
        defaults = {f.name: f.default for f in offer.fields if f.default and f.type != "text"}
        if operation.idle:
            return True  # with what is offered first it would change nothing
        try:
            with _internal(f"offering {offer.operation}"):
                operation.apply(trial, 0, {**offer.arguments, **defaults, **filled})
                if not fits(trial):
                    return False
                if write:
                    emit(trial, self.variable, self._style)
        except SurgeryError:
            return False
        return True

    def preview(self, operation: str, arguments: Mapping[str, Any], uid: int | None = None) -> dict:
        """What a step would change, without making it: places, their count, and what goes in words.

        Args:
            operation: What is to be done.
            arguments: With what.
            uid: A step that is there already, whose arguments change to these.

        Raises:
            SurgeryError: It would be refused while it is drafted.
        """
        if uid is None:
            step, before = self._step(operation, arguments), self._state.draft
        else:
            step = self._find(uid)
            step, before = (
                dataclasses.replace(step, arguments=self._changed(step, arguments)),
                self._before(step),
            )
        trial = before.copy()
        with _internal(step.text):
            count = OPERATIONS[operation].apply(trial, step.uid, step.arguments)
        nodes = forms.nodes(before, step.arguments)
        # several places of one module, and ends of one connection, are no calls
        calls = len(nodes) if "where" in step.arguments else count
        text = f"{count} place" + ("s" if count != 1 else "")
        if calls > count:
            text += f", {calls} calls"
        with _internal(step.text):
            said = consequence(before, trial)
        text += f": {said}" if said else ""
        places = [call_name(before.graph, n.id) for n in nodes]
        return {"count": count, "calls": calls, "text": text, "places": places}

    # -- results ----------------------------------------------------------------------------

    def build(self) -> nn.Module | tuple[nn.Module, ...]:
        """The edited model, made anew from the code (shares the weights that no step changes)."""
        if self._state.built is None:
            return verify.structural_copy(self.original)
        return verify.execute(
            self.code, self.original, variable=self.variable, namespace=self.namespace,
            results=self._results(self._state.draft),
        ).model  # fmt: skip

    def verify(self) -> verify.Report:
        """The full report."""
        return verify.finished(self.checking())

    def checking(self) -> Generator[verify.Progress, None, verify.Report]:
        """The full report, one check at a time; it is about the steps as they are now.

        Yields:
            What is checked next; the report is what the generator returns.
        """
        state = self._state
        if state.built is None:
            return state.report
        args, kwargs = self._adapted(state.draft)
        return (yield from verify.full_by_steps(self._subject(state, args, kwargs)))

    def save(self, path: str | Path) -> None:
        """Write the recipe as JSON."""
        data = {"format": FORMAT, "steps": [s.to_json() for s in self._state.steps]}
        Path(path).write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")

    def load(self, path: str | Path) -> list[str]:
        """Take over a recipe; what does not apply here is marked.

        Returns:
            One sentence per step that did not apply; steps are counted from 0.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            steps = tuple(
                Step(next(self._counter), s["operation"], s["arguments"], s.get("enabled", True))
                for s in data["steps"]
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StepError(f"{path} is no recipe of nbsurgery: {error}") from None
        if data.get("format", FORMAT) != FORMAT:
            raise StepError(f"{path} is of format {data['format']!r}; this version reads {FORMAT}")
        for s in steps:
            if not isinstance(s.operation, str) or not isinstance(s.arguments, Mapping):
                raise StepError(
                    f"{path} is no recipe of nbsurgery: a step is an operation and a dict of arguments, "
                    f"not {s.operation!r} and {s.arguments!r}"
                )
        unknown = [s.operation for s in steps if s.operation not in OPERATIONS]
        if unknown:
            raise StepError(f"{path} uses {unknown[0]!r}, which this version does not know")
        self._to(steps)
        return [
            f"step {i}, {s.text}: {self._state.outcomes[s.uid].reason}"
            for i, s in enumerate(steps)
            if self._state.outcomes[s.uid].state == "failed"
        ]


@contextlib.contextmanager
def _internal(doing: str) -> Iterator[None]:
    """What nobody foresaw reaches the person as an error of nbsurgery, not as one of theirs."""
    try:
        yield
    except SurgeryError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise InternalError(
            f"a fault of nbsurgery, not of your model: {doing} failed with {said}. Nothing has "
            "changed; please report it with this message and the lines below it"
        ) from error


def _plain(name: str, value: Any) -> Any:
    """A value of a step as JSON has it: numbers of NumPy and sizes become plain ones.

    Raises:
        StepError: It is of a kind that a recipe cannot hold.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_plain(name, v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(name, v) for k, v in value.items()}
    raise StepError(
        f"{name} is {an(type(value).__name__)}; a step holds numbers, texts, lists and names of nodes"
    )


def _annotated(after: Any, built: Any) -> Any:
    """Facts on the graph of a built model, or on those of its parts."""
    if isinstance(after, tuple):
        return tuple(annotate(g, m) for g, m in zip(after, built, strict=True))
    return annotate(after, built)


def _assignable(variable: Any) -> str:
    """The person's name for the model, checked: code has to be able to assign to it.

    Raises:
        StepError: It is no name, attribute or item.
    """
    try:
        body = ast.parse(f"{variable} = 0").body if isinstance(variable, str) else ()
    except (SyntaxError, ValueError):
        body = ()
    kinds = (ast.Name, ast.Attribute, ast.Subscript)
    if len(body) != 1 or not all(
        isinstance(t, kinds) for t in getattr(body[0], "targets", (None,))
    ):
        raise StepError(f"variable={variable!r} is nothing that code can assign to; pass a name")
    return variable


def fingerprint(model: nn.Module) -> tuple:
    """What tells whether a model's structure has changed: paths, module identities, shapes."""
    return tuple(
        (
            path,
            id(m),
            type(m).__name__,
            tuple(tuple(p.shape) for p in m._parameters.values() if p is not None),
        )
        for path, m in model.named_modules()
    )


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a tensor, or of the first one in a tuple."""
    while isinstance(value, (tuple, list)) and value:
        value = value[0]
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None


def _resized(value: Any, axis: int, size: int) -> Any:
    """A tensor with `axis` cut, or filled up by repeating it."""
    if not isinstance(value, torch.Tensor) or value.shape[axis] == size:
        return value
    index = torch.arange(size, device=value.device) % value.shape[axis]
    return value.index_select(axis, index)


@functools.lru_cache(maxsize=8)
def _pictured(state: State) -> Mapping[str, str]:
    """Names of the pictures → names of the draft."""
    after, draft = state.after, state.draft
    if after is draft.graph:
        return {}
    if not isinstance(after, tuple):
        return _aligned((after,), draft.graph)
    names = _aligned(after, draft.graph)
    for graph, piece in zip(after, draft.pieces(), strict=True):  # what crosses, by its own name
        ids = [piece.part.taken.get(n.id, n.id) for n in piece.part.partial[""].inputs]
        for node, id in zip(graph.root.inputs, ids, strict=False):
            if isinstance(id, str) and id in draft.graph.by_id:
                names.setdefault(node.name, draft.graph.by_id[id].name)
    return names


def _alike(left: Sequence, right: Sequence) -> int:
    """How many items at the beginning are the same."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(left), len(right)))


def _aligned(parts: tuple[Graph, ...], draft: Graph) -> dict[str, str]:
    """Names of the captured edited model → names of the draft, by aligning the two runs."""
    ends = ("input", "output")  # of its own has each part of a split
    a = [n for part in parts for n in part.flat if len(parts) == 1 or n.kind not in ends]
    b = draft.flat
    left = [(n.kind == "module", n.type, n.name.rpartition(".")[2]) for n in a]
    right = [(n.kind == "module", n.type, n.name.rpartition(".")[2]) for n in b]
    names: dict[str, str] = {}
    # edits are local: what is alike at both ends need not be searched
    head = _alike(left, right)
    tail = _alike(left[head:][::-1], right[head:][::-1])
    pairs = [*zip(a[:head], b[:head]), *zip(a[len(a) - tail :], b[len(b) - tail :])]
    names.update((x.name, y.name) for x, y in pairs)
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    left, right = left[head : len(left) - tail], right[head : len(right) - tail]
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(
        None, left, right, autojunk=False
    ).get_opcodes():
        if tag == "equal" or (tag == "replace" and i2 - i1 == j2 - j1):
            for x, y in zip(a[i1:i2], b[j1:j2], strict=True):
                names.setdefault(x.name, y.name)
        elif (
            tag == "replace" and j2 - j1 == 1
        ):  # one new node of the draft became a module of several
            for x in a[i1:i2]:
                names.setdefault(x.name, b[j1].name)
    return names


__all__ = ["Outcome", "Session", "ShapeError", "State", "Step"]
