"""The text of one operation: calls, infix, subscripts, constants and attribute paths as the author wrote them."""

from __future__ import annotations

import ast
import copy
import enum
import inspect
import math
import operator
import re
import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .. import source
from ..errors import EmissionError
from ..graph import Graph, Node, Ref, Scope, iter_refs
from ..paths import children, moved, named, number, quoted
from .names import Imports

ATOM = 20
_UNARY_LEVEL = 13
_INFIX = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
    operator.floordiv: "//", operator.mod: "%", operator.pow: "**", operator.matmul: "@",
    operator.and_: "&", operator.or_: "|", operator.xor: "^", operator.lshift: "<<",
    operator.rshift: ">>", operator.lt: "<", operator.le: "<=", operator.gt: ">",
    operator.ge: ">=", operator.eq: "==", operator.ne: "!=", operator.is_: "is",
    operator.is_not: "is not",
}  # fmt: skip
# A product of matrices gets parentheses inside other products: people write them.
_LEVEL = {
    "**": 14, "@": 11.9, "*": 12, "/": 12, "//": 12, "%": 12, "+": 11, "-": 11, "<<": 10, ">>": 10,
    "&": 9, "^": 8, "|": 7, "<": 6, "<=": 6, ">": 6, ">=": 6, "==": 6, "!=": 6, "is": 6, "is not": 6,
}  # fmt: skip
_METHOD_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "true_divide": "/", "floor_divide": "//",
    "remainder": "%", "pow": "**", "matmul": "@", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "logical_and": "&", "__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/",
    "__floordiv__": "//", "__mod__": "%", "__pow__": "**", "__matmul__": "@", "__and__": "&",
    "__or__": "|", "__xor__": "^", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=",
    "__eq__": "==", "__ne__": "!=", "__lshift__": "<<", "__rshift__": ">>",
}  # fmt: skip
_REFLECTED = {"__r" + k[2:]: v for k, v in _METHOD_INFIX.items() if k.startswith("__")}
_UNARY = {operator.neg: "-", operator.invert: "~", operator.pos: "+"}
_METHOD_UNARY = {"neg": "-", "__neg__": "-", "__invert__": "~", "bitwise_not": "~"}
INPLACE = {
    operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=",
    operator.iand: "&=", operator.ior: "|=", operator.ixor: "^=",
}  # fmt: skip
INPLACE_METHODS = {
    "add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/=", "__iadd__": "+=", "__isub__": "-=",
    "__imul__": "*=", "__itruediv__": "/=", "__iand__": "&=", "__ior__": "|=", "__ixor__": "^=",
}  # fmt: skip
_CONSTANTS = (bool, int, float, str, tuple, list, type(None), torch.dtype)


