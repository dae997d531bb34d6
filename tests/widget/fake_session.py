"""A resnet18-like graph made by hand, a plain picture of it, and a session with canned answers.

The widget's own tests use it, so that they do not depend on capture, Graphviz or surgery.
"""

from __future__ import annotations

import types

from nbsurgery.errors import SelectionError, StepError
from nbsurgery.graph import Graph, Node, Ref, Scope, Tensor
from nbsurgery.verify import Finding, Progress, Report

FAMILIES = {
    "Conv2d": "conv",
    "BatchNorm2d": "norm",
    "ReLU": "act",
    "MaxPool2d": "pool",
    "AdaptiveAvgPool2d": "pool",
    "Linear": "linear",
    "add": "merge",
    "flatten": "shape",
}


class _Builder:
    def __init__(self, key, type_, caller=None):
        self.key, self.type, self.caller, self.nodes, self.last = key, type_, caller, [], None

    def add(self, kind, name, type_, shape, *reads, params=0, child=None, target=None):
        node = Node(
            id=f"{self.key}#{len(self.nodes)}",
            scope=self.key,
            kind=kind,
            name=name,
            type=type_,
            target=target if target is not None else name,
            args=tuple(Ref(i) for i in reads),
            outputs=(Tensor((1, *shape), "float32", "cpu"),),
            child=child,
            facts={"params": params, "trainable": params, "macs": params * 49},
        )
        self.nodes.append(node)
        return node.id

    def scope(self, bindings=None):
        return Scope(self.key, self.key, self.type, tuple(self.nodes), self.caller, bindings or {})


def resnet_graph() -> Graph:
    """The graph of resnet18 on one picture of 224 by 224."""
    scopes: dict[str, Scope] = {}
    root = _Builder("", "ResNet")
    x = root.add("input", "x", "input", (3, 224, 224))
    at = root.add("module", "conv1", "Conv2d", (64, 112, 112), x, params=9408)
    at = root.add("module", "bn1", "BatchNorm2d", (64, 112, 112), at, params=128)
    at = root.add("module", "relu", "ReLU", (64, 112, 112), at)
    at = root.add("module", "maxpool", "MaxPool2d", (64, 56, 56), at)
    before = 64
    for number, (width, side) in enumerate(((64, 56), (128, 28), (256, 14), (512, 7)), start=1):
        key = f"layer{number}"
        outer = at
        at = root.add("module", key, "Sequential", (width, side, side), at, child=key, params=1)
        layer = _Builder(key, "Sequential", at)
        inner = layer.add("input", "input", "input", (before, side, side))
        first = inner
        for index in range(2):
            block_key = f"{key}.{index}"
            shape = (width, side, side)
            source = inner
            inner = layer.add("module", block_key, "BasicBlock", shape, inner, child=block_key)
            block = _Builder(block_key, "BasicBlock", inner)
            start = block.add("input", "x", "input", shape)
            size = 9 * width * (before if index == 0 else width)
            p = f"{block_key}."
            y = block.add("module", p + "conv1", "Conv2d", shape, start, params=size)
            y = block.add("module", p + "bn1", "BatchNorm2d", shape, y, params=2 * width)
            y = block.add("module", p + "relu", "ReLU", shape, y)
            y = block.add("module", p + "conv2", "Conv2d", shape, y, params=9 * width * width)
            y = block.add("module", p + "bn2", "BatchNorm2d", shape, y, params=2 * width)
            y = block.add("function", p + "add", "add", shape, y, start)
            y = block.add("module", p + "relu_1", "ReLU", shape, y, target=p + "relu")
            block.add("output", p + "output", "output", shape, y)
            scopes[block_key] = block.scope({start: Ref(source)})
        layer.add("output", f"{key}.output", "output", (width, side, side), inner)
        scopes[key] = layer.scope({first: Ref(outer)})
        before = width
    at = root.add("module", "avgpool", "AdaptiveAvgPool2d", (512, 1, 1), at)
    at = root.add("function", "flatten", "flatten", (512,), at)
    at = root.add("module", "fc", "Linear", (1000,), at, params=513000)
    root.add("output", "output", "output", (1000,), at)
    return Graph({"": root.scope(), **scopes})


def _times(shape):
    return "×".join(str(s) for s in shape[1:]) if shape else ""


def _count(n):
    return f"{n:,}" if n < 10000 else f"{n / 1000:.1f}K" if n < 1e6 else f"{n / 1e6:.1f}M"


def _params(graph, key):
    total = 0
    for node in graph.scopes[key].nodes:
        total += _params(graph, node.child) if node.child else node.facts.get("params", 0)
    return total


