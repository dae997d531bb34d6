"""The modules of a split model: a chain as ``nn.Sequential``, else a class; what is whole stays whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import nn

from ..draft import Piece
from ..edits import Place, quoted
from ..errors import EmissionError
from ..graph import Graph, Scope
from ..paths import children, indexed, moved, renumbered, span, spelled
from .printer import print_class
from .sequential import print_sequential


def write(
    place: Place,
    piece: Piece,
    classes: list[str],
    made: Mapping[str, Mapping[str, str]],
    block: Callable[[str, list[str]], None],
    base: Graph,
    settled: set[int],
    moded: bool,
) -> None:
    """Write one part: classes above, one assignment below.

    Args:
        place: Where it is written; takes the imports.
        piece: What to write.
        classes: The classes so far; inner ones come first.
        made: For each rewired scope, the modules that it makes: attribute to text.
        block: Adds a comment with its statements.
        base: The graph of the untouched model.
        settled: What the run decided and classes so far guard, by number; filled.
        moded: Whether statements before ask the model for its mode.
    """
    text = _Writer(place, piece, classes, made, base, settled).value("", place.variable)
    lines = [f"{piece.variable or place.variable} = {text}"]
    mode = f"{place.variable}.training"
    if not piece.variable and text.startswith("nn.Sequential(") and (moded or mode in text):
        lines = [f"training = {mode}", *lines, f"{mode} = training"]  # for a second run
    block(piece.comment, lines)


def check(place: Place, piece: Piece) -> list[str]:
    """Lines for the very top: what was left out in a first run is not there in a second one."""
    if not piece.first:
        return []
    owner, _, name = piece.first.rpartition(".")
    return [
        f"if not hasattr({place.spelled(owner)}, {quoted(name)}):",
        f"    raise RuntimeError({quoted(f'{piece.first} is gone already: run this on a fresh model')})",
    ]


@dataclass
class _Writer:
    place: Place
    piece: Piece
    classes: list[str]
    made: Mapping[str, Mapping[str, str]]
    base: Graph
    settled: set[int]

    def value(self, key: str, here: str) -> str:
        """The expression for what is left of a scope, where `here` is the old module."""
        part = self.piece.part
        scope = part.opened.get(key) or part.partial[key]
        if part.container(scope):
            return self.container(scope, here)
        module = self.place.model.get_submodule(scope.path)
        arg = self.place.variable if key == "" else "block"
        source = here if key == "" else arg
        new = {}
        for child in self.children(scope):
            name = child.path[len(scope.path) + 1 :] if scope.path else child.path
            owner, _, item = name.rpartition(".")
            listed = type(getattr(module, owner, None)) is nn.ModuleList and item.isdigit()
            if owner and not listed:
                raise EmissionError(
                    f"{child.path!r} cannot be divided: the class of {scope.path or 'the model'!r} "
                    "reaches it through other modules"
                )
            new[name] = self.value(child.key, spelled(module, name, source))
        used = {n.target for n in scope.nodes if n.kind in ("module", "parameter")}
        for name, text in self.made.get(key, {}).items():
            path = f"{scope.path}.{name}" if scope.path else name
            if any(target == path or target.startswith(f"{path}.") for target in used):
                new[name] = text
        if key == "":
            chain = print_sequential(part.graph, scope, module, arg=here, new=new, base=self.base)
            if chain is not None:
                self.place.need(*chain.imports)
                return chain.text
        name = self.class_name(scope)
        with renumbered(self.shifted(scope)):
            printed = print_class(
                part.graph, scope, module, name=name, arg=arg,
                doc=f"{scope.type}, {self.piece.doc}.", new=new, allow_specialised=True,
                base=self.base, settled=self.settled, rerun=not self.piece.variable,
            )  # fmt: skip
        self.place.need(*printed.imports)
        if printed.text not in self.classes:
            self.classes.append(printed.text)
        return f"{name}({here})"

    def shifted(self, printed: Scope) -> dict[int, list[str]]:
        """Containers that begin behind their first child: numbers mean others there.

        They are run child by child, or by the class that is printed.
        """
        found = {}
        for scope in (*self.piece.part.opened.values(), printed):
            module = self.place.model.get_submodule(scope.path)
            below = len(scope.path) + 1 if scope.path else 0
            names = [n.target[below:].partition(".")[0] for n in scope.nodes if n.kind == "module"]
            if isinstance(module, nn.Sequential) and next(iter(module._modules)) not in names:
                found[id(module)] = []
        return found

    def children(self, scope: Scope) -> list[Scope]:
        """Scopes called from this one that are not whole; opened containers among them."""
        part = self.piece.part
        found = [
            part.partial[n.child]
            for n in scope.nodes
            if n.child is not None and n.child in part.partial
        ]
        below = f"{scope.path}." if scope.path else ""
        opened = [s.path + "." for s in part.opened.values() if s.path.startswith(below)]
        opened = [path for path in opened if path != below]
        found = [c for c in found if not c.path.startswith(tuple(opened))]  # the container has them
        above = {s.path: s for s in part.opened.values() if s.path.rpartition(".")[0] == scope.path}
        return found + list(above.values())

    def class_name(self, scope: Scope) -> str:
        base = re.sub(r"\W", "", scope.type) + self.piece.suffix
        taken = {m[1] for text in self.classes if (m := re.match(r"class (\w+)", text))}
        name, count = base, 1
        while name in taken:
            count += 1
            name = f"{base}{count}"
        return name

    def container(self, scope: Scope, here: str) -> str:
        """What is left of an ``nn.Sequential``, under the same names."""
        module = self.place.model.get_submodule(scope.path)
        every = list(module._modules)
        depth = len(scope.path.split(".")) if scope.path else 0
        names = list(
            dict.fromkeys(n.target.split(".")[depth] for n in scope.nodes if n.kind == "module")
        )
        added = {n.target.split(".")[depth] for n in scope.nodes if n.kind == "module"} - set(every)
        odd = {c.path.rpartition(".")[2]: c for c in self.children(scope)}
        # a slice of a subclass calls its constructor
        sliced = type(module).__name__ == "Sequential"
        plain = sliced and not added and all(indexed(module, n) for n in every)
        first, last = (every.index(names[0]), every.index(names[-1])) if not added else (0, 0)
        if not odd and plain:
            return here + span(first, last + 1, len(every))
        final = children(module)
        if sliced and not odd and moved(module) and set(names) <= set(final):
            first, last = final.index(names[0]), final.index(names[-1])
            if final[first : last + 1] == names:
                return here + span(first, last + 1, len(final))
        self.place.need("from torch import nn")

        def value(name: str) -> str:
            if name in added or not indexed(module, name):
                old = f"{here}.get_submodule({quoted(name)})"
            else:
                old = spelled(module, name, here)
            return self.value(odd[name].key, old) if name in odd else old

        if plain and first == 0 and list(odd) in ([names[-1]], [names[0]]):
            if names[-1] in odd:
                before = f"*{here}[:{last}], " if last else ""
                return f"nn.Sequential({before}{value(names[-1])})"
            end = "" if last == len(every) - 1 else last + 1
            after = f", *{here}[1:{end}]" if last else ""
            return f"nn.Sequential({value(names[0])}{after})"
        self.place.need("from collections import OrderedDict")
        items = ", ".join(f"({quoted(n)}, {value(n)})" for n in names)
        return f"nn.Sequential(OrderedDict([{items}]))"
