"""Put emitted text in place of a model's own, scope by scope, and run the WHOLE model.

``python tests/roundtrip.py hf papers`` prints every scope of the zoo's groups unchanged and compares,
``… --splice`` puts an identity after every operation into the author's text instead; single models
by ``torchvision:resnet18``. One line a model, then a table of rates: of the scopes that have a text, how
many are exact on each kind of input; how many are refused with a reason, stopped by a guard or another
error, silently wrong (must be 0). ``--json FILE`` keeps every scope as a line. The tests use `check` on
small models.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import json
import platform
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nbsurgery import rewrite
from nbsurgery.emit.names import import_block
from nbsurgery.emit.printer import print_class
from nbsurgery.emit.splice import splice
from nbsurgery.errors import EmissionError
from nbsurgery.graph import Node, Ref

GUARD = "RuntimeError: this forward "


@dataclass
class Case:
    """One kind of run on which emitted text is compared."""

    label: str
    args: tuple
    kwargs: dict = field(default_factory=dict)
    train: bool = False
    convert: Callable[[nn.Module], nn.Module] = lambda model: model
    expected: Any = None

    def model(self, model: nn.Module) -> nn.Module:
        """A copy of the model, as this case wants it."""
        result = self.convert(copy.deepcopy(model))
        return result.train() if self.train else result


@dataclass
class Row:
    """One scope: its text, or why there is none, and what went wrong when it ran, by case.

    ``turns``: an operation in a loop whose single turns no text can tell, edited in all of them.
    """

    key: str
    type: str
    text: str | None = None
    refused: str | None = None
    turns: bool = False
    ran: list[str] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """``exact``, ``refused``, ``silent`` (a wrong result), ``guarded`` or ``error``."""
        if self.refused or not self.found:
            return "refused" if self.refused else "exact"
        if any(is_silent(found) for found in self.found.values()):
            return "silent"
        return "error" if self.wrong else "guarded"

    @property
    def wrong(self) -> str | None:
        """The first difference or error that is no guard."""
        return next((f for f in self.found.values() if GUARD not in f), None)

    @property
    def guarded(self) -> str | None:
        """The first guard that stopped a run."""
        return next((f for f in self.found.values() if GUARD in f), None)


def is_silent(found: str) -> bool:
    """Whether a difference is a wrong result, and not an error."""
    return found.startswith(("differs", "type", "(")) or "tensors became" in found


def tensors(value, depth: int = 0) -> list:
    """Every tensor in an output, through containers and plain objects."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item, depth + 1)]
    if isinstance(value, dict):
        return [t for key in value for t in tensors(value[key], depth + 1)]
    if hasattr(value, "__dict__") and depth < 8 and not callable(value):
        state = vars(value)
        return [t for key in sorted(state) for t in tensors(state[key], depth + 1)]
    return []


def difference(expected, actual) -> str | None:
    """How two outputs differ; ``None`` where they are exactly equal."""
    if type(expected) is not type(actual):
        return f"type {type(expected).__name__} became {type(actual).__name__}"
    left, right = tensors(expected), tensors(actual)
    if len(left) != len(right):
        return f"{len(left)} tensors became {len(right)}"
    for a, b in zip(left, right, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{tuple(a.shape)} {a.dtype} became {tuple(b.shape)} {b.dtype}"
        if a.is_quantized:
            a, b = a.dequantize(), b.dequantize()
        if not torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)):
            return f"differs by {(a.double() - b.double()).abs().max().item():.2g}"
    return None


