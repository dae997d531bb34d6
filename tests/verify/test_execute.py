"""Running the emitted text: what comes out, and that nothing of it reaches the person's model."""

import inspect
import linecache
import pickle
import random
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from nbsurgery.errors import StepError
from nbsurgery.verify.execute import execute

GOLDEN = Path(__file__).parents[1] / "golden" / "emitted"
RESNET = [p for p in sorted(GOLDEN.glob("[0-9]*.py")) if "bert" not in p.name]


@pytest.fixture(scope="module")
def resnet50():
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    return torchvision.models.resnet50(weights=None).eval()


class Untouched:
    """Everything of a model that a call must leave alone, compared at the end of the block."""

    def __init__(self, model):
        self.model = model

    def _now(self):
        tensors = self.model.state_dict(keep_vars=True)
        return {
            "ids": {k: id(v) for k, v in tensors.items()},
            "versions": {k: v._version for k, v in tensors.items()},
            "grads": {k: id(v.grad) if v.is_leaf else None for k, v in tensors.items()},
            "requires_grad": {k: v.requires_grad for k, v in tensors.items()},
            "modules": [(n, id(m), type(m), m.training) for n, m in self.model.named_modules()],
            "attributes": {n: sorted(vars(m)) for n, m in self.model.named_modules()},
            "hooks": {n: dict(m._forward_hooks) for n, m in self.model.named_modules()},
            "random": (torch.get_rng_state().tolist(), random.getstate()),
            "grad": torch.is_grad_enabled(),
        }

    def __enter__(self):
        self.values = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.before = self._now()

    def __exit__(self, *_):
        assert self._now() == self.before
        for key, value in self.model.state_dict().items():
            assert torch.equal(value, self.values[key]), key


@pytest.mark.parametrize("path", RESNET, ids=lambda p: p.stem)
def test_the_models_of_emitted_text(path, resnet50):
    """Each golden text runs, shares the memory of what it keeps and leaves resnet50 as it was."""
    with Untouched(resnet50):
        built = execute(path.read_text(), resnet50)
    pointers = {p.data_ptr() for p in resnet50.parameters()}
    kept = [p for m in built.modules for p in m.parameters() if id(p) in built.origin]
    own = [p for p in kept if p.data_ptr() not in pointers]
    assert len(kept) >= 150 and not own
    assert built.names == (("head", "tail") if path.stem.startswith("11") else ("model",))
    assert built.written == ()


def test_a_write_into_a_kept_weight_lands_in_a_clone(resnet50):
    """Version counter, ``.data``, views: whichever way the text writes, the original stays."""
    text = (
        "import torch\n"
        "with torch.no_grad():\n"
        "    model.conv1.weight[:, 0] = 0\n"
        "model.bn1.weight.data.fill_(3)\n"
        "model.fc.bias.detach().add_(1)\n"
    )
    with Untouched(resnet50):
        built = execute(text, resnet50)
    assert built.written == ("conv1.weight", "bn1.weight", "fc.bias")
    assert bool((built.model.conv1.weight[:, 0] == 0).all())
    assert bool((built.model.bn1.weight == 3).all())
    assert torch.equal(built.model.fc.bias, resnet50.fc.bias + 1)
    assert built.model.layer1[0].conv1.weight.data_ptr() == (
        resnet50.layer1[0].conv1.weight.data_ptr()
    )


def test_a_write_that_a_run_without_data_cannot_foresee(resnet50):
    """What to write depends on a weight's value: meta tensors cannot tell, the real run does."""
    text = (
        "w = model.fc.weight.data\n"
        "if float(w.abs().sum()) > 0:\n"
        "    model.fc.bias.data.zero_()\n"
        "w.mul_(2)\n"
    )
    with Untouched(resnet50):
        built = execute(text, resnet50)
    assert built.written == ("fc.weight", "fc.bias")
    assert torch.equal(built.model.fc.weight, resnet50.fc.weight * 2)


def test_many_writes_are_found_in_one_go():
    """Forty written weights take three runs: given up, without data, and for real."""
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(20)))
    text = "for p in model.parameters():\n    p.data.zero_()\nruns.append(1)"
    runs = []
    with Untouched(model):
        built = execute(text, model, namespace={"runs": runs})
    assert len(built.written) == 40 and not any(p.any() for p in built.model.parameters())
    assert len(runs) == 2  # the one that was given up did not get to the end


def test_tied_weights_stay_tied_after_a_write():
    """Writing one of two names of a weight changes both, in the copy alone."""
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    model["b"].weight = model["a"].weight
    with Untouched(model):
        built = execute("model['a'].weight.data.zero_()", model)
    assert built.model["a"].weight is built.model["b"].weight
    assert not built.model["b"].weight.any()


