"""Tiny models, each made for one difficulty. `MODELS` gives a fresh one and its inputs for a batch size."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class SharedReLU(nn.Module):
    """One ReLU module called three times, with an in-place addition between."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 3, 3, padding=1)
        self.conv2 = nn.Conv2d(3, 3, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        identity = x
        out = self.relu(self.conv1(x))
        out = self.relu(self.conv2(out))
        out += identity
        return self.relu(out)


class InplaceOnInput(nn.Module):
    """``x += 1`` on what the caller gave: it must stay in place."""

    def forward(self, x):
        y = x
        y += 1
        return y * 2


class ReadAfterInplace(nn.Module):
    """The overwritten value is read again by its other name: out of place would be wrong."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        alias = h.view(-1, 4)
        h += 1
        return h + alias.view_as(h)


class Sizes(nn.Module):
    """Sizes stay symbolic: unpacking, slices of shapes, arithmetic, sizes by the module's numbers."""

    def __init__(self, heads: int = 2):
        super().__init__()
        self.num_heads = heads
        self.head_dim = 4 // heads
        self.qkv = nn.Linear(4, 12)
        self.proj = nn.Linear(4, 4)
        self.scale = self.head_dim**-0.5

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


class Encoder(nn.Module):
    """A transformer block: `residual` is a second name for a value that is still needed."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.attention = Sizes()
        self.mlp = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = self.norm(hidden_states)
        hidden_states = self.attention(hidden_states)
        hidden_states = residual + hidden_states
        residual = hidden_states
        hidden_states = self.mlp(self.norm(hidden_states))
        return residual + hidden_states


class Stack(nn.Module):
    """A loop over a ModuleList, another over a part of one, with a value collected on the way."""

    def __init__(self, depth: int = 5):
        super().__init__()
        self.layers = nn.ModuleList(Encoder() for _ in range(depth))
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Outputs(nn.Module):
    """A dict with a nested tuple as output."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        return {"h": h, "pair": (h + 1, [h * 2]), "kind": "plain"}


class Functional(nn.Module):
    """Functional dropout on the module's own flag, a buffer that is not saved, a raw parameter."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4))
        self.register_buffer("offset", torch.ones(5), persistent=False)
        self.p = 0.4

    def forward(self, x):
        x = F.linear(x, self.weight, self.offset)
        return F.dropout(x, self.p, self.training)


class Recurrent(nn.Module):
    """An LSTM whose output is indexed, then one step of it."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, batch_first=True)
        self.fc = nn.Linear(6, 2)

    def forward(self, x):
        out, (h, c) = self.lstm(x)  # noqa: RUF059 - as people write it
        return self.fc(out[:, -1]) + h.sum() * 0


class Branches(nn.Module):
    """Decides on `training`: printed text holds for one mode."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        x = self.lin(x)
        if self.training:
            x = x * 2
        return x + 1


class SizeBranch(nn.Module):
    """Decides on a size: printed text holds for that answer."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        x = self.lin(x)
        if x.shape[0] > 2:
            x = x * 2
        return x


class Checked(nn.Module):
    """Only checks a size: printed text is right wherever the model was."""

    def __init__(self):
        super().__init__()
        self.size = 4
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        if x.shape[-1] != self.size:
            raise ValueError("wrong size")
        torch._assert(x.shape[-1] == self.size, "wrong size")
        return self.lin(x)


class Flags(nn.Module):
    """Optional arguments: one hands on, one steers, one stays away."""

    def __init__(self):
        super().__init__()
        self.inner = Steered()

    def forward(self, x, mask=None, double=False, unused=3):
        return self.inner(x, mask, double=True)


class Steered(nn.Module):
    """Two arguments that decide what runs."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask=None, double=False):
        x = self.lin(x)
        if mask is not None:
            x = x * mask
        if double:
            x = x * 2
        return x


class Mixed(nn.Module):
    """Named and numbered containers, a ModuleDict, a getattr name, an unused child."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.heads = nn.ModuleDict({"a-b": nn.Linear(4, 2), "main": nn.Linear(4, 3)})
        self.add_module("0", nn.Linear(4, 4))
        self.unused = nn.Linear(9, 9)

    def forward(self, x):
        x = self.stem(getattr(self, "0")(x))
        return self.heads["a-b"](x), self.heads["main"](x)


class Context(nn.Module):
    """A part without gradients, and a write into a slice."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = self.lin(x)
            y = y.clone()
            y[:, 0] = 0
        return self.lin(y) + y.clamp_(min=0)


class Hidden(nn.Module):
    """Hands itself on to a function: only a subclass can stand in for it."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return apply(self, x)


def apply(module, x):
    """What `Hidden` calls."""
    return module.lin(x)


class Helpers(nn.Module):
    """Operations in helpers: a function called twice, a static method, a function in a variable."""

    mode = "mild"

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        act = ACTIVATIONS[self.mode]
        a = halves(self.lin(x))
        b = halves(a)
        return act(self.mix(a, b))

    @staticmethod
    def mix(a, b):
        return a * 2 - b


def halves(x):
    """What `Helpers` calls twice."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((second, first), dim=-1)


def mild(x):
    """What `Helpers` looks up."""
    return torch.tanh(x)


ACTIVATIONS = {"mild": mild, "hard": torch.sign}


class Loops(nn.Module):
    """Loops of every kind: counted, zipped, nested, with a helper, a comprehension, a part skipped."""

    depth = 3

    def __init__(self):
        super().__init__()
        self.lins = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(4) for _ in range(3))

    def forward(self, x):
        outs = []
        for lin, norm in zip(self.lins, self.norms, strict=True):
            if lin is self.lins[1]:
                x = torch.sin(x)
            x = self.step(lin(x), norm)
            outs.append(x.neg())
        for index, lin in enumerate(self.lins, 1):
            x = x + lin(x) * index
            for _ in range(self.depth):
                x += torch.tanh(x)
        parts = [lin(out) for lin, out in zip(self.lins, outs, strict=True)]
        return x + torch.stack(parts).mean(0)

    def step(self, x, norm):
        return torch.relu(norm(x))


class Items(nn.Module):
    """A loop over what comes in: how often it turns is the caller's choice."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return torch.stack([self.lin(item) for item in x])


def _image(batch):
    return (torch.randn(batch, 3, 8, 8),)


def _words(batch):
    return (torch.randn(batch, 5, 4),)


def _vector(batch):
    return (torch.randn(batch, 4),)


MODELS = {
    "SharedReLU": (SharedReLU, _image),
    "InplaceOnInput": (InplaceOnInput, _vector),
    "ReadAfterInplace": (ReadAfterInplace, _vector),
    "Sizes": (Sizes, _words),
    "Encoder": (Encoder, _words),
    "Stack": (Stack, _words),
    "Outputs": (Outputs, _vector),
    "Functional": (Functional, _vector),
    "Recurrent": (Recurrent, _words),
    "Branches": (Branches, _vector),
    "SizeBranch": (SizeBranch, _vector),
    "Checked": (Checked, _vector),
    "Flags": (Flags, _vector),
    "Mixed": (Mixed, _vector),
    "Context": (Context, _vector),
    "Hidden": (Hidden, _vector),
    "Helpers": (Helpers, _vector),
    "Loops": (Loops, _vector),
    "Items": (Items, _vector),
}
