"""Breaks the code on purpose, one place at a time, and looks whether the suite goes red: ``python tests/mutants.py``.

Each mutant is one text in one file, exchanged in a copy of the tree; the tests named beside it run
there and must fail. ``python tests/mutants.py oracle splice`` takes those whose name holds a word. A text
that is no longer found is told as such: then the mutant is out of date.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mutant:
    """`old` in `file` becomes `new`; `tests` must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant("printer: a printed class forgets the mode",
           "emit/printer.py", 'f"self.training = {arg}.training"', '"pass"', "tests/emit"),
    Mutant("printer: inner modules are not carried over in order of the model",
           "emit/printer.py", '- {"training"}', '- {"training", "bn2"}', "tests/operations"),
    Mutant("edits: an alias of a replaced module keeps the old one",
           "paths.py", "if held is module and other != path:", "if False:",
           "tests/operations tests/emit tests/session"),
    Mutant("edits: a new module takes no mode from its model",
           "edits.py", 'text + f".train({self.variable}.training)" if edit.moded else text', "text",
           "tests/operations"),
    Mutant("key rule: a container that is cut short keeps one child more",
           "edits.py", '[place.assigned(self.path, f"{here}[:{self.keep}]")]',
           '[place.assigned(self.path, f"{here}[:{self.keep + 1}]")]', "tests/operations tests/emit"),
    Mutant("key rule: a new child of a container takes the name of its anchor",
           "operations/insert.py", "attr = rewrite.unique_name(attr, taken)", "attr = anchor",
           "tests/operations"),
    Mutant("weight policy: zero leaves new rows as drawn",
           "operations/channels.py", 'copies = ["new.weight.zero_()"] if grows else []', "copies = []",
           "tests/operations"),
    Mutant("weight policy: repeat does not scale",
           "operations/channels.py", "} * {whole} / {ins}", "}", "tests/operations"),
    Mutant("weight policy: a kept BatchNorm loads nothing",
           "edits.py", "return [\n            f\"new = {value}\",\n            f\"new.load_state_dict("
           "{old}.state_dict(), strict=False)\",", "return [\n            f\"new = {value}\",",
           "tests/operations tests/session"),
    Mutant("coupling: what reads a concatenation counts from its start",
           "coupling.py", "self.layouts[node.id] = _Layout(axis, merged(tuple(pieces)))",
           "self.layouts[node.id] = _Layout(axis, merged(tuple(sorted(pieces, key=lambda p: p[0] == p[1]))))",
           "tests/operations/test_channels.py"),
    Mutant("oracle: an edited graph is read as the recorded one",
           "verify/checks/wiring.py", "evaluate(subject.edited,", "evaluate(subject.before,", "tests/verify"),
    Mutant("replay: a decision that does not hold is not noticed",
           "capture/replay.py", "if spec.node is not None and spec.kind in _CHECKS:", "if False:",
           "tests/capture"),
    Mutant("replay: an argument that was another value is taken",
           "capture/replay.py", "if _plainly(node.value) and _plainly(value) and value != node.value:",
           "if False:", "tests/capture"),
    Mutant("claims: a part of the output is compared with itself",
           "verify/checks/values.py", "found = difference(part, original)", "found = difference(part, part)",
           "tests/verify tests/operations"),
    Mutant("values: a difference counts as round-off",
           "verify/compare.py", "def close(self) -> bool:", "def close(self) -> bool:\n        return True",
           "tests/verify"),
    Mutant("tap: a value that is overwritten later is not cloned",
           "operations/tap.py", "if rewrite.overwritten_later(scope, id) is None:", "if True:",
           "tests/operations tests/verify"),
    Mutant("calls: an edit asked for in one call reaches all",
           "draft.py", "if self.serves.get(scope.path) != step:", "if False:",
           "tests/operations tests/emit tests/session"),
    Mutant("calls: an edit asked for in all calls reaches one",
           "draft.py", "changed[other.key] = rewrite.mirrored(old, scope, other, named)", "pass",
           "tests/operations/test_calls.py"),
    Mutant("keeps: dead weights of an opened module come along",
           "emit/keeps.py", "self.dead = self._dead() if w.copies else []", "self.dead = []",
           "tests/emit/test_keeps.py"),
    Mutant("tap: what hands on its input is taken for something new",
           "rewrite.py", 'base = (node.facts["same"],)', "pass", "tests/session/test_found.py"),
    Mutant("names: the text hides a variable of the person's",
           "emit/statements.py", "        if name in asked:", "        if False:",
           "tests/session/test_found.py"),
    Mutant("functional: the arguments of a call are forgotten",
           "operations/functional.py", "            given[name] = value\n", "            pass\n",
           "tests/operations/test_functional.py"),
    Mutant("dead weights: none are ever found",
           "verify/checks/dead_weights.py", "    if dead:", "    if False:",
           "tests/verify"),
    Mutant("ties: weights that were shared may part",
           "verify/checks/ties.py", "if len({id(after[n][0]) for n in there}) > 1:", "if False:",
           "tests/verify"),
    Mutant("state: random numbers drawn by a check are not given back",
           "verify/still.py", "torch.set_rng_state(cpu)", "pass", "tests/verify tests/session"),
]  # fmt: skip


def survives(mutant: Mutant) -> str:
    """``killed``, ``SURVIVED``, or ``out of date``."""
    source = (HERE / "nbsurgery" / mutant.file).read_text(encoding="utf-8")
    if mutant.old not in source:
        return "out of date"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        skip = shutil.ignore_patterns("node_modules", ".git", ".venv*", "__pycache__", "*.ipynb")
        shutil.copytree(HERE, copy, ignore=skip)
        (copy / "nbsurgery" / mutant.file).write_text(
            source.replace(mutant.old, mutant.new), encoding="utf-8"
        )
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests.split()],
            cwd=copy, capture_output=True, text=True, env={**_environment(), "PYTHONPATH": str(copy)},
        )  # fmt: skip
    if done.returncode == 1:
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return f"killed by {failed[0].split()[1]}" if failed else "killed"
    return "SURVIVED" if done.returncode == 0 else f"pytest ended with {done.returncode}"


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "OMP_NUM_THREADS": "1"}


def main() -> None:
    words = sys.argv[1:]
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    verdicts = []
    for mutant in chosen:
        verdicts.append(survives(mutant))
        print(f"{mutant.name}: {verdicts[-1]}", flush=True)
    killed = sum(v.startswith("killed") for v in verdicts)
    print(f"{killed} of {len(chosen)} killed")
    sys.exit(killed < len(chosen))


if __name__ == "__main__":
    main()
