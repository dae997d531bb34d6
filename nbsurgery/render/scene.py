"""The composed picture as nested, keyed data: what the page and the SVG writer draw.

Levels are sized from the inside out, one wave of Graphviz for each depth, and the answers are kept:
by DOT text, and by the whole problem, so that opening one module lays out its ancestors only.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import EngineError
from ..graph import Graph, Node
from . import layout, style, text
from .engine import Engine, find_engine
from .layout import Link, Placed, Plan, Problem, Shape
from .levels import ADDS, Level, Levels

_STACKS = ("norm", "act", "drop", "pool", "shape", "other", "merge")
_CATS = frozenset(("cat", "concat", "concatenate"))
_MOST_ROWS = 14  # a longer chain goes on in a card of its own


class Cache:
    """Layouts already made, to be passed from one `compose` to the next.

    Holds Graphviz's answers by DOT text and finished levels by problem; the oldest go first.

    Args:
        size: How many levels are kept.
    """

    def __init__(self, size: int = 4000):
        self.size = size
        self.answers: OrderedDict[tuple[str, str], dict] = OrderedDict()
        self.placed: OrderedDict[tuple[str, Problem], Placed] = OrderedDict()

    def trim(self) -> None:
        for table in (self.answers, self.placed):
            while len(table) > self.size:
                table.popitem(last=False)


_SHARED = Cache()
_PLAIN = "Graphviz is missing: `pip install graphviz-pure`. Modules are drawn in one column."


@dataclass(slots=True)
class _Item:
    """One thing drawn at a level."""

    kind: str  # card, box, group, pill
    key: str
    nodes: list[Node]
    shape: Shape | None = None
    label: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Open:
    """An open scope on its way to being placed."""

    key: str
    level: Level
    depth: int
    items: list[_Item]
    of: dict[str, int]
    placed: Placed | None = None
    links: list[tuple[Link, list]] = field(default_factory=list)


def compose(
    graph: Graph,
    open: Collection[str] = (),
    *,
    engine: Engine | None = None,
    cache: Cache | None = None,
    diff: Mapping[str, str] | None = None,
    runs: bool = True,
) -> dict:
    """Compose the picture of a model.

    Args:
        graph: The captured model.
        open: Keys of the scopes that show their inside; ancestors of an open scope are open too.
            Unknown keys are left out.
        engine: The Graphviz to ask; the one that is installed, by default.
        cache: Layouts to reuse and to add to; one for the whole process, by default.
        diff: ``"added"``, ``"removed"`` or ``"changed"`` by node id or scope key.
        runs: Whether a run of like siblings that are closed is drawn as one box.

    Returns:
        The scene: a dict that JSON can hold. Children stand relative to their group.
    """
    return _Composer(graph, set(open), engine, cache or _SHARED, diff or {}, runs).run()


class _Composer:
    def __init__(self, graph, open, engine, cache, diff, runs):
        self.graph, self.cache, self.diff, self.runs = graph, cache, diff, runs
        self.levels = Levels.of(graph)
        self.touched: set[str] = set()  # scopes with a difference inside
        for key in self.diff:
            node = graph.by_id.get(key)
            at = node.scope if node is not None else key
            if at in graph.scopes and at not in self.touched:
                self.touched.update(graph.ancestors(at))
        self.open = {""}
        for key in open:
            if key in graph.scopes:
                self.open.update(graph.ancestors(key))
        self.notices: list[str] = []
        self.engine = engine or find_engine()
        if self.engine is None:
            self.notices.append(_PLAIN)
        self.done: dict[str, _Open] = {}
        self.waves = self.asked = self.laid = 0

    def run(self) -> dict:
        begin = time.perf_counter()
        by_height: dict[int, list[tuple[str, int]]] = {}

        def height(key: str, depth: int) -> int:
            inner = [
                height(n.child, depth + 1) + 1
                for n in self.levels.level(key).nodes
                if n.child in self.open
            ]
            found = max(inner, default=0)
            by_height.setdefault(found, []).append((key, depth))
            return found

        height("", 0)
        for _, keys in sorted(by_height.items()):
            self.wave([self.prepare(key, depth) for key, depth in keys])
        self.cache.trim()
        group = self.group(self.done[""], 0, 0, (), False)
        group["x"] = group["y"] = 0
        drawn = sum(len(o.items) for o in self.done.values())
        return {
            "width": group["w"],
            "height": group["h"],
            "group": group,
            "stats": {
                "levels": len(self.done),
                "laid_out": self.laid,
                "asked": self.asked,
                "waves": self.waves,
                "items": drawn,
                "engine": self.engine.name if self.engine else None,
                "notices": self.notices,
                "seconds": round(time.perf_counter() - begin, 4),
            },
        }

    # -- a level's items ------------------------------------------------------------------------
    def prepare(self, key: str, depth: int) -> _Open:
        """Group a level's nodes into cards, boxes, runs and open modules."""
        level = self.levels.level(key)
        inward: dict[str, list] = {}
        outward: dict[str | None, list] = {}
        for edge in level.edges:
            outward.setdefault(edge.source, []).append(edge)
            if edge.target is not None:
                inward.setdefault(edge.target, []).append(edge)
        items: list[_Item] = []
        of: dict[str, int] = {}

        def only(node: Node) -> str | None:
            """The one node that this one continues, if nothing else touches the way between."""
            arriving = inward.get(node.id, ())
            if len(arriving) == 1 and len(outward[arriving[0].source]) == 1:
                return arriving[0].source
            return None

        for node in level.nodes:
            if node.kind in ("input", "output"):
                kind = "pill"
            elif node.child in self.open:
                kind = "group"
            elif node.child is not None and node.child in self.graph.scopes:
                kind = "box"
            else:
                kind = "card"
            if kind == "card" and (source := only(node)) in of:
                home = items[of[source]]
                if (
                    home.kind == "card"
                    and home.nodes[-1].id == source
                    and len(home.nodes) < _MOST_ROWS
                    and _continues(home.nodes[-1], node)
                ):
                    home.nodes.append(node)
                    of[node.id] = of[source]
                    continue
            if kind == "box" and self.runs and items and items[-1].kind == "box":
                home = items[-1]
                if self.in_run(home.nodes, node, inward, outward):
                    home.nodes.append(node)
                    of[node.id] = len(items) - 1
                    continue
            prefix = {"card": "c:", "pill": "n:"}.get(kind)
            name = prefix + node.id if prefix else ("b:" if kind == "box" else "s:") + node.child
            of[node.id] = len(items)
            items.append(_Item(kind, name, [node]))
        return _Open(key, level, depth, items, of)

    def in_run(
        self, members: Sequence[Node], node: Node, inward: Mapping, outward: Mapping
    ) -> bool:
        """Whether a closed module goes on with the run of like ones before it."""
        last = members[-1]
        if self.diff and (self.state(last) or self.state(node)):
            return False
        if self.levels.likeness(last.child) != self.levels.likeness(node.child):
            return False
        if any(e.target != node.id for e in outward.get(last.id, ())):
            return False
        own = {e.source for e in inward.get(node.id, ())}
        if last.id not in own:
            return False
        ids = {m.id for m in members}
        shared = own - ids
        if own & ids != {last.id}:
            return False
        if len(members) == 1:
            return shared <= {e.source for e in inward.get(last.id, ())}
        return shared == {e.source for e in inward.get(last.id, ())} - ids

    def state(self, node: Node) -> str | None:
        """How a node, or the scope that it calls, differs."""
        found = self.diff.get(node.id)
        if found is None and node.child is not None:
            found = self.diff.get(node.child) or ("changed" if node.child in self.touched else None)
        return found

    # -- sizes ----------------------------------------------------------------------------------
    def size(self, item: _Item, scope: str, level: Level) -> None:
        """Give an item its texts and its size."""
        first = item.nodes[0]
        if item.kind == "group":
            placed = self.done[first.child].placed
            item.shape = Shape(
                placed.w, placed.h, placed.inx, placed.outx, max(1, self.levels.size(first.child))
            )
        elif item.kind == "pill":
            name = str(first.target) if first.kind == "input" and first.target else first.name
            outputs = first.outputs
            if not outputs and first.kind == "output":
                outputs = self.levels.scope_outputs(scope)
            shape = self.levels.shape(outputs)
            name = text.fit(name, style.NAME, style.LONGEST, True)
            width = text.width(name, style.NAME, True) + text.width(shape, style.NOTE) + 40
            item.label = {"name": name, "shape": shape}
            end = "in" if first.kind == "input" else "out"
            item.shape = Shape(layout.rounded(max(72, width)), style.ROW, weight=0, end=end)
        elif item.kind == "box":
            last = item.nodes[-1]
            name = self.short(first, scope)
            if len(item.nodes) > 1:
                name += "–" + _tail(name, self.short(last, scope))
            name = text.fit(name, style.NAME, style.LONGEST, True)
            type = text.fit(self.graph.scopes[first.child].type, style.TYPE, style.LONGEST)
            params = style.count(sum(self.levels.params(n.child) for n in item.nodes))
            shape = self.levels.shape(self.levels.scope_outputs(last.child))
            why = [w for n in item.nodes for w in self.levels.opaque(n.child)]
            top = text.width(name, style.NAME, True) + text.width(type, style.TYPE) + 47
            if len(item.nodes) > 1:
                top += text.width(f"×{len(item.nodes)}", 11, True) + 6
            if why:
                top += 30
            low = text.width("→ " + shape, style.NOTE) + text.width(params, style.NOTE) + 52
            item.label = {
                "name": name,
                "type": type,
                "params": params,
                "shape": shape,
                "badge": _badge(why),
            }
            weight = max(1, sum(self.levels.size(n.child) for n in item.nodes))
            item.shape = Shape(layout.rounded(max(150, top, low)), style.BOX, weight=weight)
        else:
            rows, widest, right = [], 0.0, 0.0
            for node in item.nodes:
                row = self.row(node, scope, level)
                rows.append(row)
                left = text.width(row["name"], style.NAME, True)
                if row["type"]:
                    left += 6 + text.width(row["type"], style.TYPE)
                if row["badge"]:
                    left += 30
                widest = max(widest, left + text.width(row["shape"], style.NOTE))
                if row["params"]:
                    right = max(right, text.width(row["params"], style.NOTE) + 14)
            width = layout.rounded(max(112.0, 14 + widest + 22 + right + 9))
            item.label = {"rows": rows, "column": round(right, 1)}
            item.shape = Shape(
                width,
                style.ROW * len(rows),
                weight=len(rows),
                merge="add" if first.type in ADDS else "cat" if first.type in _CATS else "",
            )

    def row(self, node: Node, scope: str, level: Level) -> dict:
        """What one operation's row says."""
        reads = level.folded.get(node.id, ())
        name = self.short(node, scope)
        type = node.type
        if name == type or name.rpartition("_")[0] == type and node.kind != "module":
            type = ""
        params = (node.facts.get("params") or 0) if node.kind == "module" else 0
        params += sum({str(r.target): r.facts.get("params") or 0 for r in reads}.values())
        failed = self.graph.failure is not None and self.graph.failure.node == node.id
        return {
            "key": "n:" + node.id,
            "node": node.name,
            "name": text.fit(name, style.NAME, style.LONGEST, True),
            "type": text.fit(type, style.TYPE, style.LONGEST),
            "family": style.family(node.type),
            "shape": self.levels.shape(node.outputs),
            "params": style.count(params),
            "tip": self.tip(node, reads, params),
            "badge": {"count": 1, "text": self.graph.failure.error} if failed else None,
            "failed": failed,
            "diff": self.state(node) if self.diff else None,
        }

    def short(self, node: Node, scope: str) -> str:
        """A node's name as it is said inside its scope."""
        if node.child is not None and node.child in self.graph.scopes:
            path = self.graph.scopes[node.child].path
        elif node.kind == "module" and isinstance(node.target, str):
            path = node.target
        else:
            return node.name.rpartition(".")[2] or node.type
        own = self.graph.scopes[scope].path
        if own and path.startswith(own + "."):
            return path[len(own) + 1 :]
        return path or node.type

    def tip(self, node: Node, reads: Iterable[Node], params: int) -> str:
        """The facts that a pointer resting on a row asks for."""
        incoming = [
            self.graph.by_id[i].outputs[0].shape
            for i in self.graph.inputs_of(node.id)
            if self.graph.by_id[i].outputs
        ]
        lines = [f"{node.name} · {node.type}"]
        if node.outputs:
            arrive = ", ".join(_sizes(s) for s in incoming[:3]) + (
                ", …" if len(incoming) > 3 else ""
            )
            leave = ", ".join(_sizes(t.shape) for t in node.outputs[:3])
            lines.append(f"{arrive} → {leave}" if arrive else f"→ {leave}")
        for read in list(reads)[:4]:
            lines.append(f"reads {read.target} {_sizes(read.shape) if read.shape else ''}".rstrip())
        if params:
            lines.append(f"{params:,} parameters")
        if node.calls > 1:
            lines.append(f"call {node.call} of {node.calls}")
        if node.frames:
            lines.append(node.frames[-1].place)
        return "\n".join(lines)

    # -- layout ---------------------------------------------------------------------------------
    def wave(self, opens: list[_Open]) -> None:
        """Lay out the levels of one height: one call of the engine for what is new."""
        begun: list[tuple[_Open, Problem, Plan | None]] = []
        name = self.engine.name if self.engine else "column"
        missing: dict[str, None] = {}
        plans: dict[Problem, Plan] = {}
        for each in opens:
            for item in each.items:
                self.size(item, each.key, each.level)
            problem = self.problem(each)
            plan = None
            if (name, problem) not in self.cache.placed:
                plan = plans.get(problem)
                if plan is None:
                    plan = plans[problem] = layout.plan(problem)
                if (name, plan.source) not in self.cache.answers:
                    missing[plan.source] = None
            begun.append((each, problem, plan))
        if missing and self.engine is not None:
            self.ask(list(missing), name)
        for each, problem, plan in begun:
            placed = self.cache.placed.get((name, problem))
            if placed is None:
                assert plan is not None
                answer = self.cache.answers.get((name, plan.source)) or layout.column(plan)
                placed = layout.place(plan, answer)
                self.laid += 1
                if (name, plan.source) in self.cache.answers or self.engine is None:
                    self.cache.placed[(name, problem)] = placed
            each.placed = placed
            self.done[each.key] = each

    def ask(self, sources: list[str], name: str) -> None:
        """Fill the cache; a graph that the engine cannot do falls back to one column, and says so."""
        self.waves += 1
        try:
            found = self.engine.layout(sources)
            self.asked += len(sources)
        except EngineError as error:
            if len(sources) > 1:
                half = len(sources) // 2
                self.ask(sources[:half], name)
                self.ask(sources[half:], name)
            else:
                notice = f"One module is drawn in one column: {error}"
                if notice not in self.notices:
                    self.notices.append(notice)
            return
        for source, answer in zip(sources, found, strict=True):
            self.cache.answers[(name, source)] = answer

    def problem(self, each: _Open) -> Problem:
        """A level without its names; fills ``each.links``."""
        level, items = each.level, each.items
        ins = {p: k for k, p in enumerate(level.ins)}
        outs = {v: k for k, v in enumerate(level.outs)}
        found: dict[tuple[int, int, int, int], list] = {}
        for edge in level.edges:
            exit = entry = -1
            if edge.source in ins:
                a = -1 - ins[edge.source]
            else:
                a = each.of[edge.source]
                if items[a].kind == "group":
                    inner = self.done[items[a].nodes[0].child].level
                    if edge.exit not in inner.outs:
                        continue
                    exit = inner.outs.index(edge.exit)
            if edge.target is None:
                b = -1 - outs[edge.values[0]]
            else:
                b = each.of[edge.target]
                if items[b].kind == "group":
                    inner = self.done[items[b].nodes[0].child].level
                    if edge.entry not in inner.ins:  # handed in and never used
                        continue
                    entry = inner.ins.index(edge.entry)
            if a == b and a >= 0:
                continue
            found.setdefault((a, b, exit, entry), []).append(edge)
        numbers: dict[tuple[int, str], int] = {}
        given: dict[int, int] = {}
        each.links = []
        for (a, b, exit, entry), came in found.items():
            value = (a, came[0].values[0])
            if value not in numbers:
                numbers[value] = given[a] = given.get(a, -1) + 1
            each.links.append((Link(a, b, exit, entry, numbers[value]), came))
        pairs = []
        for k, item in enumerate(items):
            if item.kind not in ("box", "group"):
                continue
            by_entry = {
                edge.entry: j
                for j, (link, came) in enumerate(each.links)
                if link.b == k
                for edge in came
                if edge.target == item.nodes[0].id
            }
            for same, main in self.levels.additions(item.nodes[0].child):
                pair = by_entry.get(same), by_entry.get(main)
                if None not in pair and pair[0] != pair[1]:
                    pairs.append(pair)
        root = each.key == ""
        least = 0 if root else self.title(each)
        return Problem(
            tuple(item.shape for item in items),
            tuple(link for link, _ in each.links),
            len(level.ins),
            len(level.outs),
            layout.rounded(least),
            root,
            tuple(pairs),
        )

    def title(self, each: _Open) -> float:
        """Width that the title of an open module needs."""
        label = self.heading(each.key)
        width = text.width(label["name"], style.NAME, True) + text.width(label["type"], style.TYPE)
        width += text.width(label["params"], style.NOTE) + 24 + 6 + 24 + 10
        return width + (30 if label["badge"] else 0)

    def heading(self, key: str) -> dict:
        scope = self.graph.scopes[key]
        caller = self.graph.by_id[scope.caller]
        return {
            "name": text.fit(self.short(caller, caller.scope), style.NAME, style.LONGEST, True),
            "type": text.fit(scope.type, style.TYPE, style.LONGEST),
            "params": style.count(self.levels.params(key)),
            "shape": self.levels.shape(self.levels.scope_outputs(key)),
            "badge": _badge([scope.opaque] if scope.opaque else []),
        }

    # -- the scene ------------------------------------------------------------------------------
    def group(self, each: _Open, x: float, y: float, skips: Collection[int], through: bool) -> dict:
        """An open scope with everything in it.

        A shortcut may enter at some of its ports, and may leave again: then all of it is one.
        """
        placed = each.placed
        root = each.key == ""
        scope = self.graph.scopes[each.key]
        label = (
            {"name": "", "type": scope.type, "params": "", "shape": "", "badge": None}
            if root
            else self.heading(each.key)
        )
        caller = self.graph.by_id[scope.caller] if scope.caller else None
        passing: dict[int, set[int]] = {}  # ports at which shortcuts enter the open modules
        leaving = {link.a for j, (link, _) in enumerate(each.links) if j in placed.skips}
        for j, (link, _) in enumerate(each.links):
            if j in placed.skips and link.b >= 0 and each.items[link.b].kind == "group":
                passing.setdefault(link.b, set()).add(link.entry)
        items = [
            self.item(each, k, item, placed.rects[k], passing.get(k, set()), k in leaving)
            for k, item in enumerate(each.items)
        ]
        return {
            "key": "s:" + each.key,
            "kind": "group",
            "scope": each.key,
            **label,
            "depth": each.depth,
            "x": x,
            "y": y,
            "w": placed.w,
            "h": placed.h,
            "head": 0 if root else style.HEAD,
            "diff": self.state(caller) if caller is not None and self.diff else None,
            "items": items,
            "edges": self.edges(each, skips, through and bool(skips)),
        }

    def item(
        self, each: _Open, k: int, item: _Item, rect: tuple, skips: Collection[int], through: bool
    ) -> dict:
        x, y, w, h = rect
        if item.kind == "group":
            found = self.group(self.done[item.nodes[0].child], x, y, skips, through)
            if hidden := each.placed.hidden.get(k):
                found["more"] = self.more(each, rect, hidden)
            return found
        found = {"key": item.key, "kind": item.kind, "x": x, "y": y, "w": w, "h": h}
        if item.kind == "pill":
            found.update(node=item.nodes[0].name, **item.label)
        elif item.kind == "box":
            found.update(
                scopes=[n.child for n in item.nodes],
                scope=item.nodes[0].child,
                count=len(item.nodes),
                diff=(self.state(item.nodes[0]) if self.diff else None),
                **item.label,
            )
        else:
            rows = [
                {**row, "y": r * style.ROW, "h": style.ROW}
                for r, row in enumerate(item.label["rows"])
            ]
            found.update(rows=rows, column=item.label["column"])
        hidden = each.placed.hidden.get(k)
        if hidden:
            found["more"] = self.more(each, rect, hidden)
        return found

    def more(self, each: _Open, rect: tuple, hidden: list[int]) -> dict:
        """The chip that stands for the edges which are not drawn, with their ways for the pointer."""
        x, y, w, _ = rect
        n = len({each.links[j][0].a for j in hidden})
        label = f"+{n}"
        width = round(text.width(label, style.NOTE, True) + 12)
        cx, cy = x + w - width - 6, y - 15
        edges = []
        for j in hidden:
            link, came = each.links[j]
            if link.a >= 0:
                sx, sy, sw, sh = each.placed.rects[link.a]
                x0, y0 = sx + sw / 2, sy + sh
            else:
                x0, y0 = each.placed.inx[-1 - link.a], float(style.HEAD)
            x1, y1 = cx + width / 2, cy
            bow = max(sw / 2 if link.a >= 0 else 0, w / 2) + 30
            d = (
                f"M{x0:.1f},{y0:.1f}C{x0 + bow:.1f},{y0 + 30:.1f} "
                f"{x1 + bow / 2:.1f},{y1 - 40:.1f} {x1:.1f},{y1:.1f}"
            )
            edges.append(
                {"value": came[0].values[0], "d": d, "from": self.end(each, link.a, came[0])}
            )
        return {"count": n, "label": label, "x": cx, "y": cy, "w": width, "h": 14, "edges": edges}

    def end(self, each: _Open, index: int, edge, target: bool = False) -> str:
        """The key of one end of an edge: an item's, or a port's."""
        if index >= 0:
            return each.items[index].key
        return f"o:{edge.values[0]}" if target else f"i:{edge.source}"

    def edges(self, each: _Open, skips: Collection[int], through: bool) -> list[dict]:
        placed, found = each.placed, []
        seen: dict[str, int] = {}
        for j, (link, came) in enumerate(each.links):
            if placed.paths[j] is None:
                continue
            values = list(dict.fromkeys(v for e in came for v in e.values))
            start = self.end(each, link.a, came[0])
            stop = self.end(each, link.b, came[0], True)
            key = f"{start}>{stop}:{values[0]}"
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > 1:
                key += f":{seen[key]}"
            maker = self.graph.by_id[values[0]]
            edge = {
                "key": key,
                "value": values[0],
                "d": placed.paths[j],
                "skip": through or j in placed.skips or (link.a < 0 and -1 - link.a in skips),
                "arrow": link.b >= 0 and each.items[link.b].kind != "group",
                "shape": self.levels.shape(maker.outputs),
                "from": start,
                "to": stop,
            }
            if len(values) > 1:
                edge["values"] = values
            found.append(edge)
        return found


def _sizes(shape: Iterable[int]) -> str:
    """``1×64×56×56``, as everywhere; a scalar has none."""
    return "×".join(map(str, shape)) or "scalar"


def _continues(before: Node, node: Node) -> bool:
    """Whether an operation is drawn as the next row of the card of the one before it."""
    old, new = style.family(before.type), style.family(node.type)
    if new not in _STACKS or old == "io":
        return False
    if new == "pool":
        return old in ("act", "norm") and "Adaptive" not in node.type
    if new == "shape":
        return old in ("shape", "linear", "attn", "merge", "norm", "other")
    if new == "other":
        return old in ("other", "merge", "shape", "act")
    return True


def _tail(first: str, last: str) -> str:
    """What the last name of a run adds to the first: "11" for layer_0 and layer_11."""
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    while same and last[same - 1].isdigit():
        same -= 1
    return last[same:] or last


def _badge(why: Sequence[str]) -> dict | None:
    """What the warning triangle says, if there is anything to say."""
    why = list(why)
    if not why:
        return None
    texts = list(dict.fromkeys(why))
    return {"count": len(why), "text": "\n".join(texts[:6])}
