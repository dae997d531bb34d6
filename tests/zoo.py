"""The sweep: every model of the zoo captured and replayed, in worker processes with a time limit.

Run ``python tests/zoo.py`` for all groups (hours on two cores), ``python tests/zoo.py papers hf`` for some,
``python tests/zoo.py timm:resnet26d`` for single models. Prints one line for each model, then a table;
``--out FILE`` keeps the lines, ``--table FILE …`` makes the table of such files (of two lines for one
model the last counts), ``--peers`` tries other tools on the same models.

Columns: captured; exact on the same batch, on another batch, at another size (of the models that take
one), in train mode; scopes that can be printed; decisions that refused another input; silently wrong
(must be 0); facts that an independent count confirms (parameters of ``model.parameters()``, MACs of
`FlopCounterMode`); the capture's time as a multiple of the
forward pass (median).
"""

import argparse
import concurrent.futures
import json
import os
import resource
import select
import signal
import statistics
import subprocess
import sys
import time
import warnings

CHECKS = ("same", "batch", "size", "train")


PEERS = ("fx", "features", "export", "view", "vista", "lens")


def peers(make, given, limit):
    """What other tools say of the model: ``ok``, or the error; by tool.

    Each gets a fresh copy in a forked process: some leave torch patched, some never end.
    """
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

        if args:
            draw_graph(model, input_data=args, expand_nested=True, **kwargs)
        else:
            draw_graph(model, input_data=kwargs, expand_nested=True)

    def vista(model, args, kwargs):
        import torchvista.tracer

        torchvista.tracer.trace_model(model, args or kwargs)

    def lens(model, args, kwargs):
        import torchlens

        torchlens.trace(model, args, kwargs)

    def answer(tool):
        try:
            torch.manual_seed(0)
            args, kwargs = given(2)
            tool(make().eval(), args, kwargs)
            return "ok"
        except ImportError:
            return None
        except Exception as error:  # noqa: BLE001 an error is the answer
            return f"{type(error).__name__}: {error}"[:160]

    return {
        tool.__name__: apart(answer, tool, limit)
        for tool in (fx, features, export, view, vista, lens)
    }


