"""Put emitted text in place of a model's own, scope by scope, and run the WHOLE model.

``python tests/roundtrip.py hf papers`` prints every scope of the zoo's groups unchanged and compares,
``… --splice`` puts an identity after every operation into the author's text instead; single models
by ``torchvision:resnet18``. One line a model, then a table: exact, refused with a reason, stopped by an
error, silently wrong (must be 0). The tests use `check` on small models.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
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
    """One scope: its text, or why there is none, and what went wrong when it ran, by case."""

    key: str
    type: str
    text: str | None = None
    refused: str | None = None
    found: dict[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> str | None:
        """The first difference or error that is no guard."""
        return next((f for f in self.found.values() if GUARD not in f), None)

    @property
    def guarded(self) -> str | None:
        """The first guard that stopped a run."""
        return next((f for f in self.found.values() if GUARD in f), None)


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

    calls = 0

    def forward(self, x):
        Counter.calls += 1
        return x


def identities(model, args, kwargs=None, *, graph, others=(), train=True) -> list[Row]:
    """Splice an identity behind every operation of every scope, one at a time, and compare."""
    runs = cases(model, args, kwargs or {}, others, train)
    rows = []
    seen = set()
    for scope in graph.scopes.values():
        module = model.get_submodule(scope.path)
        if scope.path in seen or isinstance(module, nn.Sequential):
            continue
        seen.add(scope.path)
        prefix = scope.path + "." if scope.path else ""
        for node in scope.nodes:
            if node.glue or node.kind not in ("module", "function", "method") or not node.outputs:
                continue
            if node.frames and (scope.type, node.frames) in seen:
                continue  # the same place of the same class
            seen.add((scope.type, node.frames))
            row = Row(node.id, scope.type)
            rows.append(row)
            new = Node("@1#0", scope.key, "module", "extra", "Identity", prefix + "extra_",
                       (Ref(node.id),), outputs=node.outputs, step=1)  # fmt: skip
            try:
                edited = rewrite.insert_after(scope, node.id, new)
                cls = load(row, splice(graph, edited, module, name="Printed", new={"extra_": ""}))
            except EmissionError as error:
                row.refused = str(error)
                continue
            except Exception as error:  # noqa: BLE001 - a crash is a finding too
                row.found["splice"] = f"crash: {type(error).__name__}: {error}"
                continue
            for case in runs:
                Counter.calls = 0
                try:
                    result = case.model(model)
                    place = result.get_submodule(scope.path)
                    place.__class__ = cls
                    place.add_module("extra_", Counter())
                    found = difference(case.expected[0], run(result, case.args, case.kwargs)[0])
                except Exception as error:  # noqa: BLE001
                    found = f"{type(error).__name__}: {str(error)[:160]}"
                if not found and case.label == "same" and not Counter.calls:
                    found = "the identity was never called"
                if found:
                    row.found[case.label] = found
    return rows


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
    parser.add_argument("--verbose", action="store_true", help="show the texts that went wrong")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    table: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    labels: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for what in options.what:
        group, _, single = what.partition(":")
        entries = GROUPS[group]()
        for name in [single] if single else entries:
            try:
                with limit(options.limit):
                    rows = measure(*entries[name], options.how or "guarded")
            except (Exception, Late) as error:  # noqa: BLE001 - the sweep goes on
                print(f"{name:28s} failed: {type(error).__name__}: {str(error)[:100]}", flush=True)
                table[group]["models failed"] += 1
                continue
            tally(name, rows, table[group], labels[group], options.verbose)
    for group, counts in table.items():
        print(f"\n{group}: {dict(counts)}")
        for (label, kind), number in labels[group].items():
            print(f"    {label}: {number} × {kind}")


def tally(name, rows, counts, labels, verbose) -> None:
    """Count one model's rows and print its line."""
    local: collections.Counter = collections.Counter()
    reasons: collections.Counter = collections.Counter()
    for row in rows:
        kind = "exact"
        if row.refused:
            kind = "refused"
        elif row.found:
            silent = [f for f in row.found.values() if f.startswith(("differs", "type", "("))]
            silent += [f for f in row.found.values() if "tensors became" in f]
            kind = "silent" if silent else "guarded" if not row.wrong else "error"
        local[kind] += 1
        for label, found in row.found.items():
            error = "Error" in found.partition(":")[0] or found.startswith("crash")
            labels[label, "error" if error else "silent"] += 1
        if kind not in ("exact", "guarded"):
            reason = row.refused or next((f"{k}: {f}" for k, f in row.found.items()), "")
            reasons[kind, row.type, reason[-150:]] += 1
        if verbose and kind in ("silent", "error"):
            print(row.text)
    local["models"] = 1
    counts.update(local)
    print(f"{name:28s} {dict(local)}", flush=True)
    for (kind, type_, reason), count in reasons.most_common(6):
        print(f"      {count} × {kind} {type_}: {reason}")


if __name__ == "__main__":
    main()
