"""What a run decided on concrete values: harmless for the printed text, guarded in it, or refused.

A recording holds for what the run decided: ``if self.training``, ``if h > 64``, ``mask is None``. Text
printed from it must not be silently wrong where another decision would be right.
"""

from __future__ import annotations

import ast
import inspect
import operator
import types
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

import torch

from .. import source
from ..errors import EmissionError
from ..graph import Node, Ref, Scope, Specialisation, iter_refs, map_refs
from .expressions import Writer, quoted
from .turns import header, over_what_is_given

_OPPOSITE = {
    operator.eq: operator.ne, operator.ne: operator.eq, operator.lt: operator.ge,
    operator.ge: operator.lt, operator.gt: operator.le, operator.le: operator.gt,
}  # fmt: skip
_REVERSED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.Is: ast.IsNot, ast.In: ast.NotIn,
}  # fmt: skip
_REVERSED |= {after: before for before, after in _REVERSED.items()}
GUARD = "guard"
_SAID = 60  # characters of a decision that a docstring tells


@dataclass(frozen=True)
class _Place:
    """Where a decision stands in the author's source."""

    file: source.File
    line: int

    def statement(self) -> ast.stmt | None:
        """The innermost statement that holds the line."""
        found = None
        for node in ast.walk(self.file.tree):
            if not isinstance(node, ast.stmt) or not node.lineno <= self.line <= node.end_lineno:
                continue
            if found is None or _length(node) <= _length(found):
                found = node
        return found

    def function(self) -> ast.AST | None:
        """The innermost function that holds the line."""
        node = self.statement()
        while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node = self.file.parent.get(node)
        return node


def _length(node: ast.stmt) -> int:
    return node.end_lineno - node.lineno


def guarded(writer: Writer, allowed: bool, settled: Container[int] = ()) -> set[int]:
    """Put guards into the writer's nodes for what the run decided.

    Args:
        writer: The text that is written.
        allowed: Whether text may hold for some decisions only, and then guard them.
        settled: Decisions, by number, that other classes of a divided model guard: those inside of
            this one, and those of earlier parts, behind which this one runs.

    Returns:
        The decisions that are settled here.

    Raises:
        EmissionError: A decision is in the way: none may be guarded, or this one can't be.
    """
    _same_in_every_call(writer)
    training: set[str] = set()
    keys = {writer.scope.key} | _opened_scopes(writer)
    found: set[int] = set()
    lengths = _lengths(writer)
    if lengths and not allowed:
        raise writer.refuse(f"{lengths[0].expression} may have another number of items")
    for number, decision in enumerate(writer.base.specialisations):
        inner = decision.scope != writer.scope.key
        if decision.scope not in keys or inner and number in settled:
            continue
        place = _place(writer, decision)
        if _indifferent(writer, decision, place):  # then a part without the value is so, too
            found.add(number)
            continue
        if _comes_later(writer, decision, place):
            continue
        if _crossed_as_none(writer, decision):
            if number not in settled:
                _assume(writer, decision)
            continue
        if not allowed:
            raise writer.refuse(
                f"the run decided `{decision.expression}` at {decision.source} "
                f"(it was {decision.value!r}), and printed text would hold for that only"
            )
        if decision.kind == "training":  # one guard for a flag, however often it decided
            if decision.node in training:
                continue
            training.add(decision.node)
        try:
            _insert(writer, decision, number)
        except EmissionError as error:
            if number in settled:
                continue
            if not (isinstance(error, _LeftOut) and _may_assume(writer, decision)):
                raise
            _assume(writer, decision)
        else:
            found.add(number)
    for number, decision in enumerate(lengths, len(writer.base.specialisations)):
        _insert(writer, decision, number)
    return found


class _LeftOut(EmissionError):
    """What a decision was made on is not there any more."""


def _may_assume(writer: Writer, decision: Specialisation) -> bool:
    """Whether the text may take for given what was decided on a value in front of where it begins.

    Whoever calls it hands in what was made of that decision. A mode is no such value: it changes.
    """
    return _at_border(writer, "begins") and decision.kind not in ("training", "constant")


