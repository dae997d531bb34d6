"""Graphs written by hand, for the parts that need no capture."""

import torch
import torch.nn.functional as F
from torch import nn

from nbsurgery.graph import Graph, Node, Ref, Scope, Tensor


class Block(nn.Module):
    """A Linear, a ReLU module called twice and a skip."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.relu(self.lin(x)) + x)


class Net(nn.Module):
    """Two blocks, then `F.relu`, a head, and a layer that the run never calls."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.fc = nn.Linear(4, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.fc(torch.flatten(F.relu(x), 1))


def _t(*shape):
    return (Tensor(shape, "float32", "cpu"),)


_OUT = _t(2, 4)


def net_graph() -> Graph:
    """The graph of `Net` on a batch of two."""
    scopes = {}
    for i in range(2):
        key = f"blocks.{i}"

        def n(k, kind, name, type_, target, *args, key=key, out=_OUT, **more):
            return Node(f"{key}#{k}", key, kind, name, type_, target, args, outputs=out, **more)

        scopes[key] = Scope(
            key,
            key,
            "Block",
            (
                n(0, "input", f"{key}.x", "input", "x"),
                n(1, "module", f"{key}.lin", "Linear", f"{key}.lin", Ref(f"{key}#0"),
                  facts={"params": 20, "trainable": 20, "macs": 32}),
                n(2, "module", f"{key}.relu", "ReLU", f"{key}.relu", Ref(f"{key}#1"),
                  call=1, calls=2, facts={"params": 0, "macs": 0}),
                n(3, "function", f"{key}.add", "add", torch.add, Ref(f"{key}#2"), Ref(f"{key}#0")),
                n(4, "module", f"{key}.relu_1", "ReLU", f"{key}.relu", Ref(f"{key}#3"),
                  call=2, calls=2),
                n(5, "output", f"{key}.output", "output", None, Ref(f"{key}#4")),
            ),
            caller=f"#{i + 1}",
            bindings={f"{key}#0": Ref(f"#{i}")},
        )  # fmt: skip

    def r(k, kind, name, type_, target, *args, out=_OUT, **more):
        return Node(f"#{k}", "", kind, name, type_, target, args, outputs=out, **more)

    root = Scope(
        "",
        "",
        "Net",
        (
            r(0, "input", "x", "input", "x"),
            r(1, "module", "blocks.0", "Block", "blocks.0", Ref("#0"), child="blocks.0"),
            r(2, "module", "blocks.1", "Block", "blocks.1", Ref("#1"), child="blocks.1"),
            r(3, "function", "relu", "relu", F.relu, Ref("#2")),
            r(4, "function", "flatten", "flatten", torch.flatten, Ref("#3"), 1),
            r(5, "module", "fc", "Linear", "fc", Ref("#4"), out=_t(2, 3),
              facts={"params": 15, "trainable": 15, "macs": 24}),
            r(6, "output", "output", "output", None, Ref("#5"), out=_t(2, 3)),
        ),
    )  # fmt: skip
    return Graph({"": root, **scopes}, totals={"params": 55})
