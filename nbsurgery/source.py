"""What the author wrote: from the position of an operation to its expression, its names and its function."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import linecache
import operator
import os
import types
from collections.abc import Sequence

import torch

from .graph import Frame, Node, Ref, Scope

_TORCH = os.path.dirname(torch.__file__) + os.sep
Names = "str | list | None"


class File:
    """One source file: its lines, its tree, and the way from a position to an expression."""

    def __init__(self, filename: str):
        text = "".join(linecache.getlines(filename))
        self.lines = text.split("\n")
        self.tree = ast.parse(text)
        self.parent: dict[ast.AST, ast.AST] = {}
        self._at: dict[tuple, ast.AST] = {}
        self._call_ends: dict[tuple, ast.Call] = {}
        self._lines: dict[int, list[ast.AST]] | None = None
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node
            if not isinstance(node, (ast.expr, ast.stmt)):
                continue
            key = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if key not in self._at or isinstance(node, ast.expr):
                self._at[key] = node
            if isinstance(node, ast.Call):
                self._call_ends[node.end_lineno, node.end_col_offset] = node

    def at(self, position: tuple) -> ast.AST | None:
        """The expression or statement at a position of the bytecode.

        A call in a chain that runs over several lines begins, for Python, at its own name: such
        a call is found by where it ends.
        """
        if position is None or None in position:
            return None
        return self._at.get(tuple(position)) or self._call_ends.get((position[1], position[3]))

    def on_line(self, line: int) -> list[ast.AST]:
        """The expressions and augmented assignments that begin on a line."""
        if self._lines is None:
            self._lines = {}
            for node in ast.walk(self.tree):
                if isinstance(node, (ast.expr, ast.AugAssign)):
                    self._lines.setdefault(node.lineno, []).append(node)
        return self._lines.get(line, [])

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that holds an expression."""
        while node is not None and not isinstance(node, ast.stmt):
            node = self.parent.get(node)
        return node

    def chain(self, node: ast.AST):
        """The expression and the expressions around it, up to its statement."""
        while node is not None and not isinstance(node, ast.stmt):
            yield node
            node = self.parent.get(node)

    def holds(self, outer: ast.AST, inner: ast.AST) -> bool:
        """Whether the expression `inner` is written inside `outer`, in one statement."""
        node = inner
        while node is not None and not isinstance(node, ast.stmt):
            node = self.parent.get(node)
            if node is outer:
                return True
        return False


@functools.lru_cache(256)
def _file(filename: str, stamp: tuple) -> File | None:
    try:
        return File(filename)
    except (SyntaxError, OSError, UnicodeDecodeError, ValueError):
        return None


def file(filename: str) -> File | None:
    """The parsed file, or ``None`` where there is no source. Cells of a notebook count as files."""
    linecache.getlines(filename)  # fills the entry, so that its stamp is the same from the start
    entry = linecache.cache.get(filename)
    stamp = tuple(entry[:2]) if entry and len(entry) > 1 else ()
    return _file(filename, stamp)


def is_torch(filename: str) -> bool:
    """Whether a file belongs to torch itself: nobody's variable names."""
    return filename.startswith(_TORCH)


def expression(frame: Frame) -> tuple[File | None, ast.AST | None]:
    """The file of a frame and what stands at its position."""
    source = file(frame.file)
    return (None, None) if source is None else (source, source.at(frame.position))


def through(source: File, node: ast.AST) -> ast.AST:
    """Walk out of ``E if c else other`` and ``a or E``: the value is the same one."""
    while True:
        parent = source.parent.get(node)
        if (
            isinstance(parent, ast.IfExp)
            and parent.test is not node
            or isinstance(parent, ast.BoolOp)
            and parent.values[-1] is node
        ):
            node = parent
        else:
            return node


def effective(frames: Sequence[Frame]) -> tuple[int, File, ast.AST, ast.AST] | None:
    """Where the value of an operation gets its name: ``(depth, file, widest, own expression)``.

    Hops out of a function as long as the expression is what the function returns.
    """
    depth = len(frames) - 1
    while depth >= 0:
        source, node = expression(frames[depth])
        if node is None:
            return None
        if not isinstance(node, ast.expr):
            return depth, source, node, node
        widest = through(source, node)
        if not isinstance(source.parent.get(widest), ast.Return) or depth == 0:
            return depth, source, widest, node
        depth -= 1
    return None