def _assume(writer: Writer, decision: Specialisation) -> None:
    writer.assumed.setdefault(f"`{_held(decision, _SAID)}`")


def _opened_scopes(writer: Writer) -> set[str]:
    """Scopes whose operations stand in this text; not those that a call of it hands values out of."""
    called = {n.child for n in writer.nodes if n.child is not None}
    found = set()
    for key in writer.performed_in:
        up: str | None = key
        while up is not None and up in writer.base.scopes and up not in called:
            up = writer.base.parent(up)
        if up not in called:
            found.add(key)
    return found


def _lengths(writer: Writer) -> list[Specialisation]:
    """How many items the lists had that a loop went through without saying so.

    A part that goes through a list of images returns a list of anchors, and a list may come inside of
    an object. What was done with each item stands in the text once for each.
    """
    found = []
    for node in writer.nodes:
        child = writer.base.scopes.get(node.child) if node.child else None
        if child is not None and child.output is not None and node.frames:
            result = child.output.args[0] if child.output.args else None
            loops = child.opaque or over_what_is_given(_type_of(writer, child))
            if type(result) is list and loops:
                name = source.variable(writer.scope, node) or node.name
                found.append((name, len(result), node))
        if node.glue and node.target is getattr and not node.outputs:
            items = {u.args[1] for u in writer.users[node.id] if u.target is operator.getitem}
            named = any(
                _reads(loop, node.args[1]) for loop in over_what_is_given(_owner(writer, node))
            )
            if named and items and all(type(i) is int for i in items):
                found.append((node.args[1], max(items) + 1, node))
    where = [node.frames[-1].place if node.frames else writer.scope.type for _, _, node in found]
    return [
        Specialisation("iterate", name, count, place, writer.scope.key, node.id)
        for (name, count, node), place in zip(found, where, strict=True)
    ]


def _type_of(writer: Writer, scope: Scope) -> type:
    inner = writer.below(scope.path)
    return type(writer.module.get_submodule(inner)) if inner else type(writer.module)


def _owner(writer: Writer, node: Node) -> type:
    return type(writer.owner(node)[1])


def _reads(loop: ast.AST, attribute: str) -> bool:
    """Whether a loop goes through an attribute of this name."""
    read = ast.walk(header(loop)[1])
    return any(isinstance(n, ast.Attribute) and n.attr == attribute for n in read)


def _same_in_every_call(writer: Writer) -> None:
    """One class serves every call of a module: the calls must have run the same operations."""
    calls = [s for s in writer.base.scopes.values() if s.path == writer.scope.path]
    if len(calls) > 1 and len({_outline(s) for s in calls}) > 1:
        raise writer.refuse(f"its {len(calls)} calls did not run the same operations")


def _outline(scope: Scope) -> str:
    place = {n.id: i for i, n in enumerate(scope.nodes)}
    lines = []
    for n in scope.nodes:
        if n.kind != "input":
            refs = [place.get(r.id) for r in iter_refs((n.args, n.kwargs))]
            rest = [a for a in n.args if isinstance(a, (bool, int, float, str, type(None)))]
            lines.append((n.kind, n.type, str(n.target), refs, rest, sorted(n.kwargs)))
    return repr(lines)


# ------------------------------------------------------------------ what is harmless


def _indifferent(writer: Writer, decision: Specialisation, place: _Place | None) -> bool:
    """Whether the text is right however the decision falls."""
    if place is not None and (_is_check(place) or _is_printed(writer, place)):
        return True
    if decision.node in writer.carried:
        return True
    if decision.kind != "none" or _at_border(writer, "returns"):
        return False
    return _only_passed_on(writer, decision)


def _at_border(writer: Writer, edge: str) -> bool:
    """Whether the text ``returns`` or ``begins`` at a border: it is a part of a model."""
    return any(n.kind == "output" and n.facts.get(edge) == "border" for n in writer.nodes)


