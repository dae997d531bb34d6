"""The author's own method with a few words changed, as a subclass: conditions, comments and modes survive."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
from collections.abc import Container, Iterable, Mapping, Sequence

from torch import nn

from .. import source
from ..errors import EmissionError
from ..graph import Frame, Graph, Node, Ref, Scope
from . import format
from .changes import Change, changes, turns_of
from .expressions import Writer
from .method import ITEM, Counted, Method
from .printer import Printed
from .turns import Turn, Turns, around, fixed, flat, is_item_of_twin

_CONTAINERS = (nn.ModuleDict, nn.ModuleList, nn.Sequential)
_EVERY_CHILD = ("children", "named_children", "_modules")


def splice(
    base: Graph,
    scope: Scope,
    module: nn.Module,
    *,
    name: str,
    doc: str | None = None,
    new: Mapping[str, str] = types.MappingProxyType({}),
) -> Printed:
    """Print an edited scope as a subclass with the author's method and the edit in it.

    The new modules are not made by the class: they are set on the instance, whose ``__class__``
    becomes the subclass. Its attributes, hooks, configuration and keys stay.

    Args:
        base: The graph before the edit.
        scope: The edited scope. Its differences to the base must be insertions, replacements and
            removals of single calls.
        module: The module of that scope.
        name: Name of the subclass.
        doc: Docstring.
        new: Attributes of new modules.

    Raises:
        EmissionError: The edit is something else, or a place can't be spliced; the message says why.
    """
    writer = Writer(base, base.scopes[scope.key], module, new, base)
    writer.load([n.with_(frames=flat(n.frames)) for n in writer.nodes])
    before = base.scopes[scope.key].with_(nodes=tuple(writer.nodes))
    found = changes(before, scope, set(new), writer)
    if not found:
        raise writer.refuse("nothing in it was changed")
    try:
        return _spliced(writer, before, found, name, doc, new, zipped=True)
    except Counted:
        return _spliced(writer, before, found, name, doc, new, zipped=False)


def _spliced(
    writer: Writer,
    before: Scope,
    found: list[Change],
    name: str,
    doc: str | None,
    new: Mapping[str, str],
    zipped: bool,
) -> Printed:
    module, methods = writer.module, {}
    skipped = _skip(writer, new, methods) if new else False
    for same in _alike(found):
        try:
            _apply(writer, same, methods, zipped)
        except EmissionError:
            joins = skipped or isinstance(module, _CONTAINERS)
            if joins or len(found) > 1 or not _at_the_end(before, same[0]):
                raise
            return _around(writer, same[0], name, doc)
    edited = [method for method in methods.values() if method.edits]
    texts = [method.text() for method in edited]
    head = [f"class {name}({writer.refer(type(module))}):"]
    if doc:
        head += [format.docstring(doc, "    "), ""]
    body = "\n\n".join(textwrap.indent(text, "    ") for text in texts)
    for method in edited:
        method.imports()
    _one_meaning(writer)
    return Printed(tuple(writer.imports.lines), "\n".join(head) + "\n" + body, ())


def _alike(found: Sequence[Change]) -> list[list[Change]]:
    """The changes, those together that do the same at one place of the text, in the order of the run."""
    groups: dict[tuple, list[Change]] = {}
    for change in found:
        does = tuple(ITEM.sub("", a) for a in change.attributes)
        place = change.node.frames or change.node.id
        key = (place, change.node.kind, change.kind, does, change.argument, change.whole)
        groups.setdefault(key, []).append(change)
    return list(groups.values())


def _apply(writer: Writer, same: list[Change], methods: dict, zipped: bool) -> None:
    """Make the same change in all turns of a loop, or in some of them."""
    order = [n.id for n in writer.nodes]
    same.sort(key=lambda c: order.index(c.node.id))
    first = same[0]
    ran = turns_of(writer, first.node)
    every = len(same) == len(ran) > 1
    if every and len({c.attributes for c in same}) == 1:
        method, _ = _method_of(writer, first.node, methods, every=True)
        method.apply(first, [])
        return
    made = [(c, *_method_of(writer, c.node, methods)) for c in same]
    method, turns = made[0][1:]
    loops = [t.loop for t in turns]
    one = all(m is method and [t.loop for t in ts] == loops for _, m, ts in made)
    if len(made) > 1 and one and len(loops) == 1:
        numbers = tuple(ts[0].number for _, _, ts in made)
        one_each = [c.attributes for c in same] == [
            (ITEM.sub(f"[{n}]", a),) for c, n in zip(same, numbers) for a in c.attributes
        ]
        if every and zipped and one_each and (item := method.beside(loops[0], first.attributes[0])):
            method.apply(dataclasses.replace(first, attributes=(item,)), [])
            return
        attributes = _by_turn([c.attributes for c in same], numbers, method.index(loops[0]))
        if attributes is not None:
            changed = dataclasses.replace(first, attributes=attributes)
            method.apply(changed, [] if every else [Turn(loops[0], numbers)])
            return
    for change, method, turns in made:
        method.apply(change, turns)


def _by_turn(
    each: Sequence[tuple[str, ...]], numbers: Sequence[int], index: tuple[str, int]
) -> tuple[str, ...] | None:
    """What is called in every turn, with the turn's number in it: ``self.norms[i]``."""
    name, start = index
    name = f"{name} - {start}" if start else name
    found = []
    for texts in zip(*each, strict=True):
        by_number = {
            ITEM.sub(f"[{name}]", t) for t, n in zip(texts, numbers) if t.endswith(f"[{n}]")
        }
        keyed = {
            ITEM.sub(f"[str({name})]", t) for t, n in zip(texts, numbers) if t.endswith(f'["{n}"]')
        }
        right = [t.endswith((f"[{n}]", f'["{n}"]')) for t, n in zip(texts, numbers)]
        if len(set(texts)) == 1:
            found.append(texts[0])
        elif all(right) and len(by_number | keyed) == 1:
            found.append((by_number | keyed).pop())
        else:
            return None
    return tuple(found)


