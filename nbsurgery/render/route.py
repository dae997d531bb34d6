"""Ways for edges around boxes: verticals and jogs that cross nothing, as rounded SVG paths."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .style import CLEAR, GAP

_NEAR = 7  # two verticals of different values stay this far apart, in px
_WIDE = 18  # a jog wider than this is drawn as a rounded step, else as an S, in px


@dataclass(slots=True)
class Jog:
    """A change of x between two heights; the step's level stands at ``at`` of the height."""

    x0: float
    y0: float
    x1: float
    y1: float
    at: float = 0.5

    @property
    def level(self) -> float:
        return self.y0 + (self.y1 - self.y0) * self.at

    @property
    def wide(self) -> bool:
        return abs(self.x1 - self.x0) > _WIDE


@dataclass(slots=True)
class Way:
    """One edge: from ``(x0, y0)`` down to ``(x1, y1)``, straight but for its jogs, top to bottom."""

    x0: float
    y0: float
    x1: float
    y1: float
    jogs: list[Jog] = field(default_factory=list)

    def verticals(self) -> list[tuple[float, float, float]]:
        """Every upright piece as ``(x, top, bottom)``; a jog counts to its level on either side."""
        pieces, x, y = [], self.x0, self.y0
        for jog in self.jogs:
            pieces.append((x, y, jog.level))
            x, y = jog.x1, jog.level
        pieces.append((x, y, self.y1))
        return pieces

    def levels(self) -> list[tuple[float, float, float]]:
        """Every level piece as ``(y, left, right)``."""
        return [(j.level, min(j.x0, j.x1), max(j.x0, j.x1)) for j in self.jogs]

    def path(self, dx: float = 0.0, dy: float = 0.0) -> str:
        """The SVG path, moved by ``(dx, dy)``."""

        def n(value: float) -> str:
            return f"{value:.1f}".removesuffix(".0")

        out = [f"M{n(self.x0 + dx)},{n(self.y0 + dy)}"]
        y = self.y0
        for jog in self.jogs:
            a, b = jog.x0 + dx, jog.x1 + dx
            top, bottom, level = jog.y0 + dy, jog.y1 + dy, jog.level + dy
            if jog.wide:
                sign = 1 if b > a else -1
                r1 = min(12, abs(b - a) / 2, level - top)
                r2 = min(12, abs(b - a) / 2, bottom - level)
                out.append(
                    f"V{n(level - r1)}Q{n(a)},{n(level)} {n(a + sign * r1)},{n(level)}"
                    f"H{n(b - sign * r2)}Q{n(b)},{n(level)} {n(b)},{n(level + r2)}"
                )
                y = jog.level + r2
            else:
                bend = (bottom - top) * 0.55
                if jog.y0 > y + 0.05:
                    out.append(f"V{n(top)}")
                out.append(f"C{n(a)},{n(top + bend)} {n(b)},{n(bottom - bend)} {n(b)},{n(bottom)}")
                y = jog.y1
        if self.y1 > y + 0.05 or not self.jogs:
            out.append(f"V{n(self.y1 + dy)}")
        return "".join(out)

    def crossings(self, other: Way) -> int:
        """How often two ways cross."""
        return _crossed(self.verticals(), other.levels()) + _crossed(
            other.verticals(), self.levels()
        )


def _crossed(verticals: Sequence, levels: Sequence) -> int:
    return sum(
        a + 1 < x < b - 1 and top < y < bottom for y, a, b in levels for x, top, bottom in verticals
    )


