"""The sweep: every model of the zoo captured and replayed, in worker processes with a time limit.

Run ``python tests/zoo.py`` for all groups (hours on two cores), ``python tests/zoo.py papers hf`` for some,
``python tests/zoo.py timm:resnet26d`` for single models. Prints one line for each model, then a table.

Columns: captured; exact on the same batch, on another batch, at another size (of the models that take
one), in train mode; scopes that can be printed; decisions that refused another input; silently wrong
(must be 0); the capture's time as a multiple of the forward pass (median).
"""

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time
import warnings

CHECKS = ("same", "batch", "size", "train")


def peers(make, given):
    """Which other tools take the model without an error, each on a fresh copy; none if not installed."""
    import torch

    def fx(model, args, kwargs):
        torch.fx.symbolic_trace(model)

    def features(model, args, kwargs):
        from torchvision.models.feature_extraction import get_graph_node_names

        get_graph_node_names(model, suppress_diff_warning=True)

    def export(model, args, kwargs):
        torch.export.export(model, args, kwargs)

    def view(model, args, kwargs):
        from torchview import draw_graph

        draw_graph(model, input_data=args or kwargs, expand_nested=True)

    def vista(model, args, kwargs):
        import torchvista.tracer

        torchvista.tracer.trace_model(model, args or kwargs)

    def lens(model, args, kwargs):
        import torchlens

        torchlens.trace(model, args[0] if args else kwargs)

    found = {}
    for tool in (fx, features, export, view, vista, lens):
        try:
            torch.manual_seed(0)
            tool(make().eval(), *given(2))
            found[tool.__name__] = True
        except ImportError:
            found[tool.__name__] = None
        except Exception:  # noqa: BLE001 an error is the answer
            found[tool.__name__] = False
    return found


def work(names):
    """Measure models one after the other; a JSON line for each."""
    warnings.simplefilter("ignore")
    import torch

    from nbsurgery.capture import capture
    from tests.zoo_models import GROUPS

    torch.set_num_threads(1)
    # its fused kernels round differently, and a recording sees what they do only without them
    torch.backends.mha.set_fastpath_enabled(False)
    groups = {}
    for entry in names:
        group, _, name = entry.partition(":")
        if group not in groups:
            groups[group] = GROUPS[group]()
        print(json.dumps({"start": entry}), flush=True)
        try:
            make, inputs = groups[group][name]
            line = measure(capture, make, inputs)
            if os.environ.get("ZOO_PEERS"):
                line["peers"] = peers(make, inputs)
        except Exception as error:  # noqa: BLE001 the sweep goes on, whatever a model does
            line = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"model": entry, **line}), flush=True)


def measure(capture, make, inputs):
    """Capture one model and replay it on four kinds of input."""
    import torch

    def given(batch, more=False):
        torch.manual_seed(batch)
        return inputs(batch, more)

    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        args, kwargs = given(2)
        model(*args, **kwargs)
        args, kwargs = given(2)
        start = time.perf_counter()
        model(*args, **kwargs)
        forward = time.perf_counter() - start
    args, kwargs = given(2)
    start = time.perf_counter()
    graph = capture(model, args, kwargs)
    seconds = time.perf_counter() - start
    line = {
        "how": graph.how,
        "nodes": len(graph.by_id),
        "scopes": len(graph.scopes),
        "opaque": sum(s.opaque is not None for s in graph.scopes.values()),
        "ratio": round(seconds / forward, 2),
        "per_node_ms": round((seconds - forward) / len(graph.by_id) * 1e3, 4),
    }
    line["same"] = compare(graph, model, given, 2, False)
    line["batch"] = compare(graph, model, given, 3, False)
    line["size"] = compare(graph, model, given, 2, True) if differs(given) else None
    try:
        model.train()
        args, kwargs = given(2)
        trained = capture(model, args, kwargs)
        line["train"] = compare(trained, model, given, 2, False)
    except Exception as error:  # noqa: BLE001 many models want targets in train mode
        line["train"] = f"model: {type(error).__name__}"
    return line


def differs(given):
    """Whether the model has inputs of another size."""
    return str(shapes(given(2))) != str(shapes(given(2, True)))


def shapes(value):
    return [tuple(t.shape) for t in tensors(value)]


