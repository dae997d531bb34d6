"""What the code says about attributes and containers: each edit knows how it is written.

An operation that needs another kind of statement defines its own `Edit` beside itself; nothing else
has to know of it.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from torch import nn

from .errors import an
from .expression import Expression, imports, printed, spell
from .paths import assigned_everywhere, assignment, moved, quoted, spelled


@dataclass
class Place:
    """Where an edit is written: the base model, the person's name for it, what it needs on top.

    ``imports`` and ``classes`` are filled by the edits; a class stands there once.
    """

    model: nn.Module
    variable: str
    namespace: Mapping[str, Any] = field(default_factory=dict)
    imports: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)

    def spelled(self, path: str) -> str:
        """The expression for what is at `path`: ``model.layer1[0].conv1``."""
        return spelled(self.model, path, self.variable)

    def assigned(self, path: str, value: str) -> str:
        """The statement that puts `value` at `path`."""
        return assignment(self.model, path, self.variable, value)

    def assigned_everywhere(self, path: str, value: str) -> str:
        """The same under every name of the module that stands there."""
        return assigned_everywhere(self.model, path, self.variable, value)

    def need(self, *lines: str) -> None:
        """Import lines that the text needs."""
        self.imports += lines

    def define(self, text: str) -> None:
        """A class or function to stand above the statements."""
        if text not in self.classes:
            self.classes.append(text)

    def made(self, edit: Any, old: str, literals: Mapping[str, str] | None = None) -> str:
        """The text of an edit's new thing, on its device and in its mode."""
        self.need(*imports(edit.new, self.namespace))
        if "torch." in edit.suffix:
            self.need("import torch")
        text = printed(edit.new, old, (literals or {}).get) + edit.suffix
        return text + f".train({self.variable}.training)" if edit.moded else text


@dataclass(frozen=True)
class Edit:
    """One thing that the code must say, with the comment above it and the step that asked for it."""

    step: int
    comment: str
    replaces: ClassVar[bool] = False  # other modules stand at its places then
    reshapes: ClassVar[bool] = False  # … of the same kind, as wide as must be

    def lines(self, place: Place) -> list[str]:
        """The statements."""
        raise NotImplementedError

    @property
    def touched(self) -> tuple[str, ...]:
        """Paths of the modules that it speaks of."""
        for name in ("paths", "modules"):
            if hasattr(self, name):
                return getattr(self, name)
        return (self.path,) if hasattr(self, "path") else ()

    @property
    def sets(self) -> Iterator[tuple[str, str, Any]]:
        """Attributes that it sets on layers: path, name and value."""
        return iter(())

    def reaches(self, path: str) -> bool:
        """Whether it speaks of whatever is inside of the module at `path`."""
        return False

    def without(self, gone: Callable[[str], bool]) -> Edit | None:
        """The edit without the places that are gone; ``None`` if nothing is left to say."""
        path = getattr(self, "path", None)
        return None if path is not None and gone(path) else self


@dataclass(frozen=True)
class Assign(Edit):
    """``model.fc = nn.Linear(model.fc.in_features, 10)``: another module in the place of one.

    ``literals`` are values for ``old.<attribute>`` where the new module would no longer know them, so
    that the text can run twice; ``suffix`` moves it to the right device, dtype and mode.
    """

    replaces = True
    path: str
    new: Expression
    literals: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""
    moded: bool = False
    once: str = ""  # a check to put in front where running twice would nest: the class name
    keep: bool = False  # parameters and buffers of the same name are carried over
    was: type | None = (
        None  # where no class tells that it ran: the class that must stand there still
    )

    def lines(self, place: Place) -> list[str]:
        here = place.spelled(self.path)
        value = place.made(self, here, self.literals)
        lines = []
        if self.once:
            lines += [
                f"if isinstance({here}, {callee(self.new)}):",
                f"    raise RuntimeError({quoted(f'{self.path} is {an(self.once)} already: {_FRESH}')})",
            ]
        if self.was is not None:
            lines += _still_was(place, here, self.path, self.was)
        reads = sum(isinstance(n, ast.Name) and n.id == "old" for n in ast.walk(self.new.tree))
        if (
            reads > len(self.literals) + 1 and here.count(".") > 1
        ):  # a long path said twice reads badly
            lines.append(f"old = {here}")
            value = place.made(self, "old", self.literals)
        if self.keep:
            lines += [f"new = {value}", f"new.load_state_dict({here}.state_dict(), strict=False)"]
            value = "new"
        return [*lines, place.assigned_everywhere(self.path, value)]


