"""Seconds from a model and its input to the first picture, beside other tools: ``python tests/benchmark.py``.

``python tests/benchmark.py --capture`` measures the capture alone: what it adds to a forward pass for each
recorded call, how it grows, and what a model needs that does not fit into memory.

Each tool and model has a process of its own with a time limit, so that nothing warms or breaks another.
In it: the model is built, the tool does its job once on a tiny model (its imports are not billed), then
forward passes and the tool's job alternate, on one thread; the best of each counts. Seconds are those
of the processor, helpers' processes included: on an idle machine the same as the clock's, and on a busy
one still comparable. What a tool does is in `JOBS`; its
nearest job differs, and the text under the table says how. Needs ``pip install -e ".[bench]"``; a tool
that is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

MODELS = ("resnet18", "resnet50", "vit_b_16", "densenet201")
LAST = {
    "resnet18": "flatten",
    "resnet50": "flatten",
    "vit_b_16": "getitem_5",
    "densenet201": "flatten",
}


def now() -> float:
    """Seconds of processor time of this process and of its finished helpers."""
    try:
        import resource
    except ImportError:  # Windows: this process only
        return time.process_time()
    own, helpers = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + helpers.ru_utime + helpers.ru_stime


def nbsurgery(model, x, everything: bool = False):
    """The capture, the layout with nothing kept from before, and the SVG."""
    import nbsurgery as nbs
    from nbsurgery import render

    start = now()
    graph = nbs.capture(model, x)
    captured = now() - start
    keys = set(graph.scopes) if everything else {"", *render.default_open(graph.data)}
    svg = render.to_svg(render.compose(graph.data, keys, cache=render.Cache()))
    return {"capture": captured, "size": len(svg)}


def nbsurgery_open(model, x):
    """The same with every module open."""
    return nbsurgery(model, x, everything=True)


def torchview(model, x):
    """Its graph with nested modules (depth 3) as DOT, then to SVG by the Graphviz that we use."""
    import torchview

    from nbsurgery.render.engine import find_engine

    start = now()
    graph = torchview.draw_graph(model, input_data=x, depth=3, expand_nested=True)
    source = graph.visual_graph.source
    traced = now() - start
    engine = find_engine()
    engine = type(engine)(engine.command, engine.name, 600)
    svg = engine.render(source)
    return {"capture": traced, "size": len(svg)}


def torchvista(model, x):
    """Everything that it does in Python; the page then lays out and draws, which is not counted."""
    import torchvista.tracer

    torchvista.tracer.trace_model(model, x)
    return {}


def torchlens(model, x):
    """Its trace, and its drawing up to DOT (the picture itself needs a system Graphviz)."""
    import torchlens

    start = now()
    trace = torchlens.trace(model, x)
    traced = now() - start
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph")
        try:
            trace.draw(vis_outpath=path, vis_save_only=True, vis_fileformat="dot")
        except Exception as error:  # noqa: BLE001, without `dot` only the last step fails
            return {"capture": traced, "note": f"stopped at {type(error).__name__}"}
    return {"capture": traced}


def feature_extractor(model, x, name: str | None = None):
    """`create_feature_extractor` for one late node: a trace and a new module, no picture."""
    from torchvision.models.feature_extraction import create_feature_extractor

    create_feature_extractor(model, [name])
    return {}


JOBS: dict[str, Callable] = {
    "nbsurgery": nbsurgery,
    "nbsurgery, all open": nbsurgery_open,
    "torchview": torchview,
    "torchvista": torchvista,
    "torchlens": torchlens,
    "create_feature_extractor": feature_extractor,
}

NOTES = """\
Best of {repeat} (fewer where that takes more than 20 s) in one process for each cell, on one thread, after one warm-up on a tiny model; seconds of processor time, helper processes included; {machine}. *forward* is one plain forward pass in eval mode without
gradients, batch 1, 224×224. What each does: **nbsurgery** captures the model with its shapes, parameters and MACs, lays it out and writes the SVG (open
as the widget shows it first, and with everything open). **torchview** draws depth 3 with nested modules; its DOT is turned into an SVG by the same engine as ours. **torchvista** does its Python
side; the layout and drawing in the page come on top. **torchlens** traces and writes its drawing up to where a system Graphviz is needed. torchvision's
**create_feature_extractor** traces and builds a module, and shows no picture."""


def best(function: Callable, repeat: int) -> float:
    """Seconds of processor time of the fastest call."""
    seconds = []
    for _ in range(repeat):
        start = now()
        function()
        seconds.append(now() - start)
    return min(seconds)


def added(model, args, kwargs, repeat: int) -> dict:
    """What capture with its facts adds to a forward pass, for each call that it records."""
    import torch

    from nbsurgery.annotate import annotate
    from nbsurgery.capture import capture

    def captured():
        return annotate(capture(model, args, kwargs, how="real"), model)

    with torch.no_grad():
        calls = sum(n.kind in ("module", "function", "method") for n in captured().flat)
        forward = best(lambda: model(*args, **kwargs), repeat)
        seconds = best(captured, repeat)
    return {
        "calls": calls,
        "forward": forward,
        "capture": seconds,
        "ms": (seconds - forward) / calls * 1e3,
    }


def each_call(repeat: int, every: int) -> str:
    """Over the models of torchvision, or each so-manieth of them."""
    import torch

    from tests.zoo_models import torchvision_models

    found = {}
    for name, (make, inputs) in [*torchvision_models().items()][::every]:
        torch.manual_seed(0)
        found[name] = added(make().eval(), *inputs(1), repeat)
        print(name, found[name], file=sys.stderr, flush=True)
    order = sorted(found, key=lambda name: found[name]["ms"])
    middle, last = order[len(order) // 2], order[-1]
    return (
        f"| added for each recorded call, median of {len(order)} models of torchvision "
        f"| {found[middle]['ms']:.3f} ms (most: {last}, {found[last]['ms']:.3f}) | ≤ 0.25 ms |"
    )


def growth(repeat: int, every: int) -> str:
    """A GPT-2 of 96 layers beside one of 12."""
    import torch
    import transformers

    seconds = {}
    for layers in (12, 96):
        config = transformers.GPT2Config(n_embd=64, n_layer=layers, n_head=4, vocab_size=99)
        model = transformers.GPT2LMHeadModel(config).eval()
        seconds[layers] = added(model, (torch.zeros(1, 8, dtype=torch.long),), {}, repeat)
    few, many = (seconds[n]["capture"] for n in (12, 96))
    return (
        f"| GPT-2 of 96 layers beside 12 | {many:.2f} s / {few:.3f} s = {many / few:.1f}× | ≤ 9× |"
    )


def without_memory(repeat: int, every: int) -> str:
    """A Llama of 70 billion parameters on the meta device, 512 tokens."""
    import resource

    import torch
    import transformers

    from nbsurgery.annotate import annotate
    from nbsurgery.capture import capture

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def captured(layers: int):
        with torch.device("meta"):
            config = transformers.LlamaConfig(
                hidden_size=8192, intermediate_size=28672, num_hidden_layers=layers,
                num_attention_heads=64, num_key_value_heads=8, vocab_size=32000,
            )  # fmt: skip
            model = transformers.LlamaForCausalLM(config).eval()
        tokens = torch.zeros(1, 512, dtype=torch.long, device="meta")
        start = now()
        graph = annotate(capture(model, (tokens,)), model)
        return now() - start, len(graph.by_id)

    captured(1)  # its imports are not billed
    before = peak()
    seconds, nodes = captured(80)
    return (
        f"| Llama of 70B on the meta device, {nodes} nodes "
        f"| {seconds:.2f} s, {peak() - before:.0f} MB over the imports | < 3 s, < 1000 MB |"
    )


ROWS = {"each_call": each_call, "growth": growth, "without_memory": without_memory}


def capture_table(repeat: int, every: int) -> str:
    """The capture's own table: each row in a process of its own."""
    lines = ["| capture with its facts | measured | target |", "|---|---|---|"]
    for name in ROWS:
        counts = ["--repeat", str(repeat), "--every", str(every)]
        command = [sys.executable, __file__, "--row", name, *counts]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=False, env=surroundings()
        )
        lines.append((done.stdout.strip().splitlines() or [f"| {name} | failed | |"])[-1])
    return "\n".join(lines)