def plain_compose(graph, open, diff=None):
    """A scene in the form that the widget draws: one column, skips on the right."""
    group = _group(graph, "", set(open) | {""}, 0)
    return {"width": group["w"], "height": group["h"], "group": group, "stats": {}}


def _group(graph, key, open_, depth):
    scope = graph.scopes[key]
    items, edges, place, cards = [], [], {}, []
    users = {n.id: scope.users(n.id) for n in scope.nodes}
    for node in scope.nodes:
        if node.kind in ("input", "output") and key != "":
            continue
        if node.kind in ("input", "output"):
            text = _times(node.shape)
            items.append(
                {
                    "key": f"n:{node.id}", "kind": "pill", "node": node.name, "name": node.name,
                    "shape": text, "w": 130, "h": 34,
                }
            )  # fmt: skip
        elif node.child in open_:
            items.append(_group(graph, node.child, open_, depth + 1))
        elif node.child:
            items.append(
                {
                    "key": f"b:{node.child}", "kind": "box", "scopes": [node.child],
                    "scope": node.child, "name": node.child.rpartition(".")[2],
                    "type": graph.scopes[node.child].type, "count": 1,
                    "shape": _times(node.shape), "params": _count(_params(graph, node.child)),
                    "w": 204, "h": 50, "badge": None, "diff": None,
                }
            )  # fmt: skip
        else:
            row = {
                "key": f"n:{node.id}", "node": node.name, "name": node.name.rpartition(".")[2],
                "type": node.type, "family": FAMILIES.get(node.type, "other"),
                "shape": _times(node.shape),
                "params": _count(node.facts["params"]) if node.facts["params"] else "",
                "h": 26, "tip": node.type, "badge": None,
                "diff": "added" if node.step is not None else None,
            }  # fmt: skip
            chain = cards and node.refs == (cards[-1],) and len(users[cards[-1]]) == 1
            if chain and items[-1]["kind"] == "card" and len(node.refs) == 1:
                row["y"] = 26 * len(items[-1]["rows"])
                items[-1]["rows"].append(row)
                items[-1]["h"] += 26
                place[node.id] = items[-1]["key"]
                cards.append(node.id)
                continue
            row["y"] = 0
            items.append(
                {"key": f"c:{node.id}", "kind": "card", "rows": [row], "w": 290, "h": 26, "column": 50}
            )  # fmt: skip
        place[node.id] = items[-1]["key"]
        cards.append(node.id)
    wide = max((i["w"] for i in items), default=120)
    w, y = wide + (68 if any(len(n.refs) > 1 for n in scope.nodes) else 28), 40 if key else 14
    for item in items:
        item["x"], item["y"] = (w - item["w"]) // 2, y
        y += item["h"] + 34
    by_key = {i["key"]: i for i in items}
    for node in scope.nodes:
        for source in node.refs:
            a, b = by_key.get(place.get(source)), by_key.get(place.get(node.id))
            if a is b and a is not None:
                continue
            mid = w / 2
            y0 = a["y"] + a["h"] if a else 24
            y1 = b["y"] if b else y
            skip = key.count(".") > 0 and a is None and b is not None and y1 > 100
            d = f"M{mid},{y0}V{y1 - 1}"
            if skip:
                d = (
                    f"M{mid},{y0}Q{mid},{y0 + 10} {mid + 10},{y0 + 10}H{w - 24}"
                    f"Q{w - 14},{y0 + 10} {w - 14},{y0 + 20}V{y1 - 22}Q{w - 14},{y1 - 12} "
                    f"{w - 24},{y1 - 12}H{mid + 40}Q{mid + 30},{y1 - 12} {mid + 30},{y1 - 1}"
                )
            made = graph.sources(key, Ref(source))
            edges.append(
                {
                    "key": f"e:{source}>{node.id}", "value": made[0] if made else source, "d": d,
                    "skip": skip, "arrow": b is not None and b["kind"] != "group",
                    "shape": _times(graph.by_id[source].shape),
                    "from": a["key"] if a else "", "to": b["key"] if b else "",
                }
            )  # fmt: skip
    return {
        "key": f"s:{key}", "kind": "group", "scope": key, "name": key.rpartition(".")[2],
        "type": scope.type, "params": _count(_params(graph, key)), "shape": "", "depth": depth,
        "x": 0, "y": 0, "w": w, "h": y - 34 + (18 if key else 14), "head": 24, "badge": None,
        "diff": None, "items": items, "edges": edges,
    }  # fmt: skip


