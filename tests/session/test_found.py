"""What random surgery found: each a small model and the recipe that once went wrong."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from nbsurgery.emit.statements import Style
from nbsurgery.errors import EmissionError, StepError
from nbsurgery.session import Session
from nbsurgery.verify import structural_copy


class WritesItsInput(nn.Module):
    """A block that writes in place into what it was given, through a view."""

    def __init__(self):
        super().__init__()
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        x = x.flatten(1).view(x.shape[0], -1)
        return self.act(x) + 1


class Net(nn.Module):
    """The block's result is left alone, and its input is read after it."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.chain = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.block = WritesItsInput()
        self.scale = nn.Parameter(torch.ones(4))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = self.chain(self.first(x)) * self.scale
        self.block(x)
        x = F.relu(x - 1)
        return self.head(x)


FOUND = [
    # a write through a view, in a block that a tap opened, went as dead although x is read later
    [("tap", {"nodes": ["head", "block.view"]})],
    # what crosses a border is what stands there then, not what its node once made
    [("start", {"at": "block.add"})],
    [("start", {"at": {"call": "sub"}})],
    # places that went with a later step were still spoken of: a second run failed
    [("freeze", {"until": "scale"}), ("tap", {"nodes": ["x"]})],
    [("replace", {"where": ["first", "head"], "new": "nn.Linear(4, 4)"}), ("cut", {"after": "chain.1"})],
    [("start", {"at": {"call": "chain.2"}}), ("unfreeze", {"where": "first"})],
    [("unfreeze", {"where": "chain"}), ("start", {"at": {"call": "sub"}})],
]  # fmt: skip


@pytest.mark.parametrize("steps", FOUND)
def test_recipe_that_once_went_wrong(steps):
    """Nothing in the full report but what is well; the code runs twice, or stops by itself."""
    torch.manual_seed(0)
    session = Session(Net().eval(), (torch.randn(2, 4),), namespace={})
    for operation, arguments in steps:
        session.do(operation, arguments)
    found = session.verify().findings
    assert not [f.text for f in found if f.severity == "error"], session.code
    assert not [f.text for f in found if "run twice, the code fails" in f.text], session.code


class ReadTwice(nn.Module):
    """A value that an activation reads, and something else before it."""

    def __init__(self):
        super().__init__()
        self.lin, self.act, self.head = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)

    def forward(self, x):
        x = self.lin(x)
        x = x * torch.sigmoid(self.act(x))
        return self.head(x)


def test_a_layer_set_to_work_in_place_keeps_the_order_of_what_reads_it():
    """What is put in behind the write reads what the write leaves."""
    torch.manual_seed(0)
    session = Session(ReadTwice().eval(), (torch.randn(2, 4),), namespace={})
    session.do("set", {"where": "act", "inplace": True})
    session.do("insert", {"before": "mul", "new": "nn.BatchNorm1d(4)"})
    assert session.report.ok, session.code


class Listed(nn.Module):
    """Blocks in a list, each of two layers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Pair() for _ in range(5)])
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return x + self.second(x)


@pytest.mark.parametrize("after", ["layers.0.relu", "layers.1", "layers.3.relu", ["layers.1.relu", "layers.3.relu"], ["layers.2.relu", "layers.2.second"]])  # fmt: skip
def test_split_inside_a_list_of_blocks(after):
    """Every weight is in one part, under its old key; numbers are the original's."""
    torch.manual_seed(0)
    session = Session(Listed().eval(), (torch.randn(2, 4),), namespace={})
    session.do("split", {"after": after})
    assert session.report.ok, session.code
    keys = [k for part in session.build() for k in part.state_dict()]
    assert sorted(keys) == sorted(session.model.state_dict()), session.code


def test_a_kept_output_is_promised_only_where_nothing_changed_before():
    """An auxiliary head on an edited model keeps the edited model's output."""
    torch.manual_seed(0)
    session = Session(Net().eval(), (torch.randn(2, 4),), namespace={})
    session.do("remove", {"where": "head"})
    session.do(
        "tap", {"nodes": ["chain.1"], "head": "nn.Linear(4, 2)", "keys": "aux", "output": "out"}
    )
    assert session.report.ok


def test_edits_before_a_start_leave_no_code():
    """What a step put into a part that goes is not written."""
    torch.manual_seed(0)
    session = Session(Listed().eval(), (torch.randn(2, 4),), namespace={})
    session.do("start", {"at": "head"})
    session.do("insert", {"before": "layers.1.second", "new": "nn.Dropout(0.1)"})
    assert session.report.ok
    assert "Dropout" not in session.code