def _crossed_as_none(writer: Writer, decision: Specialisation) -> bool:
    """Whether a call gave ``None`` in front of the border that the text begins at.

    The call is not made once more: there it might give something else.
    """
    none = decision.kind == "none" and decision.value and decision.node not in writer.by_id
    return none and _at_border(writer, "begins")


def _place(writer: Writer, decision: Specialisation) -> _Place | None:
    if decision.frame is None:
        return None
    files = [n.frames[-1].file for n in writer.nodes if n.frames]
    files += [f.file for n in writer.nodes for f in n.frames]
    made = writer.base.by_id.get(decision.node) if decision.node else None
    if made is not None and made.frames:
        files[:0] = [f.file for f in made.frames]
    try:
        files.append(inspect.getsourcefile(type(writer.module)))
    except (TypeError, OSError):  # a class of the notebook has no file
        pass
    if decision.frame.file not in files:
        return None
    file = source.file(decision.frame.file)
    return None if file is None else _Place(file, decision.frame.line)


def _is_check(place: _Place) -> bool:
    """Whether the author only checks there: the text without the check is right where he was."""
    statement = place.statement()
    if isinstance(statement, ast.Raise):
        return True
    if isinstance(statement, ast.Assert):
        return True
    if isinstance(statement, ast.If):
        return not statement.orelse and all(isinstance(s, ast.Raise) for s in statement.body)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        name = getattr(called, "attr", getattr(called, "id", ""))
        return name in (
            "_assert",
            "torch_compilable_check",
            "_check",
            "warn",
            "warning",
            "warning_once",
        )
    return False


def _is_printed(writer: Writer, place: _Place) -> bool:
    """Whether the deciding expression itself stands in the text, as the author wrote it."""
    return any(
        file is place.file and first <= place.line <= last for file, first, last in writer.verbatim
    )


def _only_passed_on(writer: Writer, decision: Specialisation) -> bool:
    """Whether ``None`` or not, the result of a call goes on into other calls and nothing tests it."""
    node = writer.by_id.get(decision.node)
    if node is None or not node.frames:
        return False
    if not writer.users[node.id] or any(u.kind != "module" for u in writer.users[node.id]):
        return False
    methods = writer.owner(node)[2]
    for frame in node.frames:
        if frame.code not in methods:  # a wrapper around forward
            continue
        file, written = source.expression(frame)
        definition = source.function_def(frame.code)
        if written is None or definition is None:
            return False
        names = source.targets(file, source.through(file, written))
        flat = {names} if isinstance(names, str) else set(filter(_is_text, names or ()))
        for test in _tests(definition):
            read = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
            if flat & read and test.lineno > frame.line:
                return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _tests(definition: ast.AST) -> list[ast.expr]:
    """Every expression on which the function decides."""
    tests = [n.test for n in ast.walk(definition) if isinstance(n, (ast.If, ast.IfExp, ast.While))]
    return tests + [n for n in ast.walk(definition) if isinstance(n, ast.BoolOp)]


def none_results(writer: Writer) -> None:
    """Calls that returned ``None`` and are kept: who was given that ``None`` reads the call again."""
    calls = [
        writer.by_id[d.node]
        for d in writer.base.specialisations
        if d.kind == "none" and d.value and d.node in writer.by_id
    ]
    if not calls:
        return
    order = {n.id: i for i, n in enumerate(writer.nodes)}
    nodes = list(writer.nodes)
    for i, node in enumerate(nodes):
        _, written = writer.written(node)
        if node.kind not in ("module", "method", "function") or not isinstance(written, ast.Call):
            continue

        def found(arg: Any, expression: ast.expr, node: Node = node) -> Any:
            if arg is not None or not isinstance(expression, ast.Name):
                return arg
            for call in reversed(calls):
                if order[call.id] < order[node.id] and _named(call, node, expression.id):
                    return Ref(call.id)
            return arg

        nodes[i] = _as_written(node, written, found)
    writer.load(nodes)