class FakeSession:
    """Answers as a session does; edits change only the list of steps and the text."""

    def __init__(self, model=None, args=(), kwargs=None, *, variable="model"):
        self.base = self.current = resnet_graph()
        self.model, self.variable = model, variable
        self.steps, self.redone, self.next = [], [], 1
        self.found = [Finding("ok", "checked in full")]  # what only the full report finds

    @property
    def can_undo(self):
        return bool(self.steps)

    @property
    def can_redo(self):
        return bool(self.redone)

    original = changed_outside = failure = None
    style = types.MappingProxyType({"in_place": True, "function": False})

    @property
    def edited(self):
        return bool(self.steps)

    @property
    def models(self):
        return {"before": (self.base, None), "after": (self.base, None)}

    @property
    def draft(self):
        return types.SimpleNamespace(graph=self.base, edits=[])

    @property
    def after(self):
        return self.current

    @property
    def code(self):
        lines = [s["line"] for s in self.steps if s["enabled"]]
        return "\n".join(["from torch import nn", "", *lines]) if lines else "# no edits"

    @property
    def report(self):
        if not self.steps:
            return {"ok": True, "findings": [], "facts": []}
        return {
            "ok": True,
            "findings": [
                {"severity": "ok", "text": "All 120 kept weights are equal.", "cure": None},
                {"severity": "warning", "text": "An old checkpoint lacks 2 keys.", "cure": None},
            ],
            "facts": [{"label": "Parameters", "before": "11,689,512", "after": "11,181,642"}],
        }

    def offers(self, names, seconds=0):
        if not names:
            return []
        return [
            {
                "operation": "replace", "label": "Replace", "group": "Edit", "count": len(names),
                "note": "`old` is the module replaced",
                "fields": [
                    {"name": "new", "label": "New module", "type": "code",
                     "default": "nn.Linear(old.in_features, 10)", "choices": None,
                     "help": "An expression"},
                    {"name": "scope", "label": "Where", "type": "choice", "default": "one",
                     "choices": ["one", "all of this type"], "help": ""},
                ],
            },
            {"operation": "remove", "label": "Remove", "group": "Edit", "count": len(names),
             "note": "", "fields": []},
            {"operation": "cut", "label": "Cut after", "group": "Wiring", "count": 1, "note": "",
             "fields": [{"name": "keep", "label": "Keep names", "type": "bool", "default": True,
                         "choices": None, "help": ""}]},
        ]  # fmt: skip

    def preview(self, operation, arguments):
        self._check(operation, arguments)
        where = arguments.get("where") or []
        return {"count": len(where), "text": f"{operation} {len(where)} place", "places": where}

    def _check(self, operation, arguments):
        for name in arguments.get("where") or []:
            known = {*self.current.by_name, *self.current.scopes}
            if name not in known:
                raise SelectionError(f"{name!r} names nothing in the model")
        if operation == "replace" and "boom" in str(arguments.get("new")):
            raise StepError("boom does not evaluate: NameError: name 'boom' is not defined")

    def do(self, operation, arguments):
        self._check(operation, arguments)
        where = (arguments.get("where") or ["?"])[0]
        new = arguments.get("new", "nn.Identity()").replace("old.", f"{self.variable}.{where}.")
        self.steps = [
            *self.steps,
            {
                "uid": self.next, "operation": operation, "text": f"{operation} {where}",
                "detail": "", "enabled": True, "state": "ok", "reason": "",
                "line": f"{self.variable}.{where} = {new}",
            },
        ]  # fmt: skip
        self.redone, self.next = [], self.next + 1

    def undo(self):
        if self.steps:
            self.redone.append(self.steps[-1])
            self.steps = self.steps[:-1]

    def redo(self):
        if self.redone:
            self.steps = [*self.steps, self.redone.pop()]

    def toggle(self, uid):
        self.steps = [
            {**s, "enabled": not s["enabled"], "state": "off" if s["enabled"] else "ok"}
            if s["uid"] == uid
            else s
            for s in self.steps
        ]

    def drop(self, uid):
        self.steps = [s for s in self.steps if s["uid"] != uid]

    def checking(self):
        for number, name in enumerate(("train mode", "export"), 1):
            yield Progress(name, number, 2)
        return Report.of(self.found)

    def build(self):
        return self.model


def demo():
    """A widget over a `FakeSession`, for a notebook cell of the browser tests."""
    from nbsurgery.widget import scenery
    from nbsurgery.widget.surgery import Surgery

    scenery.compose = plain_compose
    return Surgery._over(FakeSession())
