"""insert: beside edits that speak of the same container, before and after it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nbsurgery as nbs
from nbsurgery.session import Session


class Residual(nn.Module):
    """A block that an edit inside gives a class of its own."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return x + self.conv(x).relu()


def chain() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 1), nn.ReLU(), Residual(), nn.Conv2d(4, 4, 1), Residual(), nn.ReLU()
    ).eval()


@pytest.fixture
def session() -> Session:
    return Session(chain(), (torch.randn(2, 3, 6, 6),), namespace={})


LATER = [
    ("replace", {"where": "3", "new": "nn.Conv2d(4,4,3,padding=1)"}),
    ("insert", {"after": "4.conv", "new": "nn.BatchNorm2d(4)"}),
    ("insert", {"before": "4", "new": "nn.BatchNorm2d(4)"}),
    ("cut", {"after": "4"}),
    ("tap", {"nodes": {"2": "a", "4": "b"}}),
]


@pytest.mark.parametrize("later", LATER, ids=lambda s: s[0])
@pytest.mark.parametrize("first", [True, False])
def test_numbers_behind_a_new_child_still_mean_the_same_layers(session, later, first):
    new = ("insert", {"after": "1", "new": "nn.Conv2d(4, 4, 1)"})
    for step in (new, later) if first else (later, new):
        session.do(*step)
    assert session.report.ok, session.code
    built = session.build()
    old = session.original
    for name in ("0", "2", "3") if later[0] != "replace" else ("0", "2", "4"):
        mine, theirs = built.get_submodule(name), old.get_submodule(name)
        assert [p.data_ptr() for p in mine.parameters()] == [
            p.data_ptr() for p in theirs.parameters()
        ]
    run = []
    names = [n for n in ("0", "conv", "2", "3") if n in dict(built.named_children())]
    for name in names:
        built.get_submodule(name).register_forward_hook(lambda *_, n=name: run.append(n))
    built(torch.randn(2, 3, 6, 6))
    assert run == names


def test_what_a_cut_takes_away_leaves_no_code(session):
    session.do("insert", {"after": "3", "new": "nn.Conv2d(4, 4, 1)"})
    session.do("cut", {"after": "2"})
    assert "named_children" not in session.code


def test_a_chain_is_cut_as_one_would_type_it(session):
    session.do("cut", {"after": "2"})
    assert session.code.endswith("\nmodel = model[:3]\n")


def test_given_text_is_written_as_a_formatter_leaves_it(session):
    session.do(
        "replace", {"where": "5", "new": "nn.Sequential(nn.PReLU(4,init = .1),\n nn.ReLU()) # x"}
    )
    assert "model[5] = nn.Sequential(nn.PReLU(4, init=.1), nn.ReLU())\n" in session.code


class Forked(nn.Module):
    """One value with two readers, one of them in a module of its own."""

    def __init__(self):
        super().__init__()
        self.stem, self.block, self.out = nn.Conv2d(3, 4, 1), Residual(), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        x = self.stem(x)
        return self.out(self.block(x) + x)


class Double(nn.Module):
    """Twice what it reads."""

    def forward(self, x):
        return 2 * x


@pytest.fixture
def forked() -> Session:
    torch.manual_seed(0)
    names = {"Double": Double}
    return Session(Forked().eval(), (torch.randn(2, 3, 6, 6),), namespace=names)


@pytest.mark.parametrize("second", ["block.add", "block.conv", "add", "block"])
def test_on_one_edge_other_readers_stay(forked, second):
    """Doubling one edge gives what doubling that reader's own argument gives, across borders too."""
    forked.do("insert", {"new": "Double()", "after": "stem", "before": second})
    model, edited = forked.original, forked.build()
    x = torch.randn(2, 3, 6, 6)
    y = model.stem(x)
    conv = model.block.conv
    twice = {name: 2 * y if name == second else y for name in ("block.add", "block.conv", "add")}
    if second == "block":
        twice["block.add"] = twice["block.conv"] = 2 * y
    inner = twice["block.add"] + conv(twice["block.conv"]).relu()
    assert torch.equal(edited(x), model.out(inner + twice["add"]))
    assert forked.report.ok, str(forked.report)


def test_an_edge_that_is_not_there_is_refused(forked):
    with pytest.raises(
        nbs.StepError, match=r"'out' does not read what 'stem' makes; it reads 'add'"
    ):
        forked.do("insert", {"new": "nn.ReLU()", "after": "stem", "before": "out"})


def test_two_neighbours_offer_their_edge(forked):
    labels = [o["label"] for o in forked.offers(["stem", "add"])]
    assert "Insert between these two" in labels
    assert "Insert between these two" not in [o["label"] for o in forked.offers(["stem", "out"])]


class Repeated(nn.Module):
    """A module that is called three times."""

    def __init__(self):
        super().__init__()
        self.conv, self.up = nn.Conv2d(4, 4, 1), nn.Upsample(scale_factor=2)

    def forward(self, x):
        return self.up(self.conv(self.up(self.conv(self.up(x)))))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("up", "each of the three calls of `up`"),
        ([{"call": "up"}, {"call": "up_2"}], "each of two calls of `up`"),
        ([{"call": "up"}, {"call": "conv_1"}], "the first call of `up` and the last call of `conv`"),
    ],
)  # fmt: skip
def test_several_places_of_one_class_are_told_in_one_sentence(where, said):
    session = Session(Repeated().eval(), (torch.randn(2, 4, 4, 4),), namespace={})
    session.do("insert", {"after": where, "new": "nn.Conv2d(4, 4, 1)"})
    code = " ".join(session.code.replace("\n# ", " ").split())
    assert f'"""Repeated with a Conv2d after {said}."""' in code
    assert f" the model: nn.Conv2d(4, 4, 1) after {said}, new weights each model = " in code
    session.do("insert", {"after": {"call": "conv"}, "new": "nn.ReLU()"})
    code = " ".join(session.code.replace("\n# ", " ").split())
    assert "new weights each; nn.ReLU() after the first call of `conv` model = " in code


@pytest.mark.parametrize("training", [True, False])
def test_a_new_layer_takes_the_mode_of_its_model(training):
    """In a container, in the place of a layer, and beside one: a dropout works as the model's do."""
    layers = [nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Identity()]
    session = Session(nn.Sequential(*layers).train(training), (torch.randn(3, 4),), namespace={})
    session.do("insert", {"after": "0", "new": "nn.Dropout(0.5)"})
    session.do("replace", {"where": "3", "new": "nn.Dropout(0.5)"})
    session.do("insert", {"before": "1", "new": "nn.BatchNorm1d(4)"})
    made = [m for m in session.build().modules() if isinstance(m, (nn.Dropout, nn.BatchNorm1d))]
    assert len(made) == 3 and all(m.training is training for m in made), session.code
