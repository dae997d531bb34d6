"""Models written by chance, as a notebook cell would hold them: ``source(seed)`` is the text."""

from __future__ import annotations

import linecache
import random
from typing import Any

import torch

C, SIZE = 4, 8  # every value is (N, C, SIZE, SIZE), so that any operation follows any other

LAYERS = {
    "conv": f"nn.Conv2d({C}, {C}, 3, padding=1)",
    "norm": f"nn.BatchNorm2d({C})",
    "point": f"nn.Conv2d({C}, {C}, 1, bias=False)",
    "depth": f"nn.Conv2d({C}, {C}, 3, padding=1, groups={C})",
    "group": f"nn.GroupNorm(2, {C})",
    "relu": "nn.ReLU()",
    "act": "nn.SiLU(inplace=True)",
    "pool": "nn.MaxPool2d(3, 1, 1)",
    "drop": "nn.Dropout2d(0.1)",
}


class _Class:
    """One class while it is written: its layers, and the lines of its forward."""

    def __init__(self, choose: random.Random, blocks: dict[str, bool]):
        self.choose, self.blocks = choose, blocks
        self.init: list[str] = []
        self.lines: list[str] = []
        self.kept = ["x"]  # names of values that may be read again

    def layer(self, kind: str, text: str) -> str:
        attr = f"{kind}{sum(line.startswith(f'self.{kind}') for line in self.init) + 1}"
        self.init.append(f"self.{attr} = {text}")
        return f"self.{attr}"

    def call(self, value: str) -> str:
        """An expression that calls one layer, or a block."""
        names = [n for n, pair in self.blocks.items() if not pair]
        if names and self.choose.random() < 0.3:
            return f"{self.layer('block', self.choose.choice(names) + '()')}({value})"
        kind = self.choose.choice(list(LAYERS))
        return f"{self.layer(kind, LAYERS[kind])}({value})"

    def statement(self) -> None:
        pick, old = self.choose.choice, self.choose.choice(self.kept)
        pairs = [n for n, pair in self.blocks.items() if pair]
        kind = pick(
            ("call",) * 5 + ("nested", "chain", "shared", "skip", "iadd", "cat", "chunk", "gate", "loop")
            + ("scale", "keep", "keep", "sizes", "flag", "function", "dropout") + ("pair",) * bool(pairs)
        )  # fmt: skip
        add = self.lines.append
        if kind == "call":
            add(f"x = {self.call('x')}")
        elif kind == "nested":
            add(f"x = {self.call(self.call('x'))}")
        elif kind == "chain":
            texts = ", ".join(LAYERS[pick(list(LAYERS))] for _ in range(3))
            add(f"x = {self.layer('chain', f'nn.Sequential({texts})')}(x)")
        elif kind == "shared":
            attr = self.layer("both", LAYERS["relu"])
            add(f"x = {attr}({self.call(f'{attr}(x)')})")
        elif kind == "skip":
            add(f"x = x + {old}")
        elif kind == "iadd":
            add("x = x * 1.5")
            add(f"x += {old}")
        elif kind == "cat":
            fuse = self.layer("fuse", f"nn.Conv2d({2 * C}, {C}, 1)")
            add(f"x = {fuse}(torch.cat([x, {old}], dim=1))")
        elif kind == "chunk":
            add("left, right = x.chunk(2, dim=1)")
            add("x = torch.cat([right, left * 2], 1)")
        elif kind == "gate":
            add(f"x = x * torch.sigmoid({self.call('x')})")
        elif kind == "loop":
            text = f"nn.ModuleList([{LAYERS['point']} for _ in range(3)])"
            add(f"for layer in {self.layer('layers', text)}:")
            add("    x = layer(x)")
        elif kind == "scale":
            attr = self.layer("scale", f"nn.Parameter(torch.ones({C}, 1, 1))")
            add(f"x = x * {attr}")
        elif kind == "keep":
            name = f"kept{len(self.kept)}"
            add(f"{name} = {self.call('x')}")
            self.kept.append(name)
        elif kind == "sizes":
            add("n, c, h, w = x.shape")
            add("x = x.flatten(2).transpose(1, 2).reshape(n, h, w, c).permute(0, 3, 1, 2)")
        elif kind == "flag":
            add("if self.training:")
            add("    x = x * 0.5")
        elif kind == "function":
            add(f"x = F.{pick(('relu', 'gelu', 'silu'))}(x)")
        elif kind == "dropout":
            add("x = F.dropout(x, 0.1, self.training)")
        elif kind == "pair":
            add(f"x, more = {self.layer('pair', pick(pairs) + '()')}(x)")
            add("x = x - more")

    def text(self, name: str, returned: str) -> str:
        init = self.init or ["pass"]
        lines = [
            f"class {name}(nn.Module):", "    def __init__(self):", "        super().__init__()",
            *(f"        {line}" for line in init), "", "    def forward(self, x):",
            *(f"        {line}" for line in self.lines), f"        return {returned}",
        ]  # fmt: skip
        return "\n".join(lines)


def source(seed: int) -> str:
    """The text of a cell that defines ``Net``, the same for the same seed."""
    choose = random.Random(seed)
    blocks: dict[str, bool] = {}  # name: whether it returns two values
    classes = ["import torch\nimport torch.nn.functional as F\nfrom torch import nn"]
    for i in range(choose.randint(0, 2)):
        made, name, pair = _Class(choose, blocks), f"Block{i + 1}", choose.random() < 0.3
        for _ in range(choose.randint(1, 4)):
            made.statement()
        classes.append(made.text(name, f"x, {made.kept[-1]}" if pair else "x"))
        blocks[name] = pair
    net = _Class(choose, blocks)
    for _ in range(choose.randint(2, 6)):
        net.statement()
    head = net.layer("head", f"nn.Linear({C}, 3)")
    net.lines.append("x = x.mean((2, 3))")
    ends = (f"{head}(x)", f"{head}(torch.flatten(x, 1))", f'{{"logits": {head}(x), "pooled": x}}')
    classes.append(net.text("Net", choose.choice(ends)))
    return "\n\n\n".join(classes) + "\n"


def cell(seed: int) -> dict[str, Any]:
    """The names that the cell leaves behind, its text readable as a notebook's would be."""
    text, file = source(seed), f"/tmp/ipykernel_1/{seed}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, file, "exec"), space)
    return {k: v for k, v in space.items() if not k.startswith("__")}


def make(seed: int):
    """The model of the cell, with an input."""
    return cell(seed)["Net"]().eval(), (torch.randn(2, 3 + 1, SIZE, SIZE),), {}
