"""The modules of a split model: a chain as ``nn.Sequential``, else a class; what is whole stays whole."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..draft import Piece
from ..edits import Place, quoted
from ..graph import Node, Scope
from ..paths import indexed, spelled
from .printer import print_class
from .sequential import print_sequential


def write(
    place: Place, piece: Piece, classes: list[str], block: Callable[[str, list[str]], None]
) -> None:
    """Write one part: classes above, one assignment below.

    Args:
        place: Where it is written; takes the imports.
        piece: What to write.
        classes: The classes so far; inner ones come first.
        block: Adds a comment with its statements.
    """
    text = _value(place, piece, "", place.variable, classes)
    block(piece.comment, [f"{piece.variable or place.variable} = {text}"])


def _value(place: Place, piece: Piece, key: str, here: str, classes: list[str]) -> str:
    """The expression for what is left of a scope, where `here` is the old module."""
    scope = piece.part.partial[key]
    module = place.model.get_submodule(scope.path)
    arg = place.variable if key == "" else "block"
    inner = _partial_calls(piece, scope)
    if piece.part.container(scope):
        return _container(place, piece, scope, here, inner, classes)
    source = here if key == "" else arg
    new = {}
    for node in inner:
        name = node.target[len(scope.path) + 1 :] if scope.path else node.target
        if "." not in name:
            old = f"{source}.{name}"
            new[name] = _value(place, piece, node.child, old, classes)
    for container in piece.part.opened.values():
        above, _, name = container.path.rpartition(".")
        if above == scope.path:
            calls = _partial_calls(piece, container)
            new[name] = _container(place, piece, container, f"{source}.{name}", calls, classes)
    if key == "":
        chain = print_sequential(piece.part.graph, scope, module, arg=here, new=new)
        if chain is not None:
            place.need(*chain.imports)
            return chain.text
    name = _class_name(scope, piece, classes)
    printed = print_class(
        piece.part.graph, scope, module, name=name, arg=arg,
        doc=f"{scope.type}, {piece.doc}.", new=new,
    )  # fmt: skip
    place.need(*printed.imports)
    if printed.text not in classes:
        classes.append(printed.text)
    return f"{name}({here})"


def _partial_calls(piece: Piece, scope: Scope) -> list[Node]:
    return [n for n in scope.nodes if n.child is not None and n.child in piece.part.partial]


def _class_name(scope: Scope, piece: Piece, classes: list[str]) -> str:
    base = re.sub(r"\W", "", scope.type) + piece.suffix
    taken = {m[1] for text in classes if (m := re.match(r"class (\w+)", text))}
    name, count = base, 1
    while name in taken:
        count += 1
        name = f"{base}{count}"
    return name


def _container(
    place: Place, piece: Piece, scope: Scope, here: str, inner: list[Node], classes: list[str]
) -> str:
    """What is left of an ``nn.Sequential``, under the same names."""
    module = place.model.get_submodule(scope.path)
    names = [n.target.rpartition(".")[2] for n in scope.nodes if n.kind == "module"]
    every = list(module._modules)
    first, last = every.index(names[0]), every.index(names[-1])
    odd = {n.target.rpartition(".")[2]: n for n in inner}
    plain = all(indexed(module, n) for n in every)
    if not odd and plain and not piece.renewed and type(module).__name__ == "Sequential":
        end = "" if last == len(every) - 1 else str(last + 1)
        return f"{here}[{first or ''}:{end}]"
    place.need("from torch import nn")

    def child(name: str) -> str:
        if piece.renewed or not indexed(module, name):
            return f"{here}.get_submodule({quoted(name)})"
        return spelled(module, name, here)

    def value(name: str) -> str:
        if name in odd:
            return _value(place, piece, odd[name].child, child(name), classes)
        return child(name)

    if plain and first == 0 and not piece.renewed and list(odd) in ([names[-1]], [names[0]]):
        if names[-1] in odd:
            before = f"*{here}[:{last}], " if last else ""
            return f"nn.Sequential({before}{value(names[-1])})"
        after = f", *{here}[1:{'' if last == len(every) - 1 else last + 1}]" if last else ""
        return f"nn.Sequential({value(names[0])}{after})"
    place.need("from collections import OrderedDict")
    if plain and len(names) > 4 and not odd:
        return (
            f"nn.Sequential(OrderedDict((n, m) for n, m in {here}.named_children() "
            f"if {first} <= int(n) <= {last}))"
        )
    items = ", ".join(f"({quoted(n)}, {value(n)})" for n in names)
    return f"nn.Sequential(OrderedDict([{items}]))"
