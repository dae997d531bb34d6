"""One step at many places: the code says it once, as one would type it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nbsurgery.emit.statements import Style
from nbsurgery.session import Session
from tests.operations.test_insert import Residual


class Stage(nn.Module):
    """Some blocks in a container."""

    def __init__(self, depth: int):
        super().__init__()
        self.blocks = nn.Sequential(*(Residual() for _ in range(depth)))

    def forward(self, x):
        return self.blocks(x)


class Staged(nn.Module):
    """Stages of several depths, and a chain of layers."""

    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(Stage(2), Stage(1), Stage(3))
        self.head = nn.Sequential(
            nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Conv2d(4, 6, 1), nn.ReLU(), nn.Conv2d(6, 2, 1)
        )

    def forward(self, x):
        return self.head(self.stages(x))


@pytest.fixture
def session() -> Session:
    torch.manual_seed(0)
    return Session(Staged().eval(), (torch.randn(2, 4, 6, 6),), namespace={})


def holds(session: Session) -> list[str]:
    """The keys after the code, which says no place twice, is right, and stands a second run."""
    report = session.verify()
    assert report.ok, report
    warnings = [f.text for f in report.findings if f.severity == "warning"]
    assert not [text for text in warnings if "torch.jit.script" not in text], report
    scope = {"model": session.build()}
    before = {k: v.data_ptr() for k, v in scope["model"].state_dict().items()}
    exec(session.code, scope)
    again = {k: v.data_ptr() for k, v in scope["model"].state_dict().items()}
    assert before.keys() == again.keys()
    old = session.original.state_dict()
    assert old.keys() <= again.keys()
    return [n for n, _ in scope["model"].named_modules()]


def test_one_loop_over_stages_rebuilds_each_container_once(session):
    session.do("insert", {"new": "nn.Dropout2d(0.1)", "after": "stages.*.blocks.*"})
    assert "for stage in model.stages:\n    layers = nn.Sequential()\n" in session.code
    assert session.code.count("nn.Sequential()") == 1
    assert "stages.2.blocks.dropout_2" in holds(session)


def test_a_part_of_the_stages_is_a_slice(session):
    session.do(
        "insert", {"new": "nn.Dropout2d(0.1)", "after": ["stages.1.blocks.0", "stages.2.blocks.2"]}
    )
    assert "for stage in model.stages[1:]:\n    stage.blocks.add_module(" in session.code
    holds(session)


def test_layers_of_one_class_are_found_by_it_and_old_is_the_layer(session):
    session.do(
        "insert",
        {"new": "nn.BatchNorm2d(old.out_channels)", "after": ["head.0", "head.2", "head.4"]},
    )
    assert "if isinstance(layer, nn.Conv2d):\n" in session.code
    assert "nn.BatchNorm2d(layer.out_channels)" in session.code
    assert "head.norm_4" in holds(session)


def test_some_places_are_listed(session):
    session.do(
        "insert", {"new": "nn.Dropout2d(0.1)", "before": ["stages.2.blocks.0", "stages.2.blocks.2"]}
    )
    assert 'if name in ("0", "2"):\n' in session.code
    holds(session)


def test_two_steps_rebuild_a_container_once(session):
    session.do("insert", {"new": "nn.BatchNorm2d(4)", "after": "head.0"})
    session.do("insert", {"new": "nn.Dropout2d(0.1)", "after": ["head.1", "head.0"]})
    assert session.code.count("nn.Sequential()") == 1
    names = holds(session)
    assert [n for n in names if n.startswith("head.")][:4] == [
        "head.0", "head.dropout_0", "head.norm", "head.1",
    ]  # fmt: skip


def test_new_children_are_made_again_behind_a_freeze(session):
    session.do("freeze", {"where": "head"})
    session.do("insert", {"new": "nn.BatchNorm2d(old.out_channels)", "after": ["head.0", "head.2"]})
    holds(session)
    scope = {"model": session.build()}
    exec(session.code, scope)
    trainable = {n for n, p in scope["model"].head.named_parameters() if p.requires_grad}
    assert trainable == {"norm_0.weight", "norm_0.bias", "norm_2.weight", "norm_2.bias"}


def test_one_place_at_the_end_needs_no_rebuild(session):
    session.do("insert", {"new": "nn.Softmax(1)", "after": "head.4"})
    assert session.code.endswith('\nmodel.head.add_module("softmax", nn.Softmax(1))\n')
    holds(session)


def test_a_tap_behind_new_children_reads_by_number(session):
    session.do("insert", {"new": "nn.Dropout2d(0.1)", "after": "stages.2.blocks.*"})
    session.do("tap", {"nodes": {"stages.2.blocks.1.conv": "c"}})
    assert "getattr" not in session.code
    assert "self.stages[2].blocks[2].conv(x)" in session.code
    assert session.report.ok, session.report


def test_quantization_stubs_are_named_alike(session):
    session.do("insert", {"new": "torch.ao.quantization.QuantStub()", "before": "stages"})
    session.do("insert", {"new": "torch.ao.quantization.DeQuantStub()", "after": "head"})
    assert "self.quant_stub(x)" in session.code and "self.dequant_stub(" in session.code


class Looped(nn.Module):
    """Layers that a loop in forward calls, with a function between them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            x = torch.sigmoid(x)
        return self.head(x)