def apart(function, argument, limit):
    """What a function answers in a forked process, or why it gave no answer.

    The limit is one of processor time: the machine may be busy with something else.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (_spent() + limit, -1))
            os.write(theirs, json.dumps(function(argument)).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    try:
        ready, _, _ = select.select([ours], [], [], 10 * limit)
        text = os.read(ours, 4096) if ready else b""
    finally:
        os.close(ours)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if text:
        return json.loads(text)
    if not ready or os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return f"longer than {limit} s"
    return "the process ended"


def _spent():
    """Seconds of processor time of this process, which counts from its start, not from the fork."""
    return int(time.process_time()) + 1


def work(names, peer_limit):
    """Measure models one after the other; a JSON line for each."""
    warnings.simplefilter("ignore")
    lines, sys.stdout = sys.stdout, sys.stderr  # whatever a model or a tool prints is no line
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
        print(json.dumps({"start": entry}), file=lines, flush=True)
        try:
            make, inputs = groups[group][name]
            if entry == names[0]:  # the first capture of a library looks its files up
                measure(capture, make, inputs)
            line = measure(capture, make, inputs)
            if peer_limit:
                line["peers"] = peers(make, inputs, peer_limit)
        except Exception as error:  # noqa: BLE001 the sweep goes on, whatever a model does
            line = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"model": entry, **line}), file=lines, flush=True)


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
        start = time.process_time()
        model(*args, **kwargs)
        forward = time.process_time() - start
    start = time.process_time()
    graph = capture(model, args, kwargs)
    seconds = time.process_time() - start
    line = {
        "how": graph.how,
        "nodes": len(graph.by_id),
        "scopes": len(graph.scopes),
        "opaque": sum(s.opaque is not None for s in graph.scopes.values()),
        "ratio": round(seconds / forward, 2),
        "per_node_ms": round((seconds - forward) / len(graph.by_id) * 1e3, 4),
    }
    line["facts"] = facts(graph, model, given)
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


def facts(graph, model, given):
    """``ok``, or which total an independent count does not confirm."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from nbsurgery.annotate import annotate

    totals = annotate(graph, model).totals
    wrong = []
    params = sum(p.numel() for p in model.parameters())
    if totals["params"] != params:
        wrong.append(f"{totals['params']} parameters, not {params}")
    args, kwargs = given(2)
    kept = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    torch.manual_seed(7)
    # it does not know the fused kernels of the processor, for attention and for recurrent layers
    attention = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    recurrent = any(isinstance(m, torch.nn.RNNBase) for m in model.modules())
    layers = torch.backends.mkldnn.flags(enabled=not recurrent)
    try:
        with torch.no_grad(), attention, layers, FlopCounterMode(display=False) as counter:
            model(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 the counter does not take every model
        return ", ".join([*wrong, f"counter: {type(error).__name__}"])
    finally:
        for buffer, value in kept:
            buffer.data.copy_(value)
    macs = counter.get_total_flops() // 2
    if totals["macs"] != macs:
        wrong.append(f"{totals['macs']} MACs, not {macs}")
    return ", ".join(wrong) or "ok"


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


def sweep(names, limit, peer_limit, done):
    """Give the models to a worker; after a time-out or a crash a new one goes on with the next.

    `done` is called with each line.
    """
    rest = list(names)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    while rest:
        worker = subprocess.Popen(
            [sys.executable, "-u", "-m", "tests.zoo", "--work", str(peer_limit), *rest],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=root,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        while True:
            patience = limit + 10 * len(PEERS) * peer_limit
            ready, _, _ = select.select([worker.stdout], [], [], patience)
            text = worker.stdout.readline() if ready else ""
            if not text:
                worker.kill()
                worker.wait()
                if rest:  # what was running, or what was about to
                    why = "the worker ended" if ready else f"longer than {patience:g} s"
                    done({"model": rest.pop(0), "failed": why})
                break
            line = json.loads(text)
            if "start" in line:
                continue
            done(line)
            rest.pop(0)


def table(results):
    """The figures of each group, as Markdown."""
    head = "| group | models | captured | same | batch | size | train | printable scopes | refused "
    rows = [head + "| wrong | facts | × forward |", "|---" * 12 + "|"]
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
        counted = [r["facts"] for r in good if not r["facts"].startswith("counter")]
        cells.append(f"{counted.count('ok')}/{len(counted)}")
        cells.append(f"{statistics.median(r['ratio'] for r in good):.2f}" if good else "-")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows + peer_table(results))


def peer_table(results):
    """What other tools take without an error, of the same models in the same run."""
    if not any("peers" in r for r in results):
        return []
    rows = ["", "| group | " + " | ".join(PEERS) + " |", "|---" * 7 + "|"]
    for group in dict.fromkeys(r["model"].partition(":")[0] for r in results):
        mine = [r["peers"] for r in results if r["model"].startswith(f"{group}:") and "peers" in r]
        cells = []
        for name in PEERS:
            tried = [p[name] for p in mine if p[name] is not None]
            cells.append(f"{tried.count('ok')}/{len(tried)}" if tried else "-")
        rows.append(f"| {group} | " + " | ".join(cells) + " |")
    return rows


def chosen(what, every):
    """The models that were asked for; a group whose library is missing is left out, and said so."""
    from tests.zoo_models import GROUPS

    names = []
    for item in what or GROUPS:
        group = item.partition(":")[0]
        if group not in GROUPS:
            sys.exit(f"no group is called {group!r}; there are {', '.join(GROUPS)}")
        try:
            names += (
                [item] if ":" in item else [f"{item}:{name}" for name in [*GROUPS[item]()][::every]]
            )
        except ImportError as error:
            print(f"{group} is left out: {error}", flush=True)
    return names


def read(paths):
    """The lines of result files; of several for one model the last."""
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for text in file:
                line = json.loads(text)
                before = found.get(line["model"], {})
                if "failed" in before and "failed" not in line:
                    before = {}
                found[line["model"]] = {**before, **line}
    return list(found.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", help="groups, or group:model")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one model")
    parser.add_argument("--peers", action="store_true", help="try other tools as well")
    parser.add_argument("--peer-limit", type=int, default=30, help="seconds for one of them")
    parser.add_argument("--every", type=int, default=1, help="only each so-manieth of a group")
    parser.add_argument("--jobs", type=int, default=1, help="workers at a time")
    parser.add_argument("--out", help="a file that the result lines are added to")
    parser.add_argument("--resume", action="store_true", help="leave out what stands in that file")
    parser.add_argument(
        "--table", nargs="+", help="result files to make the table of; runs nothing"
    )
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.what, options.work)
        return
    if options.table:
        print(table(read(options.table)))
        return
    names = chosen(options.what, options.every)
    results = []
    if options.resume and os.path.exists(options.out):
        known = {line["model"] for line in read([options.out])}
        names = [name for name in names if name not in known]

    def done(line):
        results.append(line)
        print(line, flush=True)
        if options.out:
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    peer_limit = options.peer_limit if options.peers else 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = [names[i :: options.jobs] for i in range(options.jobs)]
        list(pool.map(lambda part: sweep(part, options.limit, peer_limit, done), parts))
    order = {name: i for i, name in enumerate(names)}
    print(table(sorted(results, key=lambda line: order[line["model"]])))


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    main()
