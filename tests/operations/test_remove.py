"""remove: ends of containers, modules that are called with several values, modules that return several."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nbsurgery.errors import StepError
from nbsurgery.session import Session


class Layer(nn.Module):
    """Called with more than one value, the second by name."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, hidden, scale=None, *, shift=0.0):
        return self.linear(hidden) * scale + shift


class Pair(nn.Module):
    """Returns two values."""

    def forward(self, hidden, scale):
        return hidden * scale, scale


class Stack(nn.Module):
    """Layers in a list, one called by names alone, and one that returns a pair."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(4)])
        self.named, self.pair, self.head = Layer(), Pair(), nn.Linear(4, 2)

    def forward(self, x):
        scale = torch.full((1,), 2.0)
        for layer in self.layers:
            x = layer(x, scale, shift=1.0)
        x = self.named(hidden=x, scale=scale)
        x, scale = self.pair(x, scale)
        return self.head(x) * scale


@pytest.fixture
def session() -> Session:
    torch.manual_seed(0)
    return Session(Stack().eval(), (torch.randn(3, 4),), {}, namespace={})


def test_the_end_of_a_container_goes_step_by_step(session):
    """However the steps are ordered, neighbours at the end go together as one slice."""
    for order in (("2", "3"), ("3", "2")):
        for name in order:
            session.do("remove", {"where": f"layers.{name}"})
        assert "model.layers = model.layers[:2]" in session.code
        assert "PassThrough" not in session.code
        assert len(session.build().layers) == 2
        assert session.report.ok, str(session.report)
        session.undo()
        session.undo()


def test_a_module_with_several_arguments_hands_the_first_on(session):
    """In the middle of a list a placeholder that takes all arguments; keys of the others stay."""
    session.do("remove", {"where": "layers.1"})
    edited = session.build()
    x = torch.randn(3, 4)
    y = x
    for i in (0, 2, 3):
        y = session.original.layers[i](y, torch.full((1,), 2.0), shift=1.0)
    y = session.original.named(hidden=y, scale=torch.full((1,), 2.0)) * 2
    assert torch.equal(edited(x), session.original.head(y) * 2)
    assert "layers.2.linear.weight" in edited.state_dict()
    assert session.report.ok, str(session.report)


def test_handed_over_by_name(session):
    session.do("remove", {"where": "named"})
    assert "def forward(self, hidden, *args, **kwargs):" in session.code
    assert session.report.ok, str(session.report)


def test_a_module_that_returns_several_values_is_refused(session):
    with pytest.raises(StepError, match="'pair' returns several values"):
        session.do("remove", {"where": "pair"})
    assert session.recipe == ()


class Residual(nn.Module):
    """A branch beside the identity."""

    def __init__(self):
        super().__init__()
        self.stem, self.branch, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        x = self.stem(x)
        return self.head(self.branch(x).relu() + x)


@pytest.mark.parametrize(("keep", "branch"), [("relu", True), ("stem", False), (None, True)])
def test_one_side_of_an_addition_goes(keep, branch):
    """Without the addition its branch or its shortcut goes on; what then leads nowhere goes as well."""
    torch.manual_seed(0)
    model, x = Residual().eval(), torch.randn(3, 4)
    s = Session(model, (x,), {}, namespace={})
    (offer,) = [o for o in s.offers(["add"]) if o["operation"] == "remove"]
    assert offer["fields"][0]["choices"] == ["relu", "stem"]
    s.do("remove", {"where": "add", "keep": keep})
    y = model.stem(x)
    assert torch.equal(s.build()(x), model.head(model.branch(y).relu() if branch else y))
    assert hasattr(s.build(), "branch") is branch
    assert s.report.ok, str(s.report)


def test_keep_names_what_the_call_reads():
    s = Session(Residual().eval(), (torch.randn(3, 4),), {}, namespace={})
    with pytest.raises(StepError, match="'add' does not read head; it reads 'relu', 'stem'"):
        s.do("remove", {"where": "add", "keep": "head"})
    with pytest.raises(StepError, match="keep= names what goes on"):
        s.do("remove", {"where": "branch", "keep": "stem"})


class Loop(nn.Module):
    """A loop that does more with each layer than to hand its value on."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        if self.kind == "named":
            return self.layers[2](self.layers[1](self.layers[0](x)))
        found = []
        for layer in self.layers:
            x = x + layer(x) if self.kind == "residual" else layer(x)
            found.append(x)
        return torch.stack(found) if self.kind == "collected" else x


@pytest.mark.parametrize("kind", ["residual", "collected", "named"])
def test_only_a_loop_of_bare_layers_is_shortened(kind):
    """Where the loop does more, the last layer goes and the rest of its round stays."""
    x = torch.randn(2, 4)
    model = Loop(kind).eval()
    session = Session(model, (x,), {}, namespace={})
    session.do("remove", {"where": "layers.2"})
    assert "model.layers[2] = nn.Identity()" in session.code
    assert session.report.ok, str(session.report)
    model.layers[2] = nn.Identity()
    assert torch.equal(session.build()(x), model(x))


def saved_and_loaded(model, where: str, inputs: dict, folder) -> nn.Module:
    """The model without a layer, after a round by the disk; both give the same numbers."""
    session = Session(model.eval(), (), inputs, namespace={})
    session.do("remove", {"where": where})
    assert session.report.ok, str(session.report)
    edited = session.build()
    edited.save_pretrained(folder)
    loaded = type(model).from_pretrained(folder).eval()
    assert loaded.state_dict().keys() == edited.state_dict().keys()
    assert torch.equal(loaded(**inputs)[0], edited(**inputs)[0])
    return loaded