class Gated(nn.Module):
    """A layer scaled by a parameter of the model itself, between others."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4))
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        x = self.first(x) * self.scale.reshape(1, -1)
        for layer in self.layers:
            x = layer(x)
        return self.second(x)


def _twice(session: Session) -> None:
    """The text runs twice in one namespace and leaves what it left the first time."""
    space = {"model": structural_copy(session.model)}
    exec(session.code, space)
    keys, modes = list(space["model"].state_dict()), [m.training for m in space["model"].modules()]
    exec(session.code, space)
    assert list(space["model"].state_dict()) == keys
    assert [m.training for m in space["model"].modules()] == modes
    assert session.report.ok, session.code


def _stops(session: Session, message: str) -> None:
    """A second run ends in an error, and what is free to learn stays so."""
    space = {"model": structural_copy(session.model)}
    exec(session.code, space)
    free = [n for n, p in space["model"].named_parameters() if p.requires_grad]
    with pytest.raises(RuntimeError, match=message):
        exec(session.code, space)
    assert free == [n for n, p in space["model"].named_parameters() if p.requires_grad]


def test_a_frozen_parameter_that_goes_leaves_no_code():
    """What only a replaced operation read is not frozen first."""
    session = Session(Gated().eval(), (torch.randn(2, 4),), namespace={})
    session.do("freeze", {"until": {"call": "layers.0"}})
    session.do("replace", {"where": {"call": "mul"}, "new": "nn.Identity()"})
    assert "scale" not in session.code
    _twice(session)


def test_picked_layers_are_found_in_a_second_run():
    """The list of what is kept answers by the same numbers."""
    session = Session(Gated().eval(), (torch.randn(2, 4),), namespace={})
    session.do("connect", {"source": {"call": "x"}, "into": {"call": "layers.2"}, "how": "replace"})
    assert "nn.ModuleList([nn.Identity()" in session.code
    _twice(session)


def test_a_chain_has_the_mode_of_the_model():
    """A layer put in before the model became a chain asks for the mode in a second run too."""
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), nn.Flatten())

    class Chain(nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.head = model, nn.Linear(4, 2)

        def forward(self, x):
            return self.head(torch.flatten(self.features(x), 1))

    session = Session(Chain().eval(), (torch.randn(2, 4),), namespace={})
    session.do("sequential", {})
    session.do("insert", {"before": "features.0.1", "new": "nn.Dropout(0.1)"})
    _twice(session)


def test_a_layer_put_in_after_a_freeze_stays_free_in_a_second_run():
    """The freeze above it speaks of the container, and must not reach it."""
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2)).eval()
    session = Session(model, (torch.randn(2, 4),), namespace={})
    session.do("freeze", {"where": "0"})
    session.do("insert", {"after": "0.0", "new": "nn.Linear(4, 4)"})
    space = {"model": structural_copy(model)}
    for _ in range(2):
        exec(session.code, space)
        free = [n for n, p in space["model"].named_parameters() if p.requires_grad]
        assert free == ["0.linear.weight", "0.linear.bias", "1.weight", "1.bias"]
    assert session.report.ok


class Silent(nn.Module):
    """A layer that works in place, whose result has a name that nobody reads."""

    def __init__(self):
        super().__init__()
        self.act, self.head = nn.SiLU(inplace=True), nn.Linear(4, 2)

    def forward(self, x):
        x = x + 1
        unread = self.act(x)  # noqa: F841
        return self.head(x)


def test_a_result_that_nobody_reads_is_told():
    """A layer that works in place is not replaced by one that does not where its result is lost."""
    session = Session(Silent().eval(), (torch.randn(2, 4),), namespace={})
    with pytest.raises(StepError, match="reads what it wrote into"):
        session.do("replace", {"where": "act", "new": "nn.GELU()"})
    with pytest.raises(StepError, match="reads what 'act' wrote into"):
        session.do("set", {"where": "act", "inplace": False})
    session.do("replace", {"where": "act", "new": "nn.ReLU(inplace=True)"})
    assert session.report.ok


class Steps(nn.Module):
    """Places where a removal leaves shapes that do not meet."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(4, 8, 1), nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.inner, self.head = Squeezed(), nn.Linear(4, 2)

    def forward(self, x):
        x = self.up(self.inner(self.down(x)))
        a, b = torch.chunk(x, 2, dim=1)
        x = torch.cat([b, a], dim=1)
        return self.head(torch.flatten(x.mean((2, 3)), 1))


