"""What a printed class takes over: only what its text reads, under the old keys, whatever an inner module holds."""

from __future__ import annotations

import torch
from torch import nn

from nbsurgery.session import Session


class Attention(nn.Module):
    """Reads a parameter, a buffer that is not saved, a number and the mode of its own."""

    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(8, 24), nn.Linear(8, 8)
        self.scale = 8**-0.5
        self.bias = nn.Parameter(torch.randn(4, 4))
        self.register_buffer("mask", torch.zeros(4, 4), persistent=False)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) * self.scale + self.bias + self.mask
        return self.proj(scores.softmax(-1) @ v)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(8), Attention()
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


class Net(nn.Module):
    """Blocks in a list, one level down, with a table of layers whose names a dict has as methods."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.blocks = nn.ModuleList(Block() for _ in range(3))
        self.tail = nn.Module()
        self.tail.keys, self.tail.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        for block in self.encoder.blocks:
            x = block(x)
        return self.tail.other(self.tail.keys(x))


def tapped(name: str) -> tuple[Session, nn.Module]:
    torch.manual_seed(0)
    session = Session(Net().eval(), (torch.randn(2, 4, 8),), {}, namespace={})
    session.do("tap", {"nodes": {name: "h"}})
    report = session.verify()
    assert report.ok, f"{session.code}\n{report}"
    return session, session.build()


def test_nothing_dead_stays_of_an_opened_block():
    """Attributes that its text reads come along, a buffer stays one, and every key is the old one."""
    session, model = tapped("encoder.blocks.1.attn.softmax")
    whole = {k for k in session.original.state_dict() if k.startswith("encoder.blocks.0.")}
    inner = {"norm.weight", "norm.bias", "attn.qkv.weight", "attn.qkv.bias", "attn.bias"}
    assert set(model.state_dict()) == whole | {f"encoder.blocks.1.{k}" for k in inner}
    assert "mask" in dict(model.encoder.blocks[1].attn.named_buffers())


def test_a_list_one_level_down_ends_where_the_text_does():
    """Whole blocks are taken as a slice."""
    session, model = tapped("encoder.blocks.1")
    assert 'nn.ModuleDict({"blocks": model.encoder.blocks[:2]})' in session.code
    assert len(model.encoder.blocks) == 2


def test_a_layer_that_a_dict_would_hide_is_set_on_a_plain_module():
    """A dictionary's own `keys` is no layer."""
    _, model = tapped("tail.keys")
    assert [k for k in model.state_dict() if k.startswith("tail")] == [
        "tail.keys.weight",
        "tail.keys.bias",
    ]
