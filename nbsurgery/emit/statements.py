"""A draft as source text: imports, classes for rewired scopes, then one block per change."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ..children import order, together
from ..draft import Draft, Rewire
from ..edits import Assign, Edit, NewModule, Place, SetValue, by_attribute, listed, quoted
from ..errors import EmissionError, StepError
from ..expression import imports, printed
from ..paths import assigned_everywhere, in_lists, nested, renumbered, spelled
from . import format, parts
from .names import is_name
from .printer import print_class
from .splice import splice

EMPTY = "# no step: the model stays as it is\n"


@dataclass
class _Text:
    """What has been written so far."""

    imports: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)


# What is tried in turn to write a changed forward. Printed where nothing that the run decided is in it;
# else the author's own text with the edit in it; where the edit is no single place in it, printed with
# guards that raise.
_ATTEMPTS = {
    "auto": ("printed", "spliced", "guarded"),
    "subclass": ("spliced", "printed", "guarded"),
    "new": ("printed", "guarded", "spliced"),
}


_SHORT = 15  # lines that one reads at a glance


@dataclass(frozen=True)
class Style:
    """Choices of taste.

    Attributes:
        in_place: Change the person's model; else a deep copy under the name ``edited``.
        function: One function ``operate(model)`` and its call; else statements.
        classes: Of a changed forward: ``subclass`` puts the edit into the author's own text, ``new``
            prints a class from the recorded graph, ``auto`` takes what stays right most widely.

    Raises:
        StepError: There is no such choice.
    """

    in_place: bool = True
    function: bool = False
    classes: str = "auto"

    def __post_init__(self) -> None:
        if self.classes not in _ATTEMPTS:
            raise StepError(f"classes={self.classes!r} is none of {', '.join(_ATTEMPTS)}")

    def results(self, variable: str) -> tuple[str, ...] | None:
        """The name under which the text leaves one edited model, where it is not the person's."""
        return None if self.in_place else ("edited",)


def emit(draft: Draft, variable: str = "model", style: Style = Style()) -> str:
    """Write the code that turns the person's model into the edited one.

    Args:
        draft: The folded steps.
        variable: The person's own name for the model.
        style: Choices of taste.

    Returns:
        Formatted source, ready for a cell; a comment alone where there is nothing to do.

    Raises:
        EmissionError: A scope whose wiring changed cannot be written as code.
    """
    draft = draft.copy()
    draft.finish()
    grown = [
        id(draft.model.get_submodule(_path(draft, r))) for r in draft.rewires.values() if r.new
    ]
    with renumbered(order(draft.edits, draft.model), grown):
        text = _emitted(draft, variable, style)
    _refuse_hidden(draft, text, variable)
    return text


def _refuse_hidden(draft: Draft, text: str, variable: str) -> None:
    """Refuse text that binds a name by which the person's own expressions mean something of hers.

    Raises:
        EmissionError: It does; the message says which name.
    """
    asked = {name for e in draft.expressions() for name in e.free} & draft.namespace.keys()
    asked -= {"old", variable}
    if not asked:
        return
    for name in _bound(ast.parse(text)):
        if name in asked:
            raise EmissionError(
                f"the code gives the name {name!r} to something of its own, which would hide yours; "
                "give yours another name"
            )