@dataclass(frozen=True)
class Bulk(Edit):
    """The same new module in many places: a loop over a class, or over a list of names.

    ``calls`` says of each path how often it is called, where the comment is `bulk_comment`.
    """

    replaces = True
    paths: tuple[str, ...]
    new: Expression
    cls: type | None = None
    suffix: str = ""
    moded: bool = False
    once: str = ""
    keep: bool = False
    was: type | None = None
    calls: Mapping[str, int] = field(default_factory=dict, hash=False)

    def lines(self, place: Place) -> list[str]:
        if len(self.paths) == 1 and self.cls is None:  # the others went with a later step
            one = Assign(
                self.step, self.comment, self.paths[0], self.new, {}, self.suffix, self.moded,
                self.once, self.keep, self.was,
            )  # fmt: skip
            return one.lines(place)
        lines = []
        if self.once:
            lines += [
                f"if any(isinstance(m, {callee(self.new)}) for m in {place.variable}.modules()):",
                f'    raise RuntimeError("there is {an(self.once)} already: {_FRESH}")',
            ]
        if self.was is not None:
            lines += _still_was(place, place.spelled(self.paths[0]), self.paths[0], self.was)
        each = f"for name in ({', '.join(quoted(p) for p in self.paths)}):"
        which = ""
        if self.cls is not None:
            place.need(*class_imports(self.cls))
            which = f"isinstance(module, {spell(self.cls)})"
        elif len(each) > _WIDTH:
            which = selected(place.model, self.paths)
        if which:
            if which.startswith("re."):
                place.need("import re")
            value = place.made(self, "module")
            return [
                *lines,
                f"for name, module in list({place.variable}.named_modules()):",
                f"    if {which}:",
                *(f"        {line}" for line in self._put(place, value, "module")),
            ]
        lines.append(each)
        if "old" in self.new.free or self.keep:
            lines.append(f"    old = {place.variable}.get_submodule(name)")
        value = place.made(self, "old")
        return [*lines, *(f"    {line}" for line in self._put(place, value, "old"))]

    def _put(self, place: Place, value: str, old: str) -> list[str]:
        if not self.keep:
            return [f"{place.variable}.set_submodule(name, {value})"]
        return [
            f"new = {value}",
            f"new.load_state_dict({old}.state_dict(), strict=False)",
            f"{place.variable}.set_submodule(name, new)",
        ]

    def without(self, gone: Callable[[str], bool]) -> Edit | None:
        left = tuple(p for p in self.paths if not gone(p))
        if not left:
            return None
        if self.cls is not None or left == self.paths:
            return self
        _, mark, kept = self.comment.partition(";")
        comment = self.comment
        if self.calls:
            comment = bulk_comment(left, None, self.new, self.calls) + mark + kept
        return replace(self, paths=left, comment=comment)


def bulk_comment(
    paths: Sequence[str], cls: type | None, new: Expression, calls: Mapping[str, int]
) -> str:
    """``every nn.ReLU → nn.GELU: 17 modules, 33 calls``."""
    count = sum(calls[p] for p in paths)
    many = f"{count:,} call{'s' if count != 1 else ''}"
    if cls is not None:
        return f"every {spell(cls)} → {new.short}: {len(paths)} modules, {many}"
    named = f"{len(paths)} modules ({paths[0]} … {paths[-1]})" if len(paths) > 1 else paths[0]
    return f"{named} → {new.short}: {many}"


@dataclass(frozen=True)
class Shorten(Edit):
    """``model.encoder.layer = model.encoder.layer[:6]``: the end of a container goes."""

    path: str
    keep: int

    def lines(self, place: Place) -> list[str]:
        here = place.spelled(self.path)
        container = place.model.get_submodule(self.path)
        if moved(container):  # in a second run the same number means another child: by name
            gone = ", ".join(quoted(n) for n in list(container._modules)[self.keep :])
            return [
                f"for name in ({gone}{'' if ', ' in gone else ','}):",
                f"    if hasattr({here}, name):",
                f"        delattr({here}, name)",
            ]
        if type(container) in (nn.Sequential, nn.ModuleList):
            return [place.assigned(self.path, f"{here}[:{self.keep}]")]
        place.need("from torch import nn")  # a slice of a subclass would call its own __init__
        names = list(container._modules)
        if names == [str(i) for i in range(len(names))]:
            value = f"nn.Sequential(*list({here})[:{self.keep}])"
        else:
            place.need("from collections import OrderedDict")
            value = f"nn.Sequential(OrderedDict(list({here}.named_children())[:{self.keep}]))"
        return [place.assigned(self.path, value)]


@dataclass(frozen=True)
class SetValue(Edit):
    """``model.config.num_hidden_layers = 6``: a plain attribute; ``{}`` in `value` is the old one."""

    path: str
    value: str

    @property
    def touched(self) -> tuple[str, ...]:
        return ()

    def lines(self, place: Place) -> list[str]:
        owner, _, name = self.path.rpartition(".")
        module = owner in dict(place.model.named_modules(remove_duplicate=False))
        here = f"{place.spelled(owner) if module else f'{place.variable}.{owner}'}.{name}"
        return [f"{here} = {self.value.replace('{}', here)}"]

    def without(self, gone: Callable[[str], bool]) -> Edit | None:
        return self


