"""The session's laws: do, undo, redo, toggle, drop, move, save, load; a refusal changes nothing."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbsurgery as nbs
from nbsurgery.session import Session
from tests.session import zoo
from tests.session.laws import state_of


class Small(nn.Module):
    """A bit of everything that an edit meets."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.depth = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.bn(self.conv(x)))
        x = x + self.depth(x)
        return self.fc(x.mean((2, 3)))


def doubled(x):
    """A function of a notebook."""
    return x * 2


@pytest.fixture(scope="module")
def session() -> Session:
    torch.manual_seed(0)
    space = {"doubled": doubled, "weight_norm": nn.utils.parametrizations.weight_norm}
    return Session(Small().eval(), (torch.randn(2, 3, 8, 8),), namespace=space)


@pytest.fixture(autouse=True)
def clean(session):
    yield
    while session.can_undo:
        session.undo()


REFUSED = [
    ("nope", {}, "no operation 'nope'"),
    (None, {}, "no operation None"),
    ("replace", None, "arguments are a dict"),
    ("replace", {}, "needs 'where'"),
    ("replace", {"where": "fc"}, "needs 'new'"),
    ("replace", {"where": "fd", "new": "nn.ReLU()"}, "nearest: 'fc'"),
    ("replace", {"where": "fc", "new": "nn.ReLU()", "wher": 1}, "takes no 'wher'"),
    ("replace", {"where": "fc", "new": "nn.Linear("}, "not one Python expression"),
    ("replace", {"where": "fc", "new": "(yield)"}, "not one Python expression"),
    ("replace", {"where": "fc", "new": "nn.Liner(3, 4)"}, "nearest: 'Linear'"),
    ("replace", {"where": "fc", "new": "Linear(3, 4)"}, "did you mean nn.Linear"),
    ("replace", {"where": "fc", "new": "exit()"}, "SystemExit"),
    ("replace", {"where": "fc", "new": "3"}, "gives an int"),
    ("replace", {"where": "fc", "new": "old"}, "what stands there already"),
    ("replace", {"where": "fc", "new": "lambda x: x"}, "without a name"),
    ("replace", {"where": "fc", "new": lambda x: x}, "a lambda has no name"),
    ("replace", {"where": "fc", "new": "nn.Linear(9, 5)"}, r"\(2, 8\) meets weight \(5, 9\)"),
    ("replace", {"where": "bn", "new": "nn.Identity()", "call": 9}, "called once"),
    ("replace", {"where": "bn", "new": "nn.Identity()", "call": True}, "called once"),
    ("replace", {"where": {"class": 3}, "new": "nn.Identity()"}, "cannot be found"),
    ("replace", {"where": {"class": "int"}, "new": "nn.Identity()"}, "no module of the class int"),
    ("insert", {"new": "nn.ReLU()", "after": []}, "an empty name or list"),
    ("insert", {"new": "nn.ReLU()", "after": "bn", "before": "bn"}, "does not read"),
    ("cut", {"after": {"call": 3}}, "no call is named 3"),
    ("cut", {"after": ""}, "an empty name or list"),
    ("tap", {"nodes": {}}, "at least one node"),
    ("tap", {"nodes": {"bn": None}}, "None is no key"),
    ("tap", {"nodes": {"bn": "a", "conv": "a"}}, "a key of its own"),
    ("tap", {"nodes": [nn.Conv2d]}, "one for each value"),
    ("tap", {"nodes": {"bn": "a"}, "output": 3}, "output=3 is no key"),
    ("channels", {"where": "conv", "inputs": 0}, "at least 1"),
    ("channels", {"where": "conv", "inputs": "4"}, "at least 1"),
    ("channels", {"where": "conv", "inputs": 4, "weights": "zeroo"}, "no policy"),
    ("set", {"where": "conv", "stride": object()}, "stride is an object"),
    ("set", {"where": "conv", "strid": 2}, "nearest: 'stride'"),
    ("freeze", {"where": "x"}, "'x' is an input"),
]