def test_the_counts_of_encoder_and_decoder_are_told_apart(tmp_path):
    """The decoder's layers are counted by its own entry; what a block returns beside them fits."""
    transformers = pytest.importorskip("transformers")
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_heads": 2, "vocab_size": 20}
    config = transformers.T5Config(num_layers=3, decoder_start_token_id=0, **sizes)
    model, ids = transformers.T5ForConditionalGeneration(config), torch.arange(8).view(2, 4)
    inputs = {"input_ids": ids, "decoder_input_ids": ids}
    for part in ("encoder", "decoder"):
        loaded = saved_and_loaded(model, f"{part}.block.2", inputs, tmp_path / part)
        assert len(getattr(loaded, part).block) == 2
    session = Session(model, (), inputs, namespace={})
    session.do("remove", {"where": "decoder.block.1.layer.2"})  # three parts of one block
    assert "config" not in session.code


def test_what_a_configuration_says_of_each_layer_follows(tmp_path):
    """A list with one entry for each layer, and the part of the configuration for one tower."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 3}
    sizes |= {"num_attention_heads": 2, "vocab_size": 20}
    config = transformers.Qwen3Config(num_key_value_heads=2, head_dim=4, **sizes)
    ids = torch.arange(8).view(2, 4)
    saved_and_loaded(
        transformers.Qwen3Model(config), "layers.2", {"input_ids": ids}, tmp_path / "1"
    )
    assert len(config.layer_types) == 3  # that of the person's own model
    tower = {**sizes, "image_size": 8, "patch_size": 4}
    text = {**sizes, "max_position_embeddings": 8, "eos_token_id": 7, "bos_token_id": 1}
    config = transformers.CLIPConfig(text_config=text, vision_config=tower, projection_dim=8)
    inputs = {"input_ids": ids, "pixel_values": torch.randn(2, 3, 8, 8)}
    where = "vision_model.encoder.layers.2"
    saved_and_loaded(transformers.CLIPModel(config), where, inputs, tmp_path / "2")


def test_a_setting_beside_the_layers_can_be_set_again():
    """A printed class takes the configuration along where the statements above it set it."""
    tf = pytest.importorskip("transformers")
    config = tf.GPT2Config(n_embd=16, n_layer=3, n_head=2, vocab_size=50, n_positions=16)
    torch.manual_seed(0)
    model = tf.GPT2LMHeadModel(config).eval()
    s = Session(model, (torch.randint(0, 50, (2, 5)),), {}, namespace={})
    s.do("remove", {"where": "transformer.h.2"})
    s.do("tap", {"nodes": {"transformer.h.0": "low"}, "output": "out"})
    assert "config.n" in s.code
    assert any("run twice, the code gives the same" in f.text for f in s.report.findings)
    assert s.report.ok, str(s.report)


class Counting(nn.Module):
    """Counts its runs, and keeps a running mean, in buffers that its result does not need."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)
        self.register_buffer("runs", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        h = self.first(x)
        self.runs += 1
        with torch.no_grad():
            self.mean.mul_(0.9).add_(h.mean(0), alpha=0.1)
        return self.last(torch.relu(h))


@pytest.mark.parametrize(
    "operation, arguments",
    [
        ("remove", {"where": "relu"}),
        ("tap", {"nodes": {"first": "h"}, "output": "out"}),
    ],
)
def test_what_is_written_into_buffers_stays(operation, arguments):
    """An edit elsewhere leaves a counter counting."""
    model, x = Counting().eval(), torch.randn(3, 4)
    session = Session(model, (x,), {}, namespace={})
    session.do(operation, arguments)
    assert session.report.ok, str(session.report)
    edited = session.build()
    edited(x)
    model(x)
    assert edited.runs == model.runs == 1
    assert torch.equal(edited.mean, model.mean)


class Carrying(nn.Module):
    """A layer that hands two values on, and of which the code around it asks something."""

    def __init__(self, first: bool):
        super().__init__()
        self.first, self.fc, self.kind = first, nn.Linear(4, 4), "full"

    def forward(self, x, masks=None, bias=None, scale=1.0):
        if self.first:
            bias = x.mean(1, keepdim=True)
        return self.fc(x) * scale + bias, bias


class Carried(nn.Module):
    """Its layers hand two values from one to the next."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Carrying(i == 0) for i in range(4))
        self.scales = {"full": 1.0}

    def forward(self, x):
        bias = None
        for layer in self.layers:
            x, bias = layer(x, None, bias, scale=self.scales[layer.kind])
        return x


def test_a_layer_in_the_middle_of_a_loop_that_carries_several_values():
    torch.manual_seed(0)
    model, x = Carried().eval(), torch.randn(2, 4)
    session = Session(model, (x,), namespace={})
    session.do("remove", {"where": ["layers.1", "layers.2"]})
    built = session.build()
    first, last = model.layers[0], model.layers[3]
    assert torch.equal(built(x), last(*first(x)[:1], None, first(x)[1])[0])
    assert session.report.ok and "block.kind" in session.code
    assert "return x, bias" in session.code
    session.undo()
    with pytest.raises(StepError, match="returns several values"):
        session.do("remove", {"where": "layers.0"})  # it makes the bias itself
