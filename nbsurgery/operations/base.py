"""What every operation is: a name, what it offers on a selection, and how it edits a draft."""

from __future__ import annotations

import ast
import keyword
import re
import types
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from .. import rewrite, source
from ..draft import Draft, is_head
from ..errors import StepError, an
from ..expression import Expression, evaluate, moded, parse
from ..graph import Node, Ref, Scope
from ..libraries import beside_head, beside_inputs


@dataclass(frozen=True)
class Field:
    """One field of an operation's form.

    ``type`` is ``text``, ``int``, ``choice``, ``bool``, ``code`` or ``node``; `choices` are the values
    of a ``choice``, or suggestions for a ``code`` field.
    """

    name: str
    label: str
    type: str
    default: Any = None
    choices: tuple = ()
    help: str = ""

    def to_dict(self) -> dict:
        return {
            "name": self.name,
            "label": self.label,
            "type": self.type,
            "default": self.default,
            "choices": list(self.choices),
            "help": self.help,
        }


@dataclass(frozen=True)
class Offer:
    """An operation that fits a selection, with its form.

    ``arguments`` are fixed ones that go along with the form's; ``count`` says how many places change.
    """

    operation: str
    label: str
    group: str
    fields: tuple[Field, ...]
    arguments: Mapping[str, Any]
    count: int
    note: str = ""

    def to_dict(self) -> dict:
        return {
            "operation": self.operation,
            "label": self.label,
            "group": self.group,
            "fields": [f.to_dict() for f in self.fields],
            "arguments": dict(self.arguments),
            "count": self.count,
            "note": self.note,
        }


