"""What a call is told that cannot be meant as it stands, and what follows where it can."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from nbsurgery.errors import SelectionError, ShapeError, StepError
from nbsurgery.session import Session
from nbsurgery.widget.surgery import Surgery


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.ReLU())
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.body(x))


def small(**namespace) -> Session:
    return Session(Small().eval(), (torch.randn(2, 4),), namespace=namespace)


def test_a_module_of_the_notebook_keeps_its_weights():
    """Given as it is or by its name, the text names the variable; the object itself stays as it was."""
    mine = nn.Sequential(nn.Linear(6, 5), nn.Dropout(0.5))
    before = {k: v.clone() for k, v in mine.state_dict().items()}
    for new in (mine, "mine"):
        session = small(mine=mine, _7=mine)
        session.do("replace", {"where": "head", "new": new})
        assert "model.head = mine" in session.code and "new weights" not in session.code
        made = session.build().head
        assert made is not mine and torch.equal(made[0].weight, mine[0].weight)
        assert session.verify().ok and mine.training and not made.training
    session = small(mine=mine)
    session.do("replace", {"where": "head", "new": "mine.eval().requires_grad_(False)"})
    assert mine.training and all(p.requires_grad for p in mine.parameters())
    assert all(torch.equal(v, before[k]) for k, v in mine.state_dict().items())


def test_one_module_at_two_places_is_told():
    """A variable stands for one object, wherever it goes."""
    mine = nn.Linear(4, 4)
    session = Session(Rows().eval(), (torch.randn(2, 4),), namespace={"mine": mine})
    session.do("replace", {"where": ["blocks.0.0", "blocks.1.0"], "new": mine})
    said = [f.text for f in session.report.findings if "one set of weights" in f.text]
    assert said == ["one new module, with one set of weights, stands at blocks.0.0 and blocks.1.0"]
    session.do("tap", {"nodes": ["blocks.2"], "head": "mine"})
    assert "the weights of mine" in session.code and "new weights" not in session.code


def test_a_module_without_a_name_is_refused_and_told_both_ways():
    session = small()
    with pytest.raises(StepError, match=r"'nn.Linear\(...\)'.*new='head'"):
        session.do("replace", {"where": "head", "new": nn.Linear(6, 5)})
    with pytest.raises(StepError, match="no variable of the notebook"):
        session.do("tap", {"nodes": ["body"], "head": nn.Linear(6, 5)})
    session.do("replace", {"where": "body.1", "new": nn.SiLU()})  # nothing to lose
    assert "model.body[1] = nn.SiLU()" in session.code and not session.code.count("Linear")


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x) * 2
        return self.head(x)


AFTER_REMOVAL = [
    ("checkpoint", {}), ("freeze", {}), ("reset_parameters", {}), ("insert", {"new": "nn.Dropout(0.1)"}),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "more"), AFTER_REMOVAL)
def test_a_pattern_leaves_out_what_an_earlier_step_removed(operation, more):
    where = "after" if operation == "insert" else "where"
    session = Session(Rows().eval(), (torch.randn(2, 4),), namespace={})
    session.do("remove", {"where": "blocks.1"})
    session.do(operation, {where: "blocks.*", **more})
    assert session.report.ok and session.steps[1]["detail"] == "2 places", session.code
    if operation == "checkpoint":
        with pytest.raises(StepError, match="'blocks.1' was put there by an earlier step"):
            session.do(operation, {where: "blocks.1"})
    session = Session(Rows().eval(), (torch.randn(2, 4),), namespace={})
    session.do("remove", {"where": "blocks.*"})
    with pytest.raises(SelectionError, match="an earlier step took it away"):
        session.do(operation, {where: ["head", "blocks.?"], **more})


class Patches(nn.Module):
    """Compares what it is given with a number that it keeps beside its layer."""

    def __init__(self):
        super().__init__()
        self.num_inputs, self.kernel = 3, 3
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        _, channels, height, _ = x.shape
        if channels != self.num_inputs:
            raise ValueError(f"{channels} channels, and {self.num_inputs} are wanted")
        assert height != self.kernel and self.num_inputs != 5
        return self.conv(nn.functional.pad(x.to(self.conv.weight.dtype), (1, 1, 1, 1)))


def test_a_number_that_a_forward_demands_follows_the_channels():
    model = nn.Sequential(Patches(), nn.ReLU()).eval()
    session = Session(model, (torch.randn(2, 3, 8, 8),), namespace={})
    session.do("channels", {"where": "0.conv", "inputs": 1, "weights": "sum"})
    assert "model[0].num_inputs = 1" in session.code and "kernel = 1" not in session.code
    assert session.build()[0].num_inputs == 1 and model[0].num_inputs == 3
    report = session.verify()
    assert report.ok and [f for f in report.findings if "wired as planned" in f.text], report
    session.do("tap", {"nodes": ["0"]})
    assert session.report.ok and session.build()(torch.randn(2, 1, 8, 8))["0"].shape[1] == 4
    session.undo()
    session.do("replace", {"where": "0.conv", "new": "nn.Conv2d(3, 4, 5)"})
    assert "num_inputs" not in session.code


@pytest.mark.parametrize("name", ["ViT", "Dinov2", "ConvNext", "CLIPVision"])
def test_a_library_counts_the_channels_that_enter(name):
    tf = pytest.importorskip("transformers")
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 16}
    small |= {"patch_size": 8, "intermediate_size": 8}
    if name == "ConvNext":
        small = {"hidden_sizes": [4, 4, 4, 4], "depths": [1, 1, 1, 1]}
    model = getattr(tf, f"{name}Model")(getattr(tf, f"{name}Config")(**small)).eval()
    conv = next(n for n, m in model.named_modules() if isinstance(m, nn.Conv2d))
    size = 32 if name == "ConvNext" else 16
    session = Session(model, (), {"pixel_values": torch.randn(1, 3, size, size)}, namespace={})
    session.do("channels", {"where": conv, "inputs": 1, "weights": "sum"})
    edited = session.build()
    assert edited.config.num_channels == 1 and model.config.num_channels == 3, session.code
    assert edited(torch.randn(1, 1, size, size)) is not None
    assert session.report.ok


def test_a_tap_with_key_and_node_swapped_is_told_the_order():
    session = small()
    with pytest.raises(SelectionError, match=r"\{node: key\}, such as \{'body.0': 'c2'\}"):
        session.do("tap", {"nodes": {"c2": "body.0"}})
    session.do("tap", {"nodes": {"body": "head"}})  # a key may be a name, too


def test_what_a_recipe_could_not_do_is_counted_as_steps_are(tmp_path):
    session = small()
    session.do("replace", {"where": "body.1", "new": "nn.SiLU()"})
    session.save(tmp_path / "steps.json")
    other = Session(Rows().eval(), (torch.randn(2, 4),), namespace={})
    assert other.load(tmp_path / "steps.json")[0].startswith("step 0, ")


class Picks(nn.Module):
    """Gives nothing on most examples, as a detector without weights does."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.ReLU())

    def forward(self, x):
        scores = self.body(x)
        return {"picked": scores[scores > 1e6]}