def targets(source: File, node: ast.AST) -> Names:
    """The name that an expression is assigned to, a list for an unpacking, ``None`` for neither."""
    if isinstance(node, ast.AugAssign):
        return node.target.id if isinstance(node.target, ast.Name) else None
    parent = source.parent.get(node)
    if isinstance(parent, ast.Assign) and parent.value is node:
        for target in parent.targets:
            if isinstance(target, ast.Name):
                return target.id
        return names_of(parent.targets[0]) if is_sequence(parent.targets[0]) else None
    if isinstance(parent, ast.AnnAssign) and isinstance(parent.target, ast.Name):
        return parent.target.id if parent.value is node else None
    if isinstance(parent, ast.NamedExpr):
        return parent.target.id
    statement = source.parent.get(parent)
    if isinstance(parent, ast.Tuple) and isinstance(statement, ast.Assign):  # a, b = f(x), g(x)
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and len(target.elts) == len(parent.elts):
            name = target.elts[parent.elts.index(node)]
            return name.id if isinstance(name, ast.Name) else None
    return None


def variable(scope: Scope, node: Node) -> str | None:
    """The author's name for a value, also where it is one part of a result that he unpacked."""
    path: list = []
    while node.target is operator.getitem and isinstance(node.args[0], Ref):
        whole = scope.by_id[node.args[0].id]
        if whole.frames != node.frames:
            break
        path.insert(0, node.args[1])
        node = whole
    frames = pinpoint(node.frames, node) if node.frames else ()
    place = effective([f for f in frames if not is_torch(f.file)])
    names = targets(*place[1:3]) if place is not None else None
    for index in path:
        inside = isinstance(names, list) and isinstance(index, int) and index < len(names)
        names = names[index] if inside and "*" not in names else None
    return names if isinstance(names, str) and names not in ("_", "*") else None


def read_again(node: Node) -> bool:
    """Whether the author reads what a call overwrote under the name that it has, not the result's."""
    frames = [f for f in node.frames if not is_torch(f.file)]
    place = effective(frames)
    if place is None:
        return False
    depth, source, widest, own = place
    if isinstance(source.parent.get(widest), ast.Expr):
        return True
    given = own.args[0] if isinstance(own, ast.Call) and own.args else None
    function = function_def(frames[depth].code)
    if not isinstance(given, ast.Name) or function is None or targets(source, widest) == given.id:
        return False
    end = source.statement(widest).end_lineno
    named = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == given.id]
    lines = sorted(n.lineno for n in named if n.lineno > end)
    return bool(lines) and any(
        isinstance(n.ctx, ast.Load) for n in named if n.lineno == lines[0]
    )  # ``x = f(x)`` reads it first


def is_sequence(node: ast.AST) -> bool:
    return isinstance(node, (ast.Tuple, ast.List))


def names_of(target: ast.AST):
    """The names of an assignment's target; ``"*"`` for a starred one, ``None`` for no name."""
    if isinstance(target, ast.Name):
        return target.id
    if is_sequence(target):
        return [names_of(item) for item in target.elts]
    return "*" if isinstance(target, ast.Starred) else None


def own_methods(cls: type) -> dict[types.CodeType, tuple[str, types.FunctionType]]:
    """The methods of a module class and its bases, by code object: name and function."""
    found: dict = {}
    for base in cls.__mro__:
        if base is torch.nn.Module or base is object:
            break
        for name, value in vars(base).items():
            if isinstance(value, property):
                value = value.fget
            elif isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            elif not callable(value):
                continue
            try:
                value = inspect.unwrap(value)
            except ValueError:
                continue
            if isinstance(value, types.FunctionType):
                found.setdefault(value.__code__, (name, value))
    return found


def defined(cls: type, name: str) -> tuple[type, object]:
    """The class that defines an attribute, and what stands there."""
    owner = next((c for c in cls.__mro__ if name in vars(c)), cls)
    return owner, vars(owner).get(name)


