"""Which operations of a scope become statements, which are written inside others, and what each is called."""

from __future__ import annotations

import ast
import inspect
import operator
import types
from collections.abc import Container, Mapping

from .. import source
from ..graph import Graph, Node, Ref, iter_refs
from .expressions import INPLACE, INPLACE_METHODS, Writer
from .names import identifier

_ALWAYS_INSIDE = ("shape", "device", "T", "mT", "real", "imag", "dtype")
_OUT_OF_PLACE = {
    operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
    operator.itruediv: operator.truediv, "add_": operator.add, "sub_": operator.sub,
    "mul_": operator.mul, "div_": operator.truediv, "__iadd__": operator.add,
    "__isub__": operator.sub, "__imul__": operator.mul, "__itruediv__": operator.truediv,
}  # fmt: skip
# What surely makes a new tensor; anything else may hand on (a view of) what it was given.
_FRESH = {
    "add", "sub", "mul", "truediv", "div", "matmul", "conv1d", "conv2d", "conv3d", "linear",
    "batch_norm", "layer_norm", "group_norm", "softmax", "log_softmax", "gelu", "silu", "sigmoid",
    "tanh", "cat", "stack", "mean", "sum", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d",
    "interpolate", "bmm", "einsum", "exp", "log", "sqrt", "rsqrt", "pow", "clone", "zeros", "ones",
    "empty", "zeros_like", "ones_like", "where", "scaled_dot_product_attention", "embedding",
}  # fmt: skip
_FRESH_LAYERS = (
    "Conv", "BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm", "Linear", "MaxPool",
    "AvgPool", "AdaptiveAvg", "AdaptiveMax", "Embedding", "MultiheadAttention", "GELU", "SiLU",
    "Sigmoid", "Tanh", "Softmax", "LSTM", "GRU",
)  # fmt: skip


def is_inplace_statement(writer: Writer, node: Node) -> bool:
    """Whether the operation is an augmented assignment: ``x += y``."""
    if len(node.args) != 2 or node.kwargs or not isinstance(node.args[0], Ref):
        return False
    if node.kind == "function":
        return node.target in INPLACE if callable(node.target) else False
    if node.kind == "method" and node.target in INPLACE_METHODS:
        return node.target.startswith("__") or isinstance(writer.written(node)[1], ast.AugAssign)
    return False


def out_of_place(writer: Writer) -> None:
    """``out += identity`` becomes ``out = out + identity`` where nobody can tell the difference."""
    changed = []
    for node in writer.nodes:
        inplace = is_inplace_statement(writer, node) and node.target in _OUT_OF_PLACE
        if inplace and _private(writer, node):
            node = node.with_(
                kind="function", target=_OUT_OF_PLACE[node.target], writes=(), impure=False
            )
        changed.append(node)
    writer.load(changed)


def _private(writer: Writer, node: Node) -> bool:
    """Whether the overwritten value is fresh, and read by nobody else from here on."""
    base = writer.by_id[node.args[0].id]
    if base.outputs and node.outputs and base.outputs[0].dtype != node.outputs[0].dtype:
        return False
    other = node.args[1]
    if isinstance(other, Ref):
        dtypes = {t.dtype for t in writer.by_id[other.id].outputs[:1]} | {
            t.dtype for t in base.outputs[:1]
        }
        if len(dtypes) > 1:
            return False
    order = {n.id: i for i, n in enumerate(writer.nodes)}
    family, todo = set(), [base]
    while todo:
        member = todo.pop()
        if member.id in family:
            continue
        family.add(member.id)
        if member.kind in ("input", "parameter", "constant"):
            return False
        if not _makes_new(writer.graph, member):
            todo += [writer.by_id[r] for r in member.refs]
        # what may be a view of it counts too
        todo += [
            u
            for u in writer.users[member.id]
            if u.id != node.id and u.outputs and not _makes_new(writer.graph, u)
        ]
    here = order[node.id]
    return not any(
        order[user.id] > here
        for member in family
        for user in writer.users[member]
        if user.id != node.id and (user.outputs or not user.glue)
    )


