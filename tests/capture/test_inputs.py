"""Bad input to capture: each refused in words that say what to pass; a failing model is a picture."""

import pytest
import torch
from torch import nn

from nbsurgery.capture import capture
from nbsurgery.capture.inputs import make
from nbsurgery.errors import CaptureError, ModelFailed
from tests.capture import small as models


@pytest.mark.parametrize(
    ("model", "args", "message"),
    [
        (nn.ReLU, (torch.ones(1),), r"not the class ReLU.*ReLU\(\)"),
        (torch.relu, (torch.ones(1),), "torch.nn.Module, not a builtin"),
        (nn.Sequential(nn.LazyLinear(3)), (torch.ones(1, 2),), r"lazy layers .*\(0\)"),
        (nn.Linear(2, 2), (), r"takes \(input\)"),
        (
            nn.Linear(2, 2),
            (torch.ones(1, 2), 3),
            r"takes \(input\) .* \(a tensor of shape \(1, 2\), 3\)",
        ),
        (nn.Linear(2, 2), ((x for x in [1]),), "generator"),
    ],
)
def test_what_cannot_be_captured_is_refused_in_words(model, args, message):
    """What came, what is allowed, what to do."""
    with pytest.raises(CaptureError, match=message):
        capture(model, args)


@pytest.mark.filterwarnings("ignore")
def test_a_script_module_is_refused_with_the_reason():
    """Python never runs its forward."""
    with pytest.raises(CaptureError, match="ScriptModule"):
        capture(torch.jit.script(nn.Linear(2, 2)), (torch.ones(1, 2),))


def test_a_model_that_fails_gives_the_graph_up_to_there():
    """The failing node, the shapes that met, the model's own error."""
    with pytest.raises(ModelFailed, match="mat1 and mat2 shapes") as caught:
        capture(models.Fails(), (torch.randn(2, 6),))
    graph = caught.value.graph
    failure = graph.failure
    node = graph.by_id[failure.node]
    assert (node.name, node.outputs) == ("block.1", ())
    assert failure.scope == "block"
    assert failure.shapes == ((2, 4),)
    assert "RuntimeError" in failure.error
    assert [n.name for n in graph.flat] == ["x", "first", "relu", "block.0", "block.1"]
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_error_of_the_model_itself_is_told_as_such():
    """A ``raise`` in forward, with no operation to blame."""

    class Picky(nn.Module):
        def forward(self, x):
            x.add(1)
            raise ValueError("wants three channels")

    with pytest.raises(ModelFailed, match="Picky.*wants three channels") as caught:
        capture(Picky(), (torch.ones(2),))
    assert caught.value.graph.failure.node is None
    assert [n.type for n in caught.value.graph.flat] == ["input", "add"]


def test_an_error_that_the_model_catches_is_no_failure():
    """The attempt leaves no node behind, and its scope says that it decided."""

    class Tries(nn.Module):
        def forward(self, x):
            try:
                return x.view(5, 5)
            except RuntimeError:
                return x * 2

    graph = capture(Tries(), (torch.ones(3),))
    assert [n.type for n in graph.flat] == ["input", "mul", "output"]
    assert "catches an error" in graph.root.opaque


def test_a_dtype_that_does_not_fit_is_named():
    """The failure of a double input on float weights."""
    with pytest.raises(ModelFailed, match="float32.*float64"):
        capture(nn.Linear(2, 2), (torch.ones(1, 2, dtype=torch.float64),))


def test_tensors_are_made_from_sizes():
    """On the model's device, of its dtype; indices for an embedding; the random state stays."""
    half, table, two = nn.Linear(3, 3).bfloat16(), nn.Embedding(4, 2), nn.Bilinear(2, 3, 1)
    before = torch.get_rng_state()
    (x,) = make(half, (2, 3))
    assert (x.shape, x.dtype) == ((2, 3), torch.bfloat16)
    (i,) = make(nn.Sequential(table), (2, 5))
    assert i.dtype == torch.int64
    a, b = make(two, [(1, 2), (1, 3)])
    assert (a.shape, b.shape) == ((1, 2), (1, 3))
    assert make(nn.Linear(2, 2, device="meta"), (1, 2))[0].is_meta
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("size", [(), "1,2", 5, [(1, 2), 3.5], (1, -2), [[1, "a"]], (2, True)])
def test_wrong_sizes_are_refused(size):
    """What is no size is answered with what a size looks like."""
    with pytest.raises(CaptureError, match=r"such as \(1, 3, 224, 224\)"):
        make(nn.Linear(2, 2), size)


def test_a_large_model_is_run_on_shapes_and_a_small_one_on_numbers():
    """Chosen by a rough count of the work; told in the result."""
    small = capture(nn.Linear(8, 8), (torch.ones(1, 8),))
    wide = nn.Linear(2048, 2048, bias=False)
    large = capture(wide, (torch.ones(64, 512, 2048),))
    assert (small.how, large.how) == ("real", "fake")
    assert large.root.output.outputs[0].shape == (64, 512, 2048)


def test_a_meta_model_is_captured_without_memory():
    """Weights that do not exist stay that way."""
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(10**5, 10**5), nn.ReLU(), nn.Dropout(0.1))
    graph = capture(model, (torch.ones(1, 10**5, device="meta"),))
    assert graph.how == "fake"
    assert [n.name for n in graph.flat] == ["input", "0", "1", "2", "output"]
    assert all(p.is_meta for p in model.parameters())