class Squeezed(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Conv2d(8, 8, 1)

    def forward(self, x):
        return x * self.gate(x.mean((2, 3), keepdim=True))


@pytest.mark.parametrize(
    ("name", "offered"),
    [("down", False), ("up", False), ("inner", True), ("inner.gate", True), ("chunk", False),
     ("cat", False), ("mean", False), ("flatten", True), ("head", True)],
)  # fmt: skip
def test_removals_are_offered_where_shapes_meet(name, offered):
    """A person is not shown a removal that the next layer refuses."""
    session = Session(Steps().eval(), (torch.randn(2, 4, 4, 4),), namespace={})
    kinds = {o["operation"] for o in session.offers([name])}
    assert ("remove" in kinds) is offered


class Both(nn.Module):
    """What a layer overwrites is read under its own name, and what it returns under another."""

    def __init__(self):
        super().__init__()
        self.first, self.act = nn.Linear(4, 4), nn.SiLU(inplace=True)
        self.second, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        x = self.first(x)
        kept = self.act(x)
        x = self.second(x)
        return self.head(x + kept)


def test_a_value_read_under_two_names_is_told():
    """Out of place, only one of the two would be what the layer gives."""
    session = Session(Both().eval(), (torch.randn(2, 4),), namespace={})
    with pytest.raises(StepError, match="reads what 'act' wrote into"):
        session.do("set", {"where": "act", "inplace": False})
    session = Session(
        nn.Sequential(nn.Linear(4, 4), nn.SiLU(inplace=True)), (torch.randn(2, 4),), namespace={}
    )
    session.do("set", {"where": "1", "inplace": False})
    assert session.report.ok


def test_a_width_is_offered_behind_a_layer_that_a_step_made():
    """Nobody has recorded the shape of a value that a step added."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    session = Session(model, (torch.randn(2, 4),), namespace={})
    session.do("insert", {"after": "0", "new": "nn.LayerNorm(8)"})
    assert "channels" in {o["operation"] for o in session.offers(["0"])}
    session.do("channels", {"where": "0", "outputs": 16, "follow": True})
    assert session.report.ok


class Renamed(nn.Module):
    """A block whose author gives the same value a second name."""

    def __init__(self):
        super().__init__()
        self.first, self.path = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        shortcut = x
        x = self.first(x)
        x = self.path(x)
        x = x + torch.relu(shortcut)
        return x


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block, self.head = nn.Linear(4, 4), Renamed(), nn.Linear(4, 4)

    def forward(self, x):
        x = self.stem(x)
        x = self.block(x)
        return self.head(x)


def test_a_kept_value_does_not_take_a_name_that_is_still_read():
    """The second name of the author's stands for another value there."""
    torch.manual_seed(0)
    session = Session(Named().eval(), (torch.randn(2, 4),), namespace={})
    session.do(
        "connect", {"source": {"call": "block.path"}, "into": {"call": "head"}, "how": "add"}
    )
    assert session.report.ok, session.code


class Rotated(nn.Module):
    """Two products that are added; one of them has an operation of its own in it."""

    def forward(self, x):
        return (x * 2) + (torch.neg(x) * 3)


def test_an_edit_of_what_another_takes_away_goes_with_it():
    """In the author's text, one edit stands inside of what the other removes."""
    session = Session(Rotated().eval(), (torch.randn(2, 4),), namespace={})
    session.style = Style(classes="subclass")
    session.do("insert", {"after": {"call": "neg"}, "new": "nn.Identity()"})
    session.do("replace", {"where": {"call": "add"}, "new": "nn.ReLU()"})
    assert session.report.ok, session.code
    assert "torch.neg" not in session.code


class Doubled(nn.Module):
    """A layer that reads another's width twice, so that its text cannot run a second time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        self.fuse = nn.Linear(8, 2)

    def forward(self, x):
        x = self.layers(x)
        return self.fuse(torch.cat([x, x], dim=1))


def test_a_second_run_stops_before_it_freezes_what_is_new():
    """The text that cannot run twice says so in front of all that it does."""
    session = Session(Doubled().eval(), (torch.randn(2, 4),), namespace={})
    session.do("freeze", {"where": "layers"})
    session.do("channels", {"where": "layers.1", "outputs": 6, "weights": "zero", "follow": True})
    session.do("replace", {"where": "layers.0", "new": "nn.Linear(4, 4)"})
    assert session.report.ok, session.code
    _stops(session, "widened already")


def small_bert(name: str):
    """A tiny model of the library, and its example with a mask that hides nothing."""
    tf = pytest.importorskip("transformers")
    sizes = dict(hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=8)
    torch.manual_seed(0)
    model = getattr(tf, name)(tf.BertConfig(vocab_size=20, **sizes)).eval()
    ids = torch.arange(10).view(2, 5)
    return model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


@pytest.mark.parametrize("node", ["encoder.layer.1", "encoder.layer.1.attention.self"])
def test_a_tap_inside_asks_again_for_the_mask(node):
    """No mask was made for a mask of ones: with another one the text stops, and the report says so."""
    model, example = small_bert("BertModel")
    session = Session(model, (), example, namespace={})
    session.do("tap", {"nodes": [node], "keys": "h"})
    assert session.report.ok, session.code
    padded = {**example, "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])}
    with pytest.raises(RuntimeError, match="holds only where .*creat"):
        session.build()(**padded)
    found = [f for f in session.verify().findings if "padded mask" in f.text]
    assert [f.severity for f in found] == ["error"]


def test_inner_values_are_compared_where_the_recording_does_not_hold(monkeypatch):
    """A tap that silently leaves the mask out is found at a padded one, though the recording refuses it."""
    monkeypatch.setattr("nbsurgery.emit.specialised._comes_later", lambda *_: True)
    model, example = small_bert("BertModel")
    session = Session(model, (), example, namespace={})
    session.do("tap", {"nodes": ["encoder.layer.1"], "keys": "h"})
    found = [f.text for f in session.verify().findings if "padded mask" in f.text]
    assert len(found) == 1 and "was to equal the original's value" in found[0]


def test_a_new_head_is_counted_where_the_library_reads_it():
    """The loss and a saved configuration go by the number of classes."""
    model, example = small_bert("BertForSequenceClassification")
    session = Session(model, (), example, namespace={})
    session.do("replace", {"where": "classifier", "new": "nn.Linear(old.in_features, 5)"})
    edited = session.build()
    edited(**example, labels=torch.tensor([0, 4])).loss.backward()
    assert (edited.config.num_labels, edited.num_labels, len(edited.config.id2label)) == (5, 5, 5)
    assert (model.config.num_labels, model.num_labels) == (2, 2)
    session.do("replace", {"where": "classifier", "new": "nn.Linear(old.in_features, 2)"})
    assert "num_labels" not in session.code


def test_the_author_s_text_goes_without_what_only_rewrites_docstrings():
    """Such a decorator looks for the file of its class, and an emitted class has none."""
    model, example = small_bert("BertForSequenceClassification")
    session = Session(model, (), example, namespace={})
    session.style = Style(classes="subclass")
    session.do("insert", {"before": "classifier", "new": "nn.Dropout(0.2)"})
    assert session.report.ok and "docstring" not in session.code
    session.build()(**example, labels=torch.tensor([0, 1])).loss.backward()


def test_a_pattern_freezes_what_has_weights():
    """Inputs and functions that it finds as well are passed over."""
    session = Session(Listed().eval(), (torch.randn(2, 4),), namespace={})
    session.do("freeze", {"where": "**"})
    assert not any(p.requires_grad for p in session.build().parameters())
    with pytest.raises(StepError, match="has no weights"):
        session.do("freeze", {"where": "x"})


def test_what_a_width_adds_can_learn():
    """New rows are drawn, and what reads them starts at zero: both at zero would never get a gradient."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    session = Session(model.eval(), (torch.randn(2, 4),), namespace={})
    session.do("channels", {"where": "0", "outputs": 9, "follow": True})
    session.do("channels", {"where": "2", "outputs": 8, "follow": True})
    x, edited = torch.randn(16, 4), session.build()
    assert torch.allclose(edited(x), model(x), atol=1e-6), session.code
    for _ in range(2):
        edited.zero_grad()
        edited(x).square().sum().backward()
        with torch.no_grad():
            for p in edited.parameters():
                p -= 0.05 * p.grad
    grown = [edited[0].weight.grad[6:], edited[2].weight.grad[:, 6:], edited[2].weight.grad[6:],
             edited[4].weight.grad[:, 6:]]  # fmt: skip
    assert all(g.abs().max() > 0 for g in grown), session.code


def test_a_second_run_changes_nothing_before_it_stops():
    """Weights that were trained meanwhile stay, and so do the modules that an optimizer knows."""
    session = Session(Doubled().eval(), (torch.randn(2, 4),), namespace={})
    session.do("channels", {"where": "layers.0", "outputs": 5, "follow": True})
    session.do("channels", {"where": "layers.1", "outputs": 6, "follow": True})
    space = {"model": structural_copy(session.model)}
    exec(session.code, space)
    with torch.no_grad():
        for p in space["model"].parameters():
            p.normal_()
    before = {k: (v, v.clone()) for k, v in space["model"].named_parameters()}
    with pytest.raises(RuntimeError, match="widened already"):
        exec(session.code, space)
    for name, p in space["model"].named_parameters():
        assert p is before[name][0] and torch.equal(p, before[name][1]), session.code


def test_a_bulk_by_names_stops_a_second_run():
    """The old width is gone then, and layers frozen before have other classes by now."""
    session = Session(Unused().eval(), (torch.randn(2, 3, 4, 4),), namespace={})
    session.do("freeze", {"where": "body"})
    session.do("replace", {"where": {"class": "torch.nn.BatchNorm2d"},
                           "new": "nn.GroupNorm(2, old.num_features)", "weights": "keep"})  # fmt: skip
    assert session.report.ok, session.code
    space = {"model": structural_copy(session.model)}
    exec(session.code, space)
    with pytest.raises(RuntimeError, match="changed already"):
        exec(session.code, space)


class Unused(nn.Module):
    """One normalisation never runs."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8))
        self.tail, self.spare = nn.BatchNorm2d(8), nn.BatchNorm2d(4)

    def forward(self, x):
        return self.tail(self.body(x))


def test_a_tap_below_asks_again_for_the_mask_of_the_model_inside():
    """What the guard reads lies in a scope that the tap opens."""
    tf = pytest.importorskip("transformers")
    sizes = dict(hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=8)
    torch.manual_seed(0)
    config = tf.LlamaConfig(vocab_size=20, num_key_value_heads=2, **sizes)
    ids = torch.arange(2, 12).view(2, 5)
    example = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    session = Session(tf.LlamaForCausalLM(config).eval(), (), example, namespace={})
    session.do("tap", {"nodes": ["model.layers.0"], "keys": "h"})
    assert session.report.ok, session.code
    padded = {**example, "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])}
    with pytest.raises(RuntimeError, match="holds only where"):
        session.build()(**padded)


class Standardised(nn.Conv2d):
    """A convolution of the author's own, which reads its stride when it runs."""

    def forward(self, x):
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding)


