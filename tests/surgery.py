"""Random surgery in numbers: ``python tests/surgery.py --examples 1000`` tabulates what holds.

Each example is a recipe of up to five random steps on one of twenty models. Printed at the end: per
operation, how many steps applied, were refused or crashed; refusals by reason; everything wrong.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
import warnings
from pathlib import Path

import torch

sys.path[:0] = [str(Path(__file__).parents[1])]
from nbsurgery.session import Session
from tests.session import laws
from tests.session.laws import check
from tests.session.zoo import MODELS, build


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
        name = names[i % len(names)]
        if name not in sessions:
            model, args, kwargs = build(name)
            sessions[name] = Session(model, args, kwargs, namespace={})
        session = sessions[name]
        found = check(session, name, seen, random.Random(options.seed * 100_003 + i))
        for text in found:
            print(f"WRONG example {i}: {text}\n", flush=True)
        wrong += found
        done += 1
        try:
            while session.can_undo:
                session.undo()
        except Exception as error:
            print(f"WRONG example {i}: undo: {type(error).__name__}: {error}", flush=True)
            wrong.append(str(error))
            del sessions[name]
    print(f"{done} examples, {len(wrong)} wrong\n")
    print("| operation | applied | refused | crashed |\n|---|---|---|---|")
    for name in sorted({k for k, _ in seen if k != "reason"}):
        row = [seen[name, how] for how in ("applied", "refused", "crashed")]
        print(f"| {name} | {row[0]} | {row[1]} | {row[2]} |")
    print("\n| refused because | times |\n|---|---|")
    for (kind, reason), count in seen.most_common():
        if kind == "reason":
            print(f"| {reason} | {count} |")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