def run(model, args, kwargs):
    """Output and buffers after one seeded run on copies of the inputs."""
    torch.manual_seed(3)
    with torch.no_grad():
        out = model(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    return out, [b.clone() for b in model.buffers()]


def load(row: Row, printed) -> type:
    """The printed class, executed alone."""
    space: dict = {"__name__": "emitted"}
    row.text = import_block(printed.imports) + "\n\n\n" + printed.text + "\n"
    exec(compile(row.text, f"<{row.type}>", "exec"), space)  # noqa: S102 - what it is for
    return space["Printed"]


def put(model: nn.Module, path: str, cls: type, form: str) -> nn.Module:
    """The model with the module at `path` exchanged for its printed class, wherever it hangs."""
    old = model.get_submodule(path)
    if form == "sub":
        old.__class__ = cls
        return model
    new = cls(old)
    if path == "":
        return new
    for module in list(model.modules()):
        for name, child in list(module._modules.items()):
            if child is old:
                module._modules[name] = new
    return model


def cases(model, args, kwargs, others=(), train: bool = True) -> list[Case]:
    """The runs to compare on, with what the model itself gives; what it can't do is left out."""
    found = [Case("same", args, kwargs)]
    found += [o if isinstance(o, Case) else Case("other", *o) for o in others]
    if train:
        found += [Case(c.label + ", train", c.args, c.kwargs, True, c.convert) for c in found]
    kept = []
    for case in found:
        try:
            case.expected = run(case.model(model), case.args, case.kwargs)
            again = run(case.model(model), case.args, case.kwargs)
        except Exception:  # small images in train mode, masks in half precision, …
            if case.label == "same":
                raise
            continue
        if difference(case.expected[0], again[0]) is None:  # else it draws from numpy, say
            kept.append(case)
    return kept


def check(model, args, kwargs=None, *, graph, others=(), train=True, form="copy", **options):
    """Print every scope and compare; `others` are further ``(args, kwargs)`` or cases.

    Returns:
        A row for each scope.
    """
    was = [m.training for m in model.modules()]
    runs = cases(model, args, kwargs or {}, others, train)
    classes: dict[str, type] = {}
    rows = []
    seen = set()
    for scope in graph.scopes.values():
        if scope.path in seen:
            continue
        seen.add(scope.path)
        row = Row(scope.key, scope.type)
        rows.append(row)
        try:
            module = model.get_submodule(scope.path)
            printed = print_class(
                graph, scope, module, name="Printed", arg="block", form=form, **options
            )
            classes[scope.path] = load(row, printed)
        except EmissionError as error:
            row.refused = str(error)
        except Exception as error:  # noqa: BLE001 - a crash is a finding too
            at = traceback.extract_tb(error.__traceback__)[-1]
            row.found["print"] = f"crash: {type(error).__name__}: {error} ({at.name}:{at.lineno})"

    def compare(group: list[Row], case: Case) -> str | None:
        deepest = sorted(group, key=lambda r: -len(r.key.split(".")) + (r.key == ""))
        try:
            edited = case.model(model)
            for row in deepest:
                path = graph.scopes[row.key].path
                edited = put(edited, path, classes[path], form)
            out, state = run(edited, case.args, case.kwargs)
        except Exception as error:  # noqa: BLE001 - what the printed text raises is the finding
            return f"{type(error).__name__}: {str(error)[:160]}"
        found = difference(case.expected[0], out)
        if not found and form == "sub":
            found = difference(case.expected[1], state)
        return found

    done = [r for r in rows if r.text is not None and not r.found]
    groups = collections.defaultdict(list)
    for row in done:
        groups[row.type, row.text].append(row)
    for row in done:
        row.ran = [case.label for case in runs]
    for case in runs:
        if not done or not compare(done, case):
            continue
        for group in groups.values():
            if found := compare(group, case):
                for row in group:
                    row.found[case.label] = found
    assert was == [m.training for m in model.modules()]
    return rows


class Counter(nn.Module):
    """An identity that counts its calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x


@contextlib.contextmanager
def identity(module: nn.Module, cls: type):
    """A module of another class, with the identity that it calls, for a while."""
    was = module.__class__
    module.__class__ = cls
    module.add_module("extra_", Counter())
    try:
        yield module.extra_
    finally:
        module.__class__ = was
        del module._modules["extra_"]


def identities(model, args, kwargs=None, *, graph, others=(), train=True) -> list[Row]:
    """Splice an identity behind every operation of every scope, and compare.

    Different scopes get theirs in one run; where that run isn't exact, each is run by itself.
    """
    runs = cases(model, args, kwargs or {}, others, train)
    copies = {case.label: case.model(model) for case in runs}
    rows: list[Row] = []
    rounds: dict[int, list[tuple[Row, str, type]]] = collections.defaultdict(list)
    seen = set()
    for scope in graph.scopes.values():
        module = model.get_submodule(scope.path)
        if id(module) in seen or isinstance(module, nn.Sequential):
            continue
        seen.add(id(module))
        done = 0
        for node in scope.nodes:
            if node.glue or node.kind not in ("module", "function", "method") or not node.outputs:
                continue
            row = Row(node.id, scope.type)
            rows.append(row)
            if cls := _with_identity(graph, scope, node, module, row):
                rounds[done].append((row, scope.path, cls))
                row.ran = [case.label for case in runs]
                done += 1
    for together in rounds.values():
        for case in runs:
            if any(_run_with(copies[case.label], case, together)):
                for one in together:  # on a fresh copy: what a run keeps is not made again
                    for found in _run_with(case.model(model), case, [one]):
                        if found:
                            one[0].found[case.label] = found
    return rows


def _with_identity(graph, scope, node: Node, module: nn.Module, row: Row) -> type | None:
    """The class with an identity behind one operation; the row says why there is none."""
    twins = [n for n in scope.nodes if n.frames == node.frames and n.type == node.type]
    for nodes in ([node], twins):
        try:
            edited = scope
            for i, one in enumerate(nodes):
                edited = rewrite.insert_after(edited, one.id, _extra(scope, one, i))
            printed = splice(graph, edited, module, name="Printed", new={"extra_": ""})
            row.refused, row.turns = None, nodes is twins
            return load(row, printed)
        except EmissionError as error:
            row.refused = row.refused or str(error)
        except Exception as error:  # noqa: BLE001 - a crash is a finding too
            row.found["splice"] = f"crash: {type(error).__name__}: {error}"
            return None
        if len(twins) < 2 or not re.search("stands in a|runs several times", row.refused):
            return None
    return None


def _extra(scope, node: Node, number: int) -> Node:
    """The call of the identity behind an operation."""
    path = f"{scope.path}.extra_" if scope.path else "extra_"
    return Node(f"@1#{number}", scope.key, "module", "extra", "Identity", path, (Ref(node.id),),
                outputs=node.outputs, step=1)  # fmt: skip


def _run_with(model: nn.Module, case: Case, changed: list[tuple[Row, str, type]]):
    """What went wrong with each of the changed classes in one run; ``None`` where nothing did."""
    found = None
    with contextlib.ExitStack() as stack:
        counters = [
            stack.enter_context(identity(model.get_submodule(path), cls))
            for _, path, cls in changed
        ]
        try:
            found = difference(case.expected[0], run(model, case.args, case.kwargs)[0])
        except Exception as error:  # noqa: BLE001 - what the text raises is the finding
            found = f"{type(error).__name__}: {str(error)[:160]}"
    never = "the identity was never called" if case.label == "same" else None
    return [found or (None if counter.calls else never) for counter in counters]


# ------------------------------------------------------------------ the sweep


def double(value):
    """Floating-point tensors in double precision."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(double(v) for v in value)
    return {k: double(v) for k, v in value.items()} if isinstance(value, dict) else value


def variants(inputs) -> tuple[tuple, dict, list[Case]]:
    """The example of a zoo model, and the other kinds of input."""

    def given(batch, more=False):
        torch.manual_seed(batch)
        return inputs(batch, more)

    args, kwargs = given(2)
    others = [Case("batch", *given(3)), Case("size", *given(2, True))]
    others.append(Case("double", double(args), double(kwargs), convert=lambda m: m.double()))
    if "attention_mask" in kwargs:
        for label, start in (("no padding", 99), ("more padding", 3)):
            mask = torch.ones_like(kwargs["attention_mask"])
            mask[-1, start:] = 0
            others.append(Case(label, args, {**kwargs, "attention_mask": mask}))
    return args, kwargs, others


class Late(BaseException):
    """The time limit of a model."""


@contextlib.contextmanager
def limit(seconds: int):
    """Raise `Late` inside when it takes too long."""

    def stop(*_):
        raise Late

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def measure(make, inputs, how: str) -> list[Row]:
    """The rows of one model."""
    from nbsurgery.capture import capture

    torch.manual_seed(0)
    model = make().eval()
    args, kwargs, others = variants(inputs)
    graph = capture(model, copy.deepcopy(args), copy.deepcopy(kwargs), how="real")
    if how == "splice":
        return identities(model, args, kwargs, graph=graph, others=others[:1], train=False)
    return check(
        model, args, kwargs, graph=graph, others=others, allow_specialised=how == "guarded"
    )


def main() -> None:
    """One line a model, then a table."""
    from tests.zoo_models import GROUPS

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="*", default=list(GROUPS), help="group, or group:model")
    parser.add_argument("--splice", action="store_const", const="splice", dest="how")
    parser.add_argument("--refuse", action="store_const", const="refused", dest="how")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a model")
    parser.add_argument("--every", type=int, default=1, help="take each n-th model of a group")
    parser.add_argument("--json", help="a file for every scope or operation, one a line")
    parser.add_argument("--verbose", action="store_true", help="show the texts that went wrong")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    table: dict[str, list[Row]] = collections.defaultdict(list)
    models: collections.Counter = collections.Counter()
    with open(options.json, "w", 1) if options.json else contextlib.nullcontext() as lines:
        for what in options.what:
            group, _, single = what.partition(":")
            entries = GROUPS[group]()
            for name in [single] if single else list(entries)[:: options.every]:
                try:
                    with limit(options.limit):
                        rows = measure(*entries[name], options.how or "guarded")
                except (Exception, Late) as error:  # noqa: BLE001 - the sweep goes on
                    message = f"{type(error).__name__}: {str(error)[:100]}"
                    print(f"{name:28s} failed: {message}", flush=True)
                    continue
                show(name, rows, options.verbose)
                table[group] += rows
                models[group] += 1
                for row in rows if lines else ():
                    lines.write(json.dumps({"model": name, **record(row)}) + "\n")
    print()
    print(*versions(), sep=", ", end="\n\n")
    rates = spliced_rates if options.how == "splice" else printed_rates
    print(*rates(table, models), sep="\n")


