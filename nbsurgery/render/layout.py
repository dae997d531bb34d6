"""One level laid out: Graphviz decides ranks, order and x, everything else is decided here.

A `Problem` holds sizes and links only, no names, so that equal blocks are one problem and are laid
out once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import graphviz

from .route import Jog, Router, Way, spread
from .style import CLEAR, GAP, HEAD, SIDE

DENSE = 4  # more different sources than this at one item, and the far ones become a "+N" chip
_ROUND = 8  # widths are multiples of it, so that almost equal levels are equal
_NOMINAL = 40  # height of every box for dot, which refuses sizes over 65,535
_LARGEST = 200  # items of a level up to which heights are compacted


def rounded(width: float) -> int:
    """A width as levels know it."""
    return math.ceil(width / _ROUND) * _ROUND


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of one item of a level.

    Attributes:
        w, h: Size in px.
        ins, outs: x of the ports of an open module, from its left edge; ``None`` for other items,
            whose edges meet at the middle.
        weight: How many operations it holds: the longest way is drawn straight.
        merge: ``"add"`` or ``"cat"`` where branches join, else empty.
        end: ``"in"`` or ``"out"`` for the whole model's inputs and outputs, else empty.
    """

    w: float
    h: float
    ins: tuple[float, ...] | None = None
    outs: tuple[float, ...] | None = None
    weight: int = 1
    merge: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """An edge between items by index; ``-1 - k`` is port `k` of the level itself.

    ``exit`` and ``entry`` number the port of an open module at either end, else -1; ``value``
    tells the values apart that one item gives.
    """

    a: int
    b: int
    exit: int = -1
    entry: int = -1
    value: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """One level to lay out, without names."""

    shapes: tuple[Shape, ...]
    links: tuple[Link, ...]
    ins: int
    outs: int
    least: int  # width that the title needs
    root: bool
    pairs: tuple[tuple[int, int], ...] = ()  # links that an item adds: (as it is, main branch)


@dataclass(slots=True)
class Placed:
    """One level laid out, in px from its top left corner.

    Attributes:
        w, h: Size of the level with its title.
        rects: ``(x, y, w, h)`` of each item.
        paths: SVG path of each link, ``None`` for a hidden one.
        inx, outx: x of the level's own ports.
        skips: Links that are shortcuts.
        hidden: Links left out at a crowded item, by that item.
    """

    w: float
    h: float
    rects: list[tuple[float, float, float, float]]
    paths: list[str | None]
    inx: tuple[float, ...]
    outx: tuple[float, ...]
    skips: frozenset[int]
    hidden: dict[int, list[int]]


@dataclass(slots=True)
class Plan:
    """What is known of a problem before Graphviz is asked."""

    problem: Problem
    source: str
    order: list[int]
    spine: set[int] = field(default_factory=set)
    skips: set[int] = field(default_factory=set)
    hidden: dict[int, list[int]] = field(default_factory=dict)
    unseen: set[int] = field(default_factory=set)  # links that dot does not hear of
    rank: dict[int, int] = field(default_factory=dict)


# Vertices: items 0…n-1, then the input ports, then the output ports.
def _ends(problem: Problem) -> list[tuple[int, int]]:
    n = len(problem.shapes)
    return [
        (
            link.a if link.a >= 0 else n - 1 - link.a,
            link.b if link.b >= 0 else n + problem.ins - 1 - link.b,
        )
        for link in problem.links
    ]