@pytest.mark.parametrize("operation, arguments, said", REFUSED)
def test_a_refusal_says_why_and_changes_nothing(session, operation, arguments, said):
    session.do("remove", {"where": "depth"})
    before, code, recipe = state_of(session.model), session.code, session.recipe
    with pytest.raises(nbs.SurgeryError, match=said):
        session.do(operation, arguments)
    assert state_of(session.model) == before
    assert (session.code, session.recipe) == (code, recipe)
    session.undo()
    assert not session.steps


def test_numbers_of_other_libraries_are_plain_in_the_recipe(session):
    numpy = pytest.importorskip("numpy")
    session.do("set", {"where": "bn", "eps": numpy.float64(0.5)})
    session.do("channels", {"where": "fc", "outputs": 3})
    assert session.recipe[0].arguments["eps"] == 0.5
    session.do("set", {"where": "bn", "momentum": None})
    assert "momentum = None" in session.code


def test_what_changes_in_place_is_tried_on_a_spare_copy(session):
    before = {k: v.clone() for k, v in session.model.state_dict().items()}
    session.preview("replace", {"where": "fc", "new": "old.requires_grad_(False)"})
    session.preview("replace", {"where": "fc", "new": "nn.Sequential(old.double())"})
    session.preview(
        "replace", {"where": "fc", "new": "nn.init.zeros_(old.weight) is None or nn.Linear(8, 2)"}
    )
    assert all(p.requires_grad and p.dtype == torch.float32 for p in session.model.parameters())
    assert all(p.requires_grad for p in session.original.parameters())
    assert all(torch.equal(v, before[k]) for k, v in session.model.state_dict().items())


def test_a_wrapper_that_is_a_function_stops_a_second_run(session):
    session.do("replace", {"where": "fc", "new": "weight_norm(old)"})
    space = {"model": session.build(), "nn": nn}
    assert type(space["model"].fc).__name__ == "ParametrizedLinear"
    with pytest.raises(RuntimeError, match="fc is changed already"):
        exec(session.code, space)


def test_same_padding_is_a_word_that_convolutions_take(session):
    session.do("set", {"where": "conv", "padding": "same"})
    assert session.build().conv.padding == "same"


def test_a_start_behind_edits_takes_what_they_make_and_moves_nothing():
    torch.manual_seed(0)
    layers = [nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2)]
    model = nn.Sequential(*layers)  # in train mode: a run would move the statistics and the dice
    session = Session(model, (torch.randn(6, 4),), namespace={})
    before, statistics = state_of(model), model[1].running_mean.clone()
    session.do("replace", {"where": ["0", "1"], "new": "nn.Identity()"})
    session.do("start", {"at": "3"})
    assert session.report.ok, session.code
    assert state_of(model) == before
    assert torch.equal(model[1].running_mean, statistics)


def test_neighbours_go_in_one_step(session):
    session.do("remove", {"where": ["relu", "bn"]})
    session.undo()
    session.do("remove", {"where": [{"call": "relu"}, {"call": "add"}]})
    assert session.report.ok
    assert "relu(" not in session.code.partition("def forward")[2]


def test_a_place_inside_another_place_of_the_step_goes_with_it():
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    session = Session(nn.Sequential(inner, nn.Linear(4, 2)), (torch.randn(2, 4),), namespace={})
    session.do("replace", {"where": ["0", "0.1"], "new": "nn.Identity()"})
    assert isinstance(session.build()[0], nn.Identity)


def test_what_cannot_be_drafted_is_not_offered(session):
    assert "split" not in {o["operation"] for o in session.offers(["fc"])}
    assert "split" in {o["operation"] for o in session.offers(["bn"])}
    session.do("split", {"after": "bn"})
    assert "cut" not in {o["operation"] for o in session.offers(["conv"])}


def test_a_layer_made_by_a_step_can_be_made_otherwise(session):
    session.do("insert", {"after": "bn", "new": "nn.Conv2d(8, 8, 1)"})
    session.do("replace", {"where": "conv_2", "new": "nn.Conv2d(old.in_channels, 8, 3, padding=1)"})
    assert session.build().conv_2.kernel_size == (3, 3)