class Operation:
    """One kind of surgery.

    A subclass sets `name` and `order`, and says how it offers itself, applies, and reads in the list of
    steps. `arguments` always are JSON.
    """

    name: str = ""
    order: int = 100
    takes: tuple[str, ...] | None = None  # names of its arguments; None where any will do
    nones: bool = False  # whether None is a value of its arguments
    idle: bool = False  # with its form as offered it changes nothing, so that it cannot be tried
    neutral: bool = False  # it changes no number: what earlier steps promise still holds
    resizes: bool = False  # values inside may have other shapes afterwards

    def offers(self, draft: Draft, nodes: Sequence[Node]) -> list[Offer]:
        """The forms that fit when `nodes` are selected; none where it makes no sense."""
        raise NotImplementedError

    def apply(self, draft: Draft, step: int, arguments: Mapping[str, Any]) -> int:
        """Edit the draft; returns how many places changed.

        Raises:
            SurgeryError: It cannot be done. The caller throws the draft away then.
        """
        raise NotImplementedError

    def text(self, arguments: Mapping[str, Any]) -> str:
        """The step in a few words."""
        raise NotImplementedError

    def as_form(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Arguments in the way in which the form would give them, where there are several."""
        return arguments


def need(arguments: Mapping[str, Any], name: str, operation: str) -> Any:
    """An argument that must be there.

    Raises:
        StepError: It is missing or empty.
    """
    value = arguments.get(name)
    if value is None or value == "" or value == []:
        raise StepError(f"{operation} needs {name!r}")
    return value


def edge(draft: Draft, first: Node, second: Node) -> list[str]:
    """Ids of what `second` reads within its scope that are the value of `first`."""
    value = draft.graph.sources(first.scope, Ref(first.id))
    return [
        id for id in second.refs
        if id == first.id or value and draft.graph.sources(second.scope, Ref(id)) == value
    ]  # fmt: skip


def count_classes(draft: Draft, step: int, path: str, made: Any) -> None:
    """Set what a library keeps of the number of classes, where a new layer is the model's head."""
    old = draft.model.get_submodule(path) if draft.exists(path) else None
    if (
        not isinstance(old, nn.Linear)
        or not isinstance(made, nn.Linear)
        or not is_head(draft, path)
    ):
        return
    for where, value in beside_head(draft.model, old.out_features, made.out_features):
        draft.set_value(step, where, value if made.out_features != old.out_features else None)


def count_inputs(draft: Draft, step: int, path: str, made: Any) -> None:
    """Set what stands beside a layer of how many channels enter, where a new one reads others."""
    old = draft.model.get_submodule(path) if draft.exists(path) else None
    if isinstance(old, nn.Linear) and isinstance(made, nn.Linear):
        before, now, axes = old.in_features, made.in_features, (-1, 1, 2)
    elif isinstance(old, _ConvNd) and isinstance(made, _ConvNd):
        before, now, axes = old.in_channels, made.in_channels, (1, channel_axis(old))
    else:
        return
    roots = [r for n in draft.calls_of(path) for r in inputs_read(draft, n, channel_axis(old))]
    for where in beside_inputs(draft.model, path, before, axes, bool(roots)):
        draft.set_value(step, where, str(now) if now != before else None)
        _decide_again(draft, where, before, now)
    for root in roots if now == before else ():
        draft.inputs.pop(root.target, None)  # an earlier step had adapted the example


def _decide_again(draft: Draft, attribute: str, before: int, now: int) -> None:
    """What the run decided by a number that has changed is decided by the new one."""
    owner, _, name = attribute.rpartition(".")
    for decision in draft.base.specialisations:
        node = draft.graph.by_id.get(decision.node)
        if node is None or draft.scope_of(node).path != owner:
            continue
        if re.search(rf"\.{name}\b", decision.expression):
            args = draft.base.by_id[node.id].args
            args = tuple(now if type(a) is int and a == before else a for a in args)
            draft.set_scope(rewrite.exchanged(draft.scope_of(node), node.with_(args=args)))


def channel_axis(layer: nn.Module) -> int:
    """Where what a layer reads has its channels, counted from the end."""
    return -1 if isinstance(layer, nn.Linear) else -1 - len(layer.kernel_size)


def inputs_read(draft: Draft, node: Node, axis: int) -> list[Node]:
    """The model's inputs whose channels a call reads, as they are or through a cast, a padding, …

    Empty where it reads something else as well, or where what lies between could change them.
    """
    found: list[Node] = []
    for read in (draft.graph.by_id[i] for i in draft.graph.inputs_of(node.id)):
        if read.kind == "input" and read.scope == "" and read.shape:
            found.append(read)
            continue
        bare = read.kind == "module" and not draft.module(read.target).state_dict()
        if not bare and read.kind not in ("function", "method") or not read.shape:
            return []
        behind = inputs_read(draft, read, axis)
        if not behind or any(
            len(root.shape) != len(read.shape) or root.shape[axis] != read.shape[axis]
            for root in behind
        ):
            return []
        found += behind
    return found


def written_only(draft: Draft, node: Node) -> bool:
    """Whether a call works in place and the author's text goes on with what it wrote into."""
    return bool(node.writes) and node.scope not in draft.rewires and source.read_again(node)


def new_module(draft: Draft, text: Any, old: nn.Module | None) -> tuple[Expression, Any]:
    """Parse and try the text of something new.

    Returns:
        The expression, and what it makes: a module on the meta device, or a function.

    Raises:
        StepError: It does not evaluate, or makes something that is neither.
    """
    expr = parse(text, draft.namespace)
    made = evaluate(expr, old, draft.namespace)
    if isinstance(made, type) and issubclass(made, nn.Module):
        raise StepError(f"{expr.text!r} is a class; call it: {expr.text}()")
    if not callable(made):
        raise StepError(
            f"{expr.text!r} gives {an(type(made).__name__)}, not a module or a function; "
            "write for example nn.Linear(old.in_features, 10)"
        )
    if expr.text == "old":
        raise StepError("old alone is what stands there already; say what becomes of it")
    if not isinstance(made, nn.Module) and not _named(expr, made):
        raise StepError(
            f"{expr.text!r} makes a function without a name that code could call; define it with def "
            "in a cell and give its name"
        )
    return expr, made


def _named(expr: Expression, made: Any) -> bool:
    """Whether code can call a function by the text that gave it."""
    body = expr.tree.body
    if isinstance(getattr(made, "__self__", None), nn.Module):
        return True  # a method of a new module
    while isinstance(body, ast.Attribute):
        body = body.value
    if not isinstance(body, ast.Name):
        return False
    if isinstance(made, types.FunctionType):
        return made.__name__ != "<lambda>" and "<locals>" not in made.__qualname__
    return bool(getattr(made, "__module__", None)) or isinstance(made, types.BuiltinFunctionType)


def suffix_for(draft: Draft, made: Any, path: str) -> str:
    """What moves a new module to where its neighbours are: ``.to(torch.bfloat16)``, often nothing.

    `path` is where it goes; the nearest base module with tensors, from there upwards, decides.
    """
    if not isinstance(made, nn.Module):
        return ""
    if not any(True for _ in (*made.parameters(), *made.buffers())):
        return ""
    while True:
        tensor = next(_floats(draft, path), None)
        if tensor is not None or path == "":
            break
        path = path.rpartition(".")[0]
    if tensor is None:
        return ""
    parts = []
    if tensor.device != torch.empty(0).device:
        parts.append(f'"{tensor.device}"')
    if tensor.dtype != torch.get_default_dtype():
        parts.append(str(tensor.dtype))
    return f".to({', '.join(parts)})" if parts else ""


def _floats(draft: Draft, path: str) -> Iterator[torch.Tensor]:
    try:
        module = draft.model.get_submodule(path)
    except AttributeError:
        return
    for t in (*module.parameters(), *module.buffers()):
        if t.is_floating_point():
            yield t


def place_of(draft: Draft, node: Node) -> str:
    """Where a new module beside `node` lives: the path of the node's module, else of its scope's."""
    return node.target if node.kind == "module" else draft.scope_of(node).path


def literals(
    draft: Draft, path: str, expr: Expression, old: nn.Module, made: Any
) -> dict[str, str]:
    """Values for ``old.<attribute>`` where reading it from the model at `path` would go wrong.

    That is where the new module answers differently, or not at all, so that the text could not run
    twice; and where an earlier step, whose code this one makes moot, had put another module there.
    """
    base = draft.model.get_submodule(path) if draft.exists(path) else None
    values: dict[str, str] = {}
    for name in expr.old_attributes:
        value = getattr(old, name, None)
        if isinstance(value, (int, float, bool, str, tuple)) and (
            getattr(made, name, None) != value or getattr(base, name, None) != value
        ):
            values[name] = repr(value)
    return values


def is_moded(made: Any) -> bool:
    """Whether a new thing needs the mode of the model that it joins."""
    return moded(made)


class Alike:
    """The attributes for what one step puts at several places of a scope.

    A place in a loop runs several times. What keeps nothing there serves every turn; else each turn has
    its own, in a list.
    """

    def __init__(self, draft: Draft, nodes: Iterable[Node]):
        self.base = draft.base
        count = Counter(self._place(n) for n in nodes)
        self.again = {place for place, times in count.items() if place and times > 1}
        self.names: dict[tuple, str] = {}

    def _place(self, node: Node) -> tuple | None:
        """Equal for the calls that one place in the author's text makes."""
        was = self.base.by_id.get(node.id)
        if was is None or not was.frames or was.scope != node.scope:
            return None
        return was.scope, was.frames, was.kind, was.kind == "module" or was.type

    def attribute(
        self, draft: Draft, scope: Scope, node: Node, expr: Expression, made: nn.Module
    ) -> str:
        """The attribute for a new module at a node, below the scope's module: ``dropout``, ``norms.3``."""
        place, wanted = self._place(node), attribute_name(made, expr)
        if place not in self.again:
            return draft.attribute(scope, wanted)
        one = "old" not in expr.free and _keeps_nothing(made)
        if place not in self.names:
            several = wanted if one or wanted.endswith("s") else f"{wanted}s"
            self.names[place] = draft.attribute(scope, several)
        if one:
            return self.names[place]
        peers = [n.id for n in self.base.scopes[scope.key].nodes if self._place(n) == place]
        return f"{self.names[place]}.{peers.index(node.id)}"

    def counted(self, draft: Draft) -> None:
        """Number the calls of each new module that serves several turns."""
        for (key, *_), name in self.names.items():
            path = f"{draft.graph.scopes[key].path}.{name}".lstrip(".")
            calls = draft.calls_of(path)
            for k, node in enumerate(calls):
                again = node.with_(name=f"{path}_{k}" if k else path, call=k + 1, calls=len(calls))
                draft.set_scope(rewrite.exchanged(draft.scope_of(node), again))


def _keeps_nothing(made: nn.Module) -> bool:
    """Whether one module can stand for several: torch's own, without weights and buffers."""
    torchs = all(type(m).__module__.startswith("torch.nn.modules") for m in made.modules())
    return torchs and not any(True for _ in (*made.parameters(), *made.buffers()))


def attribute_name(made: Any, expr: Expression) -> str:
    """What to call a new attribute: ``norm`` for a BatchNorm2d, ``gelu`` for a GELU."""
    name = type(made).__name__ if isinstance(made, nn.Module) else expr.callee
    low = name.lower()
    for piece in (
        "norm",
        "dropout",
        "conv",
        "linear",
        "pool",
        "embedding",
        "attention",
        "lstm",
        "gru",
    ):
        if piece in low:
            return piece
    words = re.findall(r"(?:[A-Z][a-z])?[A-Z][a-z0-9]{2,}", name)
    snake = "_".join(words).lower() if "".join(words) == name else low
    return snake if snake.isidentifier() and not keyword.iskeyword(snake) else "added"


def class_piece(made: Any, expr: Expression) -> str:
    """What a class name says of a new thing: ``Norm`` for a BatchNorm2d, ``GELU`` for a GELU."""
    name = type(made).__name__ if isinstance(made, nn.Module) else expr.callee
    for piece in ("Norm", "Dropout", "Conv", "Linear", "Pool", "Embedding", "Attention"):
        if piece in name:
            return piece
    return name[:1].upper() + name[1:]
