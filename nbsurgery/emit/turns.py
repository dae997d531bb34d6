"""Which turn of which loop an operation was recorded in, and how the author's text asks for that turn."""

from __future__ import annotations

import ast
import dataclasses
import functools
import operator
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import source
from ..graph import Frame, Node, Ref
from .expressions import Writer, follow

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# What hands out the items that it is given, in order.
_SAME_ITEMS = (
    "enumerate",
    "zip",
    "range",
    "len",
    "reversed",
    "list",
    "tuple",
    "items",
    "values",
    "keys",
)
_INDICES = ("i", "j", "k", "turn", "turn_2", "turn_3", "turn_4")


@dataclass(frozen=True)
class Turn:
    """One turn of a loop or comprehension, or several: `number` counts from 0."""

    loop: ast.AST
    number: int | tuple[int, ...]


def flat(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The frames with a comprehension's own frame (before Python 3.12) put into its function's."""
    found: list[Frame] = []
    for frame in frames:
        if found and frame.code.co_name.startswith("<") and frame.code in found[-1].code.co_consts:
            frame = dataclasses.replace(frame, code=found[-1].code)
            found.pop()
        found.append(frame)
    return tuple(found)


def around(file: source.File, written: ast.AST) -> list[ast.AST]:
    """The loops, comprehensions and lambdas that run an expression again, outermost first."""
    found: list[ast.AST] = []
    for outer, inner in _ancestors(file, written):
        if isinstance(outer, _LOOPS):
            once = inner in outer.orelse or isinstance(outer, ast.For) and inner is outer.iter
        elif isinstance(outer, _COMPREHENSIONS):
            first = outer.generators[0]
            once = written is first.iter or file.holds(first.iter, written)
        else:
            once = not isinstance(outer, ast.Lambda)
        if not once:
            found.insert(0, outer)
    return found


def _ancestors(file: source.File, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Everything around an expression inside its function, with the part that leads to it."""
    inner, outer = node, file.parent.get(node)
    while outer is not None and not isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield outer, inner
        inner, outer = outer, file.parent.get(outer)


class Turns:
    """The turns in which the operations of a scope were recorded."""

    def __init__(self, writer: Writer):
        self.w = writer
        self.operations = [
            n
            for n in writer.nodes
            if n.frames and n.outputs and not n.glue and n.kind in ("module", "function", "method")
        ]
        self._order = {n.id: i for i, n in enumerate(writer.nodes)}

    def of(self, node: Node, start: int) -> list[list[Turn]]:
        """For each frame of a node from `start` on: the turns of the loops around it.

        Raises:
            EmissionError: What was recorded does not tell which turn it was.
        """
        window = self.operations
        found = []
        for depth in range(start, len(node.frames)):
            file, written = source.expression(node.frames[depth])
            found.append([])
            for loop in around(file, written) if written is not None else ():
                number, window = self._count(node, depth, loop, window)
                found[-1].append(Turn(loop, number))
        return found

    def _count(self, node: Node, depth: int, loop: ast.AST, window: list[Node]):
        """The turn of a loop, and what was recorded in it; found by a place that every turn passes."""
        if not countable(loop):
            raise self.w.refuse(f"{node.name} stands in a loop that can't be counted")
        peers = [
            n
            for n in window
            if n.frames[:depth] == node.frames[:depth]
            and len(n.frames) > depth
            and n.frames[depth].code is node.frames[depth].code
        ]
        places: dict[tuple, list[Node]] = {}
        for n in peers:
            if not is_item_of_twin(n, self.w):
                places.setdefault(n.frames, []).append(n)
        turns = self._length(node.frames[depth], loop)
        known = [
            f for f, ran in places.items() if self._every_turn(f, depth, loop, turns, len(ran))
        ]
        if not known:
            raise self.w.refuse(f"the turn of the loop around {node.name} is not known")
        place = node.frames if node.frames in known else known[0]
        marks = places[place]
        here, at = self._order[node.id], [self._order[n.id] for n in marks]
        before = sum(k < here for k in at)
        own = node.frames == place
        behind = node not in marks if own else _key(place[depth]) < _key(node.frames[depth])
        number = before - 1 if behind else before
        if not 0 <= number < len(marks):
            raise self.w.refuse(f"the turn of the loop around {node.name} is not known")
        first, last = (number, number + 1) if behind or own else (number - 1, number)
        low = at[first] if first >= 0 else -1
        high = at[last] if last < len(at) else len(self._order)
        return number, [n for n in window if low <= self._order[n.id] <= high]

    def _every_turn(self, place: tuple, depth: int, loop: ast.AST, turns, ran: int) -> bool:
        """Whether a place runs once in each turn: in no branch, or as often as the loop turns."""
        for level in range(depth, len(place)):
            file, written = source.expression(place[level])
            if written is None or source.is_torch(place[level].file):
                return False
            until = loop if level == depth else source.function_def(place[level].code)
            if until is None or not _runs_in(file, written, until, branches=ran == turns):
                return False
        return True

    def _length(self, frame: Frame, loop: ast.AST) -> int | None:
        """How often a loop turns, where that can be read off the module."""
        items, me = _items(type(self.w.module), frame.code, loop)
        if not _fixed(items, me, every=True):
            return None
        text = ast.fix_missing_locations(ast.Expression(items))
        try:
            return len(list(eval(compile(text, "", "eval"), {me: self.w.module})))
        except Exception:  # noqa: BLE001 - it goes through something else
            return None


def fixed(cls: type, code: types.CodeType, loop: ast.AST) -> bool:
    """Whether the module, and not what it is called with, says how often a loop turns."""
    return _fixed(*_items(cls, code, loop))


def _items(cls: type, code: types.CodeType, loop: ast.AST) -> tuple[ast.expr, str]:
    """What a loop goes through, and the name of the module in that text."""
    own = source.own_methods(cls)
    there = source.defined(cls, own[code][0])[1] if code in own else None
    bound = there is not None and not isinstance(there, (staticmethod, classmethod))
    me = code.co_varnames[0] if bound and code.co_varnames else ""
    return follow(header(loop)[1], source.constants_of(code), me), me


@functools.lru_cache(1024)
def over_what_is_given(cls: type) -> tuple[ast.AST, ...]:
    """The loops in the methods of a class that turn as often as what it is called with says."""
    found: list[ast.AST] = []
    for code in source.own_methods(cls):
        definition = None if source.is_torch(code.co_filename) else source.function_def(code)
        loops = [n for n in ast.walk(definition) if countable(n)] if definition is not None else ()
        found += [loop for loop in loops if not fixed(cls, code, loop)]
    return tuple(found)


def _runs_in(file: source.File, written: ast.AST, until: ast.AST, branches: bool) -> bool:
    """Whether an expression runs once for each run of what stands around it.

    With `branches` it may stand in one: it is known to have run often enough.
    """
    inner, outer = written, file.parent.get(written)
    while outer is not until:
        decides = isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test
        decides = decides or isinstance(outer, ast.BoolOp) and inner is not outer.values[0]
        again = (*_LOOPS, *_COMPREHENSIONS, *_DEFINITIONS, ast.Try)
        if outer is None or decides and not branches or isinstance(outer, again):
            return False
        inner, outer = outer, file.parent.get(outer)
    if isinstance(until, _COMPREHENSIONS):
        return inner not in until.generators
    if isinstance(until, ast.For) and (inner is until.iter or inner in until.orelse):
        return False
    leaves = (ast.Continue, ast.Return) if isinstance(until, _LOOPS) else (ast.Return,)
    return branches or not any(
        isinstance(n, leaves) and n.lineno < written.lineno for n in ast.walk(until)
    )


def _key(frame: Frame) -> tuple:
    """Orders the expressions of a function as they are evaluated: what is inside comes first."""
    line, end, column, stop = frame.position
    return end, stop, -line, -column


def countable(loop: ast.AST) -> bool:
    """Whether an index can be added to a loop."""
    if isinstance(loop, _COMPREHENSIONS):
        first = loop.generators[0]
        return len(loop.generators) == 1 and not first.is_async and not first.ifs
    return isinstance(loop, ast.For)


def header(loop: ast.AST) -> tuple[ast.expr, ast.expr]:
    """The variable of a loop, and what it goes through."""
    head = loop.generators[0] if isinstance(loop, _COMPREHENSIONS) else loop
    return head.target, head.iter


def _fixed(items: ast.expr, me: str, every: bool = False) -> bool:
    """Whether the number of items is the module's own; of a `zip`, one part that is will do."""
    if isinstance(items, ast.Call):
        name = getattr(items.func, "id", getattr(items.func, "attr", ""))
        if name not in _SAME_ITEMS:
            return False
        parts = [items.func.value] if isinstance(items.func, ast.Attribute) else items.args
        some = any if name == "zip" and not every else all
        return some(_fixed(part, me, every) for part in parts)
    if isinstance(items, (ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Slice)):
        parts = [n for n in ast.iter_child_nodes(items) if isinstance(n, ast.expr)]
        return all(_fixed(part, me, every) for part in parts)
    while isinstance(items, ast.Attribute):
        items = items.value
    if isinstance(items, (ast.List, ast.Tuple)):
        return not every
    return isinstance(items, ast.Constant) or isinstance(items, ast.Name) and items.id == me


def counted_by(loop: ast.AST) -> tuple[str, int] | None:
    """The variable that already counts the turns, and its first value."""
    target, items = header(loop)
    called = (
        items.func.id if isinstance(items, ast.Call) and isinstance(items.func, ast.Name) else ""
    )
    start = 0
    if called == "enumerate" and isinstance(target, ast.Tuple):
        target, further = target.elts[0], [*items.args[1:], *(k.value for k in items.keywords)]
        start = getattr(further[0], "value", None) if further else 0
    elif called == "range" and len(items.args) < 3 and not items.keywords:
        start = getattr(items.args[0], "value", None) if len(items.args) == 2 else 0
    else:
        return None
    if not isinstance(target, ast.Name) or type(start) is not int or target.id == "_":
        return None
    stored = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == target.id]
    if sum(isinstance(n.ctx, ast.Store) for n in stored) > 1:
        return None
    return target.id, start


def from_zero(items: ast.expr) -> bool:
    """Whether a loop goes through ``range(n)``."""
    called = isinstance(items, ast.Call) and ast.unparse(items.func) == "range"
    return called and len(items.args) == 1


def free_index(definition: ast.AST, taken: set[str]) -> str:
    """A name for a new index that the function does not use."""
    used = {n.id for n in ast.walk(definition) if isinstance(n, ast.Name)}
    used |= {n.arg for n in ast.walk(definition) if isinstance(n, ast.arg)}
    return next(name for name in _INDICES if name not in used | taken)


def is_item_of_twin(node: Node, writer: Writer) -> bool:
    """Whether the node only hands out one part of the result of the same expression."""
    if node.target not in (operator.getitem, getattr) or not isinstance(node.args[0], Ref):
        return False
    made = writer.by_id.get(node.args[0].id)
    result = made is not None and made.kind in ("module", "function", "method")
    return result and made.frames == node.frames