def tensors(value):
    """Every tensor of a value, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, (list, tuple)):
        value = list(vars(value).values()) if hasattr(value, "__dict__") else []
    return [t for v in value for t in tensors(v)]


def compare(graph, model, given, batch, more):
    """``exact``, ``refused: why``, ``wrong`` or the error; the model's own failure is no verdict."""
    import torch

    from nbsurgery.capture import replay
    from nbsurgery.errors import ReplayRefused

    kept = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]

    def restore():
        for buffer, value in kept:
            buffer.data.copy_(value)

    with torch.no_grad():
        try:
            args, kwargs = given(batch, more)
            torch.manual_seed(7)
            expected = model(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 some models allow one size only
            return f"model: {type(error).__name__}"
        finally:
            restore()
        try:
            args, kwargs = given(batch, more)
            torch.manual_seed(7)
            found = replay(graph, model, args, kwargs)
        except ReplayRefused as error:
            return f"refused: {error}"[:200]
        except Exception as error:  # noqa: BLE001 reported as a failure
            return f"crash: {type(error).__name__}: {error}"[:200]
        finally:
            restore()
    a, b = tensors(expected), tensors(found)
    if len(a) != len(b):
        return "wrong"
    for x, y in zip(a, b, strict=True):
        if x.shape != y.shape or not torch.equal(torch.nan_to_num(x), torch.nan_to_num(y)):
            return "wrong"
    return "exact"


def sweep(names, limit):
    """Give the models to a worker; after a time-out or a crash a new one goes on with the next."""
    results, rest = [], list(names)
    while rest:
        worker = subprocess.Popen(
            [sys.executable, "-u", __file__, "--work", *rest],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        while True:
            ready, _, _ = select.select([worker.stdout], [], [], limit)
            text = worker.stdout.readline() if ready else ""
            if not text:
                why = "worker ended" if ready else f"longer than {limit} s"
                worker.kill()
                worker.wait()
                if rest:  # what was running, or what was about to
                    results.append({"model": rest[0], "failed": why})
                    print(results[-1], flush=True)
                    rest = rest[1:]
                break
            line = json.loads(text)
            if "start" in line:
                continue
            results.append(line)
            print(line, flush=True)
            rest = rest[1:]
            if not rest:
                worker.wait()
                break
    return results


def table(results):
    """The figures of each group, as Markdown."""
    head = "| group | models | captured | same | batch | size | train | printable scopes | refused "
    rows = [head + "| wrong | × forward |", "|---" * 11 + "|"]
    for group in dict.fromkeys(r["model"].partition(":")[0] for r in results):
        mine = [r for r in results if r["model"].startswith(f"{group}:")]
        good = [r for r in mine if "failed" not in r]
        cells = [group, str(len(mine)), str(len(good))]
        for check in CHECKS:
            asked = [r[check] for r in good if r[check] and not r[check].startswith("model")]
            cells.append(f"{sum(v == 'exact' for v in asked)}/{len(asked)}")
        scopes = sum(r["scopes"] for r in good)
        opaque = sum(r["opaque"] for r in good)
        cells.append(f"{100 * (1 - opaque / scopes):.1f} %" if scopes else "-")
        verdicts = [r[c] or "" for r in good for c in CHECKS]
        cells.append(str(sum(v.startswith("refused") for v in verdicts)))
        cells.append(str(sum(v == "wrong" for v in verdicts)))
        cells.append(f"{statistics.median(r['ratio'] for r in good):.2f}" if good else "-")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows + peer_table(results))


def peer_table(results):
    """What other tools take without an error, of the same models in the same run."""
    if not any("peers" in r for r in results):
        return []
    names = ["fx", "features", "export", "view", "vista", "lens"]
    rows = ["", "| group | " + " | ".join(names) + " |", "|---" * 7 + "|"]
    for group in dict.fromkeys(r["model"].partition(":")[0] for r in results):
        mine = [r["peers"] for r in results if r["model"].startswith(f"{group}:") and "peers" in r]
        cells = []
        for name in names:
            tried = [p[name] for p in mine if p[name] is not None]
            cells.append(f"{sum(tried)}/{len(tried)}" if tried else "-")
        rows.append(f"| {group} | " + " | ".join(cells) + " |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", help="groups, or group:model")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one model")
    parser.add_argument("--peers", action="store_true", help="try other tools as well")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if options.work:
        work(options.what)
        return
    if options.peers:
        os.environ["ZOO_PEERS"] = "1"
    from tests.zoo_models import GROUPS

    names = []
    for what in options.what or GROUPS:
        names += [what] if ":" in what else [f"{what}:{name}" for name in GROUPS[what]()]
    print(table(sweep(names, options.limit)))


if __name__ == "__main__":
    main()