@pytest.fixture
def looped() -> Session:
    torch.manual_seed(0)
    return Session(Looped().eval(), (torch.randn(2, 8),), {}, namespace={})


EVERY_TURN = [
    ("insert", {"new": "nn.Dropout(0.1)", "after": "layers.*"}, "x = self.dropout(x)"),
    ("insert", {"new": "torch.tanh", "after": "layers.*"}, "x = torch.tanh(x)"),
    ("insert", {"new": "nn.LayerNorm(8)", "after": "layers.*"}, "x = norm(x)"),
    ("insert", {"new": "nn.LayerNorm(old.in_features)", "before": "layers.*"},
     "x = layer(norm(x))"),
    ("replace", {"new": "nn.Tanh()", "where": "sigmoid*"}, "x = self.tanh(x)"),
    ("replace", {"new": "torch.tanh", "where": "sigmoid*"}, "x = torch.tanh(x)"),
    ("remove", {"where": "sigmoid*"}, "x = layer(x)"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "arguments", "line"), EVERY_TURN)
@pytest.mark.parametrize("classes", ["subclass", "new"])
def test_what_every_turn_of_a_loop_gets_is_one_line_in_it(
    looped, classes, operation, arguments, line
):
    looped.style = Style(classes=classes)
    looped.do(operation, arguments)
    lines = [text.strip() for text in looped.code.split("\n")]
    loops = [text for text in lines if text.startswith("for ") and text.endswith(":")]
    assert len(loops) == 1 and not any(text.startswith("if ") for text in lines), looped.code
    if classes == "subclass":
        assert line in lines, looped.code
    elif "norms" in line:
        assert loops[0].startswith("for layer, norm in zip(self.layers, self.norms") or (
            loops[0].startswith("for norm, layer in zip(self.norms, self.layers")
        )
    holds(looped)


@pytest.mark.parametrize("new", ["nn.Dropout(0.1)", "nn.LayerNorm(8)", "torch.tanh"])
def test_some_turns_of_a_loop_are_listed(looped, new):
    looped.style = Style(classes="subclass")
    looped.do("insert", {"new": new, "after": ["layers.1", "layers.3"]})
    assert "for i, layer in enumerate(self.layers):" in looped.code
    assert looped.code.count("if i in (1, 3):\n") == 1
    holds(looped)


LATER = [
    ("remove", {"where": "norms.1"}),
    ("replace", {"where": "norms.1", "new": "nn.Linear(8, 8)"}),
    ("freeze", {"where": "norms.1"}),
    ("tap", {"nodes": ["norms.1", "layers.2"]}),
    ("cut", {"after": "norms.2"}),
    ("split", {"after": "layers.1"}),
    ("start", {"at": "layers.2"}),
    ("connect", {"source": "norms.0", "into": "norms.2"}),
]


@pytest.mark.parametrize("later", LATER, ids=lambda s: s[0])
def test_items_of_a_new_list_are_edited_like_others(looped, later):
    looped.do("insert", {"new": "nn.LayerNorm(8)", "after": "layers.*"})
    looped.do(*later)
    report = looped.verify()
    assert report.ok, f"{looped.code}\n{report}"
    parts = looped.build()
    if later[0] == "split":
        keys = [set(part.state_dict()) for part in parts]
        assert not keys[0] & keys[1]
        assert {k for k in keys[0] | keys[1] if k.startswith("norms.")} == {
            f"norms.{i}.{w}" for i in range(4) for w in ("weight", "bias")
        }


def test_a_layer_that_serves_every_turn_goes_as_one_or_for_one_turn(looped):
    looped.do("insert", {"new": "nn.Dropout(0.1)", "after": "layers.*"})
    looped.do("remove", {"where": {"call": "dropout_1"}})
    assert looped.report.ok, looped.report
    looped.undo()
    looped.do("remove", {"where": "dropout"})
    assert looped.code == "# no step: the model stays as it is\n"