def test_an_empty_output_proves_nothing():
    """What it is made of is compared; a wrong wiring would show there."""
    session = Session(Picks().eval(), (torch.randn(2, 4),), namespace={})
    session.do("replace", {"where": "body.1", "new": "nn.SiLU()"})
    (told,) = [f for f in session.report.findings if f.severity == "warning"]
    assert "holds no numbers on this example, {'picked': (0,)}: nothing was compared" in told.text
    wired = [f.text for f in session.report.findings if "wired as planned" in f.text]
    assert wired == [
        "the code is wired as planned: both give the same numbers at body.1 and gt, bit for bit"
    ]
    assert not [f for f in session.report.findings if "equals the original's" in f.text]
    session.do("insert", {"new": "nn.Identity()", "after": "body"})
    session.example = torch.full((2, 4), 1e9)
    assert not [f for f in session.report.findings if "no numbers" in f.text]


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.left, self.right = nn.Conv2d(4, 4, 3, 2, 1), nn.Conv2d(4, 4, 1, 2)
        self.norm, self.head = nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        x = self.stem(x)
        return self.head((self.norm(self.left(x)) + self.right(x)).mean((2, 3)))


MISFITS = [
    ("replace", {"where": "stem", "new": "nn.Conv2d(1, 4, 3, padding=1)"}, "channels('stem', inputs=1)"),
    ("replace", {"where": "left", "new": "nn.Conv2d(4, 8, 3, 2, 1)"},
     "channels('left', outputs=8, follow=True)"),
    ("replace", {"where": "head", "new": "nn.Linear(5, 2)"}, "new='nn.Linear(old.in_features, 2)')"),
    ("set", {"where": "left", "stride": 1}, "set(['left', 'right'], stride=1) does both in one step"),
    ("set", {"where": "right", "stride": 1}, "set(['right', 'left'], stride=1) does both in one step"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "arguments", "told"), MISFITS)
def test_shapes_that_do_not_meet_are_told_what_would(operation, arguments, told):
    """What is named has been tried: done as it is said, it works."""
    session = Session(Branches().eval(), (torch.randn(2, 3, 8, 8),), namespace={})
    with pytest.raises(ShapeError, match=re.escape(told)) as refused:
        session.do(operation, arguments)
    assert not session.recipe
    surgery = Surgery._over(session)
    said = str(refused.value).partition("; surgery.")[2].partition(") ")[0]
    eval(f"surgery.{said})", {"surgery": surgery})
    assert len(session.recipe) == 1 and session.report.ok


def test_edits_that_only_fit_together_are_one_change():
    session = small()
    insert = ("insert", {"new": "nn.Linear(6, 5)", "before": "head"})
    with pytest.raises(ShapeError, match="make both in `with surgery.together"):
        session.do(*insert)
    surgery = Surgery._over(session)
    with surgery.together():
        surgery.insert("nn.Linear(6, 5)", before="head")
        surgery.replace("head", "nn.Linear(5, 2)")
    assert len(surgery.steps) == 2 and session.verify().ok, session.report
    assert session.build()(torch.randn(2, 4)).shape == (2, 2) and surgery.code == session.code
    surgery.undo()
    assert not session.recipe
    with pytest.raises(ShapeError), session.together():
        session.do(*insert)
    with pytest.raises(SelectionError), session.together():
        session.do(*insert)
        session.do("remove", {"where": "nobody"})
    with pytest.raises(StepError, match="cannot hold"), session.together(), session.together():
        pass
    assert not session.recipe and not session.edited
    session.do("replace", {"where": "body.1", "new": "nn.SiLU()"})
    assert len(session.recipe) == 1


def test_an_example_that_the_model_did_not_take_before_the_steps_is_refused():
    """What an edit changed of it is done again; the old one stays."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()).eval()
    session = Session(model, (torch.randn(2, 3, 8, 8),), {}, namespace={}, show_failure=True)
    session.do("channels", {"where": "0", "inputs": 1})
    with pytest.raises(StepError, match="as the model took it before the steps"):
        session.example = torch.randn(2, 1, 8, 8)
    session.example = torch.randn(4, 3, 8, 8)
    assert session.adapted[0][0].shape == (4, 1, 8, 8) and session.failure is None