def _bound(node: ast.AST) -> Iterator[str]:
    """Names bound where modules are made: of classes, by statements, in ``__init__``; not in a forward."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            if isinstance(node, ast.ClassDef) and child.name != "__init__":
                continue
            yield from (a.arg for a in child.args.args)
        elif isinstance(child, ast.ClassDef):
            yield child.name
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        yield from _bound(child)


def _emitted(draft: Draft, variable: str, style: Style) -> str:
    pieces = draft.pieces()
    person, variable = variable, ("model" if style.function else variable)
    if not style.in_place and not style.function:
        variable = "edited"
    partial = {k for p in pieces for k in (*p.part.partial, *p.part.opened)}
    place = Place(draft.model, variable, draft.namespace)
    text = _Text(place.imports, place.classes)
    early, late = [], []
    for edit in together(_merged(draft.edits), draft.model, draft.made):
        new = any(not draft.exists(p) for p in edit.touched)  # what a class below makes
        (late if new and not isinstance(edit, Assign) else early).append(edit)
    for edit in early:
        _block(text, edit.comment, edit.lines(place))
    _rewired(text, draft, variable, partial, style.classes)
    for edit in late:
        _block(text, edit.comment, edit.lines(place))
    settled: set[int] = set()
    for piece in pieces:
        there = {n.target for n in draft.live_nodes(piece.part.graph)}
        made = {
            k: new_modules(draft, _in_part(draft, r, there), variable if k == "" else "block")
            for k, r in draft.rewires.items()
        }
        for r in draft.rewires.values():
            for m in r.new.values() if r.key in partial else ():
                place.need(*imports(m.new, draft.namespace))
                if "torch." in m.suffix:
                    place.need("import torch")
        parts.write(
            place,
            piece,
            text.classes,
            made,
            lambda c, lines: _block(text, c, lines),
            draft.base,
            settled,
            any(f"{variable}.training" in b for b in text.blocks),
        )
    if not text.blocks:
        return EMPTY
    _check_first(text.blocks)
    for piece in pieces:
        if lines := parts.check(place, piece):
            text.blocks.insert(0, "\n".join(lines))
    _styled(text, style, person, variable, [p.variable for p in pieces if p.variable])
    head = import_block(text.imports)
    if text.classes:
        top = [head] if head else []
        body = "\n\n\n".join([*top, *text.classes]) + "\n\n\n" + "\n\n".join(text.blocks)
    else:
        body = "\n\n".join([*([head] if head else []), *text.blocks])
    return format.fit(body).rstrip("\n") + "\n"


def _styled(text: _Text, style: Style, person: str, variable: str, names: list[str]) -> None:
    """Put the statements on a copy, or into a function, as the style wants."""
    if not style.in_place:
        text.imports.append("import copy")
        source = "model" if style.function else person
        text.blocks.insert(0, f"{variable} = copy.deepcopy({source})")
    if style.function:
        result = ", ".join(names) or "model"
        body = "\n\n".join([*text.blocks, f"return {result}"])
        text.classes.append(
            'def operate(model):\n    """Edit a model."""\n' + textwrap.indent(body, "    ")
        )
        target = result if names else person if style.in_place else "edited"
        text.blocks[:] = [f"{target} = operate({person})"]


def _block(text: _Text, comment: str, lines: Iterable[str]) -> None:
    body = "\n".join(lines)
    if not comment and text.blocks:  # it belongs to the change above
        text.blocks[-1] += "\n" + body
        return
    note = format.wrapped(comment, format.WIDTH - 2)
    text.blocks.append("\n".join([*(f"# {line}" for line in note), body]))


_OLD = re.compile(r"^(old = (.+)\n)if old\.(.+:\n    raise RuntimeError\(.+\)\n)", re.M)
_ALREADY = re.compile(r"^if .+:\n    raise RuntimeError\(.+\)\n", re.M)


def _check_first(blocks: list[str]) -> None:
    """Put what stops a second run in front of all that changes something."""
    checks = []
    for i, block in enumerate(blocks[1:], 1):
        if found := _OLD.search(block):
            checks.append(f"if {found[2]}.{found[3]}")
            blocks[i] = block[: found.end(1)] + block[found.end() :]
        elif found := _ALREADY.search(block):
            checks.append(found[0])
            blocks[i] = block[: found.start()] + block[found.end() :]
    if checks:
        blocks.insert(0, "".join(checks).rstrip())


def _merged(edits: Iterable[Edit]) -> list[Edit]:
    """The same edit once: a bulk one stands in the list once per place."""
    seen: list[Edit] = []
    for edit in edits:
        if edit not in seen:
            seen.append(edit)
    return seen


# -- rewired scopes -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Written:
    """The class for one rewired scope; ``spliced`` ones are put on the instance."""

    imports: tuple[str, ...]
    text: str
    spliced: bool


def _rewired(
    text: _Text, draft: Draft, variable: str, left_out: Iterable[str], classes: str
) -> None:
    """One class per kind of change, deepest scopes first; the same class serves equal places."""
    groups: dict[tuple, list[Rewire]] = {}
    skip = set(left_out)
    rewires = [r for k, r in draft.rewires.items() if k not in skip]
    rewires.sort(key=lambda r: -len(_path(draft, r).split(".")))
    texts = {}
    for rewire in rewires:
        arg = variable if is_name(variable) else "model"
        arg = arg if _path(draft, rewire) == "" else _argument(draft, rewire)
        texts[rewire.key] = _class(draft, rewire, arg, "\0", classes)
    if classes == "auto":
        _one_for_all(draft, rewires, texts)
    for rewire in rewires:
        written = texts[rewire.key]
        made = tuple(
            (k, m.new.text, m.suffix, m.moded) for k, m in rewire.new.items() if written.spliced
        )
        groups.setdefault((_path(draft, rewire) == "", written, made), []).append(rewire)
    taken: set[str] = set()
    for (_, written, _), rewires in groups.items():
        first = rewires[0]
        name = _class_name(draft, first, taken)
        taken.add(name)
        text.imports += written.imports
        text.classes.append(written.text.replace("\0", name))
        for r in rewires:
            for m in r.new.values():
                text.imports += imports(m.new, draft.namespace)
                if "torch." in m.suffix:
                    text.imports.append("import torch")
        places = _set_class if written.spliced else _places
        _block(text, _place_comment(draft, rewires), places(draft, rewires, name, variable))


def _one_for_all(draft: Draft, rewires: list[Rewire], texts: dict[str, _Written]) -> None:
    """Where one edit of blocks of one class prints several: the author's text, if it serves them all."""
    alike: dict[tuple, list[Rewire]] = {}
    for r in rewires:
        kind = type(draft.model.get_submodule(_path(draft, r)))
        alike.setdefault((kind, r.docs, r.suffixes, tuple(r.new)), []).append(r)
    for group in alike.values():
        if len({texts[r.key] for r in group}) < 2:
            continue
        try:
            spliced = {r.key: _class(draft, r, "block", "\0", "subclass") for r in group}
        except EmissionError:
            continue
        if len(set(spliced.values())) == 1 and all(w.spliced for w in spliced.values()):
            texts |= spliced


