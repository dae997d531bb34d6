"""New children of plain containers: one rebuild for a container, one loop over those that get the same."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from .edits import Edit, Place, class_imports
from .expression import Expression, spell
from .paths import assignment, each, loop, nested, quoted, spelled


@dataclass(frozen=True)
class InsertChild(Edit):
    """A new child of a plain ``nn.Sequential``, under a name of its own: other keys stay."""

    path: str
    name: str
    anchor: str
    before: bool
    new: Expression
    suffix: str = ""
    moded: bool = False
    anew: bool = False  # a second run makes it again: an edit before speaks of all that is here

    @property
    def stem(self) -> str:
        """What its name has in front of its anchor's: ``dropout`` of ``dropout_3``; else empty."""
        end = f"_{self.anchor}"
        return self.name.removesuffix(end) if self.name.endswith(end) else ""

    @property
    def kind(self) -> tuple:
        """Equal for children that are made in the same way."""
        return (
            self.step,
            self.before,
            self.new.text,
            self.suffix,
            self.moded,
            self.anew,
            self.stem,
        )


@dataclass(frozen=True)
class _Rule:
    """What one loop over the children of a container adds: where, under which name, and what."""

    test: str
    name: str
    child: InsertChild
    skip: str = ""
    cls: type | None = None  # what the test asks for

    def lines(self, place: Place, layer: str) -> list[str]:
        if self.cls is not None:
            place.need(*class_imports(self.cls))
        value = place.made(self.child, layer)
        return [
            f"    if {self.test.format(layer)}:",
            f"        layers.add_module({self.name}, {value})",
        ]

    @property
    def key(self) -> tuple:
        return (self.test, self.name, self.skip, self.child.kind)


@dataclass(frozen=True)
class Children(Edit):
    """The same new children in some containers; none of `rules`: one, behind all that is there."""

    children: tuple[InsertChild, ...]
    rules: tuple[_Rule, ...] = ()

    @property
    def touched(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(c.path for c in self.children))

    def lines(self, place: Place) -> list[str]:
        place.need("from torch import nn")
        paths = self.touched
        if not self.rules:
            return self._appended(place, paths)
        if len(paths) == 1:
            here = place.spelled(paths[0])
            last = place.assigned(paths[0], "layers")
            return self._rebuilt(place, here, "layer", last, root=not paths[0])
        found = loop(place.model, paths, place.variable)
        if found is None or not found[2]:
            names = ", ".join(map(quoted, paths))
            head, var, here = (
                f"for path in ({names}):",
                "path",
                f"{place.variable}.get_submodule(path)",
            )
            last = f"{place.variable}.set_submodule(path, layers)"
        else:
            head, var, rest, item = found
            here, last = spelled(item, rest, var), assignment(item, rest, var, "layers")
        body = self._rebuilt(place, here, "block" if var == "layer" else "layer", last)
        return nested([head], body)

    def _appended(self, place: Place, paths: Sequence[str]) -> list[str]:
        child = self.children[0]
        if len(paths) == 1:
            old = place.spelled(f"{child.path}.{child.anchor}" if child.path else child.anchor)
            here, value = place.spelled(paths[0]), place.made(child, old)
            return [f"{here}.add_module({quoted(child.name)}, {value})"]
        heads, here = each(place.model, paths, place.variable, "block")
        value = place.made(child, "")
        return nested(heads, [f"{here}.add_module({quoted(child.name)}, {value})"])

    def _rebuilt(
        self, place: Place, here: str, layer: str, last: str, root: bool = False
    ) -> list[str]:
        rules = self.rules
        before = [line for r in rules if r.child.before for line in r.lines(place, layer)]
        behind = [r for r in rules if not r.child.before]
        if len({c.anchor for c in self.children}) < len(
            {(c.anchor, c.name) for c in self.children}
        ):
            behind.reverse()  # what a later step puts behind the same one comes first
        after = [line for r in behind for line in r.lines(place, layer)]
        skips = dict.fromkeys(r.skip for r in rules if r.skip)
        return [
            "layers = nn.Sequential()",
            *([f"layers.training = {here}.training"] if root else []),
            f"for name, {layer} in {here}.named_children():",
            *(line for s in skips for line in (f"    if {s}:", "        continue")),
            *before,
            f"    layers.add_module(name, {layer})",
            *after,
            last,
        ]