class Writer:
    """Writes the expressions of one scope.

    Attributes:
        names: The variable that holds a node's value, by node id.
        spelled: Other text that reads a node's value (``x[0]`` after ``x[0] += 1``), by node id.
        used: The attributes of the scope's own module that the text reads, with the paths below.
        passed_self: Whether the text hands ``self`` itself on.
        copies: Whether the class takes over what it needs (and no more), or is a subclass.
        verbatim: Where the author's own expressions were printed: file, first and last line.
        handed_on: The reads of parameters (in the author's tree) that the text hands on by name.
        read_by_name: The names of those parameters.
        carried: The reads of a dtype that the text does again where the author gave it on.
        assumed: What was decided on values in front of where the text begins, in words.
    """

    def __init__(
        self,
        graph: Graph,
        scope: Scope,
        module: nn.Module,
        new: Mapping[str, str] = types.MappingProxyType({}),
        base: Graph | None = None,
    ):
        self.graph, self.scope, self.module, self.new = graph, scope, module, new
        self.base = base or graph
        self.imports = Imports()
        self.names: dict[str, str] = {}
        self.spelled: dict[str, str] = {}
        self.used: dict[str, set[str]] = {}
        self.passed_self = False
        self.copies = True
        self.verbatim: list[tuple[source.File, int, int]] = []
        self.handed_on: set[ast.Name] = set()
        self.read_by_name: set[str] = set()
        self.parameters: tuple[str, ...] = ()
        self.carried: set[str] = set()
        self.assumed: dict[str, None] = {}
        self._owners: dict[str, tuple[str, nn.Module, dict]] = {}
        self.load(scope.nodes)

    def load(self, nodes: Sequence[Node]) -> None:
        """Take these as the scope's nodes."""
        self.by_id = {n.id: n for n in nodes}
        self.nodes = [self._unwritten(n) for n in nodes]
        self.by_id = {n.id: n for n in self.nodes}
        self.users: dict[str, list[Node]] = {n.id: [] for n in self.nodes}
        for node in self.nodes:
            for ref in node.refs:
                self.users[ref].append(node)

    def _unwritten(self, node: Node) -> Node:
        """Parts of an argument that were found on entering: nobody wrote their subscripts here."""
        recorded = node.frames
        if node.frames and None in node.frames[-1].position:
            whole = node  # an item stands where the call stands that hands it out
            while whole.glue and whole.type in ("getitem", "getattr") and whole.args:
                base = self.by_id.get(whole.args[0].id) if isinstance(whole.args[0], Ref) else None
                if base is None or base.frames != node.frames:
                    break
                whole = base
            node = node.with_(frames=source.pinpoint(node.frames, whole))
        if not node.glue or node.type not in ("getitem", "getattr") or not node.frames:
            return node
        base = self.by_id.get(node.args[0].id) if isinstance(node.args[0], Ref) else None
        _, written = source.expression(node.frames[-1])
        apart = base is not None and base.frames != recorded and isinstance(written, ast.Call)
        if apart and ast.unparse(written.func) not in ("getattr", "operator.getitem"):
            return node.with_(frames=())  # of an argument of the call that stands there
        made = node
        while made.glue and made.args and isinstance(made.args[0], Ref):
            made = self.by_id.get(made.args[0].id, made)
            if made is node:
                return node
        if made.kind != "input" or node.frames[-1].code in self.owner(node)[2]:
            return node
        return node.with_(frames=())

    def refuse(self, why: str) -> EmissionError:
        where = self.scope.key or "the model"
        return EmissionError(f"{where} ({self.scope.type}) has no code that would be right: {why}")

    @property
    def performed_in(self) -> set[str]:
        """Keys of the scopes whose operations the nodes are: those of an opened scope keep their ids."""
        return {n.id.rpartition("#")[0] for n in self.nodes if n.kind != "input"}

    # ------------------------------------------------------------------ the author's text

    def written(self, node: Node) -> tuple[source.File | None, ast.AST | None]:
        """What the author wrote for this operation."""
        return source.expression(node.frames[-1]) if node.frames else (None, None)

    def owner(self, node: Node) -> tuple[str, nn.Module, dict]:
        """The module whose forward performed the node: its path below the scope, it, its methods."""
        key = node.id.rpartition("#")[0]  # an opened child's nodes keep their ids
        scopes = self.base.scopes
        if key not in scopes or self.below(scopes[key].path) is None:
            key = self.scope.key
        if key not in self._owners:
            path = self.below(scopes[key].path) if key in scopes else ""
            module = self.module.get_submodule(path) if path else self.module
            self._owners[key] = (path, module, source.own_methods(type(module)))
        return self._owners[key]

    def method(self, node: Node) -> tuple[str, nn.Module, types.FunctionType] | None:
        """The method of the owner that textually holds the operation."""
        if not node.frames:
            return None
        path, module, methods = self.owner(node)
        found = methods.get(node.frames[-1].code)
        return (
            None if found is None or not found[1].__code__.co_varnames else (path, module, found[1])
        )

    def given(self, node: Node) -> Any:
        """The plain value of an input that was no tensor: ``None``, a flag, a dtype."""
        bound = self.base.scopes.get(self.scope.key, self.scope).bindings.get(node.id)
        return node.value if bound is None or isinstance(bound, Ref) else bound

    def below(self, path: str) -> str | None:
        """A path from the root as a path from the scope's module; ``None`` where it lies elsewhere."""
        if path == self.scope.path:
            return ""
        prefix = self.scope.path + "." if self.scope.path else ""
        return path[len(prefix) :] if path.startswith(prefix) else None

    # ------------------------------------------------------------------ attribute paths

    def attribute(self, path: str) -> str:
        """``self.layer2[0].conv1`` for a path from the root."""
        inner = self.below(path)
        if inner is None:
            raise self.refuse(f"its forward reads {path}, which lies outside of it")
        return self.inside(inner)

    def reads(self, path: str) -> set[str]:
        """The names below an attribute path that the text reads; none where it takes all of it."""
        start = f"{path}."
        used = self.used.get(path.partition(".")[0], ())
        if path in used:
            return set()
        return {read[len(start) :].partition(".")[0] for read in used if read.startswith(start)}

    def needed_items(self, name: str) -> int | None:
        """How many items of a container at the start are all that the text reads of it.

        ``None`` where that is all of it, or not a plain container.
        """
        container = getattr(self.module, name, None)
        plain = type(container) in (nn.Sequential, nn.ModuleList) and self.copies
        if not plain or name in self.new:
            return None
        parts = [path.split(".")[1:2] for path in self.used.get(name, ())]
        numbers = [number(container, p[0]) if p else None for p in parts]
        if not numbers or None in numbers:
            return None
        count = max(numbers) + 1
        return count if count < len(children(container)) else None

    def inside(self, inner: str) -> str:
        if not inner:
            self.passed_self = True
            return "self"
        parts = inner.split(".")
        if parts[0] in self.new:
            known = parts[0] in self.module._modules
            if not known or (len(parts) == 1 and not parts[0].isdigit()):
                return self.new_one(inner)
        else:
            self.used.setdefault(parts[0], set()).add(inner)
        owner: Any = self.module
        text = "self"
        if isinstance(owner, (nn.ModuleDict, nn.ModuleList)):  # the class will be a plain module
            first = parts.pop(0)
            text = f"self.{first}" if first.isidentifier() else f"getattr(self, {quoted(first)})"
            owner = getattr(owner, first)
        for part in parts:
            text, owner = _step(text, owner, part)
        return text

    def new_one(self, inner: str) -> str:
        """How the text reaches a new module: ``self.dropout``, ``self.norms[3]``."""
        attr, _, item = inner.partition(".")
        if not item.isdigit():
            return "self." + inner
        keyed = self.new[attr].startswith("nn.ModuleDict(")
        return f"self.{attr}[{quoted(item) if keyed else item}]"

    # ------------------------------------------------------------------ values

    def text(self, arg: Any, level: float = 0) -> str:
        """The text of an argument, in parentheses where it binds weaker than `level`."""
        text, own = self.value(arg)
        return f"({text})" if own < level else text

    def value(self, arg: Any) -> tuple[str, float]:
        """The text of an argument, and how strongly it binds."""
        if isinstance(arg, Ref):
            if arg.id in self.names:
                return self.names[arg.id], ATOM
            if arg.id in self.spelled:
                return self.spelled[arg.id], ATOM
            return self.operation(self.by_id[arg.id])
        if isinstance(arg, tuple):
            if hasattr(arg, "_fields"):
                return f"{self.refer(type(arg))}({', '.join(map(self.text, arg))})", ATOM
            if run := self._shape_run(arg):
                return run, ATOM
            comma = "," if len(arg) == 1 else ""
            return f"({', '.join(self._items(arg))}{comma})", ATOM
        if isinstance(arg, list):
            return f"[{', '.join(self._items(arg))}]", ATOM
        if isinstance(arg, Mapping):
            items = (f"{self.literal(k)}: {self.text(v)}" for k, v in arg.items())
            return "{" + ", ".join(items) + "}", ATOM
        if isinstance(arg, slice):
            return (
                f"slice({self.text(arg.start)}, {self.text(arg.stop)}, {self.text(arg.step)})",
                ATOM,
            )
        text = self.literal(arg)
        return text, _UNARY_LEVEL - 0.5 if text.startswith("-") else ATOM

    def literal(self, value: Any) -> str:
        """The text of a constant."""
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            self.imports.torch()
            return str(value)
        if isinstance(value, torch.device):
            self.imports.torch()
            return f'torch.device("{value}")'
        if value is Ellipsis:
            return "..."
        if isinstance(value, enum.Enum):
            return f"{self.refer(type(value))}.{value.name}"
        if isinstance(value, float):
            return self._float(value)
        if isinstance(value, str):
            return quoted(str(value))
        if isinstance(value, bool) or value is None:
            return repr(value)
        if isinstance(value, int):
            return repr(int(value))
        if isinstance(value, (complex, bytes, range)):
            return repr(value)
        if isinstance(value, (frozenset, set)) and value:
            return "{" + ", ".join(sorted(map(self.literal, value))) + "}"
        return self.constant(value)

    def _float(self, value: float) -> str:
        value = float(value)
        if math.isinf(value) or math.isnan(value):
            return f'float("{value}")'
        if len(repr(value)) >= 8:  # an odd number is an attribute somebody computed: self.scale
            for name, known in vars(self.module).items():
                if type(known) is float and known == value and name.isidentifier():
                    self.used.setdefault(name, set()).add(name)
                    return f"self.{name}"
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            if value == torch.finfo(dtype).min:
                self.imports.torch()
                return f"torch.finfo({dtype}).min"
        return repr(value)

    def constant(self, value: Any) -> str:
        """The text that names an object which the run met: importable, or a global of the source."""
        if isinstance(value, types.MethodType) and isinstance(value.__self__, nn.Module):
            raise self.refuse(f"it hands on the bound method {value.__qualname__}")
        if isinstance(value, type) or (callable(value) and not isinstance(value, nn.Module)):
            return self.refer(value)
        for module in self._source_modules():
            for name, known in vars(module).items():
                if known is value and not name.startswith("__"):
                    return self.imports.module_global(module, name)
        if isinstance(value, torch.Tensor):
            raise self.refuse(
                f"a tensor {tuple(value.shape)} that its forward uses comes from outside the "
                "recorded operations"
            )
        raise self.refuse(f"its forward uses an object of type {type(value).__name__}")

    def refer(self, value: Any) -> str:
        try:
            return self.imports.reference(value)
        except EmissionError as error:
            raise self.refuse(str(error)) from None

    def _source_modules(self) -> list[types.ModuleType]:
        import sys

        classes = [c for c in type(self.module).__mro__ if not c.__module__.startswith("torch.")]
        names = dict.fromkeys(c.__module__ for c in classes)
        return [sys.modules[n] for n in names if n in sys.modules and n != "builtins"]

    # ------------------------------------------------------------------ sizes and subscripts

    def is_shape(self, node: Node) -> bool:
        """Whether the node reads all sizes of a tensor."""
        if node.kind == "method":
            return node.target == "size" and len(node.args) == 1 and not node.kwargs
        return node.target is getattr and node.args[1] == "shape"

    def _items(self, items: Sequence, known: Mapping = types.MappingProxyType({})) -> list[str]:
        """The texts of several arguments; sizes that the author took as one slice stay one slice."""
        texts: list[str] = []
        i = 0
        while i < len(items):
            run = 0 if i in known else self._slice_run(items[i:])
            if run:
                shape = self._shape_of(items[i])
                rank = len(self.by_id[shape.args[0].id].outputs[0].shape)
                end = -1 if run == rank - 1 else run
                texts.append(f"*{self.text(Ref(shape.id), ATOM)}[:{end}]")
                i += run
            else:
                texts.append(known.get(i) or self.text(items[i]))
                i += 1
        return texts

    def _shape_of(self, item: Any) -> Node | None:
        """The read of all sizes that an item like ``x.shape[0]`` belongs to."""
        node = self.by_id.get(item.id) if isinstance(item, Ref) else None
        if node is None or node.id in self.names or node.target is not operator.getitem:
            return None
        shape = self.by_id.get(node.args[0].id) if isinstance(node.args[0], Ref) else None
        return shape if shape is not None and self.is_shape(shape) else None

    def _slice_run(self, items: Sequence) -> int:
        """How many items from here on are ``x.shape[:k]`` in the author's text."""
        shape = self._shape_of(items[0])
        if shape is None or not isinstance(shape.args[0], Ref):
            return 0
        file, written = self.written(shape)
        parent = file.parent.get(written) if file is not None else None
        if not (isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Slice)):
            return 0
        if not self.by_id[shape.args[0].id].outputs:
            return 0
        run = 0
        for item in items:
            if self._shape_of(item) is not shape or self.by_id[item.id].args[1] != run:
                break
            run += 1
        return run if run > 1 else 0

    def _shape_run(self, items: tuple) -> str | None:
        """``x.shape[-2:]`` for ``(x.shape[2], x.shape[3])``."""
        if len(items) < 2:
            return None
        base: Node | None = None
        indices = []
        for item in items:
            node = self.by_id.get(item.id) if isinstance(item, Ref) else None
            if node is None or node.id in self.names or node.target is not operator.getitem:
                return None
            shape = self.by_id.get(node.args[0].id) if isinstance(node.args[0], Ref) else None
            if shape is None or not self.is_shape(shape) or not isinstance(node.args[1], int):
                return None
            if base is not None and shape is not base:
                same = shape.args[:1] == base.args[:1] and shape.target == base.target
                if not same or shape.id in self.names or base.id in self.names:
                    return None
            base = base or shape
            indices.append(node.args[1])
        if indices != list(range(indices[0], indices[0] + len(indices))) or indices[0] < 0:
            return None
        whole = base.args[0]
        rank = None
        if isinstance(whole, Ref) and self.by_id[whole.id].outputs:
            rank = len(self.by_id[whole.id].outputs[0].shape)
        if rank is None:
            return None
        text = self.text(Ref(base.id), ATOM)
        if indices[0] == 0:
            return text if len(indices) == rank else f"{text}[:{len(indices)}]"
        return f"{text}[-{len(indices)}:]" if indices[-1] == rank - 1 else None

    def subscript(self, index: Any) -> str:
        """What stands between the brackets."""
        if type(index) is tuple and index and not self._shape_run(index):
            comma = "," if len(index) == 1 else ""
            return ", ".join(map(self._slice, index)) + comma
        return self._slice(index)

    def _slice(self, index: Any) -> str:
        if not isinstance(index, slice):
            return self.text(index)
        start, stop, step = (
            "" if part is None else self.text(part, 7)
            for part in (index.start, index.stop, index.step)
        )
        parts = [start, stop, step] if step else [start, stop]
        if all(re.fullmatch(r"-?\w*", part) for part in parts):
            return ":".join(parts)
        return " : ".join(parts).strip()  # as ruff does where a bound is an expression

    # ------------------------------------------------------------------ operations

    def operation(self, node: Node) -> tuple[str, float]:
        """The text of the operation itself, and how strongly it binds."""
        return getattr(self, f"_{node.kind}")(node)

    def _input(self, node: Node) -> tuple[str, float]:
        return self.names[node.id], ATOM

    def _parameter(self, node: Node) -> tuple[str, float]:
        return self.attribute(node.target), ATOM

    def _constant(self, node: Node) -> tuple[str, float]:
        text = self.literal(node.target)
        return text, ATOM

    def _module(self, node: Node) -> tuple[str, float]:
        return f"{self.attribute(node.target)}({self.arguments(node, node.args)})", ATOM

    def _method(self, node: Node) -> tuple[str, float]:
        name, base = node.target, node.args[0]
        if name == "as_subclass":
            raise self.refuse("it works on a subclass of Tensor")
        call = isinstance(self.written(node)[1], ast.Call)
        if len(node.args) == 2 and not node.kwargs:
            if name in _REFLECTED:
                return self._infix(node, _REFLECTED[name], (1, 0))
            if name in _METHOD_INFIX and (name.startswith("__") or not call):
                symbol = _METHOD_INFIX[name]
                _, written = self.written(node)
                # 2 * x arrives as x.mul(2)
                flipped = (
                    isinstance(written, ast.BinOp)
                    and isinstance(written.left, ast.Constant)
                    and symbol in "+*"
                    and isinstance(node.args[1], (int, float))
                )
                return self._infix(node, symbol, (1, 0) if flipped else (0, 1))
        if name == "__getitem__":
            return f"{self.text(base, ATOM)}[{self.subscript(node.args[1])}]", ATOM
        if name in _METHOD_UNARY and len(node.args) == 1 and not call:
            return f"{_METHOD_UNARY[name]}{self.text(base, _UNARY_LEVEL)}", _UNARY_LEVEL
        return f"{self.text(base, ATOM)}.{name}({self.arguments(node, node.args[1:])})", ATOM

    def _function(self, node: Node) -> tuple[str, float]:
        target, args = node.target, node.args
        if target is getattr:
            return f"{self.text(args[0], ATOM)}.{args[1]}", ATOM
        if target is operator.getitem:
            return f"{self.text(args[0], ATOM)}[{self.subscript(args[1])}]", ATOM
        if target in INPLACE and len(args) == 2:
            raise self.refuse("the result of an in-place operation is used inside an expression")
        if _hashable(target) and target in _INFIX and len(args) == 2:
            return self._infix(node, _INFIX[target], (0, 1))
        if _hashable(target) and target in _UNARY:
            return f"{_UNARY[target]}{self.text(args[0], _UNARY_LEVEL)}", _UNARY_LEVEL
        helper = getattr(target, "__name__", "")
        if helper == "apply_function":
            return f"{self.text(args[0])}.apply({self.arguments(node, args[1:])})", ATOM
        if helper == "call_script":
            return f"{self.text(args[0])}({self.arguments(node, args[1:])})", ATOM
        if helper == "rebuild":
            raise self.refuse("its forward builds a Python object that can't be written back")
        if (getattr(target, "__module__", "") or "").startswith("nbsurgery"):
            raise self.refuse(f"the operation {node.type} has no text of its own")
        if not callable(target):
            raise self.refuse(f"{node.type} is not a function")
        name = self._authors_function(node) or self.refer(target)
        return f"{name}({self.arguments(node, args)})", ATOM

    def _infix(self, node: Node, symbol: str, order: tuple[int, int]) -> tuple[str, float]:
        level = _LEVEL[symbol]
        left, right = order
        if symbol == "**":
            return (
                f"{self.operand(node, left, level + 0.6)} ** {self.operand(node, right, level - 1)}",
                level,
            )
        lower = level + (0.6 if level == 6 else 0)
        return (
            f"{self.operand(node, left, lower)} {symbol} {self.operand(node, right, level + 0.6)}",
            level,
        )

    def operand(self, node: Node, index: int, level: float) -> str:
        """An operand of an infix operation; a constant as the author wrote it."""
        arg = node.args[index]
        if not isinstance(arg, Ref) and isinstance(arg, (int, float)):
            _, written = self.written(node)
            expression = None
            if isinstance(written, ast.BinOp):
                expression = (written.left, written.right)[index]
            elif isinstance(written, ast.AugAssign) and index == 1:
                expression = written.value
            elif isinstance(written, ast.Compare) and len(written.comparators) == 1:
                expression = (written.left, written.comparators[0])[index]
            method = self.method(node)
            if expression is not None and method is not None:
                text = self.constant_text(arg, expression, method)
                if text:
                    return text if re.fullmatch(r"[\w.\[\]]+", text) else f"({text})"
        return self.text(arg, level)

    def _authors_function(self, node: Node) -> str | None:
        """``F.max_pool2d`` where the dispatch of torch says ``torch.max_pool2d``."""
        if isinstance(node.target, type):
            return None
        _, written = self.written(node)
        if not isinstance(written, ast.Call):
            return None
        match = re.fullmatch(
            r"(?:nn\.functional|torch\.nn\.functional|F)\.(\w+)", ast.unparse(written.func)
        )
        name = getattr(node.target, "__name__", "")
        if match and hasattr(F, match[1]) and name in (match[1], "boolean_dispatch"):
            self.imports.functional()
            return f"F.{match[1]}"
        return None

    # ------------------------------------------------------------------ arguments

    def arguments(self, node: Node, args: Sequence) -> str:
        """The arguments of a call, as the author passed them where that is known."""
        args, kwargs = list(args), dict(node.kwargs)
        target = node.target
        plain = node.kind == "function" and isinstance(target, types.FunctionType)
        if plain and (target.__module__ or "").startswith("torch.nn.functional"):
            kwargs = _drop_defaults(target, args, kwargs)
        if plain and kwargs:
            self._positional_again(node, args, kwargs)
        known = self._authors_constants(node, args, kwargs)
        texts = self._items(args, known)
        for name, arg in kwargs.items():
            text = known.get(name) or self.text(arg)
            texts.append(f"{name}={text}" if name.isidentifier() else f"**{{{name!r}: {text}}}")
        return ", ".join(texts)

    def _positional_again(self, node: Node, args: list, kwargs: dict) -> None:
        """Keywords that torch made of positional arguments become positional again."""
        _, written = self.written(node)
        if not isinstance(written, ast.Call) or any(
            isinstance(a, ast.Starred) for a in written.args
        ):
            return
        name = getattr(written.func, "attr", getattr(written.func, "id", None))
        if name != node.target.__name__:
            return
        parameters = list(inspect.signature(node.target).parameters.values())
        while kwargs and len(args) < min(len(written.args), len(parameters)):
            parameter = parameters[len(args)]
            if (
                parameter.kind is not parameter.POSITIONAL_OR_KEYWORD
                or parameter.name not in kwargs
            ):
                return
            args.append(kwargs.pop(parameter.name))

    def _authors_constants(self, node: Node, args: list, kwargs: dict) -> dict[int | str, str]:
        """The text of the constant arguments that the author wrote as expressions over ``self``."""
        _, written = self.written(node)
        method = self.method(node)
        found: dict[int | str, str] = {}
        if not isinstance(written, ast.Call) or method is None:
            return found

        def one(value: Any, expression: ast.expr) -> str | None:
            return self.constant_text(value, expression, method)

        constants = source.constants_of(method[2].__code__)

        def use(key: int | str, value: Any, expression: ast.expr) -> None:
            if text := one(value, expression):
                found[key] = text
            elif type(value) in (list, tuple):
                parts = _aligned(len(value), expression, constants)
                texts = {i: text for i, e in parts.items() if (text := one(value[i], e))}
                if texts:
                    inner = ", ".join(self._items(value, texts))
                    comma = "," if len(value) == 1 else ""
                    found[key] = f"({inner}{comma})" if isinstance(value, tuple) else f"[{inner}]"

        if len(args) > 1 == len(written.args) and not kwargs and node.kind == "method":
            # x.view(shape) arrives as x.view(a, b): match inside of the author's tuple
            whole = written.args[0]
            whole = whole.value if isinstance(whole, ast.Starred) else whole
            parts = _aligned(len(args), whole, constants)
            return {i: text for i, e in parts.items() if (text := one(args[i], e))}
        parameters: list[str] = []
        if node.kind == "function" and isinstance(node.target, types.FunctionType):
            parameters = list(inspect.signature(node.target).parameters)
        for i, expression in enumerate(written.args):
            if isinstance(expression, ast.Starred):
                break
            if i < len(args):
                use(i, args[i], expression)
            elif i < len(parameters) and parameters[i] in kwargs:
                use(parameters[i], kwargs[parameters[i]], expression)
        for keyword in written.keywords:
            if keyword.arg in kwargs:
                use(keyword.arg, kwargs[keyword.arg], keyword.value)
        return found

    def constant_text(self, value: Any, expression: ast.expr, method: tuple) -> str | None:
        """A constant as the author wrote it, where only ``self`` is read and the value is equal.

        Local names that are assigned once are followed.
        """
        path, module, function = method
        if not isinstance(value, _CONSTANTS) or isinstance(expression, ast.Constant):
            return None
        if next(iter_refs(value), None) is not None:
            return None
        if text := self._handed_on(value, expression, function):
            return text
        me = function.__code__.co_varnames[0]
        written = expression
        expression = follow(expression, source.constants_of(function.__code__), me)
        names = {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}
        if names != {me} or any(
            isinstance(n, (ast.Call, ast.Lambda)) for n in ast.walk(expression)
        ):
            return None
        try:
            tree = ast.fix_missing_locations(ast.Expression(expression))
            found = eval(compile(tree, "", "eval"), function.__globals__, {me: module})
            if type(found) is not type(value) or found != value:
                return None
        except Exception:  # noqa: BLE001 - it may need what only exists while running
            return None
        file = source.file(function.__code__.co_filename)
        for part in (written, *_followed(written, source.constants_of(function.__code__))):
            self.verbatim.append((file, part.lineno, part.end_lineno))
        prefix = "self" if not path else None
        for attribute in _self_attributes(expression, me):
            inner = f"{path}.{attribute}" if path else attribute
            if prefix is None:
                prefix = self.inside(inner)[: -len(attribute) - 1]
            else:
                self.used.setdefault(inner.partition(".")[0], set()).add(inner)
        text = re.sub(rf"\b{me}\b", prefix or "self", ast.unparse(expression))
        return text if '"' in text else re.sub(r"'([^'\\]*)'", r'"\1"', text)

    def _handed_on(self, value: Any, expression: ast.expr, function) -> str | None:
        """The name of a parameter whose plain value is passed on unchanged."""
        if not isinstance(expression, ast.Name) or isinstance(value, (tuple, list)):
            return None
        forward = inspect.unwrap(type(self.module).forward)
        if function.__code__ is not forward.__code__ or expression.id not in self.parameters:
            return None
        given = next(
            (n for n in self.nodes if n.kind == "input" and n.target == expression.id), None
        )
        if given is not None and (self.users[given.id] or self.given(given) != value):
            return None
        if expression.id not in source.untouched_parameters(function.__code__):
            return None
        if given is None:  # not passed in the run: its default it was
            default = inspect.signature(forward).parameters[expression.id].default
            if type(default) is not type(value) or default != value:
                return None
        self.handed_on.add(expression)
        self.read_by_name.add(expression.id)
        return self.names[given.id] if given is not None else expression.id


