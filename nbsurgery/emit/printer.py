"""A scope's graph as the class that its author would have typed."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import types
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from .. import source
from ..draft import conjoined
from ..errors import EmissionError
from ..graph import Graph, Node, Ref, Scope, map_refs
from ..paths import children, moved, singular
from ..rewrite import unique_name
from . import format, loops
from .effects import refuse_effects
from .expressions import ATOM, INPLACE, INPLACE_METHODS, Writer, quoted
from .keeps import Keeps
from .names import identifier, is_name
from .plan import Plan, is_inplace_statement, out_of_place
from .specialised import (
    GUARD,
    argument_guards,
    carried_dtypes,
    guard_lines,
    guarded,
    none_results,
)

_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of emitted text.

    Attributes:
        imports: The import lines that it needs.
        text: The text, formatted, without a last newline.
        keeps: What it takes over from the old module, in order: names of its attributes.
    """

    imports: tuple[str, ...]
    text: str
    keeps: tuple[str, ...] = ()


def print_class(
    graph: Graph,
    scope: Scope,
    module: nn.Module,
    *,
    name: str,
    arg: str,
    doc: str | None = None,
    new: Mapping[str, str] = types.MappingProxyType({}),
    names: Mapping[str, str] = types.MappingProxyType({}),
    form: str = "copy",
    base: Graph | None = None,
    allow_specialised: bool = False,
    settled: set[int] | None = None,
    keep: Collection[str] = (),
    rerun: bool = False,
    numbered: bool = False,
) -> Printed:
    """Print the forward of one scope, edited or not, as a class.

    Args:
        graph: The graph that the scope belongs to; it knows the other scopes and what was decided.
        scope: The scope to print, with its edits in it.
        module: The module of that scope, as it was before the edit.
        name: Name of the class.
        arg: What ``__init__`` calls the old module.
        doc: Docstring.
        new: Modules that the edit adds: attribute to source text, complete.
        names: Wanted variable names by node id.
        form: ``"copy"`` makes an `nn.Module` that takes what forward uses from the old module;
            ``"sub"`` makes a subclass of the old class with another forward.
        base: The graph before any edit, where `graph` is an edited one: what was decided is told
            in its terms.
        allow_specialised: Print a scope whose run decided on concrete values with a guard that
            raises where another value comes, instead of refusing.
        settled: Decisions that other classes of a divided model guard; this one's are added.
        keep: Further attributes of the old module that a copy takes along.
        rerun: A second run makes the class of what the first has made.
        numbered: Other statements may reach items of a list by number: they keep theirs.

    Raises:
        EmissionError: The scope has no text that would be right; the message names it and says why.
    """
    if scope.opaque:
        where = scope.key or "the model"
        raise EmissionError(f"{where} ({scope.type}) can't be written as code: {scope.opaque}")
    forced: dict[str, str] = {}
    apart: set[str] = set()
    for _ in range(_ROUNDS):
        decided = (forced, apart)
        first = Writer(graph, scope, module, new, base)
        first.copies = form == "copy"
        body = _Body(first, names, decided)
        body.write()
        final = Writer(graph, scope, module, new, base)
        final.copies = form == "copy"
        none_results(final)
        carried_dtypes(final)
        final.verbatim = (
            body.w.verbatim
        )  # a first text tells which decisions stand in it as written
        refuse_effects(final)
        found = guarded(final, allow_specialised, settled or ())
        body = _Body(final, names, decided)
        signature, lines = body.write()
        fresh = {id: n for id, n in body.conflicts.items() if id not in forced and id not in names}
        if not fresh and body.early <= apart:
            break
        forced.update(fresh)
        apart |= body.early
    if settled is not None:
        settled |= found
    if doc and body.w.assumed:
        doc += f" Holds where {conjoined(list(body.w.assumed))}."
    return _Class(
        body.w, signature, lines, name, arg, doc, new, form, keep, rerun, numbered
    ).printed()


