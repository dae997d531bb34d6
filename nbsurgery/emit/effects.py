"""What a forward leaves behind beside its result: an attribute set, a list that it was given and fills."""

from __future__ import annotations

import ast
import inspect
import types

from torch import nn

from .. import source
from ..graph import Ref, Scope
from .expressions import Writer, follow

_FILLING = {
    "append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add",
    "popitem", "appendleft", "discard",
}  # fmt: skip

_COPYING = {"copy.deepcopy", "deepcopy", "copy.copy"}


def refuse_effects(writer: Writer) -> None:
    """Refuse a scope whose printed text would lose what its forward does to other objects.

    A recording holds operations on tensors. That a module's attribute was set, or that a list from
    outside was filled, stands only in the author's text.

    Raises:
        EmissionError: Such a statement was run; the message quotes it.
    """
    for code in _running(writer):
        file, definition = source.file(code.co_filename), source.function_def(code)
        if file is None or definition is None:
            continue
        lines = {f.line for n in writer.nodes for f in n.frames if f.code is code}
        stored = _stored(definition)
        for node in ast.walk(definition):
            effect = _is_effect(writer, node, _given(stored, node, code), code)
            strict = bool(effect) and not isinstance(node, ast.Attribute)
            if effect and _ran(writer, code, node, definition, lines, strict):
                raise writer.refuse(
                    f"its forward does `{ast.unparse(file.statement(node))[:60]}` at line "
                    f"{node.lineno}, which no recorded operation stands for"
                )


def _stored(definition: ast.FunctionDef) -> dict[str, int]:
    """The first line on which each name is given another value."""
    first: dict[str, int] = {}
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
    return first


def _given(stored: dict[str, int], node: ast.AST, code: types.CodeType) -> set[str]:
    """The parameters that still hold what was given where the node stands, but ``self``."""
    line = getattr(node, "lineno", 0)
    before = {name for name, first in stored.items() if first < line}
    count = code.co_argcount + code.co_kwonlyargcount
    return set(code.co_varnames[1:count]) - before


def _running(writer: Writer) -> list[types.CodeType]:
    """The methods that ran: every forward of the scope, and what the operations' stacks pass."""
    codes: dict[types.CodeType, None] = {}
    forward = inspect.unwrap(type(writer.module).forward)
    if isinstance(forward, types.FunctionType):
        codes[forward.__code__] = None
    for node in writer.nodes:
        if node.kind == "input":  # of a part: it was made elsewhere
            continue
        methods = writer.owner(node)[2]
        codes.update({f.code: None for f in node.frames if f.code in methods})
    return [c for c in codes if not source.is_torch(c.co_filename)]


def _is_effect(writer: Writer, node: ast.AST, given: set[str], code: types.CodeType) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return not _is_copy(node.value, code) and not _recorded(writer, node, code)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return _from_outside(node.value, given, code) and not _recorded(writer, node, code)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        filling = node.func.attr in _FILLING and _from_outside(node.func.value, given, code)
        return filling and not _recorded(writer, node, code)
    return False


def _from_outside(node: ast.AST, given: set[str], code: types.CodeType) -> bool:
    """A parameter, or something that hangs on ``self``."""
    if isinstance(node, ast.Name):
        return node.id in given
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id in {*given, code.co_varnames[0]}


def _is_copy(node: ast.AST, code: types.CodeType) -> bool:
    """A variable that holds nothing but copies made there: what is set on them nobody else sees."""
    definition = source.function_def(code)
    if not isinstance(node, ast.Name) or definition is None or node.id in code.co_varnames[
        : code.co_argcount + code.co_kwonlyargcount
    ]:  # fmt: skip
        return False
    stores = [
        n for n in ast.walk(definition) if isinstance(n, ast.Name) and n.id == node.id
        and isinstance(n.ctx, ast.Store)
    ]  # fmt: skip
    copies = [
        n for n in ast.walk(definition)
        if isinstance(n, ast.Assign) and n.targets[0] in stores and len(n.targets) == 1
        and isinstance(n.value, ast.Call) and ast.unparse(n.value.func) in _COPYING
    ]  # fmt: skip
    return len(copies) == len(stores) > 0