def plan(problem: Problem) -> Plan:
    """Find the spine, the shortcuts and the crowded items, and write the DOT text."""
    n, ends = len(problem.shapes), _ends(problem)
    total = n + problem.ins + problem.outs
    inward: list[list[int]] = [[] for _ in range(total)]
    outward: list[list[int]] = [[] for _ in range(total)]
    for j, (a, b) in enumerate(ends):
        outward[a].append(j)
        inward[b].append(j)
    # items come in execution order, so that ports in, items, ports out is an order of the graph
    order = [*range(n, n + problem.ins), *range(n), *range(n + problem.ins, total)]
    result = Plan(problem, "", order)

    rank: dict[int, int] = {}
    depth: dict[int, float] = {}
    best: dict[int, int | None] = {}
    for v in order:
        rank[v] = max((rank[ends[j][0]] + 1 for j in inward[v]), default=0)
        best[v] = None
        for j in inward[v]:
            a = ends[j][0]
            if best[v] is None or depth[a] > depth[ends[best[v]][0]]:
                best[v] = j
        shape = problem.shapes[v] if v < n else None
        start = 0.0 if shape is None or shape.end == "in" else -1e4
        came = depth[ends[best[v]][0]] if best[v] is not None else start
        depth[v] = came + (shape.weight if shape is not None else 0)
    result.rank = rank

    finals = [v for v in order if not outward[v]]
    ports = [v for v in finals if v >= n or problem.shapes[v].end == "out"] or finals
    if ports:
        v: int | None = max(ports, key=lambda v: depth[v])
        while v is not None and best[v] is not None:
            result.spine.add(best[v])
            v = ends[best[v]][0]

    def made_of(long: int, short: int) -> bool:
        """Whether what `short` takes away lies on the longest way that ends in `long`."""
        link: int | None = long
        while link is not None and ends[link][0] != ends[short][0]:
            link = best[ends[link][0]]
        return link is not None and problem.links[link].value == problem.links[short].value

    def alone(long: int, a: int) -> bool:
        """Whether nothing that enters the level reaches `long` except through vertex `a`."""
        seen, queue = {a}, [ends[long][0]]
        while queue:
            v = queue.pop()
            if v in seen:
                continue
            seen.add(v)
            if v >= n or problem.shapes[v].end == "in":
                return False
            queue += [ends[j][0] for j in inward[v]]
        return True

    for short, long in problem.pairs:
        if made_of(long, short) and ends[long][0] != ends[short][0]:
            result.skips.add(short)
    for v in range(n):
        kind, arriving = problem.shapes[v].merge, inward[v]
        if not kind or len(arriving) != 2 or ends[arriving[0]][0] == ends[arriving[1]][0]:
            continue
        short, long = sorted(arriving, key=lambda j: depth[ends[j][0]])
        if depth[ends[long][0]] < depth[ends[short][0]] + 1:
            continue
        way, a = [short], ends[short][0]
        while a < n and len(outward[a]) == 1 and len(inward[a]) == 1:
            way.append(inward[a][0])
            a = ends[inward[a][0]][0]
        # a shortcut leaves from a value that the long branch is made of; where it is more than
        # the value as it is, from one that the long branch is made of alone
        if made_of(long, way[-1]) and (len(way) == 1 or (kind == "add" and alone(long, a))):
            result.skips.update(way)

    for v in range(n):
        if len({ends[j][0] for j in inward[v]}) > DENSE:
            near = sorted(inward[v], key=lambda j: (-rank[ends[j][0]], j))
            far = [
                j
                for j in near[2:]
                if rank[v] - rank[ends[j][0]] > 1 and len(outward[ends[j][0]]) > 1
            ]
            if len(far) > 1:
                result.hidden[v] = sorted(far)
                result.unseen.update(far)
    for v in order:  # a value that goes almost everywhere: a trunk that only we route
        long = [j for j in outward[v] if rank[ends[j][1]] - rank[v] > 1 and j not in result.unseen]
        if len(long) > DENSE:
            long.sort(key=lambda j: rank[ends[j][1]])
            result.unseen.update(j for j in long[2:] if j not in result.spine)

    result.source = _dot(result, ends, inward, outward, rank)
    return result