def _as_written(node: Node, written: ast.Call, changed: Callable[[Any, ast.expr], Any]) -> Node:
    """The node with each argument exchanged by what `changed` makes of it and of its expression."""
    skip = 1 if node.kind == "method" else 0
    args, kwargs = list(node.args), dict(node.kwargs)
    for k, expression in enumerate(written.args):
        if isinstance(expression, ast.Starred):
            break
        if k + skip < len(args):
            args[k + skip] = changed(args[k + skip], expression)
    for keyword in written.keywords:
        if keyword.arg in kwargs:
            kwargs[keyword.arg] = changed(kwargs[keyword.arg], keyword.value)
    return node.with_(args=tuple(args), kwargs=kwargs)


def carried_dtypes(writer: Writer) -> None:
    """A dtype that the author read off a value and gave to a call (``x.to(query.dtype)``) is read again.

    The run knows only which dtype it was, and a text with that one would hold for no other. Where every
    use of what he read is such an argument, the decision is none.
    """
    reads: dict[tuple, list[Node]] = {}  # where it is read, as seen from each function on the way
    for decision in writer.base.specialisations:
        node = writer.by_id.get(decision.node) if decision.kind == "dtype" else None
        if node is None or node.target is not getattr or not node.frames:
            continue
        for depth, frame in enumerate(node.frames):
            reads.setdefault((node.frames[:depth], source.expression(frame)[1]), []).append(node)
    if not reads:
        return
    order = {n.id: i for i, n in enumerate(writer.nodes)}
    nodes = list(writer.nodes)
    used: dict[tuple, set[ast.expr]] = {}
    for i, node in enumerate(nodes):
        _, written = writer.written(node)
        if not isinstance(written, ast.Call) or node.kind not in ("module", "method", "function"):
            continue
        constants = source.constants_of(node.frames[-1].code)

        def again(arg: Any, expression: ast.expr, node: Node = node, constants=constants) -> Any:
            if not isinstance(arg, torch.dtype):
                return arg
            read = constants.get(expression.id) if isinstance(expression, ast.Name) else expression
            key = (node.frames[:-1], read)
            for made in reversed(reads.get(key, ())):
                if order[made.id] < order[node.id]:
                    used.setdefault(key, set()).add(expression)
                    return Ref(made.id)
            return arg

        nodes[i] = _as_written(node, written, again)
    for key, expressions in used.items():
        if _all_uses(key[1], expressions, reads[key][-1].frames[len(key[0])].code):
            writer.carried |= {node.id for node in reads[key]}
    writer.load(nodes)


def _all_uses(read: ast.expr, found: set[ast.expr], code: types.CodeType) -> bool:
    """Whether these expressions are all that the author does with what he read."""
    if read in found:
        return True
    name = next(iter(found)).id
    definition = source.function_def(code)
    loads = {
        n
        for n in ast.walk(definition)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    }
    return loads == found


def _named(call: Node, reader: Node, name: str) -> bool:
    """Whether the call's result is called `name` where the reader reads it."""
    if not call.frames or not reader.frames:
        return False
    for frame in call.frames:
        if frame.code is reader.frames[-1].code:
            file, written = source.expression(frame)
            if written is None:
                return False
            names = source.targets(file, source.through(file, written))
            return name == names or (isinstance(names, list) and name in names)
    return False


def _ends_early(writer: Writer) -> bool:
    """Whether an edit made the forward return something else than its author's result."""
    before = writer.base.scopes.get(writer.scope.key)
    output = next((n for n in writer.nodes if n.kind == "output"), None)
    if before is None or before.output is None or output is None:
        return False
    if output.facts.get("returns") != "edited":  # set by `rewrite.returning`, and by a border
        return output.facts.get("returns") == "border"
    todo, reached = list(output.refs), set()
    while todo:  # through what steps put in
        node = writer.by_id[todo.pop()]
        if node.step is not None and node.id not in before.by_id:
            todo += node.refs
        else:
            reached.add(node.id)
    return not set(before.output.refs) & reached