def _makes_new(graph: Graph, node: Node) -> bool:
    if node.kind == "output":
        return True
    if node.child is not None:
        inner = graph.scopes.get(node.child)
        result = inner.output.args[0] if inner is not None and inner.output is not None else None
        return isinstance(result, Ref) and _makes_new(graph, inner.by_id[result.id])
    if node.kind == "module":
        return node.type.startswith(_FRESH_LAYERS) and not node.writes
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return name.strip("_") in _FRESH and not node.writes


class Plan:
    """The decisions for one scope.

    Attributes:
        wish: The author's name for a value, by node id.
        unpack: For a call whose result is unpacked at once: the names and the items, by index.
        inside: Ids of the nodes that are written inside the text of their readers.
        head: Lines that stand before the first operation (``a, b = pair``).
    """

    def __init__(
        self,
        writer: Writer,
        wanted: Mapping[str, str],
        forced: Mapping[str, str],
        apart: Container[str] = (),
    ):
        self.w = writer
        self.wish: dict[str, str] = {}
        self.unpack: dict[str, tuple[list, dict[int, Node]]] = {}
        self.inside: set[str] = set()
        self.head: list[str] = []
        self.body = [n for n in writer.nodes if n.kind not in ("input", "output")]
        self._effective: dict[str, tuple | None] = {}
        self._order = {n.id: i for i, n in enumerate(writer.nodes)}
        self._writers = [self._order[n.id] for n in writer.nodes if n.writes]
        self._outer: set[str] = set()
        for node in self.body:
            self._place(node)
        for node in self.body:
            self._author_names(node)
        for node in self.body:
            self._handed_out(node)
        for node in writer.nodes:
            if node.kind == "input":
                self._unpacked_input(node)
        for node in reversed(self.body):
            if node.id not in apart and self._goes_inside(node):
                self.inside.add(node.id)
        self._inserted()
        for names in (wanted, forced):
            for id, name in names.items():
                if id in writer.by_id:
                    self.wish[id] = name
                    if writer.by_id[id].kind != "input":
                        self.inside.discard(id)

    def _place(self, node: Node) -> None:
        frames = node.facts.get("result_frames") or node.frames
        kept = [f for f in frames if not source.is_torch(f.file)]
        self._effective[node.id] = source.effective(kept) if kept else None
        if self._effective[node.id] and (
            len(kept) < len(node.frames) or node.facts.get("result_frames")
        ):
            self._outer.add(node.id)

    def twin(self, a: Node, b: Node) -> bool:
        """Whether both come from one expression: a call and the items that it hands out."""
        return bool(a.frames) and a.frames == b.frames

    def _items(self, node: Node) -> list[Node]:
        """The item reads that belong to the call itself."""
        return [
            u
            for u in self.w.users[node.id]
            if u.target is operator.getitem and u.args[0] == Ref(node.id) and self.twin(u, node)
        ]

    def _base(self, node: Node) -> Node | None:
        """What an item is read from."""
        if node.target is operator.getitem and isinstance(node.args[0], Ref):
            return self.w.by_id[node.args[0].id]
        return None

    # ------------------------------------------------------------------ names

    def _author_names(self, node: Node) -> None:
        place = self._effective[node.id]
        if place is None:
            return
        _, file, widest, own = place
        base = self._base(node)
        if base is not None and self.twin(node, base):
            return
        names = source.targets(file, widest)
        if isinstance(names, str):
            self.wish[node.id] = names
        elif isinstance(names, list) and "*" not in names:
            subscript = isinstance(own, ast.Subscript) and node.target is not operator.getitem
            items = [u for u in self._items(node) if isinstance(u.args[1], int)]
            if not subscript:
                self._unpacked(node, names, items)
        self._item_names(node, file, widest, own)

    def _unpacked(self, node: Node, names: list, items: list[Node]) -> None:
        if not items or len(items) != len(self.w.users[node.id]) or "*" in names:
            return
        if max(u.args[1] for u in items) >= len(names):
            return
        self.unpack[node.id] = (names, {u.args[1]: u for u in items})
        for item in items:
            name = names[item.args[1]]
            if isinstance(name, str):
                self.wish[item.id] = name
            elif isinstance(name, list):  # out, (h, c) = …
                inner = [u for u in self._items(item) if isinstance(u.args[1], int)]
                self._unpacked(item, name, inner)
                used = [n for n in name if isinstance(n, str) and n not in ("_", "*")]
                if item.id not in self.unpack and len(used) == 1:
                    self.wish[item.id] = used[0]

    def _handed_out(self, node: Node) -> None:
        """What a part of a split hands out is unpacked under the names of what it is."""
        items = self.w.users[node.id]
        made = [self.w.base.by_id.get(item.id) for item in items]
        alone = all(
            u.glue
            and not u.frames
            and u.target is operator.getitem
            and m is not None
            and m.args != u.args
            for u, m in zip(items, made, strict=True)
        )
        if len(items) < 2 or not alone or {u.args[1] for u in items} != set(range(len(items))):
            return
        self.unpack[node.id] = ([None] * len(items), {u.args[1]: u for u in items})
        for item, of in zip(items, made, strict=True):
            name = source.variable(self.w.base.scopes[of.scope], of)
            last = [part for part in of.name.split(".") if not part.isdigit()]
            if of.kind == "module" and last:
                name = identifier(last[-1])
            if name is not None:
                self.wish[item.id] = name

    def _item_names(self, node: Node, file, widest: ast.AST, own: ast.AST) -> None:
        """``x = self.lstm(x)[0]``: the name belongs to the item."""
        for expression in (widest, own):
            subscript = file.parent.get(expression)
            if isinstance(subscript, ast.Subscript) and subscript.value is expression:
                break
        else:
            return
        name = source.targets(file, source.through(file, subscript))
        if not isinstance(name, str):
            return
        for item in self._items(node):
            index = subscript.slice
            if (
                isinstance(index, ast.UnaryOp)
                or isinstance(index, ast.Constant)
                and index.value == item.args[1]
            ):
                self.wish[item.id] = name

    def _unpacked_input(self, node: Node) -> None:
        """``q, k = pair`` at the top, where the author unpacked a parameter."""
        items = [
            u
            for u in self.w.users[node.id]
            if u.target is operator.getitem and isinstance(u.args[1], int) and not u.frames
        ]
        if not items or len(items) != len(self.w.users[node.id]):
            return
        if node.step is not None:  # an edit hands several values on as one: it names them
            known = {u.args[1]: u.name for u in items}
            names = [known.get(i, "_") for i in range(node.facts.get("items", max(known) + 1))]
        else:
            forward = inspect.unwrap(type(self.w.module).forward)
            if not isinstance(forward, types.FunctionType):
                return
            names = source.unpacking_of(forward.__code__, self.w.names[node.id])
        if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
            return
        if max(u.args[1] for u in items) >= len(names) or set(names) & set(self.w.names.values()):
            return
        read = {u.args[1] for u in items}
        left = ", ".join(n if i in read else "_" for i, n in enumerate(names))
        self.head.append(f"{left} = {self.w.names[node.id]}")
        for item in items:
            self.w.names[item.id] = names[item.args[1]]

    def _inserted(self) -> None:
        """A node that a step put behind another one carries that one's name on."""
        for node in self.body:
            if node.step is None or node.frames or node.id in self.wish or node.id in self.w.names:
                continue
            if node.id in self.inside:
                continue
            reads = [self.w.by_id[r] for r in node.refs]
            reads = [r for r in reads if r.kind != "parameter"]
            if reads:
                first = reads[0]
                if first.kind != "input" and not self._entered(first):
                    self.inside.discard(first.id)
                name = self.wish.get(first.id) or self.w.names.get(first.id)
                if name and name.isidentifier():
                    self.wish[node.id] = name

    # ------------------------------------------------------------------ nesting

    def _uses(self, node: Node) -> list[Node]:
        """The readers, one entry for each read."""
        return [
            user
            for user in self.w.users[node.id]
            for ref in iter_refs((user.args, user.kwargs))
            if ref.id == node.id
        ]

    def _goes_inside(self, node: Node) -> bool:
        w, wished = self.w, node.id in self.wish
        if node.kind in ("parameter", "constant") or node.id in w.names:
            return True
        base = self._base(node)
        if self._entered(node):
            return True
        if node.id in self.unpack:
            return False
        uses = self._uses(node)
        number = isinstance(node.value, (int, float)) or (
            node.value is None and node.target is getattr and not node.outputs
        )
        if node.target is getattr:
            if not wished and (node.args[1] in _ALWAYS_INSIDE or not node.outputs):
                return True
            owner = w.by_id[node.args[0].id] if isinstance(node.args[0], Ref) else None
            if owner is not None and self.twin(node, owner):
                return True
        if base is not None and isinstance(node.args[1], (int, str)) and self.twin(node, base):
            if base.id in self.unpack:
                return False
            if wished and (w.is_shape(base) or node.outputs):
                return False
            return not (node.outputs and len(uses) > 1 and base.id in self.inside)
        number = number and not node.impure and not wished and node.kind != "module"
        if number and (len(uses) == 1 or (node.kind == "method" and node.target == "size")):
            return True
        if node.writes or wished or len(uses) != 1 or self._overtakes(node, uses[0]):
            return False
        if self._put_in(node):
            return self._put_inside(node, uses[0])
        reader = self._behind(uses[0])
        if reader is not uses[0] and reader.kind == "output" and self._returned(node):
            return True
        return self._nested(node, reader) or self._collected(node, reader)

    def _returned(self, node: Node) -> bool:
        """Whether the author returned the value as it is: a new module goes around it there."""
        place = self._effective.get(node.id)
        if place is None or place[0] != 0 or node.id in self._outer:
            return False
        return isinstance(place[1].parent.get(place[2]), ast.Return)

    def _entered(self, node: Node) -> bool:
        """Whether the node only reads a part of an argument that was found on entering."""
        if node.frames or node.target not in (operator.getitem, getattr):
            return False
        whole = self.w.by_id[node.args[0].id] if isinstance(node.args[0], Ref) else None
        opened = (
            node.glue and whole is not None and bool(whole.frames) and whole.id not in self.unpack
        )
        return opened or whole is not None and (whole.kind == "input" or self._entered(whole))

    @staticmethod
    def _put_in(node: Node) -> bool:
        """Whether a step made the node."""
        return node.step is not None and not node.frames

    def _behind(self, node: Node) -> Node:
        """The reader itself, or who reads the new module that a step put before it."""
        while self._put_in(node) and node.kind == "module" and len(self._uses(node)) == 1:
            node = self._uses(node)[0]
        return node

    def _put_inside(self, node: Node, user: Node) -> bool:
        """Whether a new module is called in the expression where its argument was written.

        What one step makes for another of its nodes (a projection for an addition) goes inside too.
        """
        if node.kind != "module" or len(node.refs) != 1:
            return False
        if self._put_in(user) and user.step == node.step:
            return True
        first, reader = self.w.by_id[node.refs[0]], self._behind(user)
        alone = len(self._uses(first)) == 1 and first.id not in self.wish and not first.writes
        returned = reader.kind == "output" and self._returned(first)
        return alone and (returned or self._nested(first, reader))

    def _overtakes(self, node: Node, user: Node) -> bool:
        """Whether something is overwritten between an operation and its reader: it must stay before."""
        if not self._writers:
            return False
        here, there = self._order[node.id], self._order[user.id]
        return any(here < at < there for at in self._writers)

    def _collected(self, node: Node, user: Node) -> bool:
        """Whether the operation was put into a list (``parts.append(f(x))``) that is used at once."""
        place = self._effective.get(node.id)
        if place is None or user.kind in ("output", "module") or node.kind == "module":
            return False
        parent = place[1].parent.get(place[2])
        if not isinstance(parent, (ast.Call, ast.List, ast.Tuple)) or node.id in self._outer:
            return False
        between = self.w.nodes[self._order[node.id] + 1 : self._order[user.id]]
        return all(n.glue or n.kind == "parameter" for n in between)

    def _nested(self, node: Node, user: Node) -> bool:
        """Whether the author wrote the operation inside the expression of its reader."""
        place = self._effective.get(node.id)
        if place is None:
            return False
        depth, file, widest, _ = place
        if user.kind == "output":
            returned = file.statement(widest)
            return (
                depth == 0
                and isinstance(returned, ast.Return)
                and returned.value is not widest
                and node.id not in self._outer
                and node.scope == user.scope
            )
        if node.id in self._outer or user.id in self._outer or not user.frames:
            return False
        if depth >= len(user.frames) or user.frames[depth].code is not node.frames[depth].code:
            return False
        if user.frames[:depth] != node.frames[:depth]:
            return False
        other, expression = source.expression(user.frames[depth])
        if expression is None or other is not file or expression is widest:
            return False
        return file.holds(expression, widest)