class _Body:
    """The statements of a forward."""

    def __init__(self, writer: Writer, wanted: Mapping[str, str], decided: tuple):
        self.w = writer
        self.wanted = wanted
        self.forced, self.apart = decided
        self.early: set[str] = set()  # sizes to read before their tensor's variable goes
        self.conflicts: dict[str, str] = {}
        none_results(self.w)
        carried_dtypes(self.w)
        self._prune()
        out_of_place(self.w)
        self._inputs()

    def _prune(self) -> None:
        """Drop what nobody reads and nothing needs to run."""
        nodes = list(self.w.nodes)
        read: set[str] = set()
        kept: list[Node] = []
        for node in reversed(nodes):
            needed = node.kind in ("input", "output", "module") or node.impure or node.writes
            if needed or node.id in read:
                kept.append(node)
                read.update(node.refs)
        self.w.load(kept[::-1])

    # ------------------------------------------------------------------ signature

    def _inputs(self) -> None:
        """Name the values that come in, by the author's parameters."""
        w = self.w
        inputs = [n for n in w.nodes if n.kind == "input"]
        self.edited_inputs = any(n.step is not None for n in inputs)
        if self.edited_inputs:  # an edit says what goes in
            for node in inputs:  # ``B`` and ``b`` are two values
                name = identifier(node.target)
                w.names[node.id] = unique_name(name, [w.names.get(n.id, "") for n in inputs])
            w.parameters = tuple(w.names[n.id] for n in inputs)
            return
        hidden = [n for n in inputs if n.id in w.scope.stowaways]
        if any(w.users[n.id] for n in hidden):
            raise w.refuse(
                f"the value {hidden[0].name!r} reaches its forward by another way than the call"
            )
        try:
            parameters = list(inspect.signature(type(w.module).forward).parameters.values())[1:]
        except (TypeError, ValueError):
            raise w.refuse("its forward has no signature that could be read") from None
        self.declared = parameters
        w.parameters = tuple(p.name for p in parameters)
        self.extra: list[str] = []  # keywords that came by **kwargs and are read
        self.swallowed = False  # … and that are not
        rest = {n.target: n for n in inputs if n not in hidden}
        several = several_named = None
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                several = p.name
            elif p.kind is p.VAR_KEYWORD:
                several_named = p.name
            elif p.name in rest:
                w.names[rest.pop(p.name).id] = self._parameter_name(p.name)
        for target, node in rest.items():
            if several and (match := re.fullmatch(rf"{several}_(\d+)", target)):
                w.names[node.id] = f"{several}[{match[1]}]"
            elif several_named:
                w.names[node.id] = self._parameter_name(target)
                if w.users[node.id]:
                    self.extra.append(w.names[node.id])
                else:
                    self.swallowed = True
            elif w.users[node.id]:
                raise w.refuse(f"its input {target!r} is no parameter of its forward")
            else:
                w.names[node.id] = identifier(target)

    @staticmethod
    def _parameter_name(name: str) -> str:
        return name if is_name(name) or name in ("input", "type", "str") else name + "_"

    def _signature(self) -> str:
        """The author's parameters; optional ones that the run left out and nothing reads are left out.

        To pass one of those is then a `TypeError` and not a silent loss.
        """
        w = self.w
        if self.edited_inputs:
            return ", ".join(["self", *w.parameters])
        given = {n.target for n in w.nodes if n.kind == "input"}
        texts, star, last = ["self"], False, ""
        for p in self.declared:
            name = self._parameter_name(p.name)
            if p.kind is p.VAR_POSITIONAL:
                if any(re.fullmatch(rf"{p.name}_\d+", t) for t in given):
                    texts.append("*" + name)
                    star = True
            elif p.kind is p.VAR_KEYWORD:
                last = f"**{name}" if self.extra or self.swallowed else ""
            elif p.default is inspect._empty or p.name in given or p.name in w.read_by_name:
                if p.kind is p.KEYWORD_ONLY and not star:
                    texts.append("*")
                    star = True
                default = "" if p.default is inspect._empty else f"={self._default(p)}"
                texts.append(name + default)
        texts += [f"{name}=None" for name in self.extra]
        return ", ".join([*texts, last] if last else texts)

    def _default(self, parameter: inspect.Parameter) -> str:
        try:
            return self.w.text(parameter.default)
        except EmissionError:
            return "None"

    # ------------------------------------------------------------------ statements

    def write(self) -> tuple[str, list[str]]:
        w = self.w
        self.plan = plan = Plan(w, self.wanted, self.forced, self.apart)
        output = w.scope.output
        if output is None:
            raise w.refuse("the run stopped inside it")
        output = next(n for n in w.nodes if n.kind == "output")
        handed = {item.id for _, items in plan.unpack.values() for item in items.values()}
        statements = [n for n in plan.body if n.id not in plan.inside and n.id not in handed]
        self._lifetimes(statements)
        self.holder = {name: id for id, name in w.names.items()}  # variable → whose value it holds
        self.lines = list(plan.head)
        self.places: list[Any] = [None] * len(self.lines)  # where the author wrote each line
        self.depth = 0
        self.asked: set[tuple] = set()  # guards that stand there already
        self.open: list[str] = []
        for i, node in enumerate(statements):
            self._statement(node, i)
            self.places += [node.frames] * (len(self.lines) - len(self.places))
        if self.open:
            raise w.refuse("it returns from inside a with block")
        self.lines = loops.roll(self.lines, self.places, self._container)
        self._return(output)
        return self._signature(), argument_guards(w) + self.lines

    def _lifetimes(self, statements: list[Node]) -> None:
        """After which statement nobody reads a value any more, through what is written inside."""
        w, plan = self.w, self.plan
        position = {n.id: i for i, n in enumerate(statements)}
        for id, (_, items) in plan.unpack.items():
            if id in position:
                position.update({item.id: position[id] for item in items.values()})
        placed = self.placed = {}
        for node in reversed(w.nodes):
            if node.kind == "output":
                placed[node.id] = len(statements)
            elif node.id in position:
                placed[node.id] = position[node.id]
            else:
                placed[node.id] = max((placed[u.id] for u in w.users[node.id]), default=-1)
        self.last = {n.id: max((placed[u.id] for u in w.users[n.id]), default=-1) for n in w.nodes}
        for node in reversed(plan.body):
            if node.id in plan.inside:
                for ref in node.refs:
                    self.last[ref] = max(self.last[ref], self.last[node.id])

    def _live(self, name: str, at: int) -> bool:
        holder = self.holder.get(name)
        return holder is not None and self.last.get(holder, -1) > at

    def _add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def _hold(self, id: str, name: str) -> None:
        self.w.names[id] = name
        self.holder[name] = id

    def _statement(self, node: Node, i: int) -> None:
        w = self.w
        if node.kind == GUARD:
            lines = guard_lines(w, node)
            asked = (lines[0], frozenset(self._roots(node)))
            if asked not in self.asked:
                self.asked.add(asked)
                for line in lines:
                    self._add(line)
            return
        if self._context(node):
            return
        target = node.target
        label = getattr(target, "__name__", target) if node.kind in ("function", "method") else ""
        if label in ("setitem", "__setitem__"):
            base, index, value = node.args
            left = f"{w.text(base, ATOM)}[{w.subscript(index)}]"
            if not (isinstance(value, Ref) and w.spelled.get(value.id) == left):  # x[i] += 1 did it
                self._add(f"{left} = {w.text(value)}")
            self._same_variable(node, base)
            return
        if target is setattr:
            base, attribute, value = node.args
            self._add(f"{w.text(base, ATOM)}.{attribute} = {w.text(value)}")
            return
        if is_inplace_statement(w, node):
            base, value = node.args
            left = w.text(base, ATOM)
            symbol = INPLACE.get(target) or INPLACE_METHODS[target]
            self._add(f"{left} {symbol} {w.text(value)}")
            if not self._same_variable(node, base):
                w.spelled[node.id] = left
            return
        if node.id in self.plan.unpack:
            self._unpacking(node, i)
            return
        text = w.operation(node)[0]
        if not w.users[node.id]:
            self._add(text)
            return
        if self._plain_statement(node):
            self._add(text)
            self._same_variable(node, node.args[0])
            return
        name = self._name(node, i)
        self._hold(node.id, name)
        self._add(f"{name} = {text}")

    def _roots(self, node: Node) -> set[str]:
        """The values of which a guard reads a part: the same parameter may have been read twice."""
        if node.kind == "parameter":
            return {str(node.target)}
        if node.kind != GUARD and not node.glue:
            return {node.id}
        return {root for ref in node.refs for root in self._roots(self.w.by_id[ref])}

    def _plain_statement(self, node: Node) -> bool:
        """``x.clamp_(0)`` on a line of its own: the variable stays."""
        w = self.w
        if not (node.writes and node.kind == "method" and str(node.target).endswith("_")):
            return False
        base = node.args[0]
        if not isinstance(base, Ref) or w.names.get(base.id) not in self.holder:
            return False
        file, written = w.written(node)
        alone = file is not None and isinstance(file.parent.get(written), ast.Expr)
        return alone and self.holder[w.names[base.id]] == base.id

    def _same_variable(self, node: Node, base: Any) -> bool:
        """After an in-place operation the variable holds this node too."""
        names = self.w.names
        if not isinstance(base, Ref) or base.id not in names:
            return False
        name = names[node.id] = names[base.id]
        if self.holder.get(name) == base.id:
            self.last[node.id] = max(self.last[node.id], self.last[base.id])
            self.holder[name] = node.id
        return True

    def _unpacking(self, node: Node, i: int) -> None:
        text = self.w.operation(node)[0]
        self._add(f"{self._targets(node, i)} = {text}")

    def _targets(self, node: Node, i: int) -> str:
        """``out, (h, _)``: the variables that a result is unpacked into."""
        wanted, items = self.plan.unpack[node.id]
        left = []
        for k in range(len(wanted)):
            item = items.get(k)
            if item is None or not self.w.users[item.id]:
                left.append("_")
            elif item.id in self.plan.unpack:
                left.append(f"({self._targets(item, i)})")
            else:
                name = self._name(item, i)
                self._hold(item.id, name)
                left.append(name)
        return ", ".join(left) + ("," if len(left) == 1 else "")

    def _context(self, node: Node) -> bool:
        """Entering and leaving ``no_grad``, ``enable_grad`` and ``autocast``."""
        if node.kind != "function":
            return False
        helper = getattr(node.target, "__name__", "")
        if helper in ("enter_grad", "enter_autocast"):
            self.w.imports.torch()
            if helper == "enter_grad":
                what = "torch.enable_grad()" if node.args[0] else "torch.no_grad()"
            else:
                device, dtype, enabled = node.args[:3]
                how = f"dtype={dtype}" if enabled else "enabled=False"
                what = f"torch.autocast({quoted(device)}, {how})"
            self._add(f"with {what}:")
            self.depth += 1
            self.open.append(node.id)
            return True
        if helper in ("leave_grad", "leave_autocast"):
            if not self.open or node.args[:1] != (Ref(self.open[-1]),):
                raise self.w.refuse("its with blocks cross")
            self.open.pop()
            self.depth -= 1
            if self.lines[-1].endswith(":"):
                self.lines.pop()  # what stood in it has gone
            return True
        return False

    def _return(self, output: Node) -> None:
        value = output.args[0] if output.args else None
        text = self.w.text(value)
        if type(value) is tuple and len(value) > 1 and text.startswith("("):
            text = text[1:-1]
        match = re.match(r"(\w+) = (.*)$", self.lines[-1]) if self.lines else None
        if match and match[1] == text:
            self.lines[-1] = f"return {match[2]}"
        else:
            self.lines.append(f"return {text}")

    def _container(self, text: str) -> Any:
        value: Any = self.w.module
        parts = text.split(".")[1:]
        if parts[:1] and parts[0] in self.w.new:  # a list of new modules
            inner = [self.w.below(n.target) or "" for n in self.w.nodes if n.kind == "module"]
            return sorted({name for name in inner if name.startswith(f"{parts[0]}.")})
        for part in parts:
            value = getattr(value, part)
        if moved(value):
            plain = type(value) in (nn.Sequential, nn.ModuleList)
            value = children(value) if plain else None  # a slice of a subclass calls its __init__
        count = self.w.needed_items(parts[0]) if len(parts) == 1 else None
        return value if count is None else value[:count]

    # ------------------------------------------------------------------ names of variables

    def _name(self, node: Node, i: int) -> str:
        """The variable for a value: the author's, else one that fits, and none that is still read."""
        wish = self.plan.wish.get(node.id)
        if wish and self._live(wish, i):
            self._make_room(node, wish, i)
        candidates = ([wish] if wish else []) + self._ideas(node, i)
        for name in candidates:
            if self._free(name, i):
                return name
        base = candidates[0] if candidates and is_name(candidates[0]) else "value"
        k = 1
        while not self._free(f"{base}_{k}", i):
            k += 1
        return f"{base}_{k}"

    def _free(self, name: str, i: int) -> bool:
        return is_name(name) and name not in self.w.imports.bound and not self._live(name, i)

    def _make_room(self, node: Node, wish: str, i: int) -> None:
        """The wanted variable is still read: keep its value under the author's second name for it."""
        w = self.w
        held = self.holder[wish]
        other = source.second_name(node.frames, wish) if node.frames else None
        # the statement itself, which comes behind, may read what the second name holds now
        if other and self._free(other, i - 1) and is_name(wish):
            self._add(f"{other} = {wish}")
            for id, name in list(w.names.items()):
                if name == wish and (id == held or self.last.get(id, -1) > i):
                    w.names[id] = other
            self.holder[other] = held
            del self.holder[wish]
        elif sizes := self._sizes_only(held, i):
            self.early |= sizes
        elif w.by_id[held].kind != "input":
            self.conflicts[held] = self._own_name(w.by_id[held])

    def _sizes_only(self, held: str, i: int) -> set[str]:
        """The reads of sizes for which alone a value is still needed."""
        later = [u for u in self.w.users[held] if self.placed[u.id] > i]
        only = all(self.w.is_shape(u) and u.id in self.plan.inside for u in later)
        return {u.id for u in later} if only else set()

    def _own_name(self, node: Node) -> str:
        """What a value is called after what made it: ``layer1`` for ``self.layer1(x)``."""
        if node.kind == "module":
            parts = [p for p in node.target.split(".") if not p.isdigit()]
            return identifier(parts[-1]) if parts else "out"
        return self._part(node) if node.type == "getitem" else _called(node)

    def _part(self, node: Node) -> str:
        """What an item is called: its key, or one of ``features``."""
        base, index = node.args
        whole = self.w.names.get(base.id, "") if isinstance(base, Ref) else ""
        if isinstance(index, str):
            return identifier(index)
        one = singular(whole) if whole.isidentifier() and type(index) is int else ""
        return one if one.isidentifier() and one not in (whole, "item") else "part"

    def _ideas(self, node: Node, i: int) -> list[str]:
        w, ideas = self.w, []
        for ref in node.refs:
            made = w.by_id[ref]
            name = w.names.get(ref, "")
            value = made.outputs and (node.outputs or node.step is not None)
            if value and name.isidentifier() and self.last[ref] <= i:
                ideas.append(name)
                break
        if node.kind == "module":
            ideas.append(self._own_name(node))
        elif isinstance(node.value, int):
            ideas += ["n", "size"]
        elif node.type == "getattr":
            ideas.append(identifier(node.args[1]))
        elif node.type == "getitem":
            ideas.append(self._part(node))
        elif node.type in _PLAIN_RESULTS:
            ideas.append("out")
        else:
            ideas.append(_called(node))
        return ideas


