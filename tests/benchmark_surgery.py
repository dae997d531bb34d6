"""Seconds and memory of an edit with its proof: ``python tests/benchmark_surgery.py``.

On resnet50 at 1 × 3 × 224 × 224: every operation once, from the call to code and immediate report,
then the full report; on a model with 1 GiB of weights, where a second copy of them would show, the
memory that a step and the full report add. One thread; seconds of processor time, as a multiple of a
forward pass measured in the same process as well; memory is the peak of the process over what it held
before. Each part has a process of its own.
"""

from __future__ import annotations

import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

STEPS = [
    ("replace", {"where": "fc", "new": "nn.Linear(old.in_features, 10)"}),
    ("replace", {"where": {"class": "torch.nn.ReLU"}, "new": "nn.GELU()"}),
    ("remove", {"where": "layer3.5"}),
    ("insert", {"after": "layer2.0.add", "new": "nn.BatchNorm2d(512)"}),
    ("connect", {"source": "layer3.0.add", "into": "layer3.1.add"}),
    ("set", {"where": ["layer4.0.conv2", "layer4.0.downsample.0"], "values": {"stride": 1}}),
    ("channels", {"where": "conv1", "inputs": 4}),
    ("channels", {"where": "layer2.0.conv3", "outputs": 640, "follow": True}),
    ("freeze", {"until": "layer2"}),
    ("checkpoint", {"where": "layer3.*"}),
    ("reset_parameters", {"where": "fc"}),
    ("cut", {"after": "layer4"}),
    ("tap", {"nodes": ["layer1", "layer2.0.add"]}),
    ("start", {"at": "layer2"}),
    ("split", {"after": ["layer1", "layer3.1.add"]}),
]


def steps() -> list[list]:
    """Each operation alone on resnet50: what it is, seconds, times a forward pass."""
    import torch
    from torchvision.models import resnet50

    from nbsurgery.session import Session

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, x = resnet50(weights=None).eval(), torch.randn(1, 3, 224, 224)
    session = Session(model, (x,), namespace={})
    with torch.no_grad():
        forward = min(_seconds(lambda: model(x)) for _ in range(3))
    rows = []
    for operation, arguments in STEPS:
        taken = []
        for _ in range(3):
            taken.append(_seconds(lambda: session.do(operation, arguments)))  # noqa: B023
            session.undo()
        rows.append([operation, min(taken), min(taken) / forward])
    session.do(*STEPS[0])
    full = _seconds(session.verify)
    return [*rows, ["full report", full, full / forward]]


def memory() -> list[list]:
    """On 1 GiB of weights: MiB that a session, a step and the full report add at their peak."""
    import torch
    from torch import nn

    from nbsurgery.session import Session

    torch.set_num_threads(1)
    layers = [layer for _ in range(4) for layer in (nn.Linear(8192, 8192, bias=False), nn.ReLU())]
    model, x = nn.Sequential(*layers).eval(), torch.randn(2, 8192)
    with torch.no_grad():
        model(x)
    rows, held = [["weights", sum(p.numel() * 4 for p in model.parameters()) / 2**20]], _peak()

    def added(what: str) -> None:
        nonlocal held
        now = _peak()
        rows.append([what, now - held])
        held = now

    session = Session(model, (x,), namespace={})
    added("session")
    session.do("replace", {"where": "1", "new": "nn.GELU()"})
    added("a step")
    session.verify()
    added("full report")
    return rows


def _seconds(run) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _peak() -> float:
    """The most memory that this process ever held, in MiB."""
    unit = 2**20 if platform.system() == "Darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    if sys.argv[1:]:
        print(json.dumps({"steps": steps, "memory": memory}[sys.argv[1]]()))
        return
    found = {}
    for part in ("steps", "memory"):
        done = subprocess.run(
            [sys.executable, __file__, part], capture_output=True, text=True, check=True
        )
        found[part] = json.loads(done.stdout.splitlines()[-1])
    print("| resnet50 | seconds | × forward |\n|---|---|---|")
    for name, seconds, ratio in found["steps"]:
        print(f"| {name} | {seconds:.2f} | {ratio:.1f} |")
    typical = statistics.median(seconds for _, seconds, _ in found["steps"][:-1])
    print(f"\nMedian of the steps: {typical:.2f} s.\n")
    print("| 1 GiB of weights | MiB at the peak |\n|---|---|")
    for name, size in found["memory"]:
        print(f"| {name} | {size:,.0f} |")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