def test_new_weights_are_the_same_each_time_and_random_state_stays(resnet50):
    """Reports are stable: new weights come from a fixed seed, the person's dice are not thrown."""
    text = (
        "import random\nfrom torch import nn\nmodel.fc = nn.Linear(4, 4)\nmodel.r = random.random()"
    )
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, two = execute(text, resnet50).model, execute(text, resnet50).model
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(one.fc.weight, two.fc.weight) and one.r == two.r
    assert not torch.equal(execute(text, resnet50, seed=1).model.fc.weight, one.fc.weight)


@pytest.mark.parametrize(
    "text, said",
    [
        ("x = 1\nmodel.fc = nope(3)", "line 2, 'model.fc = nope(3)', raised NameError"),
        ("model.fc = (", "line 1, 'model.fc = (', is no Python"),
        ("model.a.b = 3", "has no attribute 'a'"),
        ("model = 3", "'model' is int; it must be a torch.nn.Module"),
        ("def f():\n    raise ValueError('no')\n\nf()", "line 2, \"raise ValueError('no')\""),
        ("model.fc.weight.data.zero_()\n1 / 0", "line 2, '1 / 0', raised ZeroDivisionError"),
        ("del model", "was to make 'model'"),
    ],
)
def test_errors_quote_the_line_and_leave_no_trace(text, said, resnet50):
    """A text that fails is a StepError with the line; nothing stays registered."""
    registered = set(sys.modules)
    with Untouched(resnet50), pytest.raises(StepError) as caught:
        execute(text, resnet50)
    assert said in str(caught.value)
    assert {n for n in set(sys.modules) - registered if "nbsurgery_text" in n} == set()


def test_classes_of_the_text_can_be_pickled_inspected_and_traced(resnet50):
    """The text is a module with source lines; it is forgotten with the last of its models."""
    built = execute((GOLDEN / "11_split_after_layer2.py").read_text(), resnet50)
    built = execute((GOLDEN / "03_cut_after_layer4.py").read_text(), resnet50)
    again = pickle.loads(pickle.dumps(built.model))
    assert type(again) is type(built.model)
    assert inspect.getsource(type(built.model)).startswith("class ResNetToLayer4(nn.Module):")
    with pytest.raises(RuntimeError) as caught:
        built.model(torch.zeros(1, 4, 32, 32))
    frames = inspect.getinnerframes(caught.value.__traceback__)
    assert any("x = self.conv1(x)" in (f.code_context or [""])[0] for f in frames)
    name, file = built.module_name, inspect.getsourcefile(type(built.model))
    assert name in sys.modules and file in linecache.cache
    del again, caught, frames
    built = None
    import gc

    gc.collect()
    assert name not in sys.modules and file not in linecache.cache


def test_names_of_the_notebook_resolve_and_its_modules_are_copied(resnet50):
    """Functions and classes by name; a module of the notebook, or of the model, as a copy."""

    class Head(nn.Module):
        def __init__(self, inside):
            super().__init__()
            self.inside = inside

    mine = nn.Linear(2, 2)
    space = {"Head": Head, "mine": mine, "stem": resnet50.conv1, "unused": 1}
    built = execute(
        "model.fc = Head(mine)\nmodel.stem = stem", resnet50, namespace=space, variable="model"
    )
    assert type(built.model.fc) is Head
    assert built.model.fc.inside is not mine
    assert built.model.fc.inside.weight.data_ptr() == mine.weight.data_ptr()
    assert built.model.stem is built.model.conv1
    assert "unused" not in built.namespace
    with pytest.raises(StepError, match="NameError"):
        execute("model.fc = Head(mine)", resnet50)


def test_variable_and_results_by_name(resnet50):
    """The person's own variable; stages; names that the caller gives."""
    text = "stage_2 = net.layer2\nstage_1 = net.layer1\nstage_10 = net.layer3"
    built = execute(text, resnet50, variable="net")
    assert built.names == ("stage_1", "stage_2", "stage_10")
    assert isinstance(built.model, tuple) and len(built.modules) == 3
    assert execute("head = net.fc", resnet50, variable="net").names == ("net",)
    built = execute("trunk = net.layer1", resnet50, variable="net", results=["trunk"])
    assert built.model is built.namespace["net"].layer1


def test_a_second_run_happens_in_the_same_namespace(resnet50):
    """As a cell run again; an error of the second run is kept, the first one's result too."""
    text = (GOLDEN / "03_cut_after_layer4.py").read_text()
    assert execute(text, resnet50, times=2).stopped is None
    built = execute("model.layers = [model.fc]\ndel model.fc", resnet50, times=2)
    assert "fc" in str(built.stopped) and not hasattr(built.model, "fc")