def test_a_value_that_a_layer_of_its_own_class_reads_is_planned_with():
    """The recorded call inside holds the old stride."""
    model = nn.Sequential(Standardised(3, 4, 3, stride=2, padding=1), nn.ReLU()).eval()
    session = Session(model, (torch.randn(2, 3, 8, 8),), namespace={})
    session.do("set", {"where": "0", "stride": 1})
    assert session.report.ok, str(session.report)
    assert session.build()(torch.randn(1, 3, 8, 8)).shape == (1, 4, 8, 8)


def test_layers_replaced_behind_a_freeze_stop_a_second_run():
    """It would freeze what the first run has made."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)
    )
    session = Session(model.eval(), (torch.randn(2, 3, 4, 4),), namespace={})
    session.do("freeze", {"where": ["0", "1"]})
    session.do("replace", {"where": {"class": "torch.nn.BatchNorm2d"},
                           "new": "nn.GroupNorm(2, old.num_features)"})  # fmt: skip
    assert session.report.ok, session.code
    _stops(session, "changed already")


def test_a_layer_before_one_that_writes_into_what_is_read_again():
    """In one sequence with the new layer, it would write into that one's result."""
    torch.manual_seed(0)
    session = Session(Silent().eval(), (torch.randn(2, 4),), namespace={})
    session.do("insert", {"before": "act", "new": "nn.BatchNorm1d(4)"})
    assert session.report.ok, session.code


