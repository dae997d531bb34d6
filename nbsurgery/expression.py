"""Source text that a person gives for something new: parsed, resolved, evaluated, printed.

The text is one Python expression. Its names resolve in ``torch``, ``nn``, ``F``, then in the
notebook; ``old`` names the module that it replaces.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import io
import re
import sys
import tokenize
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .errors import StepError, an, nearest

_KNOWN = {"torch": torch, "nn": nn, "F": F}
_TAKEN = {*_KNOWN, "old"}  # names that mean something of their own in such a text
_IMPORTS = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
}
# Module types that compute something else in train mode than in eval mode.
_MODED = (
    nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase, nn.RReLU, nn.MultiheadAttention,
)  # fmt: skip


@dataclass(frozen=True)
class Expression:
    """One parsed expression.

    Attributes:
        text: As given, without surrounding space.
        tree: Its syntax tree.
    """

    text: str
    tree: ast.Expression

    @property
    def free(self) -> tuple[str, ...]:
        """Names that must come from outside, ``old`` among them, in order of appearance."""
        bound = {
            n.id
            for n in ast.walk(self.tree)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        } | {a.arg for n in ast.walk(self.tree) if isinstance(n, ast.arguments) for a in n.args}
        names = [
            (n.lineno, n.col_offset, n.id)
            for n in ast.walk(self.tree)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in bound
        ]
        return tuple(dict.fromkeys(name for _, _, name in sorted(names)))

    @property
    def whole_old(self) -> bool:
        """Whether ``old`` itself is used, and not only plain attributes of it."""
        parents = {c: p for p in ast.walk(self.tree) for c in ast.iter_child_nodes(p)}
        return any(
            isinstance(n, ast.Name)
            and n.id == "old"
            and not isinstance(parents.get(n), ast.Attribute)
            for n in ast.walk(self.tree)
        )

    def reaches_into(self, old: Any) -> bool:
        """Whether more than numbers and texts of ``old`` is read: what it holds could be written."""
        plain = (bool, int, float, str, tuple, type(None))
        return any(not isinstance(getattr(old, a, None), plain) for a in self.old_attributes)

    @property
    def old_attributes(self) -> tuple[str, ...]:
        """What is read of ``old``, by name."""
        return tuple(
            n.attr
            for n in ast.walk(self.tree)
            if isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id == "old"
        )

    @property
    def short(self) -> str:
        """What to call the new thing in a comment: ``nn.GELU`` for ``nn.GELU()``."""
        body = self.tree.body
        if isinstance(body, ast.Call) and not body.args and not body.keywords:
            return ast.unparse(body.func)
        return self.text

    @property
    def callee(self) -> str:
        """The last name of what is called: ``GELU`` for ``nn.GELU()``."""
        body = self.tree.body
        func = body.func if isinstance(body, ast.Call) else body
        return ast.unparse(func).rpartition(".")[2]


def parse(new: Any, namespace: Mapping[str, Any] | None = None) -> Expression:
    """Read what a person gave as new: source text, a module class, or an object that code can name.

    Raises:
        StepError: No expression, or an object that no source text is known for.
    """
    text = source_of(new, namespace or {}) if not isinstance(new, str) else tidy(new.strip())
    try:
        tree = ast.parse(text, mode="eval")
        compile(tree, "<new>", "eval")  # finds what only parses, such as a yield
    except (SyntaxError, ValueError, RecursionError, MemoryError) as raised:
        error = raised if isinstance(raised, SyntaxError) else SyntaxError(str(raised))
        raise StepError(
            f"{text!r} is not one Python expression ({error.msg}); "
            "write what makes the new module, such as nn.Linear(old.in_features, 10)"
        ) from None
    return Expression(text, tree)


def tidy(text: str) -> str:
    """One line, spaced as a formatter would; text that is no Python stays as it is."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return text
    skip = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    out, last, depth = "", None, 0
    for token in tokens:
        if token.type in skip or token.type == tokenize.ENDMARKER:
            continue
        word = token.string
        depth += (word in "([{") - (word in ")]}") if token.type == tokenize.OP else 0
        if token.type == tokenize.STRING and word[0] == "'" and not set(word) & {'"', "\\"}:
            word = f'"{word[1:-1]}"' if word[:3] != "'''" else word
        if last is None or word in (")", "]", "}", ",") or last.string in ("(", "[", "{"):
            gap = ""
        elif last.string == ",":
            gap = " "
        elif depth and "=" in (word, last.string):
            gap = ""
        else:
            gap = " " if last.end != token.start else ""
        out, last = out + gap + word, token
    out = re.sub(r",([)\]}])", r"\1", out) if not re.search(r"\([^(),]*,\)", out) else out
    try:
        same = ast.dump(ast.parse(out, mode="eval")) == ast.dump(ast.parse(text, mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    return out if same else text


def source_of(new: Any, namespace: Mapping[str, Any]) -> str:
    """Source text for an object given instead of text.

    A module with weights is spelled by its variable: text that makes one like it would lose them.

    Raises:
        StepError: The object cannot be spelled as source.
    """
    if isinstance(new, type) and issubclass(new, nn.Module):
        return f"{spell(new)}()"
    if isinstance(new, nn.Module):
        text = stateless_source(new) or variable_of(new, namespace)
        if text is not None:
            return text
        made = f"{spell(type(new))}({'...' if any(True for _ in new.parameters()) else ''})"
        raise StepError(
            f"new is {an(type(new).__name__)} object that no variable of the notebook holds, so that "
            f"code cannot name it; pass the text that makes a new one, such as {made!r}, or, to use "
            "this very object with its weights, hold it in a variable and pass the name in quotes: "
            "head = ..., then new='head'"
        )
    if isinstance(new, (types.FunctionType, types.BuiltinFunctionType)):
        if new.__name__ == "<lambda>":
            raise StepError(
                "a lambda has no name that code could call; define it with def in a cell and pass that"
            )
        return spell(new)
    raise StepError(
        f"new is {an(type(new).__name__)}; pass source text such as 'nn.Linear(old.in_features, 10)'"
    )


def spell(thing: Any) -> str:
    """How source names a class or function: ``nn.GELU``, ``F.gelu``, ``torch.relu``, else its name."""
    name = thing.__name__
    for prefix, module in (("nn", nn), ("F", F), ("torch", torch)):
        if getattr(module, name, None) is thing:
            return f"{prefix}.{name}"
    return name


def variable_of(thing: Any, namespace: Mapping[str, Any]) -> str | None:
    """The newest name under which the notebook holds a thing; ``None`` where code could not say it."""
    names = [n for n, v in list(namespace.items()) if v is thing and not n.startswith("_")]
    return next((n for n in reversed(names) if n.isidentifier() and n not in _TAKEN), None)


def stateless_source(module: nn.Module) -> str | None:
    """The constructor call that makes a module like this one, or ``None`` where it cannot be told.

    Only plain ``torch.nn`` classes, whose ``repr`` is such a call; checked by making one.
    """
    if not type(module).__module__.startswith("torch.nn.modules") or any(module.children()):
        return None
    if any(True for _ in (*module.parameters(), *module.buffers())):
        return None
    text = f"nn.{module!r}"
    try:
        with torch.device("meta"):
            made = eval(text, dict(_KNOWN))
    except Exception:
        return None
    if repr(made) != repr(module):
        return None
    return _tidy_repr(text, module)


def _tidy_repr(text: str, module: nn.Module) -> str:
    """``nn.AdaptiveAvgPool2d(output_size=(1, 1))`` → ``nn.AdaptiveAvgPool2d((1, 1))``: the first
    argument needs no name, where it still makes the same module."""
    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Call) and tree.keywords and not tree.args:
        first = tree.keywords[0]
        shorter = ast.Call(tree.func, [first.value], tree.keywords[1:])
        shorter = ast.unparse(ast.fix_missing_locations(shorter))
        try:
            with torch.device("meta"):
                if repr(eval(shorter, dict(_KNOWN))) == repr(module):
                    return shorter
        except Exception:
            return text
    return text


def resolve(name: str, namespace: Mapping[str, Any]) -> Any:
    """What a free name stands for.

    Raises:
        StepError: Nobody knows it.
    """
    if name in _KNOWN:
        return _KNOWN[name]
    if name in namespace:
        return namespace[name]
    if hasattr(builtins, name):
        return getattr(builtins, name)
    close = nearest(name, [*_KNOWN, *(k for k in namespace if not k.startswith("_"))])
    hint = f"; did you mean nn.{name}?" if hasattr(nn, name) else close
    raise StepError(f"the name {name!r} is not defined here{hint}")


def evaluate(expr: Expression, old: Any, namespace: Mapping[str, Any]) -> Any:
    """Make the new thing once, to learn of it: on the meta device where that works, so for free.

    The person's random state is put back. The result is never part of a model.

    Raises:
        StepError: The expression fails; says with what.
    """
    names = {n: resolve(n, namespace) for n in expr.free if n != "old"}
    code = compile(expr.tree, "<new>", "eval")
    state = torch.get_rng_state()
    try:
        try:
            with torch.device("meta"), torch.no_grad():
                spares = {n: _spared(v, "meta") for n, v in names.items()}
                return eval(code, {**spares, "old": _spare(expr, old, "meta")})
        except Exception:
            with torch.no_grad():
                spares = {n: _spared(v) for n, v in names.items()}
                return eval(code, {**spares, "old": _spare(expr, old)})
    except (Exception, SystemExit) as error:
        raise StepError(
            f"{expr.text!r} fails: {type(error).__name__}: {error}" + _old_hint(error, old)
        ) from error
    finally:
        torch.set_rng_state(state)


def _spare(expr: Expression, old: Any, device: str | None = None) -> Any:
    """A copy of the replaced module, where the text could change it."""
    if not isinstance(old, nn.Module) or not (expr.whole_old or expr.reaches_into(old)):
        return old
    return _spared(old, device)


def _spared(value: Any, device: str | None = None) -> Any:
    """A copy of what holds modules, that a text may change; weights without data on meta."""
    modules = list(_modules_in(value))
    if not modules:
        return value
    memo: dict[int, Any] = {}
    tensors = [t for m in modules for t in (*m.parameters(), *m.buffers())] if device else ()
    for t in tensors:
        spare = torch.empty_like(t, device=device, requires_grad=False)
        memo[id(t)] = nn.Parameter(spare, t.requires_grad) if isinstance(t, nn.Parameter) else spare
    return copy.deepcopy(value, memo)


def _modules_in(value: Any) -> Iterator[nn.Module]:
    """The modules that a value of the notebook is, or holds in lists and dicts."""
    if isinstance(value, nn.Module):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _modules_in(item)


def _old_hint(error: BaseException, old: Any) -> str:
    if isinstance(error, AttributeError) and isinstance(error.obj, types.ModuleType):
        return nearest(error.name, dir(error.obj))
    if (
        isinstance(error, AttributeError)
        and old is not None
        and "object has no attribute" in str(error)
    ):
        own = [k for k in vars(old) if not k.startswith("_") and k != "training"]
        return f"; old is {an(type(old).__name__)} with {', '.join(own[:8])}" if own else ""
    return ""


def imports(expr: Expression, namespace: Mapping[str, Any]) -> tuple[str, ...]:
    """The import lines that the text needs; names that only the notebook knows need none."""
    lines = []
    for name in expr.free:
        if name in _IMPORTS:
            lines.append(_IMPORTS[name])
        elif name != "old" and name in namespace:
            line = _import_of(name, namespace[name])
            if line:
                lines.append(line)
    return tuple(dict.fromkeys(lines))


def _import_of(name: str, value: Any) -> str | None:
    if isinstance(value, types.ModuleType):
        top, _, last = value.__name__.rpartition(".")
        if value.__name__ == name:
            return f"import {name}"
        return (
            f"from {top} import {name}"
            if top and last == name
            else f"import {value.__name__} as {name}"
        )
    home = getattr(value, "__module__", None)
    if not isinstance(home, str) or home in ("__main__", "builtins"):
        return None
    return (
        f"from {home} import {name}"
        if getattr(sys.modules.get(home), name, None) is value
        else None
    )


def printed(
    expr: Expression, old: str, literal: Callable[[str], str | None] = lambda attr: None
) -> str:
    """The text with ``old`` spelled as `old`; ``literal(attr)`` may give a value for ``old.attr``."""
    lines = [line.encode() for line in expr.text.splitlines()]
    parents = {c: p for p in ast.walk(expr.tree) for c in ast.iter_child_nodes(p)}
    spots = []
    for n in ast.walk(expr.tree):
        if isinstance(n, ast.Name) and n.id == "old":
            up = parents.get(n)
            value = literal(up.attr) if isinstance(up, ast.Attribute) else None
            at = up if value is not None else n
            spots.append((at.lineno, at.col_offset, at.end_lineno, at.end_col_offset, value or old))
    for line, start, end_line, end, text in sorted(spots, reverse=True):
        if line == end_line:
            row = lines[line - 1]
            lines[line - 1] = row[:start] + text.encode() + row[end:]
    return "\n".join(line.decode() for line in lines)


def with_values(expr: Expression, old: nn.Module) -> Expression:
    """The text with the numbers of a module that only a step made: no code could read them."""

    def value(attr: str) -> str | None:
        found = getattr(old, attr, None)
        return repr(found) if isinstance(found, (int, float, bool, str, tuple)) else None

    return parse(printed(expr, "old", value))


def weights_said(expr: Expression, made: Any, namespace: Mapping[str, Any], each: str = "") -> str:
    """What a comment says of the weights of something new: ``, new weights``, or whose they are."""
    if not isinstance(made, nn.Module) or not any(True for _ in made.parameters()):
        return ""
    theirs = [n for n in expr.free if any(True for _ in _modules_in(namespace.get(n)))]
    return f", the weights of {' and '.join(theirs)}" if theirs else f", new weights{each}"


def moded(module: Any) -> bool:
    """Whether the mode (train or eval) changes what a new module computes."""
    if not isinstance(module, nn.Module):
        return False
    return any(isinstance(m, _MODED) or _reads_training(type(m)) for m in module.modules())


@functools.cache
def _reads_training(cls: type) -> bool:
    """A class of somebody else whose forward reads ``training``."""
    if cls.__module__.startswith("torch."):
        return False
    return any("training" in c.co_names for c in _codes(getattr(cls, "forward", None)))


def _codes(function: Any) -> Iterator[types.CodeType]:
    code = getattr(function, "__code__", None)
    stack = [code] if code else []
    while stack:
        code = stack.pop()
        yield code
        stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]