def _recorded(writer: Writer, node: ast.AST, code: types.CodeType) -> bool:
    """Whether an operation was recorded there: a write into a tensor, a method of a cache.

    In the whole run: an edit may have dropped it, or put a border in front of it.
    """
    first, last = node.lineno, node.end_lineno
    scopes = writer.base.scopes
    keys = {writer.scope.key, *writer.performed_in} & scopes.keys()
    return any(
        f.code is code and first <= f.line <= last and _changes(n)
        for n in (*writer.nodes, *(n for key in keys for n in scopes[key].nodes))
        for f in n.frames
    )


def _changes(node) -> bool:
    return bool(node.writes or node.impure or node.kind == "method")


def _ran(writer: Writer, code, node, definition, lines: set[int], strict: bool) -> bool:
    """Whether the statement was run.

    It stands in no branch, in a branch where operations were recorded, or in one whose test says so:
    what tests ask is often whether an argument was given. What is not known counts as run where it
    would change a given object (`strict`).
    """
    file = source.file(code.co_filename)
    inner = file.statement(node)
    outer = file.parent.get(inner)
    while outer is not None and outer is not definition:
        if isinstance(outer, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            return False
        if isinstance(outer, (ast.If, ast.Try)):
            for name in ("body", "orelse", "handlers", "finalbody"):
                block = getattr(outer, name, [])
                if inner not in block:
                    continue
                span = range(block[0].lineno, block[-1].end_lineno + 1)
                if not any(line in span for line in lines):
                    held = _answer(writer, code, outer) if isinstance(outer, ast.If) else None
                    if held is None and not strict or held == (name != "body"):
                        return False
        inner, outer = outer, file.parent.get(outer)
    return True


def _answer(writer: Writer, code: types.CodeType, branch: ast.If) -> bool | None:
    """What the test of a branch gave, where it asks only for arguments and the module's own values.

    An opened scope's forward may have run for several modules: they have to agree.
    """
    if not code.co_varnames:
        return None
    answers = set()
    for key in {writer.scope.key, *writer.performed_in}:
        scope = writer.scope if key == writer.scope.key else writer.base.scopes.get(key)
        inner = None if scope is None else writer.below(scope.path)
        if scope is None or inner is None:
            continue
        module = writer.module.get_submodule(inner) if inner else writer.module
        forward = inspect.unwrap(type(module).forward)
        if getattr(forward, "__code__", None) is code:
            known = _known(scope, module, forward)
            test = follow(branch.test, source.constants_of(code), code.co_varnames[0])
            answers.add(_holds(test, known))
    return answers.pop() if len(answers) == 1 else None


def _known(scope: Scope, module: nn.Module, forward: types.FunctionType) -> dict[str, object]:
    """What is known of the names of a forward when it was called."""
    known: dict[str, object] = {forward.__code__.co_varnames[0]: module}
    for name, parameter in inspect.signature(forward).parameters.items():
        given = next((n for n in scope.nodes if n.kind == "input" and n.target == name), None)
        if given is None:
            if parameter.default is not inspect.Parameter.empty:
                known[name] = parameter.default
        elif given.outputs or isinstance(scope.bindings.get(given.id), Ref):
            known[name] = _Given()
        else:
            known[name] = given.value
    return known


def _holds(test: ast.expr, known: dict[str, object]) -> bool | None:
    """The truth of a test as far as it is known; a conjunction is false with one false part."""
    if isinstance(test, ast.BoolOp):
        parts = [_holds(part, known) for part in test.values]
        decisive = isinstance(test.op, ast.Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _holds(test.operand, known)
        return None if inner is None else not inner
    read = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    if not read <= known.keys() or any(isinstance(n, ast.Call) for n in ast.walk(test)):
        return None
    try:
        tree = ast.fix_missing_locations(ast.Expression(test))
        return bool(eval(compile(tree, "", "eval"), {}, known))
    except Exception:  # noqa: BLE001 - the test asks for more than whether something was given
        return None


class _Given:
    """Stands for an argument that was given, and answers nothing else about itself."""

    def __bool__(self):
        raise TypeError