def _dot(plan: Plan, ends, inward, outward, rank) -> str:
    problem = plan.problem
    n = len(problem.shapes)
    graph = graphviz.Digraph(
        graph_attr={"nodesep": ".2", "ranksep": ".36"},
        node_attr={
            "shape": "box",
            "fixedsize": "true",
            "label": "",
            "height": f"{_NOMINAL / 72:.4f}",
        },
        edge_attr={"dir": "none"},
    )
    names = [f"n{v}" for v in range(n)]
    names += [f"i{k}" for k in range(problem.ins)] + [f"o{k}" for k in range(problem.outs)]
    tables = set()
    edge_of = {"source": [], "sink": []}
    for v, shape in enumerate(problem.shapes):
        middle = (shape.w / 2,)
        if shape.ins is not None and any(
            abs(x - shape.w / 2) > 1 for x in (shape.ins or middle) + (shape.outs or middle)
        ):
            tables.add(v)
            graph.node(names[v], shape="plain", fixedsize="false", label=_table(shape))
        else:
            graph.node(names[v], width=f"{shape.w / 72:.4f}")
        if shape.end == "in":
            edge_of["source"].append(names[v])
        elif shape.end == "out":
            edge_of["sink"].append(names[v])
    edge_of["source"] += names[n : n + problem.ins]
    edge_of["sink"] += names[n + problem.ins :]
    for which, members in edge_of.items():
        if members:
            with graph.subgraph() as group:
                group.attr(rank=which)
                for name in members:
                    if name[0] != "n":
                        group.node(name, width=".1", height=".01")
                    else:
                        group.node(name)
    for j, (a, b) in enumerate(ends):
        if j in plan.unseen:
            continue
        link = problem.links[j]
        tail = names[a] + (f":o{link.exit}" if a in tables and link.exit >= 0 else "") + ":s"
        head = names[b] + (f":i{link.entry}" if b in tables and link.entry >= 0 else "") + ":n"
        weight = 1
        if j in plan.spine:
            weight = 60
        elif len(outward[a]) == 1 and len(inward[b]) == 1:
            weight = 30
        elif rank[b] - rank[a] == 1:
            weight = 3
        graph.edge(tail, head, id=f"e{j}", weight=str(weight))
    return graph.source


def _table(shape: Shape) -> str:
    """An HTML label whose port cells stand where the ports of the open module are."""
    width = round(shape.w)
    opening = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">'

    def cell(w: int, h: int, port: str = "") -> str:
        name = f' PORT="{port}"' if port else ""
        return f'<TD{name} FIXEDSIZE="TRUE" WIDTH="{w}" HEIGHT="{h}"></TD>'

    def row(xs: tuple[float, ...], letter: str) -> str:
        cells, at = "", 0
        for k, x in sorted(enumerate(xs), key=lambda item: item[1]):
            left = min(max(at, round(x) - 1), width - 2)
            if left > at:
                cells += cell(left - at, 2)
            cells += cell(2, 2, f"{letter}{k}")
            at = left + 2
        if width > at:
            cells += cell(width - at, 2)
        return (
            f'<TR><TD FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="2">'
            f"{opening}<TR>{cells}</TR></TABLE></TD></TR>"
        )

    rows = row(shape.ins, "i") if shape.ins else ""
    rows += f"<TR>{cell(width, _NOMINAL - 4)}</TR>"
    rows += row(shape.outs, "o") if shape.outs else ""
    return f"<{opening}{rows}</TABLE>>"


def column(plan: Plan) -> dict:
    """A stand-in for Graphviz's answer: everything in one column, in execution order."""
    problem = plan.problem
    n = len(problem.shapes)
    objects, y = [], 0.0
    if problem.ins:
        for k in range(problem.ins):
            objects.append({"name": f"i{k}", "pos": f"{(k - (problem.ins - 1) / 2) * 26},{y}"})
    for v in range(n):
        y -= 2 * _NOMINAL
        objects.append({"name": f"n{v}", "pos": f"0,{y}"})
    y -= 2 * _NOMINAL
    for k in range(problem.outs):
        objects.append({"name": f"o{k}", "pos": f"{(k - (problem.outs - 1) / 2) * 26},{y}"})
    return {"objects": objects, "edges": []}


def place(plan: Plan, answer: dict) -> Placed:
    """Turn Graphviz's answer into final coordinates."""
    return _Placing(plan, answer).run()