def together(edits: Iterable[Edit], model: nn.Module, made: Mapping[str, Any]) -> list[Edit]:
    """The edits with new children that stand in a row put together, those of one step first of all.

    Args:
        edits: In their order.
        model: The base model.
        made: Path → the new module there.
    """
    edits = list(edits)
    grouped = _Grouped(edits, model, made)
    out: list[Edit] = []
    run: list[InsertChild] = []
    for edit in _beside(edits):
        if not isinstance(edit, InsertChild):
            out += grouped.of(run)
            run = []
            out.append(edit)
            continue
        new = {(r.path, r.name) for r in run}
        of_step = [e for e in edits if isinstance(e, InsertChild) and e.step == edit.step]
        begins = not run or run[-1].step != edit.step
        if begins and any((e.path, e.anchor) in new for e in of_step):
            out += grouped.of(run)
            run = []
        run.append(edit)
    return out + grouped.of(run)


def _beside(edits: Iterable[Edit]) -> Iterator[Edit]:
    """The edits, with all new children of a step beside its first one."""
    edits, told = list(edits), set()
    for edit in edits:
        if not isinstance(edit, InsertChild):
            yield edit
        elif edit.step not in told:
            told.add(edit.step)
            yield from (e for e in edits if isinstance(e, InsertChild) and e.step == edit.step)


class _Grouped:
    """New children by the containers that get the same ones."""

    def __init__(self, edits: Sequence[Edit], model: nn.Module, made: Mapping[str, Any]):
        self.model, self.made = model, made
        self.added: dict[str, list[str]] = {}
        for edit in edits:
            if isinstance(edit, InsertChild):
                self.added.setdefault(edit.path, []).append(edit.name)
        replaced = [p for e in edits if e.replaces for p in e.touched]
        self.changed = {p.rpartition(".")[0] for p in replaced}  # children of other classes

    def of(self, run: Sequence[InsertChild]) -> list[Edit]:
        """One edit for all containers that get the same; in the order of the first of each."""
        containers: dict[str, list[InsertChild]] = {}
        for child in run:
            containers.setdefault(child.path, []).append(child)
        alike: dict[tuple, list[list[InsertChild]]] = {}
        for path, children in containers.items():
            if self._last(path, children):
                child = children[0]
                own = path if "old" in child.new.free else None
                key = ("last", child.name, own, child.kind)
            else:
                key = tuple((k, c[0].name if not k[-1] else "") for k, c in _kinds(children))
            alike.setdefault(key, []).append(children)
        found: list[Edit] = []
        for key, group in alike.items():
            if key[:1] == ("last",):
                found.append(_edit([c for children in group for c in children]))
                continue
            ruled: dict[tuple, list[list[InsertChild]]] = {}
            rules: dict[tuple, tuple[_Rule, ...]] = {}
            tests = self._common(group)
            for children in group:
                own = tuple(self._rules(children, tests))
                same = tuple(r.key for r in own)
                rules.setdefault(same, own)
                ruled.setdefault(same, []).append(children)
            found += [
                _edit([c for children in part for c in children], rules[same])
                for same, part in ruled.items()
            ]
        return found

    def _last(self, path: str, children: Sequence[InsertChild]) -> bool:
        """Whether there is one new child only, behind all that the container holds."""
        names = list(self.model.get_submodule(path)._modules)
        alone = len(children) == len(self.added[path]) == 1 and not children[0].stem
        return alone and not children[0].before and names[-1:] == [children[0].anchor]

    def _common(self, group: Sequence[Sequence[InsertChild]]) -> list[str]:
        """For each kind of new child the test that holds in all of the containers, if there is one."""
        columns = zip(*([c for _, c in _kinds(children)] for children in group), strict=True)
        chosen = []
        for column in columns:
            each = [dict(self._tests(children)) for children in column]
            chosen.append(next((t for t in each[0] if all(t in other for other in each)), ""))
        return chosen

    def _rules(self, children: Sequence[InsertChild], common: Sequence[str]) -> Iterator[_Rule]:
        for (_, alike), wanted in zip(_kinds(children), common, strict=True):
            tests = dict(self._tests(alike))
            test = wanted or next(iter(tests))
            first = alike[0]
            name = f'f"{first.stem}_{{name}}"' if first.stem else quoted(first.name)
            skip = self._skip(alike) if first.anew else ""
            yield _Rule(test, name, first, skip, tests[test])

    def _tests(self, children: Sequence[InsertChild]) -> Iterator[tuple[str, type | None]]:
        """What holds for just the children of the container that get the new ones, best first."""
        path, anchors = children[0].path, [c.anchor for c in children]
        old, wanted = self.model.get_submodule(path)._modules, set(anchors)
        names = {*old, *self.added[path]}
        if children[0].stem and wanted <= set(old):
            if {n for n in names if n.isdigit()} == wanted:
                yield "name.isdigit()", None
            start = re.sub(r"[\d_.-]+$", "", os.path.commonprefix(anchors))
            if start and {n for n in names if n.startswith(start)} == wanted:
                yield f"name.startswith({quoted(start)})", None
            cls = type(old[anchors[0]])
            new = {n: self.made.get(f"{path}.{n}" if path else n) for n in self.added[path]}
            held = {n for n, m in {**old, **new}.items() if isinstance(m, cls)}
            known = "." not in cls.__qualname__ and path not in self.changed
            if known and held == wanted and len({type(old[a]) for a in anchors}) == 1:
                yield f"isinstance({{}}, {spell(cls)})", cls
        own = f"{children[0].stem}_"
        if children[0].stem and {n for n in names if not n.startswith(own)} == wanted:
            yield f"not name.startswith({quoted(own)})", None
        listed = ", ".join(map(quoted, anchors))
        yield (f"name in ({listed})" if len(anchors) > 1 else f"name == {listed}"), None

    def _skip(self, children: Sequence[InsertChild]) -> str:
        """The test for new children of an earlier run."""
        path, mine = children[0].path, {c.name for c in children}
        start, names = f"{children[0].stem}_", {*self.model.get_submodule(path)._modules}
        if (
            len(start) > 1
            and {n for n in {*names, *self.added[path]} if n.startswith(start)} == mine
        ):
            return f"name.startswith({quoted(start)})"
        listed = ", ".join(quoted(c.name) for c in children)
        return f"name in ({listed})" if len(children) > 1 else f"name == {listed}"