def _path(draft: Draft, rewire: Rewire) -> str:
    return draft.graph.scopes[rewire.key].path


def _class(draft: Draft, rewire: Rewire, arg: str, name: str, classes: str) -> _Written:
    """The class of a rewired scope.

    Raises:
        EmissionError: There is no text that would be right.
    """
    scope = draft.graph.scopes[rewire.key]
    module = draft.model.get_submodule(scope.path)
    doc = f"{scope.type} {'; '.join(dict.fromkeys(rewire.docs))}."
    new = new_modules(draft, rewire, arg)
    refused: dict[str, EmissionError] = {}
    for attempt in _ATTEMPTS[classes]:
        try:
            if attempt == "spliced":
                piece = splice(draft.base, scope, module, name=name, doc=doc, new=new)
            else:
                piece = print_class(
                    draft.graph, scope, module, name=name, arg=arg, doc=doc, new=new,
                    names=rewire.names, allow_specialised=attempt == "guarded", base=draft.base,
                    keep=_set_again(draft, scope.path), numbered=True,
                )  # fmt: skip
            written = _Written(piece.imports, piece.text, attempt == "spliced")
        except EmissionError as error:
            refused[attempt] = error
            continue
        if classes == "auto" and attempt == "printed":
            written = _shorter(draft, rewire, written, doc, new, name)
        return written
    if scope.opaque and "spliced" in refused:  # then only the author's own text could have served
        raise EmissionError(
            f"{refused['printed']}; its modules can still be replaced. An edit of the author's text: "
            f"{refused['spliced']}"
        )
    raise refused["printed"]