def test_lists_of_parameters_are_reached_by_number():
    class Lists(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList([nn.Parameter(torch.eye(3)) for _ in range(2)])

        def forward(self, x):
            for weight in self.weights:
                x = x @ weight
            return x

    session = Session(Lists(), (torch.randn(2, 3),), namespace={})
    session.do("freeze", {"until": "weights.0"})
    assert [p.requires_grad for p in session.build().weights] == [False, True]


class Failing(nn.Module):
    """Its last layer does not fit."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 8, 3), nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def test_a_model_that_fails_is_seen_and_not_edited():
    session = Session(Failing(), (torch.randn(2, 3, 8, 8),), namespace={}, show_failure=True)
    assert "fc" in session.base.by_name
    assert "cannot be multiplied" in session.failure
    assert session.offers(["conv"]) == []
    for ask in (session.do, session.preview):
        with pytest.raises(nbs.SurgeryError, match=r"fails on the example.*cannot be multiplied"):
            ask("remove", {"where": "conv"})
    session.example = torch.randn(2, 3, 3, 3)
    assert session.failure is None
    session.do("replace", {"where": "fc", "new": "nn.Linear(8, 4)"})


@pytest.mark.parametrize("variable", ["not a name", "class", "", 3, "f()", "a, b"])
def test_a_variable_has_to_be_assignable(variable):
    with pytest.raises(nbs.SurgeryError, match="assign"):
        Session(nn.Linear(2, 2), (torch.randn(1, 2),), variable=variable, namespace={})


BAD_RECIPES = [
    "", "[]", "3", '{"steps": 3}', '{"steps": [3]}', '{"format": "nbsurgery/99", "steps": []}',
    '{"steps": [{"operation": "nope", "arguments": {}}]}',
    '{"steps": [{"operation": ["a"], "arguments": {}}]}',
    '{"steps": [{"operation": "replace", "arguments": 3}]}',
]  # fmt: skip


@pytest.mark.parametrize("text", BAD_RECIPES)
def test_what_is_no_recipe_is_refused(session, tmp_path, text):
    path = tmp_path / "recipe.json"
    path.write_text(text)
    with pytest.raises(nbs.SurgeryError, match="recipe|format|does not know"):
        session.load(path)
    assert not session.steps


def test_a_step_of_a_recipe_that_means_nothing_here_is_marked(session, tmp_path):
    path = tmp_path / "recipe.json"
    steps = [
        {"operation": "replace", "arguments": {}},
        {"operation": "tap", "arguments": {"nodes": 5}},
        {"operation": "remove", "arguments": {"where": "nope"}},
        {"operation": "remove", "arguments": {"where": "depth"}},
    ]
    path.write_text(json.dumps({"format": "nbsurgery/1", "steps": steps}))
    assert len(session.load(path)) == 3
    assert [s["state"] for s in session.steps] == ["failed", "failed", "failed", "ok"]


def test_a_recipe_comes_back(session, tmp_path):
    session.do("replace", {"where": nn.BatchNorm2d, "new": "nn.GroupNorm(2, old.num_features)"})
    session.do("cut", {"after": "relu"})
    code = session.code
    session.save(tmp_path / "recipe.json")
    session.undo(), session.undo()
    assert session.load(tmp_path / "recipe.json") == []
    assert session.code == code


def test_every_order_of_do_undo_redo_toggle_drop_move_leads_back(session):
    session.do("replace", {"where": "fc", "new": "nn.Linear(8, 3)"})
    session.do("remove", {"where": "depth"})
    session.do("insert", {"after": "bn", "new": "nn.Dropout(0.1)"})
    code, uids = session.code, [s["uid"] for s in session.steps]
    for change in (
        lambda u: session.toggle(u),
        lambda u: session.drop(u),
        lambda u: session.move(u, 0),
        lambda u: session.move(u, 2),
    ):
        for uid in uids:
            change(uid)
            changed = session.code
            session.undo()
            assert session.code == code
            session.redo()
            assert session.code == changed
            session.undo()
    for uid in uids:
        session.toggle(uid)
    assert session.code.startswith("# no step")
    for uid in reversed(uids):
        session.toggle(uid)
    assert session.code == code
    with pytest.raises(nbs.SurgeryError, match="there is no step 99"):
        session.drop(99)
    with pytest.raises(nbs.SurgeryError, match="can be moved to 0"):
        session.move(uids[0], 3)


def test_an_edit_that_spoils_what_enters_a_start_is_refused_in_words():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    session = Session(model, (torch.randn(3, 4),), namespace={})
    session.do("start", {"at": "2"})
    with pytest.raises(nbs.SurgeryError, match=r"what enters the model now.*expects 9 features"):
        session.do("replace", {"where": "1", "new": "nn.Linear(9, 4)"})


def test_names_of_the_parts_of_a_split():
    """What a picture of a part shows can be named in a step, also what crosses into it."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh())
    session = Session(model, (torch.randn(1, 4),))
    session.do("split", {"after": "1"})
    for name, (graph, _) in session.models.items():
        for node in graph.flat:
            found = session.nodes([node.name])
            assert [n.kind for n in found] == [node.kind] or node.kind == "input", (name, node.name)


def test_a_fault_of_ours_is_told_as_ours_and_changes_nothing(session, monkeypatch):
    session.do("remove", {"where": "depth"})
    before, code, recipe = state_of(session.model), session.code, session.recipe

    def broken(*_, **__):
        raise KeyError("#2")

    for place in ("nbsurgery.session.emit", "nbsurgery.operations.replace.Replace.apply",
                  "nbsurgery.verify.check"):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(place, broken)
            with pytest.raises(
                nbs.InternalError, match=r"fault of nbsurgery.*KeyError: '#2'.*report"
            ):
                session.do("replace", {"where": "fc", "new": "nn.Linear(8, 3)"})
        assert state_of(session.model) == before
        assert (session.code, session.recipe) == (code, recipe)


@pytest.mark.parametrize("name", ["resnet18", "unet", "bert"])
def test_an_offer_as_it_opens_does_what_it_says(name):
    """Its form applies unfilled, at as many places as its button says, and shows which."""
    model, args, kwargs = zoo.build(name)
    session = Session(model, args, kwargs, namespace={})
    for node in session.base.flat[::3]:
        for offer in session.offers([node.name]):
            fields = {f["name"]: f["default"] for f in offer["fields"] if f["default"] != ""}
            if offer["operation"] in ("set", "channels"):  # as it opens it says what is so already
                continue
            said = session.preview(offer["operation"], {**offer["arguments"], **fields})
            assert said["places"], offer
            if "until" not in offer["arguments"]:  # how many places that are is found out then
                assert said["count"] == offer["count"], offer


def test_offers_come_in_parts_and_nothing_is_tried_twice(monkeypatch):
    model, args, kwargs = zoo.build("resnet18")
    session = Session(model, args, kwargs, namespace={})
    tried, fitting = [], Session._fitting

    def spy(self, offer):
        tried.append(offer.label)
        return fitting(self, offer)

    monkeypatch.setattr(Session, "_fitting", spy)
    parts = [session.offers(["layer1.0.conv1"], seconds=0)]
    while any(o.get("pending") for o in parts[-1]):
        parts.append(session.offers(["layer1.0.conv1"], seconds=0))
    labels = [[o["label"] for o in part] for part in parts]
    assert len(parts) > 5 and len(tried) == len(labels[0]) == len(set(labels[0]))
    assert all(label in labels[0] for part in labels for label in part)
    assert parts[-1] == session.offers(["layer1.0.conv1"]) and len(tried) == len(set(tried))
    assert parts[-1] == Session(model, args, kwargs, namespace={}).offers(["layer1.0.conv1"])
    tried.clear()
    session.do("remove", {"where": "layer1.0.relu"})
    assert session.offers(["layer1.0.conv1"]) and tried  # of another model
