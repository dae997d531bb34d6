"""Replaying what was captured equals the model, exactly, on the example and on other inputs."""

import pytest
import torch
import torchvision

from nbsurgery.capture import capture, replay
from nbsurgery.errors import ReplayRefused
from tests.capture import small as models
from tests.capture.small import MODELS


def flat(value):
    """Every tensor of an output, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dataclass_fields__"):
        value = list(vars(value).values())
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else []


def assert_same(expected, found):
    """Equal to the last bit, and of the same type."""
    assert type(found) is type(expected)
    a, b = flat(expected), flat(found)
    assert len(a) == len(b) > 0
    for one, other in zip(a, b, strict=True):
        assert torch.equal(one, other)


def build(name, batch=2):
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    model = make().eval()
    return model, inputs, *inputs(batch)


@pytest.mark.parametrize("name", MODELS)
def test_a_small_model_replays_exactly_on_any_batch(name):
    """Difference 0.0 with the recorded inputs and with others."""
    model, inputs, args, kwargs = build(name)
    with torch.no_grad():
        graph = capture(model, args, kwargs)
        assert_same(model(*args, **kwargs), replay(graph, model, args, kwargs))
        for batch in (2, 3):
            args, kwargs = inputs(batch)
            assert_same(model(*args, **kwargs), replay(graph, model, args, kwargs))


@pytest.mark.parametrize("name", ["Flat", "Residual", "Net", "Sizes", "Training", "MLP"])
def test_train_mode_replays_exactly(name):
    """What train mode draws is drawn the same from the same seed."""
    model, _, args, kwargs = build(name)
    model.train()
    graph = capture(model, args, kwargs)
    torch.manual_seed(1)
    expected = model(*args, **kwargs)
    torch.manual_seed(1)
    assert_same(expected, replay(graph, model, args, kwargs))


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "squeezenet1_1"])
def test_a_classifier_replays_exactly_at_another_size(name):
    """The sizes of an image are nowhere baked in."""
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None).eval()
    graph = capture(model, (torch.randn(1, 3, 64, 64),))
    for shape in ((1, 3, 64, 64), (2, 3, 96, 64)):
        x = torch.randn(shape)
        with torch.no_grad():
            assert torch.equal(replay(graph, model, (x,)), model(x))
    assert [s.key for s in graph.scopes.values() if s.opaque] == []


def test_sizes_stay_symbolic():
    """Another length, through ``int``, slices and a factory."""
    model, _, args, kwargs = build("Sizes")
    graph = capture(model, args, kwargs)
    x = torch.randn(3, 9, 6)
    assert torch.equal(replay(graph, model, (x,)), model(x))


@pytest.mark.parametrize("name", ["DictIO", "Tied", "Net"])
def test_a_run_on_shapes_alone_replays_exactly(name):
    """A graph of fake tensors is as good as one of real ones."""
    model, inputs, args, kwargs = build(name)
    graph = capture(model, args, kwargs, how="fake")
    assert graph.how == "fake"
    args, kwargs = inputs(3)
    assert_same(model(*args, **kwargs), replay(graph, model, args, kwargs))


def test_a_loop_over_a_size_is_refused_for_another_size():
    """Unrolled for 4 rounds: 5 are refused with the source line, never computed wrongly."""
    model, _, args, kwargs = build("Loop")
    graph = capture(model, args, kwargs)
    with pytest.raises(ReplayRefused, match=r"range\(x.shape\[1\]\).* at small.py:\d+ was 4 .* 5"):
        replay(graph, model, (torch.randn(2, 5, 6),))


def test_a_branch_on_data_is_refused_when_it_turns():
    """Recorded for one answer of the ``if``; the other one is refused."""
    torch.manual_seed(0)
    model = models.DataIf()
    torch.nn.init.eye_(model.a.weight)
    torch.nn.init.zeros_(model.a.bias)
    up = torch.ones(2, 6)
    graph = capture(model, (up,))
    assert torch.equal(replay(graph, model, (up * 2,)), model(up * 2))
    with pytest.raises(ReplayRefused, match=r"x.sum\(\) > 0"):
        replay(graph, model, (-up,))
    assert "decides on a tensor's value" in graph.root.opaque


def test_numbers_from_outside_of_torch_hold_for_the_recorded_inputs_only():
    """numpy inside: exact on the example, refused on anything else."""
    torch.manual_seed(0)
    model = models.Numpy()
    x = torch.randn(2, 6)
    graph = capture(model, (x,))
    assert torch.equal(replay(graph, model, (x,)), model(x))
    with pytest.raises(ReplayRefused, match="numpy"):
        replay(graph, model, (x + 1,))


def test_a_list_of_images_is_refused_with_another_length():
    """Loops over list inputs are unrolled."""
    torch.manual_seed(0)
    model = models.ImageList()
    graph = capture(model, ([torch.randn(3, 8, 8), torch.randn(3, 9, 7)],))
    other = [torch.randn(3, 6, 6), torch.randn(3, 8, 8)]
    assert_same(model(other), replay(graph, model, (other,)))
    with pytest.raises(ReplayRefused, match="was 2 .* 1"):
        replay(graph, model, (other[:1],))
    assert "loops over a list" in graph.root.opaque


def test_an_argument_that_was_none_is_refused_as_a_tensor():
    """The branch for a mask was not recorded."""
    model, _, args, _ = build("DictIO")
    graph = capture(model, args)
    with pytest.raises(ReplayRefused, match="scale"):
        replay(graph, model, args, {"scale": torch.tensor(3.0)})


def test_a_number_taken_from_a_tensor_is_followed():
    """``float(x.max())`` used as a Python number stays what the input makes of it."""

    class Scaled(torch.nn.Module):
        def forward(self, x):
            limit = float(x.max().round() / 4)
            return torch.full((2,), limit) + x

    model = Scaled()
    x = torch.tensor([1.0, 5.0])
    graph = capture(model, (x,))
    assert torch.equal(replay(graph, model, (x - 0.1,)), model(x - 0.1))
    assert torch.equal(replay(graph, model, (x + 4,)), model(x + 4))


def test_another_mode_is_refused_where_the_model_branches_on_it():
    """``if self.training`` was decided."""
    model, _, args, kwargs = build("Training")
    graph = capture(model, args, kwargs)
    with pytest.raises(ReplayRefused, match="self.training"):
        replay(graph, model.train(), args, kwargs)


def test_values_on_the_way_are_those_of_the_model():
    """An inner value is taken before a later in-place operation overwrites it."""
    model, _, args, kwargs = build("Residual")
    graph = capture(model, args, kwargs)
    add = next(n for n in graph.flat if n.name == "add")
    out, values = replay(graph, model, args, kwargs, values=[add.id])
    first = torch.relu(model.conv1(args[0]))
    assert torch.equal(values[add.id], model.conv2(first) + args[0])
    assert torch.equal(out, torch.relu(values[add.id]))


def test_an_edited_graph_is_evaluated_as_edited():
    """A node inserted into a scope, its reader's argument exchanged."""
    model, _, args, kwargs = build("MLP")
    graph = capture(model, args, kwargs)
    root = graph.root
    relu = next(n for n in root.nodes if n.type == "ReLU")
    new = relu.with_(id="@1#0", name="double", kind="function", type="mul", target=torch.mul)
    new = new.with_(args=(graph_ref(relu.id), 2.0), step=1)
    nodes = []
    for node in root.nodes:
        if node.type == "Linear" and relu.id in node.refs:
            node = node.with_(args=(graph_ref(new.id),))
        nodes.append(node)
        if node is relu:
            nodes.append(new)
    edited = graph.with_scopes({"": root.with_(nodes=tuple(nodes))})
    x = args[0]
    assert torch.equal(replay(edited, model, args), model[2](torch.relu(model[0](x)) * 2.0))


def graph_ref(id):
    from nbsurgery.graph import Ref

    return Ref(id)