def _shorter(
    draft: Draft, rewire: Rewire, printed: _Written, doc: str, new: dict[str, str], name: str
) -> _Written:
    """The author's text with the edit in it where the printed one reads worse.

    That is where it is far longer, his loop unrolled, and where it would refuse calls that his allows.
    """
    lines, guards = printed.text.count("\n"), "raise RuntimeError(" in printed.text
    if lines < 2 * _SHORT and not guards:
        return printed
    scope = draft.graph.scopes[rewire.key]
    module = draft.model.get_submodule(scope.path)
    try:
        piece = splice(draft.base, scope, module, name=name, doc=doc, new=new)
    except EmissionError:
        return printed
    if not guards and piece.text.count("\n") > lines - _SHORT:
        return printed
    return _Written(piece.imports, piece.text, True)


def _set_again(draft: Draft, path: str) -> set[str]:
    """Attributes of the module at `path` that the statements set: a second run needs them there."""
    start = f"{path}." if path else ""
    found = [
        e.path[len(start) :].split(".")[0]
        for e in draft.edits
        if isinstance(e, SetValue) and e.path.startswith(start)
    ]
    module = draft.model.get_submodule(path)
    return {name for name in found if name not in module._modules}


def new_modules(draft: Draft, rewire: Rewire, arg: str) -> dict[str, str]:
    """Attribute → text for the modules that a rewired scope makes for itself."""
    new = _texts(draft, rewire, arg)
    for attr, m in rewire.new.items():
        if m.zero:
            new[attr] += f"\n        nn.init.zeros_(self.{attr}.weight)"
    return new


def _in_part(draft: Draft, rewire: Rewire, there: set) -> Rewire:
    """The same with those items of new lists only that a part of a divided model calls."""
    path = draft.graph.scopes[rewire.key].path
    start = f"{path}." if path else ""
    new = {a: m for a, m in rewire.new.items() if "." not in a or start + a in there}
    return replace(rewire, new=new)


def _texts(draft: Draft, rewire: Rewire, arg: str) -> dict[str, str]:
    """Attribute → text; modules of one list are one attribute."""
    path = draft.graph.scopes[rewire.key].path
    new: dict[str, str] = {}
    for attr, group in by_attribute(rewire.new).items():
        made = {k: _init(draft, path, arg, m) for k, m in group.items()}
        tails = {_tail(arg, m) for m in group.values()}
        tail = tails.pop() if len(tails) == 1 and "" not in group else ""
        texts = {k: text.removesuffix(tail) for k, text in made.items()}
        new[attr] = texts[""] if "" in group else listed(texts) + tail
    return new


def _set_class(draft: Draft, rewires: list[Rewire], name: str, variable: str) -> list[str]:
    """New modules set on the instances, whose class becomes the subclass."""
    lines: list[str] = []
    paths = [_path(draft, r) for r in rewires]
    if len(paths) > 2:
        loops, first = in_lists(draft.model, paths, variable), []
        if loops is None:
            loops = [f"for name in ({', '.join(map(quoted, paths))}):"], "block"
            first = [f"block = {variable}.get_submodule(name)"]
        heads, here = loops
        made = _texts(draft, rewires[0], here)
        put = [f"{here}.{k} = {v}" for k, v in made.items()]
        return nested(heads, [*first, *put, f"{here}.__class__ = {name}"])
    for rewire, path in zip(rewires, paths, strict=True):
        here = spelled(draft.model, path, variable)
        lines += [f"{here}.{k} = {v}" for k, v in _texts(draft, rewire, here).items()]
        lines.append(f"{here}.__class__ = {name}")
    return lines


def _init(draft: Draft, scope_path: str, arg: str, new: NewModule) -> str:
    old = arg
    if new.old is not None:
        inside = new.old[len(scope_path) + 1 :] if scope_path else new.old
        old = spelled(draft.model.get_submodule(scope_path), inside, arg)
    return printed(new.new, old) + _tail(arg, new)