@functools.lru_cache(1024)
def function_def(code: types.CodeType) -> ast.FunctionDef | None:
    """The ``def`` that a code object was compiled from."""
    source = file(code.co_filename)
    if source is None:
        return None
    first = code.co_firstlineno
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        lines = {node.lineno, *(d.lineno for d in node.decorator_list)}
        if node.name == code.co_name and first in lines:
            return node
    return None


@functools.lru_cache(1024)
def constants_of(code: types.CodeType) -> dict[str, ast.expr]:
    """The local names that plain assignments of one expression make, with that expression."""
    definition = function_def(code)
    if definition is None:
        return {}
    values: dict[str, list] = {}

    def forget(target: ast.AST) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                values.setdefault(node.id, []).extend([None, None])

    for arg in definition.args.args + definition.args.kwonlyargs:
        values.setdefault(arg.arg, []).append(None)
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(node.value)
                else:
                    forget(target)
        elif isinstance(
            node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr, ast.comprehension)
        ):
            forget(node.target)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            forget(node.optional_vars)
    return {
        name: found[0]
        for name, found in values.items()
        if None not in found and len({ast.dump(value) for value in found}) == 1
    }


@functools.lru_cache(1024)
def sizes_demanded(code: types.CodeType) -> frozenset[tuple[str, int]]:
    """The attributes of ``self`` that a method compares with a size of a tensor, or raises.

    Returns:
        Each with the axis: ``("num_channels", 1)`` for ``if x.shape[1] != self.num_channels: raise``.
    """
    definition, known = function_def(code), constants_of(code)
    found: set[tuple[str, int]] = set()
    if definition is None:
        return frozenset()
    unpacked: dict[str, int] = {}
    tests: list[ast.expr] = []
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign) and _shape_of(node.value) and len(node.targets) == 1:
            names = getattr(node.targets[0], "elts", ())
            unpacked |= {n.id: i for i, n in enumerate(names) if isinstance(n, ast.Name)}
        raising = isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in node.body)
        if raising or isinstance(node, ast.Assert):
            tests.append(node.test)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_assert"):
            tests += node.args[:1]

    def axis(side: ast.expr) -> int | None:
        if isinstance(side, ast.Name):
            return axis(known[side.id]) if side.id in known else unpacked.get(side.id)
        index = side.slice if isinstance(side, ast.Subscript) and _shape_of(side.value) else None
        if isinstance(side, ast.Call) and ast.unparse(side.func).endswith(".size") and side.args:
            index = side.args[0]
        try:
            value = ast.literal_eval(index) if index is not None else None
        except ValueError:
            return None
        return value if isinstance(value, int) else None

    me = code.co_varnames[0] if code.co_varnames else ""
    for test in (n for t in tests for n in ast.walk(t) if isinstance(n, ast.Compare)):
        for mine, other in itertools.permutations((test.left, test.comparators[0])):
            if isinstance(mine, ast.Attribute) and ast.unparse(mine.value) == me:
                if (at := axis(other)) is not None:
                    found.add((mine.attr, at))
    return frozenset(found)


def _shape_of(node: ast.AST) -> bool:
    """Whether an expression is the shape of something: ``x.shape``, ``x.size()``."""
    if isinstance(node, ast.Call):
        return not node.args and ast.unparse(node.func).endswith(".size")
    return isinstance(node, ast.Attribute) and node.attr == "shape"


@functools.lru_cache(1024)
def untouched_parameters(code: types.CodeType) -> frozenset[str]:
    """The parameters that the function never assigns."""
    definition = function_def(code)
    if definition is None:
        return frozenset()
    names = {arg.arg for arg in definition.args.args + definition.args.kwonlyargs}
    stored = {
        node.id
        for node in ast.walk(definition)
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del))
    }
    return frozenset(names - stored)