def _step(text: str, owner: Any, part: str) -> tuple[str, Any]:
    """One more part of a path: the text so far, and the object there."""
    at = number(owner, part)
    own = text == "self" and (moved(owner) or not part.isdigit())  # its class may be no container
    if at is not None and not own:
        return f"{text}[{at}]", owner._modules.get(part)
    if isinstance(owner, nn.ParameterList) and part.isdigit():
        return f"{text}[{part}]", owner[int(part)]
    if isinstance(owner, nn.ModuleDict) and part in owner._modules and not named(owner, part):
        return f"{text}[{quoted(part)}]", owner[part]
    if isinstance(owner, nn.ParameterDict) and part in owner:
        return f"{text}[{quoted(part)}]", owner[part]
    after = getattr(owner, part, None)
    if part.isidentifier():
        return f"{text}.{part}", after
    return f"getattr({text}, {quoted(part)})", after


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _drop_defaults(function, args: list, kwargs: dict) -> dict:
    """What torch reports for a call of ``torch.nn.functional``, without the defaults.

    Required keywords that continue the positional arguments move there: they read better so.
    """
    if "boolean_dispatch" in function.__qualname__:  # F.max_pool2d: two functions behind one name
        function = getattr(F, "_" + function.__name__, function)
    parameters = list(inspect.signature(function).parameters.values())
    by_name = {p.name: p for p in parameters}
    kept: dict[str, Any] = {}
    for name, value in kwargs.items():
        default = by_name[name].default if name in by_name else inspect._empty
        if name == "_stacklevel":
            continue
        plain = default is not inspect._empty and not isinstance(value, Ref)
        if plain and type(value) is type(default) and value == default:
            continue
        kept[name] = value
    while kept and len(args) < len(parameters):
        parameter = parameters[len(args)]
        if next(iter(kept)) != parameter.name or parameter.default is not inspect._empty:
            break
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            break
        args.append(kept.pop(parameter.name))
    return kept


