"""Random surgery in numbers: ``python tests/surgery.py --examples 1000`` tabulates what holds.

Each example is a recipe of up to five random steps on one of twenty real models, or (every third) on
a model written by chance. Printed at the end: per operation, how many steps applied, were refused or
crashed; refusals by reason; everything wrong.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
import traceback
import warnings
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).parents[1])]
from nbsurgery.session import Session
from tests.session import laws
from tests.session.zoo import MODELS


def main() -> int:
    """Run the examples, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", default="", help="names with commas; all by default")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--loud", action="store_true", help="print every refusal")
    options = parser.parse_args()
    laws.LOUD = options.loud
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    names = options.models.split(",") if options.models else list(MODELS)
    seen: collections.Counter = collections.Counter()
    wrong: list[str] = []
    end, done = time.monotonic() + 60 * options.minutes, 0
    sessions: dict[str, Session] = {}
    for i in range(options.examples):
        if time.monotonic() > end:
            break
        number = options.seed * 100_003 + i
        name = names[i * 2 // 3 % len(names)]
        if i % 3 == 2 and not options.models:
            name = f"cell {number}"
        if name not in sessions:
            made = laws.opened(name)
            if not name.startswith("cell"):
                sessions[name] = made
        session = sessions.get(name, made)
        try:
            found = laws.check(session, name, seen, random.Random(number))
            laws.emptied(session)
        except Exception:  # noqa: BLE001  it is counted, and the next one runs
            found = [f"{name}: {traceback.format_exc()}"]
            sessions.pop(name, None)
        for text in found:
            print(f"WRONG example {i}: {text}\n", flush=True)
        wrong += found
        done += 1
        if done % 100 == 0:
            print(f"{done} examples, {len(wrong)} wrong", file=sys.stderr, flush=True)
    print(f"{done} examples, {len(wrong)} wrong\n")
    print("| operation | applied | refused | crashed | applied of all |\n|---|---|---|---|---|")
    for name in sorted({k for k, _ in seen if k != "reason"}):
        row = [seen[name, how] for how in ("applied", "refused", "crashed")]
        print(f"| {name} | {row[0]} | {row[1]} | {row[2]} | {row[0] / sum(row):.0%} |")
    print("\n| refused because | times |\n|---|---|")
    for (kind, reason), count in seen.most_common():
        if kind == "reason":
            print(f"| {reason} | {count} |")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
