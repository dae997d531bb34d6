"""A draft as source text: imports, classes for rewired scopes, then one block per change."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import nn

from ..draft import (
    Assign,
    Bulk,
    Draft,
    Edit,
    InsertChild,
    NewModule,
    Rewire,
    SetValue,
    Shorten,
    Widen,
)
from ..errors import EmissionError
from ..expression import Expression, imports, printed, spell
from ..paths import assignment, spelled
from ..widths import constructor, widths
from . import format
from .names import is_name
from .printer import print_class

EMPTY = "# no step: the model stays as it is\n"


@dataclass
class _Text:
    """What has been written so far."""

    imports: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)


def emit(draft: Draft, variable: str = "model") -> str:
    """Write the code that turns the person's model into the edited one.

    Args:
        draft: The folded steps.
        variable: The person's own name for the model.

    Returns:
        Formatted source, ready for a cell; a comment alone where there is nothing to do.

    Raises:
        EmissionError: A scope whose wiring changed cannot be written as code.
    """
    draft = draft.copy()
    draft.finish()
    text = _Text()
    for edit in _merged(draft.edits):
        _block(text, edit.comment, _LINES[type(edit)](draft, edit, variable, text.imports))
    _rewired(text, draft, variable)
    if not text.blocks:
        return EMPTY
    head = import_block(text.imports)
    parts = []
    if text.classes:
        parts = [head] if head else []
        parts += text.classes
        body = "\n\n\n".join(parts) + "\n\n\n" + "\n\n".join(text.blocks)
    else:
        body = "\n\n".join([*([head] if head else []), *text.blocks])
    return format.fit(body).rstrip("\n") + "\n"


def _block(text: _Text, comment: str, lines: Iterable[str]) -> None:
    body = "\n".join(lines)
    if not comment and text.blocks:  # it belongs to the change above
        text.blocks[-1] += "\n" + body
        return
    note = textwrap.wrap(comment, 98, break_long_words=False, break_on_hyphens=False)
    text.blocks.append("\n".join([*(f"# {line}" for line in note), body]))


def _merged(edits: list[Edit]) -> list[Edit]:
    """The same edit once: a bulk one stands in the list once per place."""
    seen: list[Edit] = []
    for edit in edits:
        if edit not in seen:
            seen.append(edit)
    return seen


# -- attribute edits ------------------------------------------------------------------------


def made(expr: Expression, old: str, edit, mode_of: str, literals=None) -> str:
    """The text of something new, on its device and in its mode."""
    text = printed(expr, old, (literals or {}).get) + edit.suffix
    return text + f".train({mode_of}.training)" if edit.moded else text


def _assign(draft: Draft, edit: Assign, variable: str, lines_above: list[str]) -> list[str]:
    lines_above += imports(edit.new, draft.namespace)
    if "torch." in edit.suffix:
        lines_above.append("import torch")
    here = spelled(draft.model, edit.path, variable)
    value = made(edit.new, here, edit, variable, edit.literals)
    lines = []
    if edit.once:
        lines += [
            f"if isinstance({here}, {_callee(edit.new)}):",
            f'    raise RuntimeError("{edit.path} is a {edit.once} already: run this on a fresh model")',
        ]
    reads = sum(isinstance(n, ast.Name) and n.id == "old" for n in ast.walk(edit.new.tree))
    if reads > len(edit.literals) + 1 and here.count(".") > 1:  # a long path said twice reads badly
        lines.append(f"old = {here}")
        value = made(edit.new, "old", edit, variable, edit.literals)
    aliases = draft.aliases(edit.path)[1:] if draft._exists(edit.path) else ()
    for alias in aliases:
        value = assignment(draft.model, alias, variable, value)
    return [*lines, assignment(draft.model, edit.path, variable, value)]


def _bulk(draft: Draft, edit: Bulk, variable: str, lines_above: list[str]) -> list[str]:
    lines_above += imports(edit.new, draft.namespace)
    if "torch." in edit.suffix:
        lines_above.append("import torch")
    lines = []
    if edit.once:
        lines += [
            f"if any(isinstance(m, {_callee(edit.new)}) for m in {variable}.modules()):",
            f'    raise RuntimeError("there is a {edit.once} already: run this on a fresh model")',
        ]
    if edit.cls is not None:
        lines_above += _class_imports(edit.cls)
        value = made(edit.new, "module", edit, variable)
        return [
            *lines,
            f"for name, module in list({variable}.named_modules()):",
            f"    if isinstance(module, {spell(edit.cls)}):",
            f"        {variable}.set_submodule(name, {value})",
        ]
    lines.append(f"for name in ({', '.join(_quoted(p) for p in edit.paths)}):")
    if "old" in edit.new.free:
        lines.append(f"    old = {variable}.get_submodule(name)")
    value = made(edit.new, "old", edit, variable)
    return [*lines, f"    {variable}.set_submodule(name, {value})"]


def _class_imports(cls: type) -> list[str]:
    name = spell(cls)
    if "." in name:
        return ["from torch import nn"] if name.startswith("nn.") else ["import torch"]
    return [] if cls.__module__ == "__main__" else [f"from {cls.__module__} import {cls.__name__}"]


def _widen(draft: Draft, edit: Widen, variable: str, lines_above: list[str]) -> list[str]:
    lines_above += ["import torch", "from torch import nn"]
    layer = draft.model.get_submodule(edit.path)
    old_ins, old_outs = widths(layer)
    ins, outs = edit.inputs or old_ins, edit.outputs or old_outs
    here = spelled(draft.model, edit.path, variable)
    tensor = layer.weight
    move = [] if tensor.device.type == "cpu" else [f'"{tensor.device}"']
    move += (
        []
        if tensor.dtype.is_floating_point and str(tensor.dtype) == "torch.float32"
        else [str(tensor.dtype)]
    )
    suffix = f".to({', '.join(move)})" if move else ""
    first = f"[:{min(outs, old_outs)}" if outs != old_outs else "[:"
    kept = min(ins, old_ins)
    part = f"{first}, :{kept}]" if ins != old_ins else f"{first}]"
    copies: list[str] = []
    grows = ins > old_ins or outs > old_outs
    if edit.weights == "zero" or ins == old_ins:
        copies = ["new.weight.zero_()"] if grows else []
        copies.append(f"new.weight{part} = old.weight{part}")
    elif edit.weights == "mean":
        copies = [f"new.weight{part} = old.weight{part}"]
        if ins > old_ins:
            rest = part.replace(f":{kept}]", f"{kept}:]")
            copies.append(f"new.weight{rest} = old.weight{part}.mean(1, keepdim=True)")
    elif edit.weights == "sum":
        share = f" / {ins}" if ins != 1 else ""
        copies = [f"new.weight.copy_(old.weight.sum(1, keepdim=True){share})"]
    elif edit.weights == "repeat":
        copies = [
            f"new.weight.copy_(old.weight[:, torch.arange({ins}) % {old_ins}] * {old_ins} / {ins})"
        ]
    if layer.bias is not None:
        rows = f"[:{min(outs, old_outs)}]" if outs != old_outs else ""
        if outs > old_outs:
            copies.append("new.bias.zero_()")
        copies.append(f"new.bias{rows} = old.bias{rows}" if rows else "new.bias.copy_(old.bias)")
    lines = [f"old = {here}"]
    if edit.weights == "repeat":
        width = "in_features" if hasattr(layer, "in_features") else "in_channels"
        lines += [
            f"if old.{width} != {old_ins}:",
            f'    raise RuntimeError("{edit.path} is widened already: run this on a fresh model")',
        ]
    return [
        *lines,
        f"new = {constructor(layer, ins, outs)}{suffix}",
        "with torch.no_grad():",
        *(f"    {c}" for c in copies),
        assignment(draft.model, edit.path, variable, "new"),
    ]


def _shorten(draft: Draft, edit: Shorten, variable: str, lines_above: list[str]) -> list[str]:
    here = spelled(draft.model, edit.path, variable)
    container = draft.model.get_submodule(edit.path)
    if type(container) in (nn.Sequential, nn.ModuleList):
        return [assignment(draft.model, edit.path, variable, f"{here}[:{edit.keep}]")]
    lines_above.append("from torch import nn")  # a slice of a subclass would call its own __init__
    names = list(container._modules)
    if names == [str(i) for i in range(len(names))]:
        value = f"nn.Sequential(*list({here})[:{edit.keep}])"
    else:
        lines_above.append("from collections import OrderedDict")
        value = f"nn.Sequential(OrderedDict(list({here}.named_children())[:{edit.keep}]))"
    return [assignment(draft.model, edit.path, variable, value)]


def _insert_child(
    draft: Draft, edit: InsertChild, variable: str, lines_above: list[str]
) -> list[str]:
    lines_above += ["from collections import OrderedDict", "from torch import nn"]
    lines_above += imports(edit.new, draft.namespace)
    here = spelled(draft.model, edit.path, variable)
    put = [
        f'    if name == "{edit.anchor}":',
        f'        layers["{edit.name}"] = {made(edit.new, here, edit, variable)}',
    ]
    keep = ["    layers[name] = layer"]
    return [
        "layers = OrderedDict()",
        f"for name, layer in {here}.named_children():",
        *([*put, *keep] if edit.before else [*keep, *put]),
        assignment(draft.model, edit.path, variable, "nn.Sequential(layers)"),
    ]


def _set_value(draft: Draft, edit: SetValue, variable: str, lines_above: list[str]) -> list[str]:
    return [f"{variable}.{edit.path} = {edit.value}"]


_LINES = {
    Assign: _assign,
    Bulk: _bulk,
    Widen: _widen,
    Shorten: _shorten,
    InsertChild: _insert_child,
    SetValue: _set_value,
}


def _callee(expr: Expression) -> str:
    body = expr.tree.body
    return ast.unparse(body.func if isinstance(body, ast.Call) else body)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# -- rewired scopes -------------------------------------------------------------------------


def _rewired(text: _Text, draft: Draft, variable: str) -> None:
    """One class per kind of change, deepest scopes first; the same class serves equal places."""
    groups: dict[str, list[Rewire]] = {}
    shown: dict[str, tuple] = {}
    taken: set[str] = set()
    for rewire in sorted(draft.rewires.values(), key=lambda r: -len(_path(draft, r).split("."))):
        root = _path(draft, rewire) == ""
        arg = (variable if is_name(variable) else "model") if root else _argument(draft, rewire)
        piece = _class(draft, rewire, arg, "\0")
        key = f"{root}{piece.text}"
        groups.setdefault(key, []).append(rewire)
        shown[key] = (piece, arg, root)
    for key, rewires in groups.items():
        piece, _arg, _ = shown[key]
        first = rewires[0]
        name = _class_name(draft, first, taken)
        taken.add(name)
        text.imports += piece.imports
        text.classes.append(piece.text.replace("\0", name))
        for r in rewires:
            for m in r.new.values():
                text.imports += imports(m.new, draft.namespace)
                if "torch." in m.suffix:
                    text.imports.append("import torch")
        _block(text, _place_comment(draft, rewires), _places(draft, rewires, name, variable))


def _path(draft: Draft, rewire: Rewire) -> str:
    return draft.graph.scopes[rewire.key].path


def _class(draft: Draft, rewire: Rewire, arg: str, name: str):
    scope = draft.graph.scopes[rewire.key]
    module = draft.model.get_submodule(scope.path)
    new = {attr: _init(draft, scope.path, arg, m) for attr, m in rewire.new.items()}
    doc = f"{scope.type} {'; '.join(dict.fromkeys(rewire.docs))}."
    return print_class(
        draft.graph,
        scope,
        module,
        name=name,
        arg=arg,
        doc=doc,
        new=new,
        names=rewire.names,
        base=draft.base,
        allow_specialised=True,
    )


def _init(draft: Draft, scope_path: str, arg: str, new: NewModule) -> str:
    old = arg
    if new.old is not None:
        inside = new.old[len(scope_path) + 1 :] if scope_path else new.old
        old = spelled(draft.model.get_submodule(scope_path), inside, arg)
    return made(new.new, old, new, arg)


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
    if len(rewires) == 1:
        return "; ".join(comments)
    first = [c.partition(": ")[2] or c for c in comments]
    return f"{len(rewires)} places: " + "; ".join(first)


def _places(draft: Draft, rewires: list[Rewire], name: str, variable: str) -> list[str]:
    paths = [_path(draft, r) for r in rewires]
    if len(paths) <= 2:
        return [
            assignment(draft.model, p, variable, f"{name}({spelled(draft.model, p, variable)})")
            for p in paths
        ]
    if "" in paths:
        raise EmissionError("the root cannot share a class with a module inside it")
    return [
        f"for name in ({', '.join(_quoted(p) for p in paths)}):",
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