def _called(node: Node) -> str:
    """What the result of a function is called; that of a class such as ``BaseModelOutput``: ``output``."""
    if node.type[:1].isupper():
        return "output"
    if re.fullmatch(r"(adaptive_)?(max|avg)_pool\dd", node.type):
        return "pooled"
    name = {"add": "total", "iadd": "total", "interpolate": "resized"}.get(node.type, node.type)
    return identifier(re.sub(r"\dd$", "", name))


_PLAIN_RESULTS = ("add", "iadd", "view", "reshape", "permute", "transpose", "mul", "sub", "truediv")


class _Class:
    """The class around the statements."""

    def __init__(
        self, w: Writer, signature, lines, name, arg, doc, new, form, keep, rerun, numbered
    ):
        self.w, self.signature, self.keep = w, signature, keep
        self.name, self.arg, self.doc, self.new, self.form = name, arg, doc, new, form
        self.is_container = isinstance(w.module, nn.Sequential) and any(
            k.isdigit() for k in (*w.used, *new)
        )
        self.keeps = Keeps(w, lines, arg, rerun, numbered)

    def printed(self) -> Printed:
        w, keeps = self.w, ()
        if self.form == "sub":
            head = [f"class {self.name}({w.refer(type(w.module))}):"]
            if self.doc:
                head += [format.docstring(self.doc, "    "), ""]
        else:
            if w.passed_self:
                raise w.refuse("it hands itself on, so a copy of its parts can't stand in for it")
            init, keeps = self._init()
            w.imports.nn()
            base = "nn.Sequential" if self.is_container else self._base()
            head = [f"class {self.name}({base}):"]
            if self.doc:
                head += [format.docstring(self.doc, "    "), ""]
            head.append(f"    def __init__(self, {self.arg}):")
            head += ["        " + line for line in init]
            head.append("")
        text = "\n".join(
            [
                *head,
                f"    def forward({self.signature}):",
                *("        " + line for line in self.keeps.lines),
            ]
        )
        return Printed(tuple(w.imports.lines), format.fit(text), keeps)

    def _base(self) -> str:
        """A dict of modules stays one, so that its children are reached as before."""
        module = self.w.module
        hidden = any(hasattr(nn.ModuleDict, name) for name in (*module._modules, *self.new))
        return "nn.ModuleDict" if isinstance(module, nn.ModuleDict) and not hidden else "nn.Module"

    def _init(self) -> tuple[list[str], tuple[str, ...]]:
        module, arg = self.w.module, self.arg
        used = {name: paths for name, paths in self.w.used.items() if name != "training"}
        lines = ["super().__init__()", f"self.training = {arg}.training"]
        if self.is_container:
            count = max(int(k) for k in (*used, *self.new) if k.isdigit()) + 1
            named = any(
                not k.isdigit() for k in self.new
            )  # in a second run those are children, too
            # not a slice of the container: in a second run that would call this class
            part = f"*{arg}" if count == len(module) and not named else f"*list({arg})[:{count}]"
            lines[0] = f"super().__init__({part})"
            if moved(module):  # by name: a number means another child by now
                lines[0] = "super().__init__()"
                lines += self._children_by_name(used)
            used = {k: v for k, v in used.items() if not k.isdigit()}
        order = [*vars(module), *module._parameters, *module._buffers, *module._modules]
        rank = {name: i for i, name in enumerate(order)}
        kept = {*used, *self._read_by_callers(), *self.keep} - {"training"}
        keeps = sorted(kept, key=lambda name: rank.get(name, len(rank)))
        whole = kept - set(used)
        for name in keeps:
            lines += self.keeps.take(name, whole=name in whole)
        for name, text in self.new.items():
            if "." in name:
                continue  # an item of a list: made with the list
            if self.is_container and name.isdigit() and moved(module):
                continue  # made in its turn
            own = f"self[{name}]" if self.is_container and name.isdigit() else f"self.{name}"
            if name.isidentifier() or self.is_container and name.isdigit():
                lines.append(f"{own} = {text}")
            else:
                lines.append(f"self.add_module({quoted(name)}, {text})")
        return lines, tuple(keeps)

    def _children_by_name(self, used: Collection[str]) -> list[str]:
        """The children of a container in their order, the new ones among them."""
        names = sorted({n for n in (*used, *self.new) if n.isdigit()}, key=int)
        lines: list[str] = []
        for made, run in itertools.groupby(names, key=self.new.__contains__):
            if made:
                lines += [f"self.add_module({quoted(n)}, {self.new[n]})" for n in run]
                continue
            listed = ", ".join(map(quoted, run))
            lines += [
                f"for name in ({listed}{'' if ',' in listed else ','}):",
                f"    self.add_module(name, {self.arg}.get_submodule(name))",
            ]
        return lines

    def _read_by_callers(self) -> set[str]:
        """Attributes of the module that the forward around it reads (``layer.attention_type``)."""
        w, module, base = self.w, self.w.module, self.w.base
        parent = base.parent(w.scope.key) if w.scope.key in base.scopes else None
        if parent is None:
            return set()
        codes = {f.code for n in base.scopes[parent].nodes for f in n.frames}
        read = {name for code in codes for name in source.attributes_read(code)}
        own = {k for k in vars(module) if not k.startswith("_")}
        part = "border" in (w.scope.output.facts.get("begins"), w.scope.output.facts.get("returns"))
        if not part:  # another part may hold the module: what is read of it was recorded
            own |= set(module._modules)
        return {n for n in read & own if not callable(vars(module).get(n))} - set(self.new)


def rename(value: Any, table: Mapping[str, str]) -> Any:
    """The argument with references renamed."""
    return map_refs(value, lambda ref: Ref(table.get(ref.id, ref.id)))