def _kinds(children: Sequence[InsertChild]) -> list[tuple[tuple, list[InsertChild]]]:
    """The new children of one container by how they are made; without a stem, each alone."""
    found: dict[tuple, list[InsertChild]] = {}
    for i, child in enumerate(children):
        found.setdefault((child.kind, "" if child.stem else i), []).append(child)
    return [(kind, group) for (kind, _), group in found.items()]


def _edit(children: Sequence[InsertChild], rules: tuple[_Rule, ...] = ()) -> Children:
    """Several new children as one edit, with one comment."""
    if len(children) == 1:
        return Children(children[0].step, children[0].comment, tuple(children), rules)
    paths = list(dict.fromkeys(c.path for c in children))
    kinds: dict[tuple, list[InsertChild]] = {}
    for child in children:
        kinds.setdefault((*child.kind[:-1], child.stem and True), []).append(child)
    said = []
    for alike in kinds.values():
        first = alike[0]
        full = [f"{c.path}.{c.anchor}" if c.path else c.anchor for c in alike]
        names = full if len(paths) > 1 else [c.anchor for c in alike]
        if len(names) > 3:
            where = f"each of {len(names)} modules ({names[0]} … {names[-1]})"
        else:
            ticked = [f"`{n}`" for n in names]
            where = ", ".join(ticked[:-1]) + f" and {ticked[-1]}" if len(ticked) > 1 else ticked[0]
        weights = ", new weights" in first.comment
        each = (
            ", new weights each"
            if weights and len(alike) > 1
            else ", new weights"
            if weights
            else ""
        )
        said.append(f"{first.new.text} {'before' if first.before else 'after'} {where}{each}")
    home = f"{paths[0] or 'the model'}: " if len(paths) == 1 else ""
    return Children(children[0].step, home + "; ".join(said), tuple(children), rules)


def order(edits: Iterable[Edit], model: nn.Module) -> dict[int, list[str]]:
    """The id of each container that gets new children → the names of all of them, in their order."""
    found: dict[int, list[str]] = {}
    for edit in edits:
        if not isinstance(edit, InsertChild):
            continue
        container = model.get_submodule(edit.path)
        names = found.setdefault(id(container), list(container._modules))
        at = names.index(edit.anchor) + (not edit.before) if edit.anchor in names else len(names)
        names.insert(at, edit.name)
    return found