def _comes_later(writer: Writer, decision: Specialisation, place: _Place | None) -> bool:
    """Whether everything that is printed ran before the decision."""
    if not _ends_early(writer):
        return False
    base = writer.base.scopes[decision.scope]
    order = {n.id: i for i, n in enumerate(base.nodes)}
    kept = {
        n.id: n for n in writer.nodes
        if n.kind not in ("input", "output", "parameter")
        and _called_in(writer, n.id, base.key) in order
    }  # fmt: skip
    # of a mode it is the first read, which no later one undoes
    first = order.get(decision.node, -1)
    if all(order[_called_in(writer, id, base.key)] < first for id in kept):
        return True
    function = place.function() if place is not None else None
    if function is None:
        return False
    node: ast.AST | None = place.statement()
    while node is not None and node is not function:
        if isinstance(node, (ast.For, ast.While)):
            return False
        node = place.file.parent.get(node)
    for n in kept.values():
        lines = [
            f.line
            for f in n.frames
            if source.file(f.file) is place.file and source.function_def(f.code) is function
        ]
        if not lines or max(lines) >= place.line:
            return False
    return True


def _called_in(writer: Writer, id: str, key: str) -> str | None:
    """The node of the scope `key` that a node is, or that leads to it where its scope was opened."""
    base = writer.base
    node = base.by_id.get(id)
    while node is not None and node.scope != key:
        node = base.by_id.get(base.scopes[node.scope].caller)
    return None if node is None else node.id


# ------------------------------------------------------------------ guards


def _insert(writer: Writer, decision: Specialisation, number: int) -> None:
    node = writer.base.by_id.get(decision.node) if decision.node else None
    if node is None or decision.kind == "constant":
        raise writer.refuse(
            f"the run went on with {decision.expression} at {decision.source}, and no guard "
            "could tell when that changes"
        )
    present = {n.id for n in writer.nodes}
    missing: list[Node] = []
    todo = [node.id]
    while todo:
        id = _opened(writer, todo.pop(), present)
        if id in present or any(m.id == id for m in missing):
            continue
        made = writer.base.by_id[id]
        plain = made.kind in ("function", "method") and not made.writes
        asked = decision.kind == "none" and plain  # the call, and what it is given
        if not (made.glue or made.kind == "parameter" or asked) or _went(writer, made):
            why = writer.refuse(
                f"the run decided `{decision.expression}` at {decision.source} on a value that "
                "the edit leaves out"
            )
            raise _LeftOut(str(why))
        todo += made.refs
        args, kwargs = map_refs(
            (made.args, dict(made.kwargs)), lambda ref: Ref(_opened(writer, ref.id, present))
        )
        missing.append(made.with_(args=args, kwargs=kwargs))
    order = {n.id: i for i, n in enumerate(writer.base.scopes[decision.scope].nodes)}
    missing.sort(key=lambda n: order.get(n.id, 0))
    nodes = list(writer.nodes)
    tested = _opened(writer, node.id, present)
    for made in [*missing, _guard(writer, decision, tested, number)]:
        at = max((i for i, n in enumerate(nodes) if n.id in made.refs), default=-1)
        first = next((i for i, n in enumerate(nodes) if n.kind != "input"), len(nodes))
        nodes.insert(max(at + 1, first), made)
    writer.load(nodes)


def _went(writer: Writer, node: Node) -> bool:
    """Whether a parameter that only a guard would read lies in a module that another part took."""
    if node.kind != "parameter" or not (
        _at_border(writer, "begins") or _at_border(writer, "returns")
    ):
        return False
    todo, held = [writer.scope], set()
    while todo:
        scope = todo.pop()
        held.add(f"{scope.path}.training" if scope.path else "training")
        for n in scope.nodes:
            if n.child in writer.graph.scopes:
                todo.append(writer.graph.scopes[n.child])
            elif n.kind in ("module", "parameter"):
                held.add(n.target)
    return not any(node.target == h or node.target.startswith(f"{h}.") for h in held)


def _opened(writer: Writer, id: str, present: set[str]) -> str:
    """What an input of an opened scope is called in the scope that opened it."""
    node = writer.base.by_id.get(id)
    while id not in present and node is not None and node.kind == "input":
        bound = writer.base.scopes[node.scope].bindings.get(id)
        if node.scope == writer.scope.key or not isinstance(bound, Ref):
            break
        id, node = bound.id, writer.base.by_id.get(bound.id)
    return id