def test_what_is_done_to_all_blocks_is_a_loop_in_a_loop(session):
    session.do("freeze", {"where": "stages.*.blocks.*.conv"})
    session.do("checkpoint", {"where": "stages.*.blocks.*"})
    loops = "for stage in model.stages:\n    for block in stage.blocks:\n        block."
    assert f"{loops}conv.requires_grad_(False)\n" in session.code
    assert f"{loops}__class__ = CheckpointedResidual\n" in session.code
    holds(session)


def test_a_loop_does_not_meet_what_a_class_adds_to_a_container(session):
    """In a second run the new layer is a child as well."""
    session.do("freeze", {"where": ["head.0", "head.1", "head.2", "head.3", "head.4"]})
    session.do("insert", {"new": "nn.BatchNorm2d(2)", "after": "head.4"})
    session.do("insert", {"new": "torch.relu", "after": "head.2"})
    scope = {"model": session.build()}
    exec(session.code, scope)
    assert scope["model"].head.norm.weight.requires_grad


def bottlenecks() -> Session:
    """Blocks that widen inside, in a list."""
    torch.manual_seed(0)

    class Bottleneck(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.norm, self.down = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 4)

        def forward(self, x):
            return x + self.down(self.norm(self.up(x)).relu())

    model = nn.Sequential(*(Bottleneck() for _ in range(3)))
    return Session(nn.Sequential(model, nn.Linear(4, 2)).eval(), (torch.randn(2, 4),), namespace={})


def test_widths_that_change_alike_are_a_loop_over_the_blocks():
    session = bottlenecks()
    session.do("channels", {"where": "0.*.up", "outputs": 12, "follow": True})
    assert session.code.count("for block in model[0]:\n") == 3
    assert "    block.down = new\n" in session.code
    assert session.report.ok, session.report
    session.do("channels", {"where": "0.1.up", "outputs": 16, "follow": True})
    assert (
        "# 0.0.up and 0.2.up: 4" not in session.code
        and "# 0.0.up and 0.2.up: 8 → 12" in session.code
    )
    assert session.report.ok, session.report


def test_growing_some_and_shrinking_others_claims_no_equal_output():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4), nn.Linear(4, 12), nn.Linear(12, 2))
    session = Session(model.eval(), (torch.randn(2, 4),), namespace={})
    session.do("channels", {"where": ["0", "2"], "outputs": 10, "follow": True})
    assert session.report.ok, session.report


class Skipping(nn.Module):
    """A block whose run depends on what it has."""

    def __init__(self, skip: bool):
        super().__init__()
        self.conv, self.skip = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1) if skip else None

    def forward(self, x):
        y = self.conv(x)
        if self.skip is not None:
            x = self.skip(x)
        return (x + y).relu()


def test_blocks_of_one_class_get_one_class_whatever_they_have():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(*(Skipping(i == 1) for i in range(3))), nn.Conv2d(4, 2, 1))
    session = Session(model.eval(), (torch.randn(2, 4, 5, 5),), namespace={})
    session.do("insert", {"new": "nn.Dropout2d(0.1)", "after": "0.*.conv"})
    assert session.code.count("class ") == 1
    assert "for block in model[0]:\n" in session.code.replace("for layer in", "for block in")
    holds(session)


def test_printed_blocks_of_a_list_are_put_in_by_a_loop():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(*(Residual() for _ in range(3))), nn.Conv2d(4, 2, 1))
    session = Session(model.eval(), (torch.randn(2, 4, 5, 5),), namespace={})
    session.do("insert", {"new": "nn.BatchNorm2d(4)", "after": "0.*.conv"})
    loop = "for i, layer in enumerate(model[0]):\n    model[0][i] = ResidualNorm(layer)\n"
    assert session.code.endswith(loop), session.code
    holds(session)


def test_a_step_behind_another_is_not_torn(session):
    """What stands behind new layers needs them to be there: all of that step comes then."""
    session.do("insert", {"new": "nn.Dropout2d(0.1)", "after": "head.*"})
    session.do("insert", {"new": "nn.Identity()", "after": "head.*"})
    assert session.code.count("nn.Sequential()") == 2
    assert 'if not name.startswith("identity_"):\n' in session.code
    holds(session)


def test_parts_of_a_container_with_new_layers_are_slices(session):
    session.do("insert", {"new": "nn.Dropout2d(0.1)", "after": "head.*"})
    session.do("split", {"after": "head.2"})
    assert "model.head[:5]" in session.code and "model.head[5:]" in session.code
    assert session.verify().ok