def record(row: Row) -> dict:
    """A row for a file."""
    return {"at": row.key, "type": row.type, "kind": row.kind, "refused": row.refused,
            "ran": row.ran, "found": row.found}  # fmt: skip


def show(name: str, rows: list[Row], verbose: bool) -> None:
    """One model's line, and what went wrong in it most often."""
    reasons: collections.Counter = collections.Counter()
    for row in rows:
        if row.kind not in ("exact", "guarded"):
            found = row.refused or next((f"{k}: {f}" for k, f in row.found.items()), "")
            reasons[row.kind, row.type, found[-150:]] += 1
        if verbose and row.kind in ("silent", "error"):
            print(row.text)
    print(f"{name:28s} {dict(collections.Counter(row.kind for row in rows))}", flush=True)
    for (kind, type_, reason), count in reasons.most_common(6):
        print(f"      {count} × {kind} {type_}: {reason}")


def versions() -> list[str]:
    """What was measured with."""
    import timm
    import torchvision
    import transformers

    found = [f"Python {platform.python_version()}", f"torch {torch.__version__}"]
    return found + [f"{m.__name__} {m.__version__}" for m in (torchvision, timm, transformers)]


def share(part: int, whole: int) -> str:
    """A percentage, rounded down: 100 means all."""
    return f"{part * 1000 // whole / 10:g} %" if whole else "–"