class Pooled(nn.Module):
    """What follows the first layer takes even sizes only."""

    def __init__(self):
        super().__init__()
        self.down, self.body = nn.Conv2d(3, 4, 4, stride=4), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        x = self.body(self.down(x))
        n, c, h, w = x.shape
        return x.view(n, c, h // 2, 2, w // 2, 2).mean((3, 5))


def test_a_model_that_begins_inside_is_not_held_to_a_size_of_its_own():
    """At an odd size there, the original would fail as well."""
    session = Session(Pooled().eval(), (torch.randn(2, 3, 24, 24),), namespace={})
    session.do("start", {"at": "body"})
    assert not [f for f in session.verify().findings if "image size" in f.text]


class TwoNames(nn.Module):
    """One layer under two names, and a block that is called twice."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b, self.block = self.a, Inner()

    def forward(self, x):
        return self.block(self.block(self.b(self.a(x))))


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x))


def test_a_layer_with_two_names_is_replaced_under_both():
    """The other name would keep the old layer, and the weights would part."""
    session = Session(TwoNames().eval(), (torch.randn(2, 4),), namespace={})
    session.do("replace", {"where": "a", "new": "nn.Linear(4, 4, bias=False)"})
    edited = session.build()
    assert edited.a is edited.b and edited.a.bias is None, session.code


def test_an_edit_inside_a_block_that_is_called_twice_is_refused():
    """Its class serves both calls; nothing has changed after the refusal."""
    session = Session(TwoNames().eval(), (torch.randn(2, 4),), namespace={})
    before = session.code
    with pytest.raises(EmissionError, match="is called 2 times, and its class serves every call"):
        session.do("replace", {"where": {"call": "block.relu"}, "new": "nn.GELU()"})
    assert session.code == before and not session.recipe


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.gamma = nn.Linear(4, 4), nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.linear(x) * self.gamma.reshape(1, -1)


class Staged(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList(Scaled() for _ in range(3))

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return x


def test_a_list_of_which_a_tap_keeps_the_end_answers_by_number():
    """The freeze before it stands in the second run, too."""
    session = Session(Staged().eval(), (torch.randn(2, 4),), {}, namespace={})
    session.do("tap", {"nodes": {"stages.2.reshape": "gamma"}})
    session.do("freeze", {"where": "stages.2.gamma"})
    assert sorted(session.build().state_dict()) == ["stages.2.gamma"], session.code
    assert session.verify().ok, session.report


def test_a_start_before_a_skip_in_one_sequence_keeps_what_runs():
    """The class of the sequence takes nothing that runs no more; a second run stops with the reason."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)))
    session = Session(model.eval(), (torch.randn(2, 4),), {}, namespace={})
    session.do("connect", {"source": "2.0", "into": "3.1", "how": "add"})
    session.do("start", {"at": "1.1"})
    keys = {k.partition(".")[0] for k in session.build().state_dict()}
    assert keys == {"2", "3"}, session.code
    assert session.verify().ok, session.report


class Deciding(nn.Module):
    """Decides on a size in front of the last layer, and reads another size behind it."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        batch, length, _ = x.shape
        x = self.first(x) if length > 2 else x
        return self.last(x.flatten(0, 1)).view(batch, -1)


def test_what_was_decided_in_front_of_a_start_is_taken_for_given():
    """The class says so; on another batch the size that crosses is the other one."""
    session = Session(Deciding().eval(), (torch.randn(2, 3, 4),), {}, namespace={})
    session.do("start", {"at": "last"})
    assert "Holds where `" in session.code  # with the test itself where columns are known
    report = session.verify()
    assert report.ok and any("batch size 3" in f.text for f in report.findings), report


class DropPathed(nn.Module):
    """What drops paths hands on its input in eval mode; an addition then writes into it."""

    def __init__(self):
        super().__init__()
        self.linear, self.drop = nn.Linear(4, 4), torchvision.ops.StochasticDepth(0.1, "row")

    def forward(self, x):
        result = self.drop(self.linear(x))
        result += x
        return result


def test_a_tap_sees_what_is_written_through_what_hands_on_its_input():
    """The tapped value is the one that the layer made."""
    session = Session(DropPathed().eval(), (torch.randn(2, 4),), {}, namespace={})
    session.do("tap", {"nodes": {"linear": "h"}, "output": "out"})
    assert session.report.ok, session.code


class Twofold(nn.Module):
    """Blocks in a list that is never called, in a part that cannot be gone through."""

    def __init__(self):
        super().__init__()
        self.a, self.b = Staged(), Staged()

    def forward(self, x):
        return self.b(self.a(x))


def test_a_pattern_through_parts_that_are_no_lists():
    """A loop goes through the lists only."""
    session = Session(Twofold().eval(), (torch.randn(2, 4),), {}, namespace={})
    session.do("freeze", {"where": "*.stages.*.linear"})
    assert session.report.ok
    frozen = [k for k, p in session.build().named_parameters() if not p.requires_grad]
    assert len(frozen) == 12 and all(".linear." in k for k in frozen)


def test_a_list_that_nobody_calls_means_what_it_holds():
    """Every weight in it is frozen."""
    session = Session(Twofold().eval(), (torch.randn(2, 4),), {}, namespace={})
    session.do("freeze", {"where": "a.stages"})
    frozen = [k for k, p in session.build().named_parameters() if not p.requires_grad]
    assert len(frozen) == 9 and all(k.startswith("a.") for k in frozen)


def test_a_layer_with_other_widths_can_still_be_set():
    """It is the person's layer; a second run gives the same."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3)).eval()
    session = Session(model, (torch.randn(2, 3, 12, 12),), {}, namespace={})
    session.do("channels", {"where": "0", "outputs": 6, "follow": True})
    session.do("set", {"where": "0", "padding": 2, "dilation": 2})
    session.do("set", {"where": "0", "padding": 1})
    layer = session.build()[0]
    assert (layer.out_channels, layer.padding, layer.dilation) == (6, (1, 1), (2, 2))
    assert session.verify().ok, session.code


def test_a_function_in_the_place_of_an_addition_gets_both():
    """Where it takes one tensor, it gets the first."""
    session = Session(torchvision.models.resnet18(weights=None).eval(), (torch.randn(1, 3, 32, 32),),
                      {}, namespace={})  # fmt: skip
    session.do("replace", {"where": "layer1.0.add", "new": "torch.maximum"})
    session.do("replace", {"where": "layer1.1.add", "new": "torch.tanh"})
    assert "torch.maximum(out, x)" in session.code and "torch.tanh(out)" in session.code
    assert session.report.ok


def test_a_name_that_the_code_binds_is_refused():
    """The person's own layer of that name would be hidden by what the class is made of."""
    model = nn.Sequential(Block(), Block()).eval()
    session = Session(model, (torch.randn(2, 4),), {}, namespace={"block": nn.Linear(4, 4)})
    with pytest.raises(EmissionError, match="gives the name 'block' to something of its own"):
        session.do("insert", {"after": "1.linear", "new": "block"})


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x)) + x


