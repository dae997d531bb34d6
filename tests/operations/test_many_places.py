"""One step at many places: the code says it once, as one would type it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nbsurgery.session import Session


class Residual(nn.Module):
    """A block with weights."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return x + self.conv(x).relu()


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
    assert not [f for f in report.findings if f.severity == "warning"], report
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
