"""Tiny models for capture, each made for one difficulty.

`MODELS` maps a name to ``(make, inputs)``; ``inputs(batch)`` gives ``(args, kwargs)``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


class Flat(nn.Module):
    """Functional calls and sizes: nothing but the layers is a module."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.fc = nn.Linear(4 * 4 * 4, 5)

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = F.adaptive_avg_pool2d(x, 4)
        n, c, h, w = x.shape
        x = x.view(n, c * h * w)
        return self.fc(x)


class Residual(nn.Module):
    """In-place ReLU after an in-place addition, one ReLU called twice."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        identity = x
        out = self.relu(self.conv1(x))
        out = self.conv2(out)
        out += identity
        return self.relu(out)


class Net(nn.Module):
    """Blocks in a Sequential, a shared block called twice."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.Sequential(Residual(), Residual())
        self.shared = Residual()

    def forward(self, x):
        x = self.blocks(self.stem(x))
        x = self.shared(self.shared(x))
        return torch.flatten(x, 1).mean(1)


class Tied(nn.Module):
    """One weight in two layers, one module under two names."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.lin = nn.Linear(8, 8)
        self.alias = self.lin
        self.out = nn.Linear(8, 20, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, i):
        return self.out(self.alias(torch.relu(self.lin(self.embed(i)))))


class DictIO(nn.Module):
    """Dicts in and out, nested."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 4)

    def forward(self, batch, *, scale=None):
        y = self.head(batch["x"]) + batch["extra"][0]
        if scale is not None:
            y = y * scale
        return {"y": y, "aux": [y.sum(1), (y.mean(0),)], "n": None}


@dataclass
class Answer:
    logits: torch.Tensor
    hidden: torch.Tensor | None = None


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class SplitPair(nn.Module):
    def forward(self, x):
        left, right = x.chunk(2, dim=1)
        return Pair(left, right=right)


class JoinPair(nn.Module):
    def forward(self, pair):
        return pair.left - pair.right


class Objects(nn.Module):
    """A NamedTuple passed between modules, a dataclass returned."""

    def __init__(self):
        super().__init__()
        self.split = SplitPair()
        self.join = JoinPair()

    def forward(self, x):
        pair = self.split(x)
        return Answer(logits=self.join(pair), hidden=pair.left)


class Sizes(nn.Module):
    """Arithmetic on sizes through ``int``, ``//``, slices and a factory function."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x):
        b, t, d = x.shape
        half = int(t / 2)
        position = torch.arange(t, device=x.device).unsqueeze(0).expand(b, -1)
        x = self.lin(x) + position.unsqueeze(-1)
        return torch.cat([x[:, half:], x[:, :half]], 1) * d**-0.5


class Loop(nn.Module):
    """A loop over a size: unrolled, and on record."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x):
        outs = [self.lin(x[:, i]) for i in range(x.shape[1])]
        return torch.stack(outs, 1)


class DataIf(nn.Module):
    """A branch on a tensor's value."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = nn.Linear(6, 6)

    def forward(self, x):
        x = self.a(x)
        if x.sum() > 0:
            x = self.b(x)
        return x


class Training(nn.Module):
    """``self.training`` as a flag handed on, and as a branch."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x):
        x = F.dropout(self.lin(x), 0.5, self.training)
        if self.training:
            x = x + 1
        return x + x


class Attributes(nn.Module):
    """Parameters and buffers used directly, tensors kept as plain attributes."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(6))
        self.register_buffer("shift", torch.randn(6))
        self.plain = torch.randn(6)
        self.items = [torch.randn(6), torch.randn(6)]

    def forward(self, x):
        return x * self.scale + self.shift - self.plain + self.items[1]


class Reader(nn.Module):
    memory = None

    def forward(self, x):
        return x + self.memory


class Closure(nn.Module):
    """A value that reaches a child by way of an attribute, not an argument."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)
        self.inner = Reader()

    def forward(self, x):
        x = self.lin(x)
        self.inner.memory = x
        y = self.inner(x * 2)
        self.inner.memory = None
        return y


class Leaver(nn.Module):
    def forward(self, x):
        self.left = x * 3
        return x + 1


