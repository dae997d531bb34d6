"""What a form says beforehand of the modules that go and of the output."""

import pytest

from nbsurgery.session import Session

from .session import zoo


@pytest.fixture(scope="module")
def session():
    model, args, kwargs = zoo.build("resnet18")
    return Session(model, args, kwargs, namespace={})


@pytest.mark.parametrize(
    ("operation", "arguments", "said"),
    [
        ("cut", {"after": "layer3"}, "layer4, avgpool, flatten and fc go, with"),
        ("cut", {"after": "layer3"}, "; the output is that of layer3 ("),
        ("cut", {"before": "layer3.0.add"}, "and 2 more go"),
        ("cut", {"before": "layer3.0.add"}, "2 values: layer3.0.bn2 ("),
        ("remove", {"where": "fc"}, "fc goes, with "),
        ("remove", {"where": "fc"}, "; the output is that of flatten ("),
        ("remove", {"where": "layer1.0.relu"}, "1 place, 2 calls: layer1.0.relu goes"),
        ("remove", {"where": ["layer1.0.relu_1"]}, "1 place: layer1.0.relu_1 goes"),
        ("remove", {"where": "layer2.0.add"}, "layer2.0.downsample and layer2.0.add go, with"),
        ("tap", {"nodes": {"layer1": "c2", "layer2": "c3"}}, "layer3, layer4, avgpool, flatten and fc go"),
        ("tap", {"nodes": {"layer1": "c2", "layer2": "c3"}}, "a dict: c2 = layer1 ("),
        ("tap", {"nodes": ["layer2"], "output": "out"}, "1 place: the output is a dict: layer2 = "),
        ("start", {"at": "layer2"}, "conv1, bn1, relu, maxpool and layer1 go, with"),
        ("start", {"at": "layer2"}, "; the model is called with layer1 ("),
    ],
)  # fmt: skip
def test_what_goes_is_said_before_it_goes(session, operation, arguments, said):
    assert said in session.preview(operation, arguments)["text"]


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("replace", {"where": "layer4", "new": "nn.Conv2d(64, 128, 1)"}),
        ("insert", {"after": "conv1", "new": "nn.ReLU()"}),
        ("freeze", {"where": "layer1"}),
        ("split", {"after": "layer2"}),
    ],
)
def test_where_nothing_goes_nothing_is_said(session, operation, arguments):
    assert session.preview(operation, arguments)["text"] == "1 place"


def test_the_parameters_said_are_those_that_go():
    model, args, kwargs = zoo.build("resnet18")
    session = Session(model, args, kwargs, namespace={})
    for operation, arguments in (
        ("cut", {"after": "layer3"}),
        ("remove", {"where": "layer3.1"}),
        ("tap", {"nodes": ["layer1"]}),
        ("start", {"at": "layer2.1"}),
    ):
        said = session.preview(operation, arguments)["text"]
        session.do(operation, arguments)
        lost = sum(p.numel() for p in model.parameters())
        lost -= sum(p.numel() for p in session.build().parameters())
        assert f"with {lost:,} parameters" in said
        session.undo()


def test_a_second_removal_tells_only_what_it_takes():
    model, args, kwargs = zoo.build("resnet18")
    session = Session(model, args, kwargs, namespace={})
    session.do("remove", {"where": "layer4.1.relu"})
    assert "goes" not in session.preview("freeze", {"where": "layer4"})["text"]
    assert ": layer4.0.relu goes" in session.preview("remove", {"where": "layer4.0.relu"})["text"]