PADDED = ("no padding", "more padding")


def printed_rates(table: dict[str, list[Row]], models: collections.Counter) -> list[str]:
    """Of the scopes that have a text and whose model can run so: the share that is exact.

    "stopped" are those that a guard or another error stopped on some kind of input.
    """
    columns = {"same input": ("same",), "another batch": ("batch",), "another size": ("size",),
               "padding": PADDED, "double": ("double",), "train mode": ("same, train",)}  # fmt: skip
    head = ["printed", "models", "scopes", "refused", *columns, "stopped: guard", "error", "wrong"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for group, rows in table.items():
        kinds = collections.Counter(row.kind for row in rows)
        cells = [group, models[group], len(rows), kinds["refused"]]
        for labels in columns.values():
            ran = [(row, label) for row in rows for label in labels if label in row.ran]
            cells.append(share(sum(label not in row.found for row, label in ran), len(ran)))
        cells += [kinds["guarded"], kinds["error"], kinds["silent"]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def spliced_rates(table: dict[str, list[Row]], models: collections.Counter) -> list[str]:
    """The share of operations behind which an identity could be put, exact on two batches."""
    lines = [
        "| spliced | models | operations | works | in all turns of its loop | main refusals | error | wrong |",
        "|" + "---|" * 8,
    ]
    for group, rows in table.items():
        kinds = collections.Counter(row.kind for row in rows)
        why = collections.Counter(reason(row.refused) for row in rows if row.refused)
        main = "; ".join(f"{count} {text}" for text, count in why.most_common(3))
        exact = [row for row in rows if row.kind == "exact"]
        alone, turns = (share(sum(r.turns is t for r in exact), len(rows)) for t in (False, True))
        cells = [
            group,
            models[group],
            len(rows),
            alone,
            turns,
            main,
            kinds["error"],
            kinds["silent"],
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def reason(refused: str) -> str:
    """A refusal without the names in it."""
    text = refused.partition(": ")[2]
    if match := re.search(r"runs several times|stands in a (loop|comprehension)", text):
        return match[0]
    return re.sub(r"^[\w.]+ (?=is )", "", text)


if __name__ == "__main__":
    main()
