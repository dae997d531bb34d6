"""What capture leaves behind: nothing, also when the model fails or the person interrupts."""

import gc
import math
import random
import threading
import weakref

import numpy
import pytest
import torch
from torch import nn

from nbsurgery.capture import capture
from nbsurgery.errors import CaptureError, ModelFailed
from tests.capture import small as models


def state(model):
    """Everything of a model that a run may disturb."""
    return [
        (
            name,
            dict(module.__dict__),
            {k: (v.clone(), v._version) for k, v in module._buffers.items() if v is not None},
        )
        for name, module in model.named_modules()
    ]


def assert_untouched(model, before):
    for (_, attributes, buffers), module in zip(before, model.modules(), strict=True):
        assert module.__dict__.keys() == attributes.keys()
        assert all(module.__dict__[k] is v for k, v in attributes.items())
        for key, (value, _) in buffers.items():
            assert torch.equal(module._buffers[key], value)


def patched():
    """Everything that the hooks exchange."""
    return (
        nn.Module.__call__,
        nn.Module.__dict__.get("training"),
        torch.no_grad.__enter__,
        torch.Tensor.as_subclass,
        torch.autograd.Function.__dict__.get("apply"),
        len,
        min,
        math.gcd,
        [name for name in ("int", "float", "range", "type") if name in vars(models)],
        torch.backends.mha.get_fastpath_enabled(),
        models.__dict__.get("range"),
        torch._C._len_torch_function_stack(),
    )


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("how", ["real", "fake"])
def test_a_model_that_writes_to_itself_is_as_before(train, how):
    """Attributes, lists, buffers, batch statistics, random numbers: bit for bit."""
    torch.manual_seed(0)
    model = models.Caches().train(train)
    x = torch.randn(4, 6)
    before, hooks = state(model), patched()
    numbers = torch.get_rng_state(), random.getstate(), numpy.random.get_state()[1].tolist()
    capture(model, (x,), how=how)
    assert_untouched(model, before)
    assert model.seen == []
    assert patched() == hooks
    assert torch.equal(torch.get_rng_state(), numbers[0])
    assert random.getstate() == numbers[1]
    assert numpy.random.get_state()[1].tolist() == numbers[2]
    assert all(p.grad is None for p in model.parameters())


def test_after_a_failure_everything_is_as_before():
    """The model's own error comes through, the patches are gone."""
    model = models.Fails()
    before, hooks = state(model), patched()
    with pytest.raises(ModelFailed):
        capture(model, (torch.randn(2, 6),))
    assert_untouched(model, before)
    assert patched() == hooks


class WritesAndRaises(nn.Module):
    """Counts, keeps, moves statistics and clips its weights; then fails, or is interrupted."""

    def __init__(self, error):
        super().__init__()
        self.error, self.calls, self.kept = error, 0, []
        self.norm, self.lin = nn.BatchNorm1d(6), nn.Linear(6, 6)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        self.kept.append(self.lin(self.norm(x)))
        self.cache = x * 2
        self.seen += 1
        with torch.no_grad():
            self.lin.weight.clamp_(-0.01, 0.01)
        raise self.error


@pytest.mark.parametrize("how", ["real", "fake"])
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()], ids=["fails", "Ctrl-C"])
def test_what_a_run_wrote_before_it_ended_early_is_taken_back(error, how):
    """Weights, statistics, counters and lists: bit for bit."""
    model = WritesAndRaises(error).train()
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    before, hooks = state(model), patched()
    x = torch.randn(4, 6)
    numbers = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else ModelFailed):
        capture(model, (x,), how=how)
    assert_untouched(model, before)
    assert (model.calls, model.kept) == (0, [])
    assert all(torch.equal(v, weights[k]) for k, v in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), numbers)
    assert patched() == hooks


def test_an_interrupt_passes_through_and_takes_the_patches_back():
    """Ctrl-C in the middle of the run."""

    class Interrupted(nn.Module):
        def forward(self, x):
            self.half = x + 1
            raise KeyboardInterrupt

    model = Interrupted()
    before, hooks = state(model), patched()
    with pytest.raises(KeyboardInterrupt):
        capture(model, (torch.randn(2),))
    assert_untouched(model, before)
    assert patched() == hooks
    capture(nn.ReLU(), (torch.randn(2),))  # and the lock is free


def test_two_threads_capture_one_after_the_other():
    """The second waits; both graphs are whole, and neither holds the other's nodes."""
    torch.manual_seed(0)
    results = {}

    def work(i):
        depth = 20 + i
        model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(depth)])
        results[i] = len(capture(model, (torch.randn(2, 4),)).flat), depth + 2

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(found == expected for found, expected in results.values())


def test_another_thread_runs_undisturbed_while_one_captures():
    """A model that runs in a second thread is not recorded and works."""
    inside, go = threading.Event(), threading.Event()

    class Slow(nn.Module):
        def forward(self, x):
            inside.set()
            go.wait(10)
            return x * 2

    graphs = []
    thread = threading.Thread(target=lambda: graphs.append(capture(Slow(), (torch.ones(2),))))
    thread.start()
    assert inside.wait(10)
    other = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).eval()
    result = other(torch.ones(1, 2))
    flag = other.training
    go.set()
    thread.join()
    assert result.shape == (1, 2)
    assert flag is False
    assert [n.type for n in graphs[0].flat] == ["input", "mul", "output"]


def test_a_capture_inside_a_capture_is_refused():
    """In words, and the outer model's state is as before."""

    class Inner(nn.Module):
        def forward(self, x):
            capture(nn.ReLU(), (x,))
            return x

    with pytest.raises(CaptureError, match="running already"):
        capture(Inner(), (torch.ones(2),))


def test_gradients_are_left_alone():
    """Neither asked for nor cleared."""
    model = nn.Linear(3, 3)
    model.weight.grad = torch.ones(3, 3)
    x = torch.randn(2, 3, requires_grad=True)
    capture(model, (x,))
    assert torch.equal(model.weight.grad, torch.ones(3, 3))
    assert x.grad is None
    assert torch.is_grad_enabled()


def test_a_model_that_differentiates_inside_is_captured():
    """``autograd.grad`` in forward needs gradients: the run is repeated with them."""

    class Score(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 1)

        def forward(self, x):
            x = x.clone().requires_grad_(True)
            return torch.autograd.grad(self.lin(x).sum(), x)[0]

    graph = capture(Score(), (torch.randn(2, 3),))
    assert any(n.type == "grad" for n in graph.flat)


def test_a_graph_keeps_neither_the_model_nor_its_tensors_alive():
    """Nothing of the run is held by what it left, nor by numbers that the model kept elsewhere."""
    kept = []

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x):
            kept.append(x.shape[0])
            return self.lin(x)

    model, x = Keeps(), torch.randn(2, 4)
    graph = capture(model, (x,))
    links = [weakref.ref(model), weakref.ref(model.lin.weight), weakref.ref(x)]
    del model, x
    gc.collect()
    assert [link() for link in links] == [None, None, None]
    assert kept[0] + 1 == 3
    assert len(graph.flat) == 3
