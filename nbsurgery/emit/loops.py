"""Lines that repeat while an index counts up become a loop over the container again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch import nn

from ..paths import singular, span
from .names import RESERVED

_INDEXED = re.compile(r"(self(?:\.\w+)+|self)\[(\d+)\]")
_LONGEST_BODY = 9


def roll(lines: list[str], places: list[Any], find: Callable[[str], Any]) -> list[str]:
    """Roll up what repeats at least three times, or twice where the author has a loop too.

    Args:
        lines: Statements, unwrapped.
        places: Where the author wrote each of them; equal places are one place in a loop.
        find: Gives the container that a text like ``self.encoder.layer`` names.
    """
    out: list[str] = []
    i = 0
    while i < len(lines):
        best = _longest(lines, places, i)
        if best is not None:
            count, period, containers, start, body = best
            wheres = [_slice(c, find(c), start, count) for c in containers]
            if None not in wheres:
                names: list[str] = []
                for container in containers:
                    names.append(_loop_name(container, [*body, *names]))
                indent = re.match(r"\s*", body[0])[0]
                over = wheres[0] if len(wheres) == 1 else f"zip({', '.join(wheres)})"
                out.append(f"{indent}for {', '.join(names)} in {over}:")
                marks = {_mark(k): name for k, name in enumerate(names)}
                for line in body:
                    for mark, name in marks.items():
                        line = line.replace(mark, name)
                    out.append("    " + line)
                i += count * period
                continue
        out.append(lines[i])
        i += 1
    return out


def _longest(lines, places, at: int) -> tuple[int, int, list[str], int, list[str]] | None:
    best = None
    for period in range(1, _LONGEST_BODY):
        first = lines[at : at + period]
        if len(first) < period or any(line.lstrip().startswith("return") for line in first):
            break
        found = [match for line in first for match in _INDEXED.finditer(line)]
        for container in dict.fromkeys(match[1] for match in found):
            indices = {int(match[2]) for match in found if match[1] == container}
            if len(indices) != 1:
                continue
            start = indices.pop()
            second = "\n".join(lines[at + period : at + 2 * period])
            together = [container] + [
                other
                for other in dict.fromkeys(match[1] for match in found)
                if other != container
                and {int(m[2]) for m in found if m[1] == other} == {start}
                and f"{other}[{start + 1}]" in second
            ]
            body = _blank(first, together, start)
            count = 1
            while True:
                block = lines[at + count * period : at + (count + 1) * period]
                if len(block) < period or _blank(block, together, start + count) != body:
                    break
                count += 1
            again = places[at : at + period] == places[at + period : at + 2 * period]
            enough = count >= 3 or (count == 2 and again and all(places[at : at + period]))
            if enough and (best is None or count * period > best[0] * best[1]):
                best = (count, period, together, start, body)
    return best


def _blank(block: list[str], containers: list[str], index: int) -> list[str]:
    """The lines with a mark for the item of each container at an index."""
    for k, container in enumerate(containers):
        text = re.escape(container) + rf"\[{index}\]"
        block = [re.sub(text, _mark(k), line) for line in block]
    return block


def _mark(k: int) -> str:
    return f"\0{k}\0"


def _slice(text: str, container: Any, start: int, count: int) -> str | None:
    try:
        length = len(container)
    except TypeError:
        return None
    if start == 0 and count == length:
        return text
    if text == "self" or type(container) not in (nn.Sequential, nn.ModuleList, list, tuple):
        return None  # a slice of a subclass calls the subclass's own __init__
    return text + span(start, start + count, length)


def _loop_name(container: str, body: list[str]) -> str:
    name = singular(container.rpartition(".")[2]) if container != "self" else "module"
    text = "\n".join(body)
    base = name
    for suffix in ("", "_i", "_item"):
        name = base + suffix
        if name not in RESERVED and not re.search(rf"\b{name}\b", text):
            return name
    return base + "_of_all"