class Leftovers(nn.Module):
    """A child leaves a value on itself that the parent reads, without its being returned."""

    def __init__(self):
        super().__init__()
        self.inner = Leaver()

    def forward(self, x):
        y = self.inner(x)
        return y * self.inner.left


class JustAdd(nn.Module):
    def forward(self, x):
        return x + x


class Hooked(nn.Module):
    """Hooks that change values, on a leaf and on a module of its own."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)
        self.inner = JustAdd()
        self.lin.register_forward_hook(lambda module, given, out: out * 2)
        self.inner.register_forward_pre_hook(lambda module, given: (given[0] + 1,))
        self.inner.register_forward_hook(lambda module, given, out: out - 1)

    def forward(self, x):
        return self.inner(self.lin(x))


class Identities(nn.Module):
    """Operations that hand back what they were given."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.same = nn.Identity()

    def forward(self, x):
        y = self.drop(x)
        return x + y + self.same(x).contiguous().to(x.dtype)


class Recurrent(nn.Module):
    """An LSTM classifier."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 6, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(12, 3)

    def forward(self, i):
        out, (h, _) = self.lstm(self.embed(i))
        return self.fc(torch.cat([h[-2], h[-1]], 1)) + out[:, -1, :3] * 0


class Encoder(nn.Module):
    """torch's own transformer, opened, and an attention layer, closed."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        x = self.encoder(x)
        y, weights = self.attention(x, x, x)
        return x + y, weights


class Modes(nn.Module):
    """Regions without gradients and with autocast."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.lin(x)
        with torch.no_grad():
            z = self.lin(x)
        return y.float() + z


class Numpy(nn.Module):
    """Leaves torch on the way."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x):
        import numpy as np

        return torch.from_numpy(np.tanh(self.lin(x).detach().numpy())) + x


class ImageList(nn.Module):
    """Takes a list of images of different sizes."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3)

    def forward(self, images):
        return [self.conv(image.unsqueeze(0)).mean((2, 3)) for image in images]


class Appender(nn.Module):
    def forward(self, x, found):
        found.append(x * 2)


class Collector(nn.Module):
    """A list handed down, to which the child appends."""

    def __init__(self):
        super().__init__()
        self.inner = Appender()

    def forward(self, x):
        found = [x]
        self.inner(x, found)
        return torch.cat(found, 1)


class Fails(nn.Module):
    """Two shapes that do not fit, inside a block."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.block = nn.Sequential(nn.Linear(6, 4), nn.Linear(5, 3))

    def forward(self, x):
        return self.block(torch.relu(self.first(x)))


class Caches(nn.Module):
    """Keeps what it computed on itself, counts its calls, and draws random numbers."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("steps", torch.zeros(()))
        self.count = 0
        self.seen = []

    def forward(self, x):
        self.count += 1
        self.last = self.lin(x)
        self.seen.append(self.last)
        self.steps += 1
        return self.norm(self.last) + torch.rand_like(x) * 0


EXACT = sys.version_info >= (3, 11)  # before, Python knows the line of an operation, not its place


def _floats(*shape):
    return lambda batch: ((torch.randn(batch, *shape),), {})


def _indices(batch):
    return (torch.randint(0, 20, (batch, 7)),), {}


def _nested(batch):
    given = {"x": torch.randn(batch, 8), "extra": (torch.randn(batch, 4),)}
    return (given,), {"scale": torch.tensor(2.0)}


MODELS = {
    "Flat": (Flat, _floats(3, 8, 8)),
    "Residual": (Residual, _floats(4, 8, 8)),
    "Net": (Net, _floats(3, 8, 8)),
    "Tied": (Tied, _indices),
    "DictIO": (DictIO, _nested),
    "Objects": (Objects, _floats(6)),
    "Sizes": (Sizes, _floats(5, 6)),
    "Loop": (Loop, _floats(4, 6)),
    "Training": (Training, _floats(6)),
    "Attributes": (Attributes, _floats(6)),
    "Closure": (Closure, _floats(6)),
    "Leftovers": (Leftovers, _floats(6)),
    "Hooked": (Hooked, _floats(6)),
    "Identities": (Identities, _floats(6)),
    "Recurrent": (Recurrent, _indices),
    "Collector": (Collector, _floats(6)),
    "Modes": (Modes, _floats(6)),
    "MLP": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)), _floats(6)),
}