def _guard(writer: Writer, decision: Specialisation, tested: str, number: int) -> Node:
    return Node(
        id=f"{GUARD}#{number}",
        scope=writer.scope.key,
        kind=GUARD,
        name=GUARD,
        type=GUARD,
        target=decision,
        args=(Ref(tested),),
        impure=True,
    )


def guard_lines(writer: Writer, node: Node) -> list[str]:
    """The two lines of a guard: the test, and the error that says what the text holds for."""
    decision: Specialisation = node.target
    tested = writer.by_id[node.args[0].id]
    if decision.kind == "training":
        mode = "training" if decision.value else "eval"
        message = f"this forward was written from a run in {mode} mode ({decision.source})"
    else:
        room = 84 - len(f"this forward holds only where  ({decision.source})")
        message = f"this forward holds only where {_held(decision, room)} ({decision.source})"
    return [
        f"if {_test(writer, tested, decision)}:",
        f"    raise RuntimeError({quoted(message)})",
    ]


def _held(decision: Specialisation, room: int) -> str:
    """What was so in the run, as one would say it: ``mask is None``, ``not x.shape[0] > 2``."""
    text, value = " ".join(decision.expression.split()), decision.value
    before, after = "", f" is {value!r}"
    if decision.kind == "none":
        after = " is None" if value else " is not None"
    elif decision.kind == "iterate":
        tree = ast.parse(text, mode="eval").body if _parses(text) else None
        if isinstance(tree, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            text = ast.unparse(tree.generators[0].iter)
        after = f" has {value} items"
    elif decision.kind == "dtype":
        after = f" is {value}"
    elif isinstance(value, bool):
        tree = ast.parse(text, mode="eval").body if _parses(text) else None
        if not value and isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            tree.ops = [_REVERSED[type(tree.ops[0])]()]
            text, value = ast.unparse(tree), True
        before, after = "" if value else "not ", ""
        if not value and isinstance(tree, (ast.BoolOp, ast.IfExp)):
            before, after = "not (", ")"
    room = max(room - len(before + after), 10)
    return before + (text if len(text) <= room else text[: room - 1] + "…") + after


def _parses(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _test(writer: Writer, tested: Node, decision: Specialisation) -> str:
    value = decision.value
    if tested.kind == "function" and tested.target in _OPPOSITE and isinstance(value, bool):
        shown = tested.with_(target=_OPPOSITE[tested.target]) if value else tested
        if tested.id not in writer.names:
            return writer.operation(shown)[0]
    text, level = writer.value(Ref(tested.id))
    if decision.kind == "iterate":
        return f"len({text}) != {writer.literal(value)}"
    if decision.kind == "none":
        return f"{text} is not None" if value else f"{text} is None"
    if isinstance(value, bool) or decision.kind in ("bool", "training"):
        return f"not {text}" if value and level > 6 else f"not ({text})" if value else text
    if decision.kind == "dtype" and isinstance(value, str):  # dtypes are recorded by name
        value = getattr(torch, value.removeprefix("torch."), value)
    return f"{writer.text(Ref(tested.id), 7)} != {writer.literal(value)}"


# ------------------------------------------------------------------ arguments that were plain values


def argument_guards(writer: Writer) -> list[str]:
    """Lines that stop the forward where an argument that only steered the run is another one."""
    forward = inspect.unwrap(type(writer.module).forward)
    if not isinstance(forward, types.FunctionType):
        return []
    tests = []
    own = [n for n in writer.nodes if n.kind == "input" and n.step is None]  # not what an edit made
    missing = [n for n in own if _needed(writer, forward, n)]
    for node in own:
        if node.outputs or node.id not in writer.names:
            continue
        name, value = writer.names[node.id], writer.given(node)
        plain = isinstance(value, (bool, int, float, str, torch.dtype, type(None)))
        if not plain or not name.isidentifier():
            continue
        if value is None and isinstance(writer.scope.bindings.get(node.id), Ref):
            continue  # an object
        if writer.users[node.id] or not _steers(writer, forward.__code__, node.target):
            continue
        tests.append((name, value))
    if not tests and not missing:
        return []
    text = [_differs(writer, name, value) for name, value in tests]
    text += [f"{writer.names[n.id]} is None" for n in missing]
    holds = [f"{name}={value!r}" for name, value in tests]
    holds += [f"a tensor as {writer.names[n.id]}" for n in missing]
    message = f"this forward was written from a run with {', '.join(holds)}"
    if len(message) > 78:
        message = "this forward was written from a run with other arguments"
    return [f"if {' or '.join(text)}:", f"    raise RuntimeError({quoted(message)})"]


def _needed(writer: Writer, forward: types.FunctionType, node: Node) -> bool:
    """Whether an optional value was given, and text for it would take ``None`` for one."""
    given = node.outputs or isinstance(writer.scope.bindings.get(node.id), Ref)
    if not given or not writer.names.get(node.id, "").isidentifier():
        return False
    parameter = inspect.signature(forward).parameters.get(node.target)
    said = str(getattr(parameter, "annotation", ""))
    optional = parameter is None or parameter.default is None or "None" in said
    optional = optional or "Optional" in said or "mask" in node.target
    tested = optional and _is_tested(writer, node.target)
    methods = writer.owner(node)[2]
    for user in writer.users[node.id] if optional else ():
        first = user.args[:1] == (Ref(node.id),) and user.kind != "module"
        loud = first or user.kind == "function" and user.target in _LOUD
        inside = user.frames and user.frames[-1].code in methods
        if user.kind == "output" or loud and inside and not tested:
            continue  # None has no such operation: that raises by itself
        if tested or not inside:  # a helper may have asked whether it was given
            return True
    return False


_LOUD = (operator.add, operator.sub, operator.mul, operator.truediv, operator.matmul, operator.and_)


def _is_tested(writer: Writer, name: str) -> bool:
    """Whether a method that ran decides on the parameter, other than to raise."""
    for code in {f.code for n in writer.nodes for f in n.frames}:
        if code not in source.own_methods(type(writer.module)):
            continue
        definition = source.function_def(code)
        for node in ast.walk(definition) if definition is not None else ():
            if isinstance(node, ast.If) and all(isinstance(s, ast.Raise) for s in node.body):
                continue
            test = getattr(node, "test", None)
            deciding = isinstance(node, (ast.If, ast.IfExp, ast.While)) and test is not None
            if deciding and name in {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}:
                return True
    return False


def _steers(writer: Writer, code: types.CodeType, name: str) -> bool:
    """Whether forward reads the parameter anywhere but where it is handed on as it is."""
    definition = source.function_def(code)
    if definition is None:
        return True
    reads = [
        n
        for n in ast.walk(definition)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    ]
    lines = {f.line for n in writer.nodes for f in n.frames if f.code is code}
    return any(n not in writer.handed_on and not _skipped(code, n, lines) for n in reads)


def _skipped(code: types.CodeType, node: ast.AST, lines: set[int]) -> bool:
    """Whether the expression stands in a branch that was left out: the other one ran."""
    file = source.file(code.co_filename)
    inner = file.statement(node)
    outer = file.parent.get(inner)
    while isinstance(outer, ast.stmt) and not isinstance(outer, ast.FunctionDef):
        if isinstance(outer, ast.If):
            mine = outer.body if inner in outer.body else outer.orelse
            other = outer.orelse if mine is outer.body else outer.body
            ran = [any(_spans(s, line) for s in b for line in lines) for b in (mine, other)]
            if inner in mine and ran == [False, True]:
                return True
        inner, outer = outer, file.parent.get(outer)
    return False


def _spans(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= statement.end_lineno


def _differs(writer: Writer, name: str, value: Any) -> str:
    if value is None:
        return f"{name} is not None"
    if isinstance(value, bool):
        return f"not {name}" if value else name
    return f"{name} != {writer.literal(value)}"