class _Placing:
    """The state of one `place`; vertices as in `_ends`."""

    def __init__(self, plan: Plan, answer: dict):
        self.plan, self.problem = plan, plan.problem
        self.n = n = len(self.problem.shapes)
        self.ends = _ends(self.problem)
        self.top = 0 if self.problem.root else HEAD
        first = {"n": 0, "i": n, "o": n + self.problem.ins}
        self.x: dict[int, float] = {}
        ys: dict[int, float] = {}
        for item in answer.get("objects", ()):
            if "pos" in item and item["name"][0] in first and item["name"][1:].isdigit():
                v = first[item["name"][0]] + int(item["name"][1:])
                x, y = item["pos"].split(",")
                self.x[v], ys[v] = float(x), -float(y)
        self.levels: list[float] = []
        for y in sorted(set(ys.values())):
            if not self.levels or y - self.levels[-1] > 8:
                self.levels.append(y)
        self.rank = {
            v: min(range(len(self.levels)), key=lambda i: abs(self.levels[i] - y))
            for v, y in ys.items()
        }
        self.w = {v: self.problem.shapes[v].w if v < n else 10.0 for v in self.x}
        # the port's height is what its edge must fall before it may turn: the title bar
        self.h = {
            v: self.problem.shapes[v].h if v < n else (self.top if v < n + self.problem.ins else 0)
            for v in self.x
        }
        self.inward = defaultdict(list)
        self.outward = defaultdict(list)
        for j, (a, b) in enumerate(self.ends):
            self.outward[a].append(j)
            self.inward[b].append(j)
        hidden = {j for js in plan.hidden.values() for j in js}
        self.shown = [j for j in range(len(self.ends)) if j not in hidden]
        self.splines = {}
        for edge in answer.get("edges", ()):
            points = [
                tuple(map(float, p.split(","))) for p in edge["pos"].split() if p[0] not in "es"
            ]
            self.splines[int(edge["id"][1:])] = [(x, -y) for x, y in points]
        self.rows: list[list[int]] = [[] for _ in self.levels]
        for v in self.x:
            self.rows[self.rank[v]].append(v)
        for row in self.rows:
            row.sort(key=self.x.get)
        self.offset: dict[int, float] = {}

    # -- x --------------------------------------------------------------------------------------
    def start(self, j: int) -> float:
        """x at which link `j` leaves."""
        a, exit = self.ends[j][0], self.problem.links[j].exit
        if a < self.n and (outs := self.problem.shapes[a].outs) and exit >= 0:
            return self.x[a] - self.w[a] / 2 + outs[exit]
        return self.x[a]

    def stop(self, j: int) -> float:
        """x at which link `j` arrives."""
        b, entry = self.ends[j][1], self.problem.links[j].entry
        if b < self.n and (ins := self.problem.shapes[b].ins) and entry >= 0:
            return self.x[b] - self.w[b] / 2 + ins[entry]
        return self.x[b] + self.offset.get(j, 0.0)

    def snap(self) -> None:
        """Make edges straight that are so but for a few px, where the row has room."""
        for j in sorted(self.shown, key=lambda j: self.rank[self.ends[j][1]]):
            a, b = self.ends[j]
            alone = len(self.outward[a]) == 1 and len(self.inward[b]) == 1
            if j not in self.plan.spine and not alone:
                continue
            dx = self.start(j) - self.stop(j)
            if 0 < abs(dx) <= 6 and self._room(b, dx):
                self.x[b] += dx

    def _room(self, v: int, dx: float) -> bool:
        row = self.rows[self.rank[v]]
        left, right = self.x[v] + dx - self.w[v] / 2, self.x[v] + dx + self.w[v] / 2
        return all(
            self.x[o] + self.w[o] / 2 + 8 <= left or self.x[o] - self.w[o] / 2 - 8 >= right
            for o in row
            if o != v
        )

    # -- y --------------------------------------------------------------------------------------
    def gap(self, a: int, b: int) -> float:
        """Free height between two linked vertices: more where several edges turn."""

        def turning(links: list[int]) -> int:
            return len(
                {
                    (self.ends[j][0], self.problem.links[j].exit, round(self.stop(j)))
                    for j in links
                    if j in self.visible and abs(self.start(j) - self.stop(j)) > 4
                }
            )

        many = max(turning(self.outward[a]), turning(self.inward[b]))
        return GAP + 5.0 * min(max(many - 2, 0), 8)

    def aligned(self) -> dict[int, float]:
        """y of every vertex with ranks as rows: always free of collisions, seldom pretty."""
        y, at = {}, 0.0
        self.channel: list[tuple[float, float]] = []
        for r, row in enumerate(self.rows):
            ports = [v for v in row if v >= self.n]
            items = [v for v in row if v < self.n]
            head = 0.0
            if r == 0 and not self.problem.root and items:
                head = self.top + (SIDE if not ports else 0)
            height = max([self.h[v] for v in items], default=0.0)
            for v in ports:
                y[v] = at
            for v in items:
                is_open = self.problem.shapes[v].ins is not None
                y[v] = at + head + (0 if is_open else (height - self.h[v]) / 2)
            bottom = max([y[v] + self.h[v] for v in row], default=at)
            gaps = [
                self.gap(*self.ends[j]) for v in row for j in self.outward[v] if j in self.visible
            ]
            if r + 1 < len(self.rows):
                gaps += [
                    self.gap(*self.ends[j])
                    for v in self.rows[r + 1]
                    for j in self.inward[v]
                    if j in self.visible
                ]
            passing = sum(
                self.rank[self.ends[j][0]] <= r < self.rank[self.ends[j][1]] for j in self.visible
            )
            gap = max(gaps, default=GAP) + (4 if passing > 4 else 0)
            self.channel.append((bottom, bottom + gap))
            at = bottom + gap
        return y

    def compact(self) -> dict[int, float]:
        """y of every vertex, as high as what it reads and what lies above it allow.

        What has slack stands in the middle of it; what reads nothing stands right above its reader.
        """
        order = sorted(self.x, key=lambda v: (self.rank[v], self.x[v]))
        above: dict[int, list[tuple[int, float]]] = {v: [] for v in order}
        below: dict[int, list[tuple[int, float]]] = {v: [] for v in order}
        for a, b in {self.ends[j] for j in range(len(self.ends))}:
            gap = self.gap(a, b)
            above[b].append((a, gap))
            below[a].append((b, gap))
        for i, u in enumerate(order):
            if u >= self.n:
                continue
            for v in order[i + 1 :]:
                if v >= self.n or self.rank[v] == self.rank[u]:
                    continue
                if abs(self.x[u] - self.x[v]) < (self.w[u] + self.w[v]) / 2 + CLEAR:
                    above[v].append((u, GAP))
                    below[u].append((v, GAP))
        first = 0.0 if self.problem.root else self.top + SIDE

        def floor(v: int) -> float:
            if self.n <= v < self.n + self.problem.ins:
                return 0.0
            return first if v < self.n else 0.0

        high = {}
        for v in order:
            high[v] = max([high[u] + self.h[u] + g for u, g in above[v] if u in high], default=0.0)
            high[v] = max(high[v], floor(v))
        end = max((high[v] + self.h[v] for v in order if v < self.n), default=0.0)
        ports = [v for v in order if v >= self.n + self.problem.ins]
        if ports:
            bottom = max([end + GAP, *(high[v] for v in ports)])
            end = bottom
            for v in ports:
                high[v] = bottom
        low = {}
        for v in reversed(order):
            low[v] = min([low[u] - self.h[v] - g for u, g in below[v] if u in low], default=1e9)
            if v in ports:
                low[v] = high[v]
            elif low[v] > 1e8:
                low[v] = high[v] if self.inward[v] or v >= self.n else end - self.h[v]
            if self.n <= v < self.n + self.problem.ins:
                low[v] = 0.0
        y = {}
        for v in order:
            lowest = max([y[u] + self.h[u] + g for u, g in above[v] if u in y], default=floor(v))
            share = 1.0 if not self.inward[v] else 0.5
            if v < self.n and self.problem.shapes[v].end == "in":
                share = 0.0
            wish = high[v] + max(low[v] - high[v], 0.0) * share
            y[v] = max(lowest, wish, floor(v))
        return y

    # -- edges ----------------------------------------------------------------------------------
    def lanes(self, j: int) -> list[tuple[int, int, float]]:
        """Where Graphviz led link `j` past the ranks between its ends: ``(first, last, x)``."""
        a, b = self.ends[j]
        r0, r1 = self.rank[a], self.rank[b]
        if r1 - r0 <= 1:
            return []
        points = self.splines.get(j)
        spans = []
        for r in range(r0 + 1, r1):
            x = _at(points, self.levels[r]) if points else max(self.x.values()) + 1e4
            low, high = -math.inf, math.inf
            for v in self.rows[r]:
                if v >= self.n:
                    continue
                if self.x[v] < x:
                    low = max(low, self.x[v] + self.w[v] / 2 + CLEAR)
                else:
                    high = min(high, self.x[v] - self.w[v] / 2 - CLEAR)
            if low > high:
                low = high = (low + high) / 2
            spans.append((low, high, x))
        found, i = [], 0
        while i < len(spans):
            low, high, _ = spans[i]
            k = i
            while k + 1 < len(spans) and max(low, spans[k + 1][0]) <= min(high, spans[k + 1][1]):
                k += 1
                low, high = max(low, spans[k][0]), min(high, spans[k][1])
            middle = (self.start(j) + self.stop(j)) / 2
            x = min(max(middle, low), high)
            step = 1 if spans[i][2] >= middle else -1
            for _ in range(40):
                if all(
                    abs(x - other) >= 8 or last < r0 + 1 + i or first > r0 + 1 + k
                    for first, last, other, group in self.used
                    if group != (a, self.problem.links[j].exit)
                ):
                    break
                x += 4 * step
            x = min(max(x, low), high)
            self.used.append((r0 + 1 + i, r0 + 1 + k, x, (a, self.problem.links[j].exit)))
            found.append((r0 + 1 + i, r0 + 1 + k, x))
            i = k + 1
        return found

    def along(self, j: int, y: dict[int, float]) -> Way:
        """Link `j` through the channels between aligned ranks: always possible."""
        a, b = self.ends[j]
        x0, x1 = self.start(j), self.stop(j)
        way = Way(x0, y[a] + self.h[a], x1, y[b])
        x = x0
        for first, _, lane in self.lanes(j):
            if abs(lane - x) > 0.3:
                way.jogs.append(
                    Jog(x, self.channel[first - 1][0], lane, self.channel[first - 1][1])
                )
            x = lane
        if abs(x1 - x) > 0.3:
            top, bottom = self.channel[self.rank[b] - 1]
            if self.rank[b] <= self.rank[a]:  # flat: both in one row, which dot does for ports only
                top, bottom = way.y0, way.y1
            way.jogs.append(Jog(x, max(top, way.y0), x1, min(bottom, way.y1)))
        return way

    def route(self, y: dict[int, float], rows: bool) -> dict[int, Way] | None:
        """A way for every visible link, or ``None`` where one finds none and `rows` is false."""
        rects = [
            (
                self.x[v] - self.w[v] / 2,
                y[v],
                self.x[v] + self.w[v] / 2,
                y[v] + self.h[v],
            )
            for v in self.x
            if v < self.n
        ]
        self.used: list = []
        router = Router(rects)
        ways: dict[int, Way] = {}

        def length(j: int) -> tuple:
            a, b = self.ends[j]
            straight = abs(self.start(j) - self.stop(j)) < 0.6
            return (not straight, y[b] - y[a], j)

        for j in sorted(self.visible, key=length):
            a, b = self.ends[j]
            group = (a, self.problem.links[j].exit)
            hints = []
            if (points := self.splines.get(j)) and self.rank[b] - self.rank[a] > 1:
                middle = (self.rank[a] + self.rank[b]) // 2
                hints = [_at(points, self.levels[middle])]
            way = router.find(
                self.start(j),
                y[a] + self.h[a],
                self.stop(j),
                y[b],
                group,
                hints,
                40.0 if j in self.plan.skips else 1.0,
                len(self.outward[a]) > 1 and len(self.inward[b]) == 1,
            )
            if way is None:
                if not rows:
                    return None
                way = self.along(j, y)
            router.take(way, group)
            ways[j] = way
        return ways

    def fan(self, ways: dict[int, Way]) -> bool:
        """Give edges that meet at one item places of their own on its top; whether any moved."""
        moved = False
        for b in range(self.n):
            shape = self.problem.shapes[b]
            links = [j for j in self.inward[b] if j in ways]
            if shape.ins is not None or len(links) < 2:
                continue

            def comes_from(j: int) -> float:
                way = ways[j]
                return way.jogs[-1].x0 if way.jogs else way.x0

            by_group: dict[tuple, list[int]] = defaultdict(list)
            for j in sorted(links, key=comes_from):
                by_group[(self.ends[j][0], self.problem.links[j].exit)].append(j)
            groups = list(by_group.values())
            straight = [
                k
                for k, js in enumerate(groups)
                if any(abs(comes_from(j) - self.x[b]) < 1 for j in js)
            ]
            pivot = straight[0] if straight else (len(groups) - 1) / 2
            widest = max(pivot, len(groups) - 1 - pivot, 1)
            step = min(24.0, (shape.w / 2 - 14) / widest)
            for k, js in enumerate(groups):
                for j in js:
                    offset = (k - pivot) * step
                    if abs(offset) > 0.5:
                        moved = True
                        self.offset[j] = offset
        return moved

    def run(self) -> Placed:
        problem, n = self.problem, self.n
        self.visible = set(self.shown)
        self.snap()
        ways, y = None, None
        for rows in (False, True):
            if not rows and len(self.x) > _LARGEST:
                continue
            self.offset = {}
            y = self.aligned() if rows else self.compact()
            ways = self.route(y, rows)
            if ways is not None and self.fan(ways):
                y = self.aligned() if rows else self.compact()
                ways = self.route(y, rows)
            if ways is not None:
                break
        assert ways is not None and y is not None
        spread([((self.ends[j][0], problem.links[j].exit), w) for j, w in ways.items()])

        left = min([self.x[v] - self.w[v] / 2 for v in self.x], default=0.0)
        right = max([self.x[v] + self.w[v] / 2 for v in self.x], default=10.0)
        for way in ways.values():
            for x, _, _ in way.verticals():
                left, right = min(left, x - 2), max(right, x + 2)
        width = right - left + 2 * SIDE
        extra = max(0.0, problem.least - width) / 2
        width = rounded(width + 2 * extra)
        dx = SIDE + extra - left
        dy = SIDE if problem.root else 0.0
        bottom = max([y[v] + self.h[v] for v in self.x], default=self.top)
        height = bottom + dy + (0 if problem.outs and not problem.root else SIDE)
        # the way in begins on the border and passes behind the title, where a shortcut joins it
        plain = {self.ends[j][0] for j in ways if j not in self.plan.skips}
        for j, way in ways.items():
            if self.ends[j][0] >= n:
                way.y0 = self.top / 2 if j in self.plan.skips and self.ends[j][0] in plain else 0.0
        ends_at = height - dy
        for j, way in ways.items():
            if self.ends[j][1] >= n:
                way.y1 = ends_at
        return Placed(
            width,
            round(height, 1),
            [
                (
                    round(self.x[v] - self.w[v] / 2 + dx, 1),
                    round(y[v] + dy, 1),
                    self.w[v],
                    self.h[v],
                )
                for v in range(n)
            ],
            [ways[j].path(dx, dy) if j in ways else None for j in range(len(self.ends))],
            tuple(round(self.x[n + k] + dx, 1) for k in range(problem.ins)),
            tuple(round(self.x[n + problem.ins + k] + dx, 1) for k in range(problem.outs)),
            frozenset(self.plan.skips),
            dict(self.plan.hidden),
        )


def _at(points: list[tuple[float, float]], y: float) -> float:
    """x of a spline at a height."""
    for i in range(0, len(points) - 3, 3):
        (ax, ay), (bx, by), (cx, cy), (ex, ey) = points[i : i + 4]
        if min(ay, ey) - 1 <= y <= max(ay, ey) + 1:
            low, high = 0.0, 1.0
            for _ in range(16):
                t = (low + high) / 2
                s = 1 - t
                if s**3 * ay + 3 * s * s * t * by + 3 * s * t * t * cy + t**3 * ey < y:
                    low = t
                else:
                    high = t
            s = 1 - t
            return s**3 * ax + 3 * s * s * t * bx + 3 * s * t * t * cx + t**3 * ex
    return points[0][0]