def surroundings() -> dict[str, str]:
    """The environment of a worker: this checkout first."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def worker(tool: str, name: str, repeat: int) -> dict:
    """Measure one tool on one model; runs in a process of its own."""
    import torch
    import torchvision

    job = JOBS[tool]
    if tool == "create_feature_extractor":

        def job(model, x):
            return feature_extractor(model, x, LAST[name] if model is real else "1")

    torch.set_num_threads(1)
    real = getattr(torchvision.models, name)(weights=None).eval()
    x = torch.randn(1, 3, 224, 224)
    tiny = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.ReLU()).eval()
    forward, seconds, more = [], [], {}
    with torch.no_grad():
        job(tiny, torch.randn(1, 3, 8, 8))
        real(x)
        for _ in range(repeat):
            start = now()
            real(x)
            forward.append(now() - start)
            start = now()
            more = job(real, x)
            seconds.append(now() - start)
            if sum(seconds) > 20:  # a slow one is not repeated
                break
    return {"forward": min(forward), "seconds": min(seconds), **more}


def measure(tool: str, name: str, repeat: int, limit: float) -> dict:
    """One cell of the table; a tool that fails or runs too long says so."""
    command = [sys.executable, __file__, "--worker", tool, name, "--repeat", str(repeat)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env=surroundings()
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"> {limit:.0f} s"}
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        missing = "No module named" in last
        return {"failed": "not installed" if missing else last[:60]}


def table(results: dict[str, dict[str, dict]]) -> str:
    """The results as a markdown table: seconds, and the multiple of the model's forward pass."""
    tools = list(next(iter(results.values())))
    lines = ["| model | forward | " + " | ".join(tools) + " |", "|" + "---|" * (len(tools) + 2)]
    for name, row in results.items():
        forwards = [cell["forward"] for cell in row.values() if "forward" in cell]
        forward = min(forwards, default=float("nan"))
        cells = []
        for tool, cell in row.items():
            if "failed" in cell:
                cells.append(cell["failed"])
                continue
            text = f"{cell['seconds']:.2f} s ({cell['seconds'] / forward:.1f}×)"
            if tool == "torchview":
                text += f", DOT alone {cell['capture']:.2f} s"
            cells.append(text)
        lines.append(f"| {name} | {forward:.3f} s | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Parse the options, measure every cell, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--tools", nargs="*", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--limit", type=float, default=600, help="seconds of the clock for one cell"
    )
    parser.add_argument("--worker", nargs=2, metavar=("TOOL", "MODEL"), help=argparse.SUPPRESS)
    parser.add_argument("--capture", action="store_true", help="the table of the capture alone")
    parser.add_argument(
        "--every", type=int, default=1, help="with --capture: each so-manieth model"
    )
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        import torch

        torch.set_num_threads(1)
        print(ROWS[options.row](options.repeat, options.every))
        return
    if options.capture:
        print(capture_table(options.repeat, options.every))
        return
    if options.worker:
        with contextlib.redirect_stdout(io.StringIO()):  # some tools print what they display
            result = worker(*options.worker, options.repeat)
        print(json.dumps(result))
        return
    results: dict[str, dict[str, dict]] = {}
    for name in options.models:
        results[name] = {}
        for tool in options.tools:
            cell = measure(tool, name, options.repeat, options.limit)
            results[name][tool] = cell
            print(f"{name:12s} {tool:26s} {cell}", file=sys.stderr, flush=True)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(table(results))
    print()
    print(NOTES.format(repeat=options.repeat, machine=machine))


if __name__ == "__main__":
    main()
