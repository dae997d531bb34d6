"""A checker of pictures: every rule that a scene must keep, as a list of what breaks it."""

import itertools
import re

from nbsurgery.render import style, text

_TOKEN = re.compile(r"([MVHLQC])|(-?\d+(?:\.\d+)?)")


def points(d: str) -> list[tuple[float, float]]:
    """An SVG path of absolute M, V, H, L, Q and C as a fine polyline."""
    tokens = _TOKEN.findall(d)
    out, at, i, letter = [], (0.0, 0.0), 0, ""

    def take(n):
        nonlocal i
        found = [float(tokens[i + k][1]) for k in range(n)]
        i += n
        return found

    while i < len(tokens):
        if tokens[i][0]:
            letter = tokens[i][0]
            i += 1
        if letter in "ML":
            x, y = take(2)
            new = [(x, y)]
        elif letter == "V":
            new = [(at[0], take(1)[0])]
        elif letter == "H":
            new = [(take(1)[0], at[1])]
        elif letter == "Q":
            bx, by, cx, cy = take(4)
            new = [_bezier(t / 8, at, (bx, by), (cx, cy)) for t in range(1, 9)]
        else:
            bx, by, cx, cy, ex, ey = take(6)
            new = [_bezier(t / 16, at, (bx, by), (cx, cy), (ex, ey)) for t in range(1, 17)]
        out += new
        at = new[-1]
    return out


def _bezier(t, *knots):
    while len(knots) > 1:
        knots = [
            (a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t)
            for a, b in itertools.pairwise(knots)
        ]
    return knots[0]


def _crosses(line, left, top, right, bottom):
    """Whether a polyline enters the inside of a rectangle."""
    for (ax, ay), (bx, by) in itertools.pairwise(line):
        low, high = 0.0, 1.0
        inside = True
        for p, q, lo, hi in ((ax, bx, left, right), (ay, by, top, bottom)):
            if abs(q - p) < 1e-9:
                inside = inside and lo < p < hi
                continue
            t0, t1 = sorted(((lo - p) / (q - p), (hi - p) / (q - p)))
            low, high = max(low, t0), min(high, t1)
        if inside and low < high - 1e-9:
            return True
    return False


def faults(scene: dict) -> list[str]:
    """Everything that is wrong with a scene; an empty list for a good one."""
    found: list[str] = []
    keys: list[str] = []
    _group(scene["group"], found, keys)
    found += [f"key {k} is not unique" for k in set(keys) if keys.count(k) > 1]
    return found


def _group(group: dict, found: list[str], keys: list[str]) -> None:
    where, items = group["key"], group["items"]
    keys.append(where)
    if group["head"]:
        need = 34 + text.width(group["name"], 12, True) + 6 + text.width(group["type"], 10)
        need += text.width(group["params"], 9.5) + (24 if group["badge"] else 0)
        if need > group["w"]:
            found.append(f"{where}: title needs {need:.0f} of {group['w']}")
    for item in items:
        x, y, w, h = (item[k] for k in "xywh")
        if x < 0 or x + w > group["w"] + 0.1 or y < group["head"] or y + h > group["h"] + 0.1:
            found.append(f"{where}: {item['key']} stands out of its group")
        if item["kind"] != "group":
            keys.append(item["key"])
            _texts(item, found)
    for i, a in enumerate(items):
        for b in items[i + 1 :]:
            if (
                a["x"] < b["x"] + b["w"]
                and b["x"] < a["x"] + a["w"]
                and a["y"] < b["y"] + b["h"]
                and b["y"] < a["y"] + a["h"]
            ):
                found.append(f"{where}: {a['key']} overlaps {b['key']}")
    by_key = {item["key"]: item for item in items}
    for edge in group["edges"]:
        name = f"{where}: {edge['key']}"
        line = points(edge["d"])
        (x0, y0), (x1, y1) = line[0], line[-1]
        start, stop = by_key.get(edge["from"]), by_key.get(edge["to"])
        if start is None and not edge["from"].startswith("i:"):
            found.append(f"{name}: starts at nothing")
        if stop is None and not edge["to"].startswith("o:"):
            found.append(f"{name}: ends at nothing")
        at = start["y"] + start["h"] if start else 0
        low, high = (start["x"], start["x"] + start["w"]) if start else (0, group["w"])
        behind = start is None and 0 <= y0 <= group["head"]
        if (abs(y0 - at) > 0.6 and not behind) or not low <= x0 <= high:
            found.append(f"{name}: starts at ({x0}, {y0}), off the border")
        at = stop["y"] if stop else group["h"]
        low, high = (stop["x"], stop["x"] + stop["w"]) if stop else (0, group["w"])
        if abs(y1 - at) > 0.6 or not low <= x1 <= high:
            found.append(f"{name}: ends at ({x1}, {y1}), off the border")
        if any(not -0.1 <= x <= group["w"] + 0.1 for x, _ in line):
            found.append(f"{name}: leaves its group")
        for (ax, ay), (bx, by) in itertools.pairwise(line):
            if min(ay, by) < group["head"] - 0.1 and abs(ax - bx) > 0.1:
                found.append(f"{name}: runs through the title")
            if by < ay - 0.1:
                found.append(f"{name}: runs upwards")
                break
        for item in items:
            x, y, w, h = (item[k] for k in "xywh")
            inset = 0.7 if item in (start, stop) else -1.5
            if _crosses(line, x + inset, y + 0.7, x + w - inset, y + h - 0.7):
                found.append(f"{name}: crosses {item['key']}")
    names = [edge["key"] for edge in group["edges"]]
    found += [f"{where}: two edges {k}" for k in set(names) if names.count(k) > 1]
    for item in items:
        if item["kind"] == "group":
            _group(item, found, keys)


def _texts(item: dict, found: list[str]) -> None:
    def check(need, what):
        if need > item["w"] + 0.1:
            found.append(f"{item['key']}: {what} needs {need:.0f} of {item['w']}")

    if item["kind"] == "card":
        for row in item["rows"]:
            need = 14 + text.width(row["name"], style.NAME, True) + text.width(row["type"], 10)
            need += (6 if row["type"] else 0) + 8 + text.width(row["shape"], style.NOTE)
            need += item["column"] + 9
            check(need, f"row {row['name']}")
            if row["params"] and text.width(row["params"], style.NOTE) + 8 > item["column"]:
                found.append(f"{item['key']}: counts and shapes touch")
    elif item["kind"] == "box":
        need = 23 + text.width(item["name"], style.NAME, True) + 6 + text.width(item["type"], 10)
        need += 6 + text.width(f"×{item['count']}", 11, True) if item["count"] > 1 else 0
        check(need + 8, "title")
        low = 23 + text.width("→ " + item["shape"], style.NOTE) + 8
        check(low + text.width(item["params"], style.NOTE) + 14, "second line")
    else:
        need = 28 + text.width(item["name"], style.NAME, True) + 8
        check(need + text.width(item["shape"], style.NOTE), "pill")