def follow(expression: ast.expr, constants: dict, me: str, depth: int = 0) -> ast.expr:
    """The expression with local names that one assignment makes replaced by what they stand for."""

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node):
            if node.id == me or depth > 3 or node.id not in constants:
                return node
            return follow(constants[node.id], constants, me, depth + 1)

    return Replace().visit(copy.deepcopy(expression))


def _aligned(count: int, expression: ast.expr, constants: dict) -> dict[int, ast.expr]:
    """Which item of a tuple each part of its expression makes; one starred part may stand for several."""
    if isinstance(expression, ast.Name) and expression.id in constants:
        expression = constants[expression.id]
    if not source.is_sequence(expression):
        return {}
    parts = expression.elts
    starred = [i for i, part in enumerate(parts) if isinstance(part, ast.Starred)]
    if not starred:
        return dict(enumerate(parts)) if len(parts) == count else {}
    if len(starred) > 1 or count < len(parts) - 1:
        return {}
    before = dict(enumerate(parts[: starred[0]]))
    after = parts[starred[0] + 1 :]
    return before | {count - len(after) + i: part for i, part in enumerate(after)}


def _followed(expression: ast.expr, constants: dict, depth: int = 0) -> list[ast.expr]:
    """The expressions that `follow` puts in."""
    found = []
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id in constants and depth <= 3:
            found.append(constants[node.id])
            found += _followed(constants[node.id], constants, depth + 1)
    return found


def _self_attributes(expression: ast.expr, me: str) -> list[str]:
    return [
        n.attr
        for n in ast.walk(expression)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == me
    ]