class Table(nn.ModuleDict):
    """A dict of modules that goes through them itself."""

    def __init__(self):
        super().__init__({"0": Block(), "1": Block()})

    def forward(self, x):
        for layer in self.values():
            x = layer(x)
        return x


def test_a_dict_of_modules_stays_one():
    """What other statements reach by key is there in a second run."""
    session = Session(nn.Sequential(Table(), nn.Linear(4, 2)).eval(), (torch.randn(2, 4),), {},
                      namespace={})  # fmt: skip
    session.do("connect", {"source": "0.0", "into": "0.1.linear", "how": "add"})
    session.do("insert", {"after": "0.0.linear", "new": "nn.Tanh()"})
    assert session.verify().ok, session.report
    _twice(session)


class OddlyNamed(nn.Sequential):
    """Children whose names are no identifiers, in a class of its own."""

    def __init__(self):
        super().__init__()
        for i in range(3):
            self.add_module(f"block-{i}", Block())


def test_children_with_odd_names_in_a_class_of_their_own():
    """The class that is printed is no container: it has no items by number."""
    model = nn.Sequential(OddlyNamed(), nn.Linear(4, 2)).eval()
    session = Session(model, (torch.randn(2, 4),), {}, namespace={})
    session.do("connect", {"source": "0.block-0", "into": "0.block-2", "how": "add"})
    assert session.verify().ok, session.code


def test_a_tap_after_an_edit_that_was_opened_promises_nothing():
    """The value is no longer the original's."""
    session = Session(
        nn.Sequential(Block(), nn.Tanh()).eval(), (torch.randn(2, 4),), {}, namespace={}
    )
    session.do("connect", {"source": {"call": "input"}, "into": {"call": "0.relu"}, "how": "add"})
    session.do("tap", {"nodes": {"0.relu": "h"}})
    assert session.report.ok, session.report