class Router:
    """Finds ways among rectangles, remembering those already taken.

    Args:
        rects: ``(left, top, right, bottom)`` of every obstacle.
    """

    def __init__(self, rects: Iterable[tuple[float, float, float, float]]):
        self.rects = sorted(rects, key=lambda r: r[1])
        self.tops = [r[1] for r in self.rects]
        self.tallest = max((r[3] - r[1] for r in self.rects), default=0.0)
        self.taken: list[tuple[object, list, list]] = []  # group, verticals, levels
        self.near: dict[int, list[tuple[float, float, float, object]]] = {}  # verticals by x

    def _between(self, top: float, bottom: float) -> Sequence[tuple[float, float, float, float]]:
        first = bisect.bisect_left(self.tops, top - self.tallest - 1)
        last = bisect.bisect_left(self.tops, bottom)
        return [r for r in self.rects[first:last] if r[3] > top]

    def free(self, left: float, top: float, right: float, bottom: float, clear: float) -> bool:
        """Whether no obstacle comes nearer than `clear` sideways, or overlaps in height."""
        if bottom - top < 0.2:
            return True
        for r in self._between(top + 0.1, bottom - 0.1):
            if r[0] - clear < right and r[2] + clear > left:
                return False
        return True

    def _fits(self, way: Way, clear: float) -> bool:
        x, y = way.x0, way.y0
        for jog in way.jogs:
            if not self.free(x, y, x, jog.y0, clear):
                return False
            left, right = min(jog.x0, jog.x1), max(jog.x0, jog.x1)
            if not self.free(left, jog.y0, right, jog.y1, clear - 4):
                return False
            x, y = jog.x1, jog.y1
        return self.free(x, y, x, way.y1, clear)

    def _crowded(self, x: float, top: float, bottom: float, group: object) -> bool:
        column = int(x // _NEAR)
        for near in (column - 1, column, column + 1):
            for ox, a, b, other in self.near.get(near, ()):
                if a < bottom - 1 and b > top + 1 and abs(ox - x) < _NEAR and other != group:
                    return True
        return False

    def _cost(self, way: Way, group: object, count: bool) -> float:
        cost = 14.0 * len(way.jogs)
        for jog in way.jogs:
            cost += abs(jog.x1 - jog.x0)
        verticals = way.verticals()
        if count:
            levels = way.levels()
            for other, its_verticals, its_levels in self.taken:
                if other != group:
                    cost += 30 * (_crossed(verticals, its_levels) + _crossed(its_verticals, levels))
        for x, top, bottom in verticals:
            if bottom - top > GAP and self._crowded(x, top, bottom, group):
                cost += 60
        return cost

    def find(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        group: object,
        hints: Iterable[float] = (),
        left: float = 1.0,
        early: bool = False,
    ) -> Way | None:
        """The cheapest way found between two points, or ``None``.

        Args:
            x0, y0: Where it starts, downwards.
            x1, y1: Where it ends, from above.
            group: Ways of one group show one value and may run on each other.
            hints: Lanes to try besides those next to the obstacles.
            left: What a lane on the left costs more than one on the right.
            early: Turn below the start, as the branches of a fork do, not above the end.
        """
        clear = CLEAR - 0.5
        if abs(x0 - x1) < 0.6:
            way = Way(x1, y0, x1, y1)
            if self._fits(way, 2):
                return way
        height = y1 - y0
        if height < 8:
            return None
        count = len(self.taken) < 150
        found: list[tuple[float, int, Way]] = []

        def offer(way: Way, extra: float = 0.0) -> None:
            if self._fits(way, clear):
                found.append((self._cost(way, group, count) + extra, len(found), way))

        zone = min(float(GAP), height)
        blocks = self._between(y0, y1)
        tops = sorted({y0, *(r[3] for r in blocks if y0 <= r[3] <= y1 - zone)})
        bottoms = sorted(
            {y1 - zone, *(r[1] - zone for r in blocks if y0 <= r[1] - zone <= y1)}, reverse=True
        )
        starts = sorted({*tops, *bottoms}) if len(blocks) < 12 else [y0, y1 - zone]
        for start in starts:
            if y0 <= start <= y1 - zone:
                extra = (start - y0 if early else y1 - zone - start) * 0.02
                offer(Way(x0, y0, x1, y1, [Jog(x0, start, x1, start + zone)]), extra)
        if height >= 2 * zone - 0.1 and len(blocks):
            sides = {*hints}
            for r in blocks:
                sides.add(r[0] - CLEAR)
                sides.add(r[2] + CLEAR)
            ends = sorted(sides, key=lambda x: abs(x - x0) + abs(x - x1) - (x > x0) * 0.5)
            for side in ends[:16]:
                outward = 1 if side >= (x0 + x1) / 2 else -1
                for lane in (side + outward * 8 * k for k in range(5)):
                    if self._crowded(lane, y0 + zone, y1 - zone, group):
                        continue
                    before = len(found)
                    for start in tops[:3]:
                        for stop in bottoms[:3]:
                            if start + zone <= stop + 0.1 and len(found) == before:
                                jogs = [
                                    Jog(x0, start, lane, start + zone),
                                    Jog(lane, stop, x1, stop + zone),
                                ]
                                jogs = [j for j in jogs if abs(j.x0 - j.x1) > 0.3]
                                offer(
                                    Way(x0, y0, x1, y1, jogs),
                                    (start - y0 + y1 - zone - stop) * 0.1
                                    + (0 if lane > x0 else left),
                                )
                    break
        if not found:
            return None
        return min(found)[2]

    def take(self, way: Way, group: object) -> None:
        """Remember a way, so that later ones keep clear of it."""
        verticals = way.verticals()
        self.taken.append((group, verticals, way.levels()))
        for x, top, bottom in verticals:
            self.near.setdefault(int(x // _NEAR), []).append((x, top, bottom, group))


def spread(ways: Sequence[tuple[object, Way]]) -> None:
    """Give steps that would lie on each other levels of their own, with few crossings."""
    steps = sorted(
        ((jog, group, way) for group, way in ways for jog in way.jogs if jog.wide),
        key=lambda s: s[0].y0,
    )
    if len(steps) < 2:
        return
    clusters: list[list] = []
    for step in steps:
        jog = step[0]
        left, right = min(jog.x0, jog.x1) - 6, max(jog.x0, jog.x1) + 6
        home = None
        for cluster in clusters[-12:]:
            if any(
                other.y0 < jog.y1 - 1
                and other.y1 > jog.y0 + 1
                and min(other.x0, other.x1) < right
                and max(other.x0, other.x1) > left
                for other, _, _ in cluster
            ):
                if home is None:
                    home = cluster
                    cluster.append(step)
                else:
                    home.extend(cluster)
                    cluster.clear()
        if home is None:
            clusters.append([step])
    for cluster in clusters:
        groups = list(dict.fromkeys(group for _, group, _ in cluster))
        if len(groups) < 2:
            continue
        members = {g: [(j, w) for j, o, w in cluster if o == g] for g in groups}

        def assign(order: Sequence, members: dict = members) -> None:
            for place, group in enumerate(order):
                for jog, _ in members[group]:
                    jog.at = (place + 1) / (len(order) + 1)

        if len(groups) <= 5:
            involved = [(g, w) for g in groups for _, w in members[g]]

            def score(order: Sequence, involved: list = involved) -> int:
                assign(order)
                return sum(
                    a.crossings(b)
                    for (g, a), (o, b) in itertools.combinations(involved, 2)
                    if g != o
                )

            assign(min(itertools.permutations(groups), key=score))
        else:
            assign(sorted(groups, key=lambda g: -max(abs(j.x1 - j.x0) for j, _ in members[g])))
