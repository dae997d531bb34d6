"""Surgery: an ipywidget that holds a session and the picture's state; no surgery is done here."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import pathlib
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import anywidget
import traitlets

from nbsurgery import views
from nbsurgery.errors import SelectionError, StepError, SurgeryError
from nbsurgery.select import is_operation, unknown_name
from nbsurgery.session import Session
from nbsurgery.widget import beside, fallback, notebook, protocol, scenery

_STATIC = pathlib.Path(__file__).parent / "static"

# What only looks is answered at once, also while a cell runs; all else waits until no cell does.
_LOOKING = ("toggle", "expand_to", "facts", "find", "view", "stop_verify")
_SOON = 0.1  # s, after which an answer comes with what could be tried until then
_drawing = threading.RLock()  # of all widgets: two threads may look and edit at the same time


def _by_name(method: Callable[..., Any]) -> Callable[..., Any]:
    """Tell one who gives a value by place what it may be called."""
    given = inspect.signature(method).parameters.values()
    places = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in given)
    names = [p.name for p in given if p.kind is p.KEYWORD_ONLY]

    @functools.wraps(method)
    def named(self: Surgery, *args: Any, **kwargs: Any) -> Any:
        if len(args) >= places:
            odd = repr(args[places - 1])
            told = ", or ".join(f"{name}={odd}" for name in names[:2])
            rest = f"; it also takes {', '.join(f'{n}=' for n in names[2:])}" if names[2:] else ""
            raise StepError(f"{method.__name__} takes {odd} by its name: {told}{rest}")
        return method(self, *args, **kwargs)

    return named


class Surgery(anywidget.AnyWidget):
    """A model on the table: see it, click what should change, get the code.

    As the last line of a cell it shows itself; it can stand in an ``ipywidgets.VBox``, be observed and
    linked like any widget. The model given is never changed.

    Args:
        model: The model.
        *args: What the model is called with.
        variable: The name of the model in the emitted code; the person's own name by default.
        theme: ``"auto"`` follows the notebook, ``"light"`` and ``"dark"`` stay.
        **kwargs: What the model is called with, by name.

    Attributes:
        selection: Names of the nodes and keys of the scopes selected. Can be set.
        code: The emitted source.
        steps: The edits so far, as dicts: ``uid``, ``operation``, ``text``, ``enabled``, ``state``, …
        report: What was checked on the edited copy: ``ok``, ``findings``, ``facts``.
    """

    _esm = _STATIC / "widget.js"
    _css = _STATIC / "widget.css"

    selection = traitlets.List(traitlets.Unicode()).tag(sync=True)
    code = traitlets.Unicode().tag(sync=True)
    steps = traitlets.List(traitlets.Dict()).tag(sync=True)
    report = traitlets.Dict().tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), "auto").tag(sync=True)
    _scene = traitlets.Dict().tag(sync=True)
    _view = traitlets.Unicode("after").tag(sync=True)
    _views = traitlets.List(traitlets.Unicode(), ["before", "after"]).tag(sync=True)
    _can = traitlets.Dict().tag(sync=True)
    _style = traitlets.Dict().tag(sync=True)
    _recipe = traitlets.Int().tag(sync=True)
    _notice = traitlets.Dict().tag(sync=True)
    _checking = traitlets.Dict().tag(sync=True)
    _widget_id = traitlets.Unicode().tag(sync=True)
    _cell_id = traitlets.Unicode().tag(sync=True)

    def __init__(self, model: Any, *args: Any, variable: str | None = None, theme="auto", **kwargs):
        session = Session(
            model,
            args,
            kwargs,
            variable=variable or notebook.variable_of(model),
            show_failure=True,
        )
        self._start(session, theme)

    @classmethod
    def _over(cls, session: Any, theme: str = "auto") -> Surgery:
        """A widget over a session that exists already."""
        self = cls.__new__(cls)
        self._start(session, theme)
        return self

    def _start(self, session: Any, theme: str) -> None:
        self._session = session
        self._open: set[str] = scenery.first_open(session.current)
        self._static = None
        self._beside = beside.Beside(self._told, self._verified)
        # the id is chosen here, because the page must find its own cell and gets no other handle
        name = uuid.uuid4().hex
        super().__init__(model_id=name, _widget_id=name, _cell_id=notebook.cell_id(), theme=theme)
        self._refresh()
        self.on_msg(self._on_message)
        self.observe(self._on_selection, "selection")
        notebook.after_each_cell(self._look_outside)

    def _look_outside(self) -> None:
        """Notice when a cell has changed the person's variable, as running the emitted one does."""
        self._notice = self._noted()

    def _noted(self) -> dict:
        """What stands above the picture: the model's own failure, or that the variable has changed."""
        session = self._session
        if session.failure:
            return {"kind": "failed", "text": session.failure}
        text = session.changed_outside
        return {"kind": "changed", "text": text} if text else {}

    # -- the picture ------------------------------------------------------------------------------

    @property
    def _graph(self):
        return self._session.models[self._view][0]

    def _draw(self) -> None:
        with _drawing:
            self._scene = scenery.scene(self._session, self._view, self._open)

    def _refresh(self) -> None:
        """Bring every trait to what the session holds now."""
        session = self._session
        again = self._beside.busy
        self._beside.stop()
        with _drawing, self.hold_trait_notifications(), self.hold_sync():
            self._checking = {}
            self.code = session.code
            self.steps = scenery.plain(session.steps)
            self.report = scenery.plain(session.report)
            self._style = scenery.plain(session.style)
            self._can = {
                "undo": session.can_undo,
                "redo": session.can_redo,
                "emit": session.edited,
            }
            self._notice = self._noted()
            self._views = list(session.models)
            if self._view not in self._views:
                self._view = self._views[1]
            graph = self._graph
            self.selection = [n for n in self.selection if n in graph.by_name or n in graph.scopes]
            self._draw()
        # a later cell does not change what an earlier one has shown; clicks in it do
        if self._static is not None and not notebook.running_cell():
            fallback.update(self._static, self)
        if again and session.edited:
            self._verify_beside()

    @traitlets.validate("selection")
    def _known(self, proposal: Any) -> list[str]:
        """Only names that some picture of this widget knows: a typing error must not go unseen."""
        session = getattr(self, "_session", None)
        if session is None:
            return proposal["value"]
        graphs = [session.base, session.draft.graph]
        graphs += session.after if isinstance(session.after, tuple) else [session.after]
        for name in proposal["value"]:
            if not any(name in g.by_name or name in g.scopes for g in graphs):
                raise unknown_name(self._graph, name)
        return proposal["value"]

    def _on_selection(self, change: Any) -> None:
        """Open what hides a selected name: the person asked to see it."""
        graph, opened = self._graph, set(self._open)
        for name in change["new"]:
            if name in graph.by_name:
                opened |= set(graph.ancestors(graph.by_name[name].scope))
            elif name in graph.scopes:
                opened |= set(graph.ancestors(name)[1:])
        if not opened <= self._open:
            self._open = opened
            self._draw()

    def _ipython_display_(self, **kwargs: Any) -> None:
        self._static = fallback.show(self)

    # -- what the page asks for -------------------------------------------------------------------

    def _on_message(self, _widget: Any, message: Any, _buffers: Any) -> None:
        looking = isinstance(message, Mapping) and message.get("method") in _LOOKING
        if looking:
            with _drawing:
                self._reply(message)
        else:
            notebook.where_cells_run(lambda: self._reply(message))

    def _reply(self, message: Any) -> None:
        reply = protocol.answer(self._methods(), message)
        if reply is not None:
            self.send(reply)

    def _methods(self) -> Mapping[str, Callable[..., Any]]:
        return {
            "toggle": self._ask_toggle,
            "expand_to": self._ask_expand_to,
            "facts": lambda names: scenery.facts(*self._session.models[self._view], names),
            "offers": lambda names: scenery.plain(self._session.offers(names, _SOON)),
            "preview": lambda operation, arguments, uid=None: scenery.plain(
                self._session.preview(operation, arguments, uid)
            ),
            "apply": self._do,
            "undo": self.undo,
            "redo": self.redo,
            "toggle_step": lambda uid: self._change("toggle", uid),
            "step_form": lambda uid: {**scenery.plain(self._session.form(uid)), "uid": uid},
            "change_step": lambda uid, arguments: self._change("change", uid, arguments),
            "drop_step": lambda uid: self._change("drop", uid),
            "move_step": lambda uid, to: self._change("move", uid, to),
            "verify": self._ask_verify,
            "stop_verify": self._ask_stop_verify,
            "find": lambda query: scenery.find(self._graph, query),
            "view": self._ask_view,
            "rebase": self.rebase,
            "style": self.style,
        }

    def _ask_toggle(self, scope: str, recursive: bool = False) -> None:
        graph = self._graph
        if scope not in graph.scopes:
            raise SelectionError(f"{scope!r} is no module of the picture")
        below = scenery.below(graph, scope)
        if scope in self._open:
            self._open = self._open - {scope} - (set(below) if recursive else set())
        else:
            self._open = self._open | {scope} | (set(below) if recursive else set())
        self._draw()

    def _ask_expand_to(self, depth: int) -> None:
        graph = self._graph
        self._open = {k for k in graph.scopes if len(graph.ancestors(k)) <= max(depth, 0) + 1}
        self._draw()

    def _ask_view(self, which: str = "after") -> None:
        if which not in self._views:
            raise SurgeryError(f"there is no view {which!r}: {', '.join(self._views)}")
        self._view = which
        self._draw()

    # -- the full report, beside other work --------------------------------------------------------

    def _ask_verify(self, again: bool = True) -> None:
        if again or self._checking.get("state") not in ("running", "done"):
            self._verify_beside() or self.verify()

    def _ask_stop_verify(self) -> None:
        def stop() -> None:  # both in one turn: the check at work still tells what it found
            self._beside.stop()
            if self._checking.get("state") == "running":
                self._checking = {"state": "stopped"}

        notebook.where_cells_run(stop)

    def _verify_beside(self) -> bool:
        return self._beside.start(self._session.checking())

    def _told(self, progress: Any) -> None:
        self._checking = {"state": "running", **scenery.plain(progress._asdict())}

    def _verified(self, report: Any, error: Exception | None) -> None:
        if error is not None:
            self._checking = {"state": "failed", "text": str(error) or repr(error)}
            return
        with self.hold_sync():
            self.report = scenery.plain(report)
            self._checking = {"state": "done"}

    # -- edits ------------------------------------------------------------------------------------

    def _change(self, method: str, *args: Any) -> None:
        getattr(self._session, method)(*args)
        if self._view == "before":
            self._view = "after"
        self._refresh()

    def _do(self, operation: str, arguments: Mapping[str, Any]) -> None:
        given = {k: v if k == "new" else self._answered(v) for k, v in arguments.items()}
        self._change("do", operation, given)

    def _answered(self, where: Any) -> Any:
        """Functions of a node become the nodes that they choose: only here do they see Nodes."""
        if isinstance(where, (list, tuple)):
            return [self._answered(one) for one in where]
        if not inspect.isroutine(where) or is_operation(where):
            return where
        after = self.after[0] if isinstance(self.after, tuple) else self.after
        found = list(after.find(where))
        if not found:
            raise SelectionError(f"the function {where.__name__} chooses no node of this model")
        return found

    def replace(self, where: Any, new: Any, **options: Any) -> None:
        """Put another module in the place of those that `where` names.

        Args:
            where: A name or glob, a module class, a Node, a module, a function of a Node, or a list.
            new: Source of the new module; ``old`` is the one replaced: ``"nn.Linear(old.in_features, 10)"``.
                A variable of the notebook, or the module that it holds, goes in with its weights.
            **options: Further arguments of the operation, such as ``call=2``.
        """
        self._do("replace", {"where": where, "new": new, **options})

    @_by_name
    def remove(self, where: Any, *, keep: Any = None, **options: Any) -> None:
        """Take modules or calls out; what entered them passes on.

        Args:
            where: What goes.
            keep: Of the values that one call reads, such as an addition, the node whose value goes on;
                the first by default. What only the others needed goes, too.
            **options: Further arguments of the operation.
        """
        self._do("remove", {"where": where, "keep": keep, **options})

    @_by_name
    def insert(self, new: Any, *, after: Any = None, before: Any = None, **options: Any) -> None:
        """Put a new module or function behind a node, in front of one, or on one edge.

        Args:
            new: What makes it, such as ``"nn.Dropout(0.2)"``; as for `replace`.
            after: The node whose value it reads; all readers of that value read the new one.
            before: The node that reads it; others keep reading the old value. With `after` as well, it
                goes on the edge between the two.
            **options: Further arguments of the operation.
        """
        self._do("insert", {"new": new, "after": after, "before": before, **options})

    @_by_name
    def cut(self, *, after: Any = None, before: Any = None, **options: Any) -> None:
        """End the model at a node: the value after it, or what enters it, becomes the output."""
        self._do("cut", {"after": after, "before": before, **options})

    @_by_name
    def tap(
        self, nodes: Any, *, output: str | None = None, head: str | None = None, **options: Any
    ) -> None:
        """Make the output a dict of inner values.

        Args:
            nodes: ``{node: key}`` as in torchvision's ``return_nodes``, or a list of names.
            output: Keep the original output under this key.
            head: A new module for each value to go through: an auxiliary head, such as
                ``"nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))"``.
            **options: Further arguments of the operation.
        """
        self._do("tap", {"nodes": nodes, "output": output, "head": head, **options})

    @_by_name
    def channels(
        self,
        where: Any,
        *,
        inputs: int | None = None,
        outputs: int | None = None,
        weights: str | None = None,
        follow: bool = False,
        **options: Any,
    ) -> None:
        """Change how many channels a layer reads or makes.

        Args:
            where: Convolutions or linear layers.
            inputs: How many channels it shall read.
            outputs: How many it shall make.
            weights: What becomes of the weights: ``"zero"``, ``"mean"``, ``"sum"``, ``"repeat"``, ``"new"``.
            follow: Change the normalisations, the other branches of additions and the layers that
                read it as well; without it, a change that others must follow is refused.
            **options: Further arguments of the operation.
        """
        arguments = {"where": where, "inputs": inputs, "outputs": outputs, "weights": weights}
        arguments["follow"] = follow or None
        self._do("channels", {**arguments, **options})

    @_by_name
    def start(self, *, at: Any) -> None:
        """Begin the model at a node: the values that cross into it become the inputs."""
        self._do("start", {"at": at})

    @_by_name
    def split(self, *, after: Any) -> None:
        """Make several modules of one: two for one node, one more than there are nodes in a list.

        Whatever crosses is passed on; the code names them ``head`` and ``tail``, or ``stage_1``, ….
        """
        self._do("split", {"after": after})

    @_by_name
    def connect(self, source: Any, *, into: Any, how: str = "add", project: bool = False) -> None:
        """Lead a value to a later node as well.

        Args:
            source: The node whose value is used again.
            into: The node that it enters.
            how: ``"add"`` to what enters there, ``"cat"`` along the channels, or ``"replace"`` it.
            project: Where shapes differ, put a zero-initialised layer in between.
        """
        arguments = {"source": source, "into": into, "how": how, "project": project or None}
        self._do("connect", arguments)

    def set(self, where: Any, **values: Any) -> None:
        """Change hyper-parameters that are plain attributes: ``surgery.set("conv1", stride=1)``."""
        self._do("set", {"where": where, **values})

    @_by_name
    def freeze(self, where: Any = None, *, until: Any = None, batchnorm: str | None = None) -> None:
        """Keep weights from training: those of `where`, or everything up to the node `until`.

        Args:
            where: What to freeze.
            until: Freeze all that the value of this node is made of.
            batchnorm: ``"frozen"`` keeps running statistics as well, also after ``train()``;
                ``"train"`` lets them move.
        """
        self._do("freeze", {"where": where, "until": until, "batchnorm": batchnorm})

    def unfreeze(self, where: Any) -> None:
        """Let training change weights again."""
        self._do("unfreeze", {"where": where})

    def sequential(self) -> None:
        """Write a model that is a chain as ``nn.Sequential``, under the same keys."""
        self._do("sequential", {})

    def checkpoint(self, where: Any) -> None:
        """Compute activations again in the backward pass instead of keeping them."""
        self._do("checkpoint", {"where": where})

    def reset_parameters(self, where: Any) -> None:
        """Draw weights anew, by each layer's own rule."""
        self._do("reset_parameters", {"where": where})

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Make several edits one change, where only all of them fit; `undo` takes all back.

        Example:
            >>> with surgery.together():  # doctest: +SKIP
            ...     surgery.insert("nn.Linear(512, 100)", before="fc")
            ...     surgery.replace("fc", "nn.Linear(100, 10)")
        """
        with self._session.together():
            yield
        self._refresh()

    def undo(self) -> None:
        """Take the last edit back."""
        self._change("undo")

    def redo(self) -> None:
        """Do again what was taken back."""
        self._change("redo")

    def _uid(self, index: int) -> int:
        try:
            return self.steps[index]["uid"]
        except (IndexError, TypeError):
            raise SurgeryError(
                f"there is no step {index!r}: {len(self.steps)} steps, counted from 0"
            ) from None

    def toggle(self, index: int) -> None:
        """Switch a step off, or on again."""
        self._change("toggle", self._uid(index))

    def drop(self, index: int) -> None:
        """Forget a step."""
        self._change("drop", self._uid(index))

    def change(self, index: int, **arguments: Any) -> None:
        """Edit a step: ``surgery.change(0, new="nn.Linear(old.in_features, 7)")``.

        Args:
            index: Which of `steps`.
            **arguments: Those of its operation that change; ``None`` takes one away.
        """
        given = {k: v if k == "new" else self._answered(v) for k, v in arguments.items()}
        self._change("change", self._uid(index), given)

    def move(self, index: int, to: int) -> None:
        """Put a step in another place of the list."""
        self._change("move", self._uid(index), to)

    # -- results ----------------------------------------------------------------------------------

    def build(self) -> Any:
        """The edited model, made by executing the emitted text on a copy."""
        return self._session.build()

    def verify(self) -> Any:
        """Check the edited model in full; the report is also shown in the widget."""
        self._beside.stop()
        checks = self._session.checking()
        try:
            while True:
                self._told(next(checks))
        except StopIteration as end:
            report = end.value
        except BaseException:  # an interrupt of the cell as well
            self._checking = {}
            raise
        self._verified(report, None)
        return report

    def style(
        self,
        *,
        in_place: bool | None = None,
        function: bool | None = None,
        classes: str | None = None,
    ) -> None:
        """Choose how the code is written where tastes differ; it is written anew at once.

        Args:
            in_place: Change the model itself (the default), or a deep copy named ``edited``.
            function: Write one function ``operate(model)`` and its call, or statements (the default).
            classes: Where a forward changes: ``"subclass"`` keeps the author's text and overrides the
                method, ``"new"`` writes a class of its own, ``"auto"`` (the default) takes what stays
                right for most inputs. The other one serves where the one wanted cannot be written.
        """
        wanted = {"in_place": in_place, "function": function, "classes": classes}
        wanted = {k: v for k, v in wanted.items() if v is not None}
        self._session.style = dataclasses.replace(self._session.style, **wanted)
        self._refresh()

    def emit(self) -> None:
        """Put the code into the next cell; where there is no notebook, print it.

        What has been put there is checked in full: beside other work where the widget is shown and tells
        of it, else at once, with a warning for each error that is found.
        """
        if not self._session.edited:
            print(
                "There is nothing to emit yet: click a layer, choose an operation and press Apply, or "
                'call one, as in surgery.remove("fc")'
            )
            return
        if not notebook.next_cell(self.code.rstrip("\n")):
            print(self.code)
        if self._checking.get("state") == "done":
            return
        if self._static is None or not self._verify_beside():
            for finding in self.verify().findings:
                if finding.severity == "error":
                    warnings.warn(f"the code above: {finding.text}", stacklevel=2)

    @property
    def before(self) -> Any:
        """The model as it was, as a ModelGraph."""
        return views.ModelGraph(self._session.base, self._session.original)

    @property
    def after(self) -> Any:
        """The edited model, as a ModelGraph; a tuple of them after a split."""
        shown = self._session.models
        graphs = tuple(views.ModelGraph(*pair) for name, pair in shown.items() if name != "before")
        return graphs if isinstance(self._session.after, tuple) else graphs[0]

    @property
    def diff(self) -> dict[str, str]:
        """What the steps changed, by node: ``{"fc": "changed", "layer1.0.dropout": "added"}``.

        ``"added"`` and ``"changed"`` nodes go by their names in `after`, ``"removed"`` ones by theirs in
        `before`; what stayed is left out. A node counts as changed by its type, its parameters, and
        where the code sets its attributes or draws its weights anew. The pictures mark the same.
        """
        session, words = self._session, {}
        for name, (graph, _) in session.models.items():
            diff = scenery.removed(session) if name == "before" else scenery.added(session, graph)
            words.update(
                (graph.by_id[id].name, word)
                for id, word in diff.items()
                if name != "before" or word == "removed"
            )
        return words

    @property
    def example(self) -> Any:
        """The example inputs, as the edited model takes them: ``surgery.build()(*surgery.example)``.

        A tuple; a dict where all are given by name, ``(args, kwargs)`` where only some are. What is set
        is what the model as it was takes: edits that change what goes in, such as
        ``channels("conv1", inputs=4)`` and ``start``, adapt it.
        """
        args, kwargs = self._session.adapted
        if kwargs and not args:
            return kwargs
        pair = len(args) == 2 and isinstance(args[0], tuple) and isinstance(args[1], Mapping)
        return (args, kwargs) if kwargs or pair else args

    @example.setter
    def example(self, value: Any) -> None:
        self._session.example = value
        self._refresh()

    def rebase(self) -> None:
        """Go on from the model that the person's variable holds now, with no steps.

        What was emitted so far has made that model: its cell stays, the next code gets one of its own.
        """
        self._change("rebase")
        self._recipe += 1

    def save(self, path: str | pathlib.Path) -> None:
        """Write the steps as JSON, to be applied to another model with `load`."""
        self._session.save(path)

    @classmethod
    def load(cls, path: str | pathlib.Path, model: Any, *args: Any, **kwargs: Any) -> Surgery:
        """Open a model and do the steps of a file that `save` wrote."""
        self = cls(model, *args, **kwargs)
        for sentence in self._session.load(path):
            warnings.warn(sentence, stacklevel=2)
        self._refresh()
        return self

    def to_svg(self, path: str | pathlib.Path | None = None, *, dark: bool = False) -> str:
        """The picture as it is open now, as SVG text; also written to `path`."""
        return fallback.written(path, fallback.svg(self._scene, dark=dark))

    def to_html(self, path: str | pathlib.Path | None = None, *, lesson: Any = None) -> str:
        """A page with the picture, the code and the report, that needs nothing else."""
        if lesson is not None:
            raise SurgeryError("lessons cannot be written to a page yet; leave lesson out")
        return fallback.written(path, fallback.page(self))

    def to_png(self, path: str | pathlib.Path, *, dark: bool = False, scale: float = 2.0) -> None:
        """The picture as PNG; needs ``cairosvg`` or a Chromium on this machine."""
        fallback.write_png(path, fallback.svg(self._scene, dark=dark), scale=scale)

    def to_dot(self, path: str | pathlib.Path | None = None, *, depth: int = 2) -> str:
        """The model as Graphviz source."""
        graph = views.ModelGraph(*self._session.models[self._view])
        return fallback.written(path, graph.to_graphviz(depth=depth).source)