def _tail(arg: str, new: NewModule) -> str:
    """What moves a new module to its place and into its mode."""
    return new.suffix + (f".train({arg}.training)" if new.moded else "")


def _argument(draft: Draft, rewire: Rewire) -> str:
    kind = draft.graph.scopes[rewire.key].type
    for word in ("Layer", "Attention", "Encoder", "Decoder", "Stage"):
        if kind.endswith(word):
            return word.lower()
    return "block"


def _class_name(draft: Draft, rewire: Rewire, taken: set[str]) -> str:
    suffixes = list(dict.fromkeys(rewire.suffixes))
    ending = "".join(suffixes) if len(suffixes) <= 2 else "Edited"
    kind = re.sub(r"\W", "", draft.graph.scopes[rewire.key].type)
    base = kind + (re.sub(r"\W", "", ending) or "Edited")
    name, count = base, 1
    while name in taken or name in draft.namespace and _foreign(draft.namespace[name]):
        count += 1
        name = f"{base}{count}"
    return name


def _foreign(value: object) -> bool:
    """A notebook's name that is not a class of an earlier emitted cell."""
    return not (isinstance(value, type) and value.__module__ in ("__main__", "builtins"))


def _place_comment(draft: Draft, rewires: list[Rewire]) -> str:
    comments = list(dict.fromkeys(c for c in rewires[0].comments))
    first = [c.partition(": ")[2] or c for c in comments]
    if len(rewires) > 1:
        return f"{len(rewires)} places: " + "; ".join(first)
    if len({c.partition(": ")[0] for c in comments}) == 1:  # the place is named once
        comments[1:] = first[1:]
    return "; ".join(comments)


def _places(draft: Draft, rewires: list[Rewire], name: str, variable: str) -> list[str]:
    paths = [_path(draft, r) for r in rewires]
    if len(paths) <= 2 or any(len(draft.aliases(p)) > 1 for p in paths):
        values = {p: f"{name}({spelled(draft.model, p, variable)})" for p in paths}
        return [assigned_everywhere(draft.model, p, variable, v) for p, v in values.items()]
    if "" in paths:
        raise EmissionError("the root cannot share a class with a module inside it")
    if loops := in_lists(draft.model, paths, variable):
        heads, here = loops
        items = heads[-1].removeprefix(f"for {here} in ").removesuffix(":")
        if "." in here and not here.endswith(")"):
            return nested(heads, [f"{here} = {name}({here})"])
        if ":" not in items and variable != "i":  # all items of a list
            head = f"for i, {here} in enumerate({items}):"
            return nested([*heads[:-1], head], [f"{items}[i] = {name}({here})"])
    return [
        f"for name in ({', '.join(quoted(p) for p in paths)}):",
        f"    {variable}.set_submodule(name, {name}({variable}.get_submodule(name)))",
    ]


# -- imports --------------------------------------------------------------------------------


def import_block(lines: Iterable[str]) -> str:
    """Import lines once each, merged and sorted: the standard library first."""
    plain: set[str] = set()
    froms: dict[str, set[str]] = {}
    for line in dict.fromkeys(lines):
        if match := re.fullmatch(r"from (\S+) import (.+)", line):
            froms.setdefault(match[1], set()).update(x.strip() for x in match[2].split(","))
        else:
            plain.add(line)
    entries = [(line.split()[1], 0, line) for line in plain]
    entries += [
        (m, 1, f"from {m} import {', '.join(sorted(n, key=_order))}") for m, n in froms.items()
    ]
    sections: list[list[str]] = [[], []]
    for home, kind, line in sorted(entries, key=lambda e: (e[1], e[0])):
        sections[home.split(".")[0] not in sys.stdlib_module_names].append((kind, line))
    return "\n\n".join("\n".join(line for _, line in s) for s in sections if s)


def _order(name: str) -> tuple:
    """As ruff sorts: constants, then classes, then the rest."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name