def second_name(frames: Sequence[Frame], name: str) -> str | None:
    """The other name that the author gave to what `name` holds: ``residual`` in ``residual = x``."""
    for frame in reversed(frames):
        definition = function_def(frame.code)
        if definition is None:
            continue
        best = None
        for node in ast.walk(definition):
            if not (isinstance(node, ast.Assign) and len(node.targets) == 1):
                continue
            target, value = node.targets[0], node.value
            if not isinstance(target, ast.Name) or node.lineno > frame.line or target.id == name:
                continue
            if isinstance(value, ast.Name) and value.id == name:
                if best is None or node.lineno > best.lineno:
                    best = node
            elif isinstance(value, ast.IfExp) and best is None:
                other = value.orelse
                best = node if isinstance(other, ast.Name) and other.id == name else None
        if best is not None:
            return best.targets[0].id
    return None


@functools.lru_cache(1024)
def attributes_read(code: types.CodeType) -> frozenset[str]:
    """The attributes that a function reads of anything but its first parameter."""
    definition = function_def(code)
    me = code.co_varnames[0] if code.co_varnames else ""
    found = set()
    for node in ast.walk(definition) if definition is not None else ():
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if not isinstance(node.value, ast.Name) or node.value.id != me:
            found.add(node.attr)
    return frozenset(found)


def unpacking_of(code: types.CodeType, name: str) -> list | None:
    """The names in ``a, b = name`` where the function writes that."""
    definition = function_def(code)
    for node in ast.walk(definition) if definition is not None else ():
        plain = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        if plain and node.value.id == name and isinstance(node.targets[0], ast.Tuple):
            return names_of(node.targets[0])
    return None


# ------------------------------------------------------------------ before Python 3.11

_OPERATORS = {
    "add": ast.Add, "iadd": ast.Add, "sub": ast.Sub, "isub": ast.Sub, "mul": ast.Mult,
    "imul": ast.Mult, "truediv": ast.Div, "itruediv": ast.Div, "div": ast.Div, "matmul": ast.MatMult,
    "pow": ast.Pow, "floordiv": ast.FloorDiv, "mod": ast.Mod, "and_": ast.BitAnd, "or_": ast.BitOr,
}  # fmt: skip


def pinpoint(frames: tuple[Frame, ...], node: Node) -> tuple[Frame, ...]:
    """The frames with positions where only lines are known and one expression of the line fits.

    Python before 3.11 knows the line of an operation and not the expression. Where the line holds
    one call of that name, or one such operator, it is that one.
    """
    found = []
    for frame, following in zip(frames, (*frames[1:], None), strict=True):
        if None not in frame.position:
            found.append(frame)
            continue
        name = following.code.co_name if following is not None else _called(node)
        attribute = node.args[1] if node.target is getattr and following is None else None
        expression = _only(file(frame.file), frame.line, name, attribute)
        if expression is None:
            found.append(frame)
            continue
        e = expression
        position = (e.lineno, e.end_lineno, e.col_offset, e.end_col_offset)
        found.append(dataclasses.replace(frame, position=position))
    return tuple(found)


def _called(node: Node) -> str:
    if node.kind == "module":
        names = [part for part in node.target.split(".") if not part.isdigit()]
        return names[-1] if names else ""
    if isinstance(node.target, str):
        return node.target
    return getattr(node.target, "__name__", "")


def _only(source: File | None, line: int, name: str, attribute: str | None) -> ast.AST | None:
    if source is None:
        return None
    here = source.on_line(line)
    if attribute is not None:
        fitting = [n for n in here if isinstance(n, ast.Attribute) and n.attr == attribute]
        return fitting[0] if len(fitting) == 1 else None
    if name == "getitem":
        fitting = [n for n in here if isinstance(n, ast.Subscript)]
        return fitting[0] if len(fitting) == 1 else None
    calls = [n for n in here if isinstance(n, ast.Call)]
    fitting = [c for c in calls if getattr(c.func, "attr", getattr(c.func, "id", "")) == name]
    if not fitting and name in _OPERATORS:
        infix = (ast.BinOp, ast.AugAssign)
        fitting = [n for n in here if isinstance(n, infix) and isinstance(n.op, _OPERATORS[name])]
    if not fitting and name not in _OPERATORS:
        fitting = [c for c in calls if not isinstance(c.func, ast.Attribute)] or calls
    return fitting[0] if len(fitting) == 1 else None
