"""A method of the author's with words put in, taken out or exchanged, and the helpers that it needs copied beside it."""

from __future__ import annotations

import ast
import builtins
import functools
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Sequence

from torch import nn

from .. import rewrite, source
from ..graph import Frame, Node
from ..paths import quoted, singular
from .changes import Change
from .expressions import Writer
from .names import RESERVED
from .turns import Turn, counted_by, free_index, from_zero, header, is_item_of_twin

_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List)
# Around a whole expression: a conditional one needs no parentheses there.
_HOLDERS = (ast.Assign, ast.AugAssign, ast.Return, ast.keyword, ast.List, ast.Tuple, ast.ListComp)
ITEM = re.compile(r"\[.*\]$")
_SHARED = ("torch", "nn", "F")  # a notebook has them, and so does what is saved from it


class Counted(Exception):
    """A loop that goes through new modules beside its own items must count as well."""


class Method:
    """One method's text and the edits in it."""

    def __init__(self, writer: Writer, code: types.CodeType | None):
        self.w, self.code = writer, code
        module = writer.module
        found = source.own_methods(type(module)).get(code)
        if found is None:
            raise writer.refuse("the place lies inside a function, not in a method of its class")
        self.name, self.function = found
        self.owner, plain = source.defined(type(module), self.name)
        if isinstance(plain, (staticmethod, classmethod, property)):
            raise writer.refuse(f"{self.name} is no plain method")
        if self.name in module.__dict__ or _unwrapped(plain) is not self.function:
            raise writer.refuse(f"{self.name} is overridden by another one")
        kept = [v for v in module.__dict__.values() if isinstance(v, types.MethodType)]
        if any(_unwrapped(v.__func__) is self.function for v in kept):
            raise writer.refuse(f"{self.name} is called by an attribute that holds it")
        self.bound = True  # its first parameter is the module
        self._read()

    def _read(self) -> None:
        """Find the text."""
        code, writer = self.code, self.w
        if set(code.co_freevars) - {"__class__"}:
            raise writer.refuse(f"{self.name} is a closure")
        if source.is_torch(code.co_filename):
            raise writer.refuse("its forward belongs to torch")
        self.file, self.definition = source.file(code.co_filename), source.function_def(code)
        if self.file is None or self.definition is None:
            raise writer.refuse("it has no source to read")
        self.me = code.co_varnames[0] if self.bound else "self"
        if not self.bound and "self" in code.co_varnames:  # another object's method
            self.me = "module"
        self.known: dict[str, object] = {self.me: writer.module}
        # (start, end, rank, text); rank orders insertions at one place
        self.edits: list[tuple] = []
        self.doubled: list[
            tuple
        ] = []  # what stands in the text twice, for this turn and the others
        self.indices: dict[ast.AST, tuple[str, int]] = {}  # loop → what counts its turns
        self.zipped: dict[
            ast.AST, str
        ] = {}  # loop → what goes through new modules beside its items
        self.cleaned = False

    # ---- helpers

    def helper(
        self, frame: Frame, code: types.CodeType, others: Iterable[Method], turns: list[Turn]
    ) -> Method:
        """A copy of what is called at a place of this text, and the call of the copy there."""
        file, call = source.expression(frame)
        if file is not self.file or not isinstance(call, ast.Call):
            raise self.w.refuse(f"how {code.co_name} is called is not known")
        made = object.__new__(Method)
        made.w, made.code, made.owner = self.w, code, self.owner
        made.function, made.bound, guard = self._called(call, code)
        made.name = name = code.co_name
        made._read()
        owner = self._method_of_another(call, code)
        if owner is not None:
            made.known[code.co_varnames[0]] = owner
        if not made.bound and made.me in code.co_varnames:
            raise self.w.refuse(f"{name} has a variable `{made.me}` of its own")
        if made.definition.decorator_list and made.bound:
            raise self.w.refuse(f"{name} is decorated")
        static = isinstance(source.defined(type(self.w.module), name)[1], staticmethod)
        alone = static and not turns and self._runs_here_alone(frame, code)
        taken = {*dir(self.w.module), *(m.name for m in others)} - ({name} if alone else set())
        made.name = rewrite.unique_name(name, taken)
        if turns and owner is not None:
            raise self.w.refuse(f"{name} is another object's method, called in a loop")
        if turns:
            old = self._applied(_range(call.func), ())
            self._instead(
                _range(call.func), f"({self.me}.{made.name} if {self._when(turns)} else {old})"
            )
        elif owner is not None:
            self._hand_over(call, f"{self.me}.{made.name}")
        elif not alone:
            self._put(_range(call.func), f"{self.me}.{made.name}")
        if guard:
            if turns:
                raise self.w.refuse(f"a variable of a loop holds {name}")
            self._guard(call, guard)
        return made

    def _called(self, call: ast.Call, code: types.CodeType) -> tuple:
        """The function that a call calls, whether it takes the module itself, and a test to put before.

        Raises:
            EmissionError: The text of the call does not tell which function it is.
        """
        func, module = call.func, self.w.module
        own = source.own_methods(type(module)).get(code)
        if own is not None and isinstance(func, ast.Attribute):
            plain = source.defined(type(module), own[0])[1]
            mine = isinstance(func.value, ast.Name) and func.value.id == self.me
            known = func.attr == own[0] and own[0] not in module.__dict__
            if mine and known and isinstance(plain, (staticmethod, types.FunctionType)):
                return own[1], not isinstance(plain, staticmethod), None
        parts = ast.unparse(func).split(".")
        value = self.function.__globals__.get(parts[0])
        local = parts[0] in self.code.co_varnames
        for part in parts[1:]:
            value = getattr(value, part, None)
        if not local and getattr(value, "__code__", None) is code:
            return value, False, None
        if self._method_of_another(call, code) is not None:
            return getattr(type(self._method_of_another(call, code)), func.attr), False, None
        function = _in_a_module(code)
        if local and isinstance(func, ast.Name) and function is not None:  # a variable holds it
            return function, False, (func.id, self.w.refer(function))
        raise self.w.refuse("the place lies inside a function, not in a method of its class")

    def _method_of_another(self, call: ast.Call, code: types.CodeType) -> object | None:
        """The object, kept by the module, whose method a call calls: ``self.box_coder``."""
        func = call.func
        path, root = [], func.value if isinstance(func, ast.Attribute) else None
        while isinstance(root, ast.Attribute):
            path.insert(0, root.attr)
            root = root.value
        if not isinstance(root, ast.Name) or root.id not in source.untouched_parameters(self.code):
            return None
        value = self.known.get(root.id)
        for part in path:
            value = getattr(value, part, None)
        if value is None or value is self.w.module or func.attr in getattr(value, "__dict__", {}):
            return None
        plain = source.defined(type(value), func.attr)[1]
        its = isinstance(plain, types.FunctionType) and plain.__code__ is code
        return value if its and not code.co_freevars else None

    def _hand_over(self, call: ast.Call, name: str) -> None:
        """Call a copy of an object's method: the object becomes its first argument."""
        start, (line, column) = _range(call.func)
        if self.file.lines[line - 1].encode()[column : column + 1] != b"(":
            raise self.w.refuse("the brackets of a call are not where they are looked for")
        value = self._applied(_range(call.func.value), ())
        more = ", " if call.args or call.keywords else ""
        self._put((start, (line, column + 1)), f"{name}({value}{more}")

    def _runs_here_alone(self, frame: Frame, code: types.CodeType) -> bool:
        """Whether every call of a helper that was recorded is the one at this place."""
        calls = {
            n.frames[:i]
            for n in self.w.nodes
            for i, f in enumerate(n.frames)
            if f.code is code and n.kind != "parameter"
        }
        return len(calls) == 1 and next(iter(calls))[-1:] == (frame,)

    def _guard(self, call: ast.Call, guard: tuple[str, str]) -> None:
        """A test before the call: the copy is of the function that the variable held in the run."""
        statement = self.file.statement(call)
        if not self._alone(statement):
            raise self.w.refuse("several statements stand on one line")
        variable, function = guard
        message = f"this forward was written from a run with {variable}={function}"
        at, indent = (statement.lineno, statement.col_offset), " " * statement.col_offset
        text = (
            f"if {variable} is not {function}:\n{indent}    raise RuntimeError({quoted(message)})"
        )
        self.edits.append((at, at, -(10**6), f"{text}\n{indent}"))

    # ---- where

    def _expression(self, node: Node) -> ast.AST:
        file, written = self.w.written(node)
        if written is None or file is not self.file:
            raise self.w.refuse(f"the expression of {node.name} is not known")
        if isinstance(getattr(written, "ctx", None), (ast.Store, ast.Del)):
            raise self.w.refuse(f"{node.name} is the unpacking of an assignment")
        return written

    def _alone(self, statement: ast.stmt) -> bool:
        """Whether the statement has its lines for itself."""
        first = self.file.lines[statement.lineno - 1].encode()[: statement.col_offset]
        last = self.file.lines[statement.end_lineno - 1].encode()[statement.end_col_offset :]
        return not first.strip() and last.strip()[:1] in (b"", b"#")

    # ---- edits

    def apply(self, change: Change, turns: list[Turn]) -> None:
        """Make a change, in these turns of the loops around it only."""
        if change.kind == "insert" and change.node.kind == "input":
            self._insert_on_input(change)
            return
        written = self._expression(change.node)
        when = self._when(turns)
        name = self._variable(change.node, written) if change.kind == "insert" else None
        if name is not None:
            self._behind(self.file.statement(written), name, change.attributes, when)
            return
        before, self.edits = self.edits, []
        getattr(self, f"_{change.kind}")(change, written)
        before, self.edits = self.edits, before
        if when:
            self._sometimes(written, before, when)
        else:
            self.edits += before

    def _when(self, turns: list[Turn]) -> str:
        """The test for the turns of loops; the loops are made to count."""
        tests = []
        for turn in turns:
            name, start = self.index(turn.loop)
            if isinstance(turn.number, int):
                tests.append(f"{name} == {start + turn.number}")
            else:
                tests.append(f"{name} in ({', '.join(str(start + n) for n in turn.number)})")
        return " and ".join(tests)

    def index(self, loop: ast.AST) -> tuple[str, int]:
        """The variable that counts the turns of a loop, and its first value."""
        if loop not in self.indices:
            self.indices[loop] = counted_by(loop) or (self._count(loop), 0)
        return self.indices[loop]

    def beside(self, loop: ast.AST, attribute: str) -> str | None:
        """Let a loop go through new modules too, where it does not count: ``zip(self.layers, self.norms)``."""
        target, items = header(loop)
        named = isinstance(target, ast.Name) and target.id != "_"
        taken = loop in self.zipped or loop in self.indices or counted_by(loop) is not None
        if taken or not named or not isinstance(loop, ast.For):
            return None
        plural = self._callee(ITEM.sub("", attribute))
        used = {n.id for n in ast.walk(self.definition) if isinstance(n, ast.Name)}
        used |= {n.arg for n in ast.walk(self.definition) if isinstance(n, ast.arg)}
        name = rewrite.unique_name(singular(plural.rpartition(".")[2]), used | RESERVED)
        stop, (first, last) = _range(target)[1], _range(items)
        self.edits.append((stop, stop, 0, f", {name}"))
        self.edits.append((first, first, -(10**6), "zip("))
        self.edits.append((last, last, 10**6, f", {plural})"))
        self.zipped[loop] = name
        return name

    def _count(self, loop: ast.AST) -> str:
        """Let a loop count its turns: ``for i, layer in enumerate(self.layers)``."""
        if loop in self.zipped:
            raise Counted
        name = free_index(self.definition, {name for name, _ in self.indices.values()})
        target, items = header(loop)
        (start, stop), (first, last) = _range(target), _range(items)
        if ast.unparse(target) == "_" and from_zero(items):
            self._put((start, stop), name)
            return name
        several = isinstance(target, ast.Tuple) and not self._applied((start, stop), ()).startswith(
            "("
        )
        self.edits.append((start, start, 0, f"{name}, (" if several else f"{name}, "))
        if several:
            self.edits.append((stop, stop, 0, ")"))
        self.edits.append((first, first, -(10**6), "enumerate("))
        self.edits.append((last, last, 10**6, ")"))
        return name

    def _sometimes(self, written: ast.AST, edits: list[tuple], when: str) -> None:
        """Put edits into a text that is run in some turns only; in the others it stays as it was."""
        where = _range(written)
        inside = all(where[0] <= e[0] and e[1] <= where[1] for e in edits)
        if inside and isinstance(written, ast.expr):
            text = f"{self._applied(where, edits)} if {when} else {self._applied(where, ())}"
            parent = self.file.parent.get(written)
            bare = isinstance(parent, _HOLDERS) or (
                isinstance(parent, ast.Call) and written in parent.args
            )
            self._instead(where, text if bare else f"({text})")
            return
        statement = self.file.statement(written)
        if not self._alone(statement):
            raise self.w.refuse("several statements stand on one line")
        where = _range(statement)
        old = self._applied(where, ()).replace("\n", "\n    ")
        indent = " " * statement.col_offset
        if [e[3] for e in edits] in ([""], ["pass"]):  # the statement goes
            several = " and " in when
            negated = when.replace("==", "!=").replace(" in (", " not in (")
            negated = f"not ({when})" if several else negated
            self._instead(where, f"if {negated}:\n{indent}    {old}")
            return
        new = self._applied(where, edits).replace("\n", "\n    ")
        text = f"if {when}:\n{indent}    {new}\n{indent}else:\n{indent}    {old}"
        self._instead(where, text)

    def _instead(self, where: tuple, text: str) -> None:
        """Put a text that repeats the one it stands for: nothing else may be changed inside."""
        self.doubled.append(where)
        self._put(where, text)

    def _applied(self, where: tuple, edits: Iterable[tuple]) -> str:
        """A part of the author's text with edits in it."""
        (first, column), (last, end) = where
        lines = [line.encode() for line in self.file.lines[first - 1 : last]]
        lines[-1] = lines[-1][:end]
        return b"\n".join(_changed(lines, edits, first)).decode()[column:]

    def _calls(self, attributes: tuple[str, ...], inner: str) -> str:
        for attribute in attributes:
            inner = f"{self._callee(attribute)}({inner})"
        return inner

    def _callee(self, attribute: str) -> str:
        """What is called, as this text names the module: it may be no method of it."""
        return self.me + attribute[4:] if attribute.startswith("self.") else attribute

    def skip(self, every: ast.AST, new: Iterable[str]) -> bool:
        """Pass over new modules in the loop over all children at `every`, if it is a plain one."""
        parent, items = self.file.parent, every
        kind = every.attr if isinstance(every, ast.Attribute) else "self"
        if kind != "self":
            items = parent[every]
            if not isinstance(items, ast.Call) or items.func is not every or items.args:
                return False
        if kind == "keys" or kind == "self" and isinstance(self.w.module, nn.ModuleDict):
            return False
        pairs, loop = int(kind in ("items", "named_children")), parent[items]
        if isinstance(loop, ast.Call) and ast.unparse(loop.func) == "enumerate":
            pairs, items, loop = pairs + 1, loop, parent[loop]
        if not isinstance(loop, ast.For) or loop.iter is not items:
            return False
        target, first = loop.target, loop.body[0]
        for _ in range(pairs):
            target = target.elts[-1] if isinstance(target, ast.Tuple) else None
        if not isinstance(target, ast.Name) or not self._alone(first):
            return False
        test = " or ".join(f"{target.id} is {self.me}.{attribute}" for attribute in new)
        at, indent = (first.lineno, first.col_offset), " " * first.col_offset
        self.edits.append((at, at, -(10**6), f"if {test}:\n{indent}    continue\n{indent}"))
        return True

    def _insert_on_input(self, change: Change) -> None:
        name = change.node.target
        if name not in {a.arg for a in self.definition.args.args + self.definition.args.kwonlyargs}:
            raise self.w.refuse(f"the input {name} is no plain parameter")
        body = self.definition.body
        first = body[1] if _docstring(self.definition) is not None and len(body) > 1 else body[0]
        if not self._alone(first):
            raise self.w.refuse("its first line holds several statements")
        at = (first.lineno, first.col_offset)
        line = f"{name} = {self._calls(change.attributes, name)}\n{' ' * first.col_offset}"
        self.edits.append((at, at, 0, line))

    def _insert(self, change: Change, written: ast.AST) -> None:
        if isinstance(written, ast.AugAssign):
            raise self.w.refuse("several statements stand on one line")
        self._wrap(change.attributes, written)

    def _variable(self, node: Node, written: ast.AST) -> str | None:
        """The variable that holds the value behind its statement, where it has the lines for itself."""
        statement = self.file.statement(written)
        name = None
        if isinstance(written, ast.AugAssign):
            name = source.targets(self.file, written)
            if name is None:
                raise self.w.refuse(f"{node.name} is written into a part of something")
        elif is_item_of_twin(node, self.w):
            name = self._item_name(node, written)
            if not isinstance(name, str) or name == "*":
                raise self.w.refuse(f"{node.name} is one part of a result without a name")
            if not self._alone(statement):
                raise self.w.refuse("several statements stand on one line")
        elif isinstance(statement, ast.Assign) and statement.value is written:
            single = len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
            name = statement.targets[0].id if single else None
        return name if self._alone(statement) else None

    def _behind(self, statement: ast.stmt, name: str, attributes, when: str) -> None:
        """Let a variable go through the new modules, on lines behind its statement."""
        indent = " " * statement.col_offset
        last = self.file.lines[statement.end_lineno - 1].encode()  # behind a comment on the line
        at = (statement.end_lineno, len(last.rstrip()))
        lines = [f"{name} = {self._calls((a,), name)}" for a in attributes]
        if when:
            lines = [f"if {when}:", *("    " + line for line in lines)]
        self.edits.append((at, at, 10**6, "".join(f"\n{indent}{line}" for line in lines)))

    def _item_name(self, node: Node, written: ast.AST):
        """The name in ``out, (h, c) = …`` that an item of the result gets."""
        path = []
        while is_item_of_twin(node, self.w):
            path.insert(0, node.args[1])
            node = self.w.by_id[node.args[0].id]
        names = source.targets(self.file, written)
        for index in path:
            if not isinstance(names, list) or not isinstance(index, int) or "*" in names:
                return None
            names = names[index] if index < len(names) else None
        return names

    def _wrap(self, attributes: tuple[str, ...], written: ast.AST) -> None:
        if not isinstance(written, ast.expr):
            raise self.w.refuse("a whole statement can't go into a call")
        start, end = _range(written)
        size = _size(written)
        opening = "".join(f"{self._callee(a)}(" for a in reversed(attributes))
        self.edits.append((start, start, -size, opening))
        self.edits.append((end, end, size, ")" * len(attributes)))

    def _feed(self, change: Change, written: ast.AST) -> None:
        argument = _argument(
            written, change.node, change.argument, self._on_value(written, change.node)
        )
        if argument is None:
            raise self.w.refuse(f"the argument of {change.node.name} is not written as one")
        self._wrap(change.attributes, argument)

    def _replace(self, change: Change, written: ast.AST) -> None:
        call = self._callee(change.attributes[0])
        if isinstance(written, ast.Call):
            method = self._on_value(written, change.node)
            if change.whole and not method:
                self._put(_range(written.func), call)
                return
            first = written.func.value if method else (written.args or [None])[0]
            if first is None or isinstance(first, ast.Starred):
                raise self.w.refuse(f"the arguments of {change.node.name} are passed by name")
            further = [*written.args, *(k for k in written.keywords)] if method else []
            self._put((_range(written)[0], _range(first)[0]), call + "(")
            if change.whole and further:  # x.view(a, b) becomes self.new(x, a, b)
                self._put((_range(first)[1], min(_range(f)[0] for f in further)), ", ")
            else:
                self._put((_range(first)[1], _range(written)[1]), ")")
            return
        if isinstance(written, ast.BinOp) and not change.whole:
            self._put((_range(written)[0], _range(written.left)[0]), call + "(")
            self._put((_range(written.left)[1], _range(written)[1]), ")")
            return
        if isinstance(written, ast.BinOp):
            middle = self._operator(written)
            start, end = _range(written)
            self.edits.append((start, start, -_size(written), call + "("))
            self._put(middle, ",")
            self.edits.append((end, end, _size(written), ")"))
            return
        if isinstance(written, ast.AugAssign) and isinstance(written.target, ast.Name):
            start, value = _range(written)[0], _range(written.value)
            target = written.target.id
            if not change.whole:
                self._put(_range(written), f"{target} = {call}({target})")
                return
            self._put((start, value[0]), f"{target} = {call}({target}, ")
            self.edits.append((value[1], value[1], 10**5, ")"))
            return
        raise self.w.refuse(f"{change.node.name} is not written as a call")

    def _on_value(self, written: ast.AST, node: Node) -> bool:
        """Whether the first argument stands before the dot: ``x.neg()`` may be recorded as a function."""
        if node.kind == "method" or node.kind != "function" or not isinstance(written, ast.Call):
            return node.kind == "method"
        if not isinstance(written.func, ast.Attribute):
            return False
        before = written.func.value
        home = before
        while isinstance(home, ast.Attribute):  # F, torch.nn.functional
            home = home.value
        if isinstance(home, ast.Name) and home.id not in self.code.co_varnames:
            return False
        given = len(written.args) + len(written.keywords)
        return ast.unparse(before) != self.me and given < len(node.args) + len(node.kwargs)

    def _operator(self, written: ast.BinOp) -> tuple:
        """The range of the operator with the blank before it."""
        (line, column), (end, stop) = _range(written.left)[1], _range(written.right)[0]
        if line != end:
            raise self.w.refuse("an operation over several lines")
        between = self.file.lines[line - 1].encode()[column:stop].decode()
        for symbol in ("**", "//", "@", "*", "+", "-", "/", "%", "&", "|", "^"):
            if symbol in between:
                at = between.index(symbol)
                before = len(between[:at].rstrip().encode())
                return (line, column + before), (
                    line,
                    column + len(between[:at].encode()) + len(symbol),
                )
        raise self.w.refuse("an operator that is not known")

    def _remove(self, change: Change, written: ast.AST) -> None:
        if isinstance(written, ast.AugAssign):
            self._drop(written)
            return
        if isinstance(written, ast.BinOp):
            first = written.left
        elif isinstance(written, ast.Subscript):
            first = written.value
        elif isinstance(written, ast.Call):
            method = self._on_value(written, change.node)
            first = written.func.value if method else (written.args or [None])[0]
        else:
            first = None
        if first is None or isinstance(first, ast.Starred):
            raise self.w.refuse(f"{change.node.name} is not written as a call on a value")
        statement = self.file.statement(written)
        same = (
            isinstance(statement, ast.Assign)
            and statement.value is written
            and len(statement.targets) == 1
            and isinstance(first, ast.Name)
            and isinstance(statement.targets[0], ast.Name)
            and statement.targets[0].id == first.id
        )
        if same and self._alone(statement) and len(self._block(statement)) > 1:
            self._drop(statement)
            return
        parent = self.file.parent.get(written)
        bare = isinstance(first, _ATOMS) or isinstance(
            parent, (ast.Assign, ast.Return, ast.Call, ast.keyword, ast.AnnAssign)
        )
        (start, end), (inner, stop) = _range(written), _range(first)
        self._put((start, inner), "" if bare else "(")
        self._put((stop, end), "" if bare else ")")

    def _drop(self, statement: ast.stmt) -> None:
        """Take a statement out, with its line."""
        if not self._alone(statement):
            raise self.w.refuse("several statements stand on one line")
        if len(self._block(statement)) > 1:
            self._put(((statement.lineno, 0), (statement.end_lineno + 1, 0)), "")
        else:
            self._put(_range(statement), "pass")

    def _block(self, statement: ast.stmt) -> list[ast.stmt]:
        parent = self.file.parent.get(statement)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, [])
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    def _put(self, where: tuple, text: str) -> None:
        self.edits.append((*where, 0, text))

    # ---- text

    def text(self) -> str:
        """The method with the edits, without annotations and docstring."""
        if not self.cleaned:
            self._clean()
            self.cleaned = True
        definition = self.definition
        decorators = [d.lineno for d in definition.decorator_list] if self.bound else []
        first = min([definition.lineno, *decorators])
        lines = [line.encode() for line in self.file.lines[first - 1 : definition.end_lineno]]
        self._once()
        lines = _changed(lines, _standing(self.edits), first)
        return textwrap.dedent(b"\n".join(lines).decode()).rstrip()

    def _once(self) -> None:
        """Refuse edits inside of a text that stands there twice."""
        for start, end in self.doubled:
            inside = [e for e in self.edits if start <= e[0] and e[1] <= end and e[0] < e[1]]
            inside += [e for e in self.edits if start < e[0] == e[1] < end]
            if len(inside) > 1:
                raise self.w.refuse("two changes meet in one expression of a loop")

    def _clean(self) -> None:
        definition, function = self.definition, self.definition.args
        several = [a for a in (function.vararg, function.kwarg) if a is not None]
        for arg in [*function.posonlyargs, *function.args, *function.kwonlyargs, *several]:
            if arg.annotation is not None:
                start = (arg.lineno, arg.col_offset + len(arg.arg.encode()))
                self._put((start, _range(arg.annotation)[1]), "")
        self._default_spaces(function)
        starts = [*(d.lineno for d in definition.decorator_list), definition.lineno]
        for decorator, following in zip(definition.decorator_list, starts[1:], strict=True):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if "docstring" in ast.unparse(
                called
            ):  # it rewrites what is said, and looks for its file
                column = decorator.col_offset - 1
                self._put(((decorator.lineno, column), (following, column)), "")
        if definition.name != self.name:  # a function that was set on the class by another name
            line = self.file.lines[definition.lineno - 1].encode()
            at = line.index(definition.name.encode(), definition.col_offset)
            end = at + len(definition.name.encode())
            self._put(((definition.lineno, at), (definition.lineno, end)), self.name)
        if not self.bound:
            self._bind(function)
        if definition.returns is not None:
            line = self.file.lines[definition.returns.lineno - 1].encode()
            at = line.rfind(b"->", 0, definition.returns.col_offset)
            if at >= 0:
                start = (definition.returns.lineno, len(line[:at].rstrip()))
                self._put((start, _range(definition.returns)[1]), "")
        text = _docstring(definition)
        if text is not None and len(definition.body) > 1:
            following = definition.body[1]
            self._put(((text.lineno, 0), (following.lineno, 0)), "")
        for node in ast.walk(definition):
            called = node.func if isinstance(node, ast.Call) and not node.args else None
            if isinstance(called, ast.Name) and called.id == "super":
                # in the subclass a bare super() would be the author's class itself
                self._put(_range(node), f"super({self.w.refer(self.owner)}, {self.me})")

    def _default_spaces(self, function: ast.arguments) -> None:
        """``x: int = 1`` becomes ``x=1``."""
        plain = [*function.posonlyargs, *function.args]
        pairs = list(zip(plain[::-1], function.defaults[::-1], strict=False))
        pairs += [
            (a, d) for a, d in zip(function.kwonlyargs, function.kw_defaults, strict=True) if d
        ]
        for arg, default in pairs:
            if arg.annotation is None:
                continue
            start, end = _range(arg.annotation)[1], _range(default)[0]
            if start[0] == end[0]:
                self._put((start, end), "=")

    def _bind(self, function: ast.arguments) -> None:
        """Give a function the module as its first parameter."""
        plain = [*function.posonlyargs, *function.args]
        if not plain:
            raise self.w.refuse(f"{self.name} takes no plain argument")
        at = plain[0].lineno, plain[0].col_offset
        far = at[0] != self.definition.lineno
        text = f"{self.me},\n" + " " * at[1] if far else f"{self.me}, "
        self.edits.append((at, at, -1, text))

    def imports(self) -> None:
        """Note the imports of the global names that the method reads."""
        if any(
            isinstance(n, ast.Attribute) and n.attr.startswith("__") and not n.attr.endswith("__")
            for n in ast.walk(self.definition)
        ):
            raise self.w.refuse("it reads a private name (self.__x), which a subclass does not see")
        try:
            tree = ast.parse(self.text())
        except SyntaxError:
            raise self.w.refuse("two changes meet in one of its expressions") from None
        stored = {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        stored |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        for node in ast.walk(tree):
            if isinstance(node, ast.alias):
                stored.add(node.asname or node.name.partition(".")[0])
        read = {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
        }
        for name in sorted(read - stored):
            if name == "__class__":
                raise self.w.refuse("it reads __class__")
            self._import(name)

    def _import(self, name: str) -> None:
        space = self.function.__globals__
        if name not in space or space.get("__name__") == "__main__" and name not in _SHARED:
            return  # a builtin, or a name of the notebook
        value, imports = space[name], self.w.imports
        if name in vars(builtins) and vars(builtins)[name] is value:
            return
        if isinstance(value, types.ModuleType):
            imports.add(_module_import(name, value))
            return
        home = getattr(value, "__module__", None)
        known = isinstance(home, str) and getattr(sys.modules.get(home), name, None) is value
        module = sys.modules.get(home if known else self.function.__module__)
        if module is None:
            raise self.w.refuse(f"{name} can't be imported")
        imports.module_global(module, name)


def _module_import(name: str, module: types.ModuleType) -> str:
    package, _, last = module.__name__.rpartition(".")
    if module.__name__ == name:
        return f"import {name}"
    if name == "F" and module.__name__ == "torch.nn.functional":
        return "import torch.nn.functional as F"
    return (
        f"from {package} import {last}" if last == name else f"import {module.__name__} as {name}"
    )


@functools.lru_cache(1024)
def _in_a_module(code: types.CodeType) -> types.FunctionType | None:
    """The function of a code object, where a module shows it under its name."""
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", {})
        if space.get("__file__") == code.co_filename:
            function = space.get(code.co_name)
            return function if getattr(function, "__code__", None) is code else None
    return None


def _unwrapped(value: object) -> object:
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    return value


def _standing(edits: Sequence[tuple]) -> list[tuple]:
    """The edits without those of a text that another one takes away."""
    wide = [e for e in edits if e[0] < e[1]]

    def gone(e: tuple) -> bool:
        return any(
            w[0] < e[0]
            and e[1] <= w[1]
            and e[0] < w[1]
            or w[0] <= e[0]
            and e[1] < w[1]
            and w[0] < e[1]
            for w in wide
        )

    return [e for e in edits if not gone(e)]


def _changed(lines: list[bytes], edits: Iterable[tuple], first: int) -> list[bytes]:
    """Lines with edits in them; `first` is the number of the first line."""
    lines = list(lines)
    # from the end to the start; at one place what comes last in the text is put in first
    for (l1, c1), (l2, c2), _, text in sorted(edits, key=lambda e: e[:3], reverse=True):
        a, b = l1 - first, l2 - first
        if b >= len(lines):
            b, c2 = len(lines) - 1, len(lines[-1])
        changed = lines[a][:c1] + text.encode() + lines[b][c2:]
        lines[a : b + 1] = changed.split(b"\n")
    return lines


def _docstring(definition: ast.FunctionDef) -> ast.stmt | None:
    first = definition.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first if isinstance(first.value.value, str) else None
    return None


def _range(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _size(node: ast.AST) -> int:
    """Longer for what stands around: orders brackets that open or close at one place."""
    return (node.end_lineno - node.lineno) * 1000 + node.end_col_offset - node.col_offset


def _argument(written: ast.AST, node: Node, index: int, method: bool) -> ast.expr | None:
    """The expression of one positional argument."""
    if isinstance(written, ast.BinOp):
        return (written.left, written.right)[index] if index < 2 else None
    if isinstance(written, ast.AugAssign):
        return written.value if index == 1 else None
    if not isinstance(written, ast.Call):
        return None
    parts: list[ast.expr] = list(written.args)
    if method:
        parts.insert(0, written.func.value)
    if index < len(parts) and not any(isinstance(p, ast.Starred) for p in parts[: index + 1]):
        return parts[index]
    return None