def _at_the_end(before: Scope, change: Change) -> bool:
    """Whether what the module returns, as it is, goes through new modules."""
    output = before.output
    if change.kind != "insert" or output is None:
        return False
    return output.args[:1] == (Ref(change.node.id),)


def _around(writer: Writer, change: Change, name: str, doc: str | None) -> Printed:
    """A forward around the author's: the place is written where no text can be changed."""
    cls = type(writer.module)
    parameters = list(inspect.signature(cls.forward).parameters.values())[1:]
    plain = all(
        p.kind is p.POSITIONAL_OR_KEYWORD and p.default is inspect.Parameter.empty
        for p in parameters
    )
    given = ", ".join(p.name for p in parameters) if plain else "*args, **kwargs"
    value = f"super().forward({given})"
    for attribute in change.attributes:
        value = f"{attribute}({value})"
    lines = [f"class {name}({writer.refer(cls)}):"]
    lines += [format.docstring(doc, "    "), ""] if doc else []
    signature = ", ".join(["self", *([given] if given else [])])
    lines += [f"    def forward({signature}):", f"        return {value}"]
    return Printed(tuple(writer.imports.lines), "\n".join(lines), ())


def _skip(writer: Writer, new: Iterable[str], methods: dict) -> bool:
    """Let loops over all children pass over the new ones; whether there are such loops."""
    skipped = False
    for code, (name, _) in source.own_methods(type(writer.module)).items():
        if not any(f.code is code for n in writer.nodes for f in n.frames):
            continue
        file, definition = source.file(code.co_filename), source.function_def(code)
        for node in ast.walk(definition) if definition is not None else ():
            if not _is_every_child(writer.module, file, node, code.co_varnames[0]):
                continue
            if (code,) not in methods:
                methods[code,] = Method(writer, code)
            if not methods[code,].skip(node, new):
                raise writer.refuse(f"{name} goes through all children: a new one would join")
            skipped = True
    return skipped


