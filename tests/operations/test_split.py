"""split and start: borders inside containers, where several values cross, keep every number."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nbsurgery.errors import EmissionError, StepError
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


class Counted(nn.Module):
    """Counts its turns in a buffer: in place, or as a new tensor."""

    def __init__(self, anew: bool = False):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.anew = anew
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if self.anew:
                self.steps = self.steps + 1
            else:
                self.steps += 1
        return x


def test_a_count_in_a_buffer_crosses():
    model, x = Counted().eval(), torch.randn(2, 4)
    session = Session(model, (x,), namespace={})
    session.do("split", {"after": "layers.1"})
    head, tail = session.build()
    tail(*head(x))
    assert head.steps == 3
    session.undo()
    session.do("cut", {"after": "layers.1"})
    session.undo()
    inner = nn.Sequential(nn.ReLU(), model, nn.ReLU())
    session = Session(inner, (x,), namespace={})
    session.do("cut", {"after": "1.layers.1"})
    built = session.build()
    built(x)
    assert built[1].steps == 1  # what ran before the place stays, what came behind it goes


def test_an_attribute_that_is_set_is_never_dropped_without_a_word():
    session = Session(Counted(anew=True).eval(), (torch.randn(2, 4),), namespace={})
    with pytest.raises(EmissionError, match=r"self\.steps = self\.steps \+ 1"):
        session.do("split", {"after": "layers.1"})


class Renamed(nn.Module):
    """Its author calls two values like the input, and one like a layer behind."""

    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.fc = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)

    def forward(self, x):
        x = self.conv(x) * 2
        relu = x + 1
        x = self.relu(relu.tanh() * x)
        return self.fc(x - relu)


def test_what_enters_a_part_is_called_like_no_other_node():
    session = Session(Renamed().eval(), (torch.randn(2, 4),), namespace={})
    session.do("split", {"after": [{"call": "mul"}, {"call": "tanh"}]})
    assert session.report.ok
    for graph, crossing in zip(session.after[1:], (["mul"], ["mul", "add", "tanh"])):
        assert [session.translate(n.name) for n in graph.root.inputs] == crossing


def test_a_model_begins_where_it_begins():
    for model in (nn.Sequential(nn.Linear(4, 4), nn.ReLU()), Renamed()):
        session = Session(model.eval(), (torch.randn(2, 4),), namespace={})
        first = "0" if isinstance(model, nn.Sequential) else "conv"
        with pytest.raises(StepError, match="nothing runs before"):
            session.do("start", {"at": first})
        assert not any(o["operation"] == "start" for o in session.offers([first]))


class Recurrent(nn.Module):
    """Unpacks two values of which the first has two rows."""

    def __init__(self):
        super().__init__()
        self.gru, self.fc = nn.GRU(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.fc(out)


def test_one_tensor_is_no_tuple():
    session = Session(Recurrent().eval(), (torch.randn(2, 2, 4),), namespace={})
    with pytest.raises(StepError, match="returns a tuple"):
        session.do("replace", {"where": "gru", "new": "nn.Linear(4, 4)"})
    session.do("replace", {"where": "gru", "new": "nn.RNN(4, 4)"})


class Overwriting(nn.Module):
    """Writes into what it is given, and computes with something else."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        y = self.a(x)
        x.mul_(2)
        F.relu_(y)
        return self.b(y)


class Around(nn.Module):
    """Reads on what its block overwrote: beside its result, or instead of it."""

    def __init__(self, beside: bool):
        super().__init__()
        self.stem, self.block, self.fc = nn.Linear(4, 4), Overwriting(), nn.Linear(4, 4)
        self.beside = beside

    def forward(self, x):
        y = self.stem(x)
        z = self.block(y)
        return self.fc(z + y if self.beside else y)


