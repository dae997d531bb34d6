"""The form of a step that is there: filled in, it gives the same step; changed, another."""

import pytest
import torch
from torch import nn

from nbsurgery.errors import StepError, SurgeryError
from nbsurgery.session import Session


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.act = nn.ReLU()
        self.body = nn.Conv2d(4, 4, 3, padding=1)
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = self.act(self.norm(self.stem(x)))
        return self.fc((self.act(self.body(x)) + x).mean((2, 3)))


@pytest.fixture
def session():
    return Session(Net().eval(), (torch.randn(2, 3, 8, 8),))


STEPS = [
    ("replace", {"where": "fc", "new": "nn.Linear(old.in_features, 2)"}),
    ("replace", {"where": nn.ReLU, "new": "nn.GELU()"}),
    ("replace", {"where": {"call": "act_1"}, "new": "nn.GELU()"}),
    ("replace", {"where": "norm", "new": "nn.BatchNorm2d(4)", "weights": "keep"}),
    ("remove", {"where": ["norm", "body"]}),
    ("insert", {"new": "nn.Dropout(0.5)", "before": "fc"}),
    ("cut", {"after": "body"}),
    ("tap", {"nodes": {"norm": "n", "body": "b"}, "output": "out"}),
    ("tap", {"nodes": ["norm"]}),
    ("split", {"after": "body"}),
    ("connect", {"source": "stem", "into": "act_1", "how": "add"}),
    ("set", {"where": "body", "padding_mode": "reflect"}),
    ("channels", {"where": "stem", "inputs": 4, "weights": "zero"}),
    ("freeze", {"until": "body", "batchnorm": "train"}),
    ("reset_parameters", {"where": "fc"}),
]


@pytest.mark.parametrize(("operation", "arguments"), STEPS, ids=lambda v: v if v is str else None)
def test_the_form_as_it_opens_is_the_step(session, operation, arguments):
    """Sent back as it is, every field of it changes nothing."""
    uid = session.do(operation, arguments).uid
    form, code = session.form(uid).to_dict(), session.code
    assert form["operation"] == operation
    values = {f["name"]: f["default"] if f["default"] != "" else None for f in form["fields"]}
    session.change(uid, {**form["arguments"], **values})
    assert session.code == code
    given = {k for k, v in arguments.items() if k != "nodes" and isinstance(v, (str, int))}
    assert given <= set(values)


def test_the_form_knows_the_model_before_its_step(session):
    """What a step took away can still be named in it."""
    uid = session.do("remove", {"where": "norm"}).uid
    session.do("replace", {"where": "fc", "new": "nn.Linear(4, 2)"})
    (field,) = session.form(uid).fields
    assert (field.name, field.type, field.default) == ("where", "node", "norm")
    assert session.preview("remove", {"where": "norm"}, uid)["places"] == ["norm"]
    session.change(uid, {"where": "body"})
    assert "body" in session.code and "norm" not in session.code


def test_a_step_that_no_longer_applies_can_be_mended(session):
    """Its arguments are fields by their kind, since nothing is offered there."""
    first = session.do("cut", {"after": "body"}).uid
    second = session.do("replace", {"where": "body", "new": "nn.Conv2d(4, 4, 1)"}).uid
    session.change(first, {"after": "norm"})
    assert [s["state"] for s in session.steps] == ["ok", "failed"]
    assert {f.name: f.type for f in session.form(second).fields} == {"where": "node", "new": "code"}
    session.change(second, {"where": "stem", "new": "nn.Conv2d(3, 4, 1)"})
    assert [s["state"] for s in session.steps] == ["ok", "ok"]


def test_a_change_that_is_refused_changes_nothing(session):
    """All or nothing, as for a new step."""
    uid = session.do("replace", {"where": "fc", "new": "nn.Linear(4, 2)"}).uid
    code = session.code
    for arguments in ({"new": "nn.Linear("}, {"where": "nowhere"}, {"new": None}):
        with pytest.raises(SurgeryError):
            session.change(uid, arguments)
    with pytest.raises(StepError, match="takes no 'nwe'"):
        session.change(uid, {"nwe": "nn.Identity()"})
    assert session.code == code and not session.can_redo


def test_none_takes_an_argument_away(session):
    """As an empty field of the form does."""
    uid = session.do("tap", {"nodes": {"norm": "n"}, "output": "out"}).uid
    session.change(uid, {"output": None})
    assert "output" not in session.recipe[0].arguments
    session.undo()
    assert session.recipe[0].arguments["output"] == "out"