def _is_every_child(module: nn.Module, file: source.File, node: ast.AST, me: str) -> bool:
    """Whether an expression stands for all children: ``self.children()``, a container itself."""
    container = isinstance(module, _CONTAINERS)
    names = (*_EVERY_CHILD, *(("items", "values", "keys") if container else ()))
    if isinstance(node, ast.Attribute):
        return node.attr in names and isinstance(node.value, ast.Name) and node.value.id == me
    parent = file.parent.get(node)
    known = isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node
    return container and isinstance(node, ast.Name) and node.id == me and not known


def _method_of(
    writer: Writer, node: Node, methods: dict, every: bool = False
) -> tuple[Method, list[Turn]]:
    """The text that holds the operation, and the turns of the loops around it there; none for `every` one.

    The text is a method, or a copy of a helper for the one call of it: a function, a static method or
    a method that is called at several places is copied into the class under a name of its own, and
    the call that leads to the operation calls the copy.
    """
    if node.kind == "input":
        code = getattr(type(writer.module).forward, "__code__", None)
        if (code,) not in methods:
            methods[code,] = Method(writer, code)
        return methods[code,], []
    frames = node.frames
    if not frames:
        raise writer.refuse(f"where {node.name} is written is not known")
    depth = _overridable(writer, node)
    turns = [[] for _ in frames[depth:]] if every else Turns(writer).of(node, depth)
    for frame, here in zip(frames[depth:], turns, strict=True):
        if not all(fixed(type(writer.module), frame.code, turn.loop) for turn in here):
            raise writer.refuse(f"{node.name} stands in a loop over what the module is given")
    code = frames[depth].code
    if (code,) not in methods:
        methods[code,] = Method(writer, code)
    method = methods[code,]
    for i in range(depth + 1, len(frames)):
        key = (frames[:i], *(t for here in turns[: i - depth] for t in here), frames[i].code)
        if key not in methods:
            before = turns[i - 1 - depth]
            methods[key] = method.helper(frames[i - 1], frames[i].code, methods.values(), before)
        method = methods[key]
    same = [n for n in writer.nodes if n.frames == frames and n.kind != "parameter"]
    if not every and not any(turns) and sum(not is_item_of_twin(n, writer) for n in same) > 1:
        raise writer.refuse(f"the place of {node.name} runs several times")
    return method, turns[-1]


def _overridable(writer: Writer, node: Node) -> int:
    """The innermost frame of the operation that is a method of the class and ran once."""
    own = source.own_methods(type(writer.module))
    nodes = [n for n in writer.nodes if n.frames and n.kind != "parameter"]
    found = False
    for depth in reversed(range(len(node.frames))):
        code = node.frames[depth].code
        if code not in own:
            continue
        found = True
        stacks = {
            n.frames[:depth]
            for n in nodes
            if len(n.frames) > depth and n.frames[depth].code is code
        }
        static = isinstance(source.defined(type(writer.module), own[code][0])[1], staticmethod)
        if len(stacks) == 1 and not static and not _again(node.frames[:depth], own):
            return depth
    if found:
        raise writer.refuse(f"the place of {node.name} runs several times")
    raise writer.refuse("the place lies inside a function, not in a method of its class")


def _again(frames: tuple[Frame, ...], own: Container) -> bool:
    """Whether one of the calls that lead to a place stands in a loop of the class."""
    for frame in frames:
        file, written = source.expression(frame) if frame.code in own else (None, None)
        if written is not None and around(file, written):
            return True
    return False


def _one_meaning(writer: Writer) -> None:
    """Refuse where two modules' names are one: helpers may come from anywhere."""
    bound: dict[str, str] = {}
    for line in writer.imports.lines:
        home, _, names = line.removeprefix("from ").partition(" import ")
        for name in names.split(", ") if line.startswith("from ") else ():
            if bound.setdefault(name, home) != home:
                raise writer.refuse(
                    f"{name} means one thing in {home} and another in {bound[name]}"
                )