@pytest.mark.parametrize("beside", [False, True])
def test_what_a_block_overwrites_for_others_stays_overwritten(beside):
    session = Session(Around(beside).eval(), (torch.randn(2, 4),), namespace={})
    for operation, key in (("split", "after"), ("start", "at")):
        for place in ("block", "block.a", "block.mul_", "block.relu_"):
            session.do(operation, {key: {"call": place}})
            assert session.report.ok, f"{operation} {place}: {session.report}"
            session.undo()


class Shifted(nn.Module):
    """Its author calls the value that it goes on with by a second name, which was taken before."""

    def __init__(self):
        super().__init__()
        self.norm, self.fc, self.out = nn.LayerNorm(4), nn.Linear(4, 4), nn.Linear(4, 4)

    def inner(self, x):
        B, b, C = x.shape
        x = x.view(B, C, b).transpose(1, 2)
        return self.fc(x) + B

    def forward(self, x):
        shifted = F.pad(self.norm(x), (0, 0, 0, 1))
        if not self.training:
            windows = self.inner(shifted)
        else:
            shifted = x
            windows = shifted
        return self.out(x + windows[:, :-1])


@pytest.mark.parametrize("place", ["pad", "view", "transpose", "fc", "add"])
def test_names_that_differ_in_case_and_second_names(place):
    torch.manual_seed(0)
    model = nn.Sequential(Shifted(), nn.ReLU()).eval()
    session = Session(model, (torch.randn(2, 3, 4),), namespace={})
    for operation, key in (("split", "after"), ("start", "at"), ("cut", "after")):
        session.do(operation, {key: {"call": f"0.{place}"}})
        assert session.report.ok, f"{operation}: {session.code}"
        session.undo()


class Numbered(nn.ModuleDict):
    """Children under numbers, called in a forward of its own."""

    def forward(self, x):
        for layer in self.values():
            x = layer(x)
        return x


class Head(nn.Sequential):
    """A sequence whose constructor takes something else than modules."""

    def __init__(self, width: int):
        super().__init__(Shifted(), nn.ReLU(), nn.Linear(width, 2))


def test_children_under_numbers_and_sequences_with_a_constructor_of_their_own():
    torch.manual_seed(0)
    body = Numbered({"3": Shifted(), "5": Shifted()})
    model = nn.ModuleDict({"body": body, "head": Head(4)})

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = model["body"], model["head"]

        def forward(self, x):
            return self.head(self.body(x))

    session = Session(Whole().eval(), (torch.randn(2, 3, 4),), namespace={})
    for place in ("body.5.pad", "head.0.pad"):
        for operation, key in (("split", "after"), ("start", "at")):
            session.do(operation, {key: {"call": place}})
            assert session.report.ok, f"{operation}: {session.code}"
            session.undo()


@pytest.mark.parametrize(
    "after",
    [["a.1", "a.3"], ["a.1.add", "a.3"], ["a.1.linear", "a.2.tanh"], ["a.1.linear", "b.0.tanh"],
     ["a.1.linear", "a.1.tanh", "b.1.add"]],
)  # fmt: skip
def test_several_borders_inside_one_sequence(after):
    """What several values leave on the way is run child by child, wherever the part begins."""
    torch.manual_seed(0)
    model = TwoSequences().eval()
    session = Session(model, (torch.randn(2, 4),), namespace={})
    session.do("split", {"after": after})
    assert session.report.ok, session.code
    value = x = torch.randn(5, 4)
    for stage in session.build():
        value = stage(*value) if isinstance(value, tuple) else stage(value)
    assert torch.equal(value, model(x)), session.code
    keys = [k for part in session.build() for k in part.state_dict()]
    assert sorted(keys) == sorted(model.state_dict())


class TwoSequences(nn.Module):
    """Two sequences of blocks, and a head."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), Skipped(), Skipped(), nn.ReLU(), nn.Linear(4, 4))
        self.b, self.head = nn.Sequential(Skipped(), Skipped()), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.b(self.a(x)))


class Skipped(nn.Module):
    """A layer with a skip around it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return x + torch.tanh(self.linear(x))
