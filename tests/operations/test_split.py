"""split and start: borders inside containers, where several values cross, keep every number."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nbsurgery.session import Session
from nbsurgery.verify.runs import handed_on


class Scaled(nn.Module):
    """A residual around a container, as in ConvNeXt."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 1))
        self.scale = nn.Parameter(torch.full((8, 1, 1), 0.5))

    def forward(self, x):
        return self.scale * self.block(x) + x


class Down(nn.Module):
    """A shortcut through a container of its own, as in ResNet."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1)
        self.down = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8))

    def forward(self, x):
        out = F.relu(self.conv(x))
        out += self.down(x)
        return out


class Halves(nn.Module):
    """Two halves of the channels, as in ShuffleNet."""

    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU())

    def forward(self, x):
        a, b = x.chunk(2, 1)
        return torch.cat((a, self.branch(b)), 1)


class Named(nn.Module):
    """The same layers as attributes of a module with a forward of its own."""

    def __init__(self, layers):
        super().__init__()
        self.stem, self.stage, self.fc = layers[0], layers[1], layers[4]

    def forward(self, x):
        return self.fc(self.stage(self.stem(x)).mean((2, 3)))


def chain(block) -> nn.Sequential:
    torch.manual_seed(0)
    stage = nn.Sequential(block(), block())
    pool = nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(nn.Conv2d(3, 8, 1), stage, pool, nn.Flatten(), nn.Linear(8, 3)).eval()


PLACES = {
    Scaled: ("0.block.0", "0.mul", "1.block.1", "1.block"),
    Down: ("0.conv", "0.down.0", "1.relu", "1.down.0", "1.down"),
    Halves: ("0.branch.0", "1.chunk", "1.branch.1"),
}


@pytest.mark.parametrize("block", PLACES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("named", [False, True], ids=["chain", "named"])
def test_borders_inside_containers(block, named):
    model = chain(block)
    stage = "1"
    if named:
        model, stage = Named(model).eval(), "stage"
    x = torch.randn(2, 3, 8, 8)
    wanted = model(x)
    session = Session(model, (x,), namespace={})
    for place in PLACES[block]:
        name = f"{stage}.{place}"
        session.do("split", {"after": {"call": name}})
        head, tail = session.build()
        assert torch.equal(tail(*handed_on(tail, head(x))), wanted), name
        assert session.report.ok
        kept = {**head.state_dict(), **tail.state_dict()}
        assert kept.keys() <= model.state_dict().keys()
        session.undo()
        if place != "0.conv":
            session.do("start", {"at": {"call": name}})
            assert session.report.ok, session.report
            session.undo()


class Grown(nn.Module):
    """Every layer reads all values before it, as in DenseNet: many values cross."""

    def __init__(self):
        super().__init__()
        for i in range(9):
            self.add_module(f"densely_connected_{i}", nn.Linear(4, 4))

    def forward(self, x):
        values = [x]
        for i in range(9):
            values.append(getattr(self, f"densely_connected_{i}")(torch.stack(values).sum(0)))
        return values[-1]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_many_values_cross_nested_borders(depth):
    torch.manual_seed(0)
    model, prefix = Grown(), ""
    for _ in range(depth):
        model, prefix = nn.Sequential(nn.ReLU(), model, nn.ReLU()), f"1.{prefix}"
    x = torch.randn(2, 4)
    session = Session(model, (x,), namespace={})
    session.do("split", {"after": {"call": f"{prefix}densely_connected_6"}})
    head, tail = session.build()
    assert session.report.ok, session.code
    assert torch.equal(tail(*handed_on(tail, head(x))), model(x))
    assert max(map(len, session.code.splitlines())) <= 100


class Unread(nn.Module):
    """An addition whose second operand an edit leaves unread."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        z = y.tanh()
        return y + z


def test_what_crosses_and_is_not_read_is_still_one_of_the_values():
    """Inside a sequence the values cross as one tuple, and its reader takes its own out of it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), Unread()).eval()
    x = torch.randn(2, 4)
    session = Session(model, (x,), namespace={})
    session.do("replace", {"where": {"call": "1.add"}, "new": "nn.Identity()"})
    session.do("split", {"after": "1.tanh"})
    value = x
    for stage in session.build():
        value = stage(*value) if isinstance(value, tuple) else stage(value)
    assert torch.equal(value, model[1].linear(model[0](x)))
    assert session.report.ok, str(session.report)


def language_model(name: str):
    """A tiny model of a library: the model, its example, another one, places to split it at."""
    tf = pytest.importorskip("transformers")
    sizes = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=2, num_attention_heads=2)
    ids, others = torch.arange(10).view(2, 5), torch.arange(1, 13).view(3, 4)
    if name == "bert":
        model = tf.BertModel(tf.BertConfig(vocab_size=20, **sizes))
        places = ("encoder.layer.0", "encoder.layer.1.attention.self.value", "embeddings.getitem_2")
    elif name == "gpt2":
        config = tf.GPT2Config(vocab_size=20, n_embd=8, n_layer=2, n_head=2, n_positions=9)
        model = tf.GPT2LMHeadModel(config)
        places = ("transformer.wte", "transformer.h.0.attn", "transformer.h.1.attn.c_attn.view")
    elif name == "llama":
        model = tf.LlamaForCausalLM(tf.LlamaConfig(vocab_size=20, num_key_value_heads=2, **sizes))
        places = (
            "model.embed_tokens",
            "model.layers.0.self_attn.o_proj",
            "model.layers.1.mlp.up_proj",
        )
    elif name == "t5":
        config = tf.T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=2, num_heads=2)
        model = tf.T5EncoderModel(config)
        places = (
            "encoder.block.0.layer.0.SelfAttention.v",
            "encoder.block.0",
            "encoder.block.1.layer.0",
        )
    elif name == "vit":
        model = tf.ViTModel(tf.ViTConfig(image_size=8, patch_size=4, **sizes))
        ids, others = torch.randn(2, 3, 8, 8), torch.randn(3, 3, 8, 8)
        places = ("embeddings.patch_embeddings.projection", "layers.0.attention", "layers.1.add")
    return model.eval(), ids, others, places


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "t5", "vit"])
def test_language_models_between_and_inside_their_blocks(name):
    torch.manual_seed(0)
    model, x, other, places = language_model(name)
    session = Session(model, (x,), namespace={})
    tied = {
        key for key in model.state_dict() if key.endswith(("embed_tokens.weight", "shared.weight"))
    }
    for where in (*([p] for p in places), places):
        session.do("split", {"after": [{"call": w} for w in where]})
        assert session.report.ok, f"{where}: {session.report}"
        parts = session.build()
        assert len(parts) == len(where) + 1
        keys = [key for part in parts for key in part.state_dict()]
        assert len(keys) == len(set(keys)), where
        assert model.state_dict().keys() - set(keys) <= tied, where
        value = parts[0](other)
        for part in parts[1:]:
            value = part(*handed_on(part, value))
        assert torch.equal(value[0], model(other)[0]), where
        session.undo()