@dataclass(frozen=True)
class NewModule:
    """A module that a rewired scope makes for itself."""

    new: Expression
    suffix: str = ""
    moded: bool = False
    old: str | None = None  # path of the module that `old` means
    zero: bool = False  # its weight starts at zero


def by_attribute(new: Mapping[str, NewModule]) -> dict[str, dict[str, NewModule]]:
    """New modules by their attribute; those of a list by their number in it, ``norms.3``."""
    found: dict[str, dict[str, NewModule]] = {}
    for name, module in new.items():
        attr, _, item = name.partition(".")
        found.setdefault(attr, {})[item] = module
    return found


def listed(texts: Mapping[str, str]) -> str:
    """Modules by number as one container: ``nn.ModuleList(nn.LayerNorm(32) for _ in range(4))``.

    Where numbers are left out, it is a dictionary.
    """
    names = sorted(texts, key=int)
    whole = names == [str(i) for i in range(len(names))]
    numbers = f"range({len(names)})" if whole else f"({', '.join(names)}{',' * (len(names) == 1)})"
    same = {texts[n] for n in names}, {texts[n].replace(f"[{n}]", "[i]") for n in names}
    alike = next(((*s, i) for s, i in zip(same, "_i") if len(s) == 1), ("", ""))
    text, i = alike if len(names) > 1 else ("", "")
    if whole:
        items = f"{text} for {i} in {numbers}" if i else f"[{', '.join(texts[n] for n in names)}]"
        return f"nn.ModuleList({items})"
    items = f"str(i): {text} for i in {numbers}" if i else ""
    return f"nn.ModuleDict({{{items or ', '.join(f'{quoted(n)}: {texts[n]}' for n in names)}}})"


_WIDTH = 100  # names that fit in one line are said; others are found by a condition


def selected(model: nn.Module, paths: tuple[str, ...]) -> str:
    """A condition on ``name`` that holds for just these modules; empty where none is simple enough."""
    names = [name for name, _ in model.named_modules()]
    start, end = os.path.commonprefix(paths), os.path.commonprefix([p[::-1] for p in paths])[::-1]
    start, end = start[: start.rfind(".") + 1], end[end.find(".") :] if "." in end else ""
    tests: list[tuple[str, Callable[[str], Any]]] = []
    if end:
        tests.append((f"name.endswith({quoted(end)})", lambda n: n.endswith(end)))
    if start:
        tests.append((f"name.startswith({quoted(start)})", lambda n: n.startswith(start)))
    if start and end:
        both = f"{tests[1][0]} and {tests[0][0]}"
        tests.append((both, lambda n: n.startswith(start) and n.endswith(end)))
    for pattern in _patterns(paths):
        tests.append((f're.fullmatch(r"{pattern}", name)', re.compile(pattern).fullmatch))
    wanted = set(paths)
    return next((text for text, holds in tests if {n for n in names if holds(n)} == wanted), "")


def _patterns(paths: tuple[str, ...]) -> Iterator[str]:
    """Patterns that match all of the paths: numbers left open, then only those that occur."""
    columns = [dict.fromkeys(column) for column in zip(*(p.split(".") for p in paths))]
    if len({p.count(".") for p in paths}) > 1 or not all(map(str.isascii, paths)):
        return
    for close in (False, True):
        parts = []
        for column in columns:
            stems = {re.sub(r"\d+$", "", part) for part in column}
            if len(column) == 1:
                parts.append(re.escape(*column))
            elif len(stems) > 1:
                parts.append(f"({'|'.join(map(re.escape, column))})")
            else:
                stem = stems.pop()
                numbers = [part[len(stem) :] for part in column]
                few = close and all(len(n) == 1 for n in numbers) and len(numbers) < 5
                parts.append(re.escape(stem) + (f"[{''.join(numbers)}]" if few else r"\d+"))
        yield r"\.".join(parts)


_FRESH = "run this on a fresh model"


def _still_was(place: Place, here: str, path: str, cls: type) -> list[str]:
    """A check in front of what changes a module in place: a second run would find another class."""
    place.need(*class_imports(cls))
    return [
        f"if type({here}) is not {spell(cls)}:",
        f"    raise RuntimeError({quoted(f'{path} is changed already: {_FRESH}')})",
    ]


def callee(expr: Expression) -> str:
    """The text of what an expression calls."""
    body = expr.tree.body
    return ast.unparse(body.func if isinstance(body, ast.Call) else body)


def class_imports(cls: type) -> list[str]:
    """What must be imported to name a class as `spell` does."""
    name = spell(cls)
    if "." in name:
        return ["from torch import nn"] if name.startswith("nn.") else ["import torch"]
    return [] if cls.__module__ == "__main__" else [f"from {cls.__module__} import {cls.__name__}"]
