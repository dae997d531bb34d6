"""Edits inside a module that is called several times: one class for all its calls, or a refusal that names them."""

from __future__ import annotations

import pytest
import torch
import torchvision

from nbsurgery.errors import EmissionError, StepError
from nbsurgery.session import Session
from tests.session.zoo import Siamese


@pytest.fixture
def session():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8)
    return Session(Siamese().eval(), (x, x.flip(0) + 1), {}, namespace={})


def calls(graph, target: str) -> int:
    return sum(n.target == target for n in graph.flat)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("insert", {"after": "branch.c1", "new": "nn.BatchNorm2d(8)"}),
        ("insert", {"after": "branch.seq.0", "new": "nn.Tanh()"}),
        ("replace", {"where": "branch.adaptive_avg_pool2d*", "new": "nn.AdaptiveMaxPool2d(1)"}),
        ("replace", {"where": ["branch.act_1", "branch.act_3"], "new": "nn.GELU()"}),
        ("remove", {"where": [{"call": "branch.act"}, {"call": "branch.act_2"}]}),
        ("connect", {"source": "branch.c1", "into": ["branch.act_1", "branch.act_3"]}),
        (
            "insert",
            {
                "after": "branch.c1",
                "before": [{"call": "branch.act"}, {"call": "branch.act_2"}],
                "new": "nn.Tanh()",
            },
        ),
    ],
)
def test_a_place_in_every_call_is_one_edit(session, operation, arguments):
    """The code and the graph that is evaluated without it agree on both calls."""
    session.do(operation, arguments)
    report = session.verify()
    assert report.ok, f"{session.code}\n{report}"
    assert any("serves 2 calls" in f.text for f in report.findings) or operation == "insert"
    assert session.code.count("class ") == session.code.count("(model.branch)\n")
    session.undo()
    assert not session.recipe


def test_a_skip_out_of_every_call_is_refused(session):
    """Only the first call would have it."""
    with pytest.raises(StepError, match="name one call of each"):
        session.do("connect", {"source": "branch.seq.1", "into": "head"})


def test_one_call_alone_is_refused_with_the_names_of_all(session):
    """They can be copied from the message."""
    with pytest.raises(
        EmissionError, match="name all of branch.act_1 and branch.act_3, in one list"
    ):
        session.do("replace", {"where": {"call": "branch.act_1"}, "new": "nn.GELU()"})
    assert session.code.startswith("# no step")


def test_a_click_on_one_call_means_all_of_them(session):
    """The offer says in how many calls."""
    offers = session.offers(["branch.adaptive_avg_pool2d"])
    found = next(o for o in offers if o["operation"] == "replace")
    assert found["note"] == "in 2 calls" and len(found["arguments"]["where"]) == 2


def test_a_call_that_is_opened_leaves_the_class_to_the_other(session):
    """A skip out of the first call writes its operations into the model; the second keeps its edit."""
    session.do("insert", {"after": "branch.c2", "new": "nn.Hardtanh(-0.1, 0.1)"})
    session.do("connect", {"source": {"call": "branch.seq.1"}, "into": "head", "how": "add"})
    assert session.report.ok, session.code
    assert "self.branch(b)" in session.code and "model.branch = Branch" in session.code


def test_a_call_that_goes_leaves_the_class_to_the_other(session):
    """The edit was recorded on the first call."""
    session.do("insert", {"after": "branch.c2", "new": "nn.Hardtanh(-0.1, 0.1)"})
    session.do("tap", {"nodes": {"branch_1": "h"}})
    assert session.report.ok, session.code
    assert calls(session.after, "branch.hardtanh") == 1


def test_no_border_runs_through_one_of_several_calls(session):
    """One class would have to end there in one call and go on in the other."""
    with pytest.raises(EmissionError, match="'branch' is called 2 times and cannot end or begin"):
        session.do("split", {"after": {"call": "branch.c1"}})


def test_a_loop_over_what_is_given_is_edited_in_its_own_text():
    """The head of RetinaNet runs once for each level; printed text would hold for five only."""
    torch.manual_seed(0)
    head = torchvision.models.detection.retinanet.RetinaNetClassificationHead(8, 2, 3).eval()
    levels = [torch.randn(1, 8, n, n) for n in (8, 4, 2)]
    session = Session(head, (levels,), {}, namespace={})
    session.do("insert", {"before": "cls_logits", "new": "nn.Hardtanh(-0.01, 0.01)"})
    assert session.report.ok, session.code
    expected = copy_with(head, levels[:2])
    with torch.no_grad():
        assert torch.equal(session.build()(levels[:2]), expected)


def copy_with(head, levels):
    """What the head gives with the new layer before its last convolution, whatever the levels."""
    last = head.cls_logits
    handle = last.register_forward_pre_hook(lambda _, args: (args[0].clamp(-0.01, 0.01),))
    with torch.no_grad():
        made = head(levels)
    handle.remove()
    return made
