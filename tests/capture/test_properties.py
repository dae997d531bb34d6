"""Laws of capture over random models: replay is exact, the model untouched, references stay inside."""

import copy

import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from nbsurgery.capture import capture, replay
from nbsurgery.graph import iter_refs

WIDTH = 4
SIMPLE = [
    "linear",
    "shared",
    "relu",
    "inplace",
    "functional",
    "drop",
    "identity",
    "iadd",
    "add",
    "chunk",
    "sizes",
    "loop",
    "buffer",
    "norm",
    "view_write",
    "setitem",
    "branch",
    "pair",
    "rows",
    "same",
]


class Program(nn.Module):
    """Runs a list of (operation, operand, operand) on a growing list of values of width `WIDTH`."""

    def __init__(self, steps, root=True):
        super().__init__()
        self.steps, self.root = steps, root
        self.layers = nn.ModuleList()
        self.shared = nn.Linear(WIDTH, WIDTH)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5)
        self.weights = [0.5, 1.5, -1.0, 2.0, 3.0]
        self.register_buffer("offset", torch.randn(WIDTH))
        self.scale = nn.Parameter(torch.randn(WIDTH))
        for name, *rest in steps:
            if name == "block":
                self.layers.append(Program(rest[2], root=False))
            elif name == "norm":
                self.layers.append(nn.LayerNorm(WIDTH))
            else:
                self.layers.append(nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        values = [x]
        for layer, (name, i, j, *_) in zip(self.layers, self.steps, strict=True):
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(self.apply_step(layer, name, a, b, j))
        if not self.root:
            return values[-1], values[len(values) // 2]
        return {"last": values[-1], "all": (values[len(values) // 2], [values[0]])}

    def apply_step(self, layer, name, a, b, j):
        if name in ("linear", "norm"):
            return layer(a)
        if name == "shared":
            return self.shared(self.shared(a))
        if name == "relu":
            return torch.relu(a)
        if name == "inplace":
            return self.relu(a * 1.5)
        if name == "functional":
            return F.linear(a, layer.weight, bias=self.scale)
        if name == "drop":
            return a + self.drop(a)
        if name == "identity":
            return a.contiguous().to(a.dtype)
        if name == "iadd":
            a = a + 1
            a += b
            return a
        if name == "add":
            return a + b
        if name == "chunk":
            left, right = a.chunk(2, dim=-1)
            return torch.cat([right, left * 2], -1)
        if name == "sizes":
            n, d = a.shape
            half = d // 2
            return torch.cat([a[:, half:], torch.zeros(n, half)], 1).view(n, d) / d
        if name == "loop":
            return torch.stack([a[:, k] * (k + 1) for k in range(a.shape[1])], 1)
        if name == "buffer":
            return a * self.scale + self.offset
        if name == "view_write":
            a = a * 2
            a[:, :2].mul_(3)
            return a
        if name == "setitem":
            a = a * 2
            a[:, 0] = b[:, 1]
            return a
        if name == "branch":  # on a size, on the mode and on a part of the input
            if a.shape[-1] > j and not (self.training and b is None):
                return a * len(self.layers)
            return a - 1
        if name == "pair":
            parts = {"a": a, "b": (b, a.shape[0])}
            return parts["a"] * parts["b"][1] + parts["b"][0]
        if name == "rows":
            return a + sum(a[:, k : k + 1] * w for k, w in enumerate(self.weights[: a.shape[1]]))
        if name == "block":
            first, second = layer(a)
            return first - second
        return a  # "same": the very object again


def steps(depth):
    index = st.integers(0, 5)
    simple = st.tuples(st.sampled_from(SIMPLE), index, index)
    if depth == 0:
        return st.lists(simple, min_size=1, max_size=5)
    nested = st.tuples(st.just("block"), index, index, steps(depth - 1))
    return st.lists(st.one_of(simple, nested), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(program=steps(2), train=st.booleans())
def test_random_models_replay_exactly_and_stay_untouched(program, train):
    """The same seed gives the same numbers, on the recorded inputs and on another batch."""
    torch.manual_seed(0)
    model = Program(program).train(train)
    before = copy.deepcopy(model.state_dict())
    x = torch.randn(2, WIDTH)
    kept = x.clone()
    random = torch.get_rng_state()
    graph = capture(model, (x,))
    assert torch.equal(x, kept)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert graph.failure is None
    for batch in (2, 3):
        x = torch.randn(batch, WIDTH)
        torch.manual_seed(1)
        with torch.no_grad():
            expected = model(x.clone())
        torch.manual_seed(1)
        with torch.no_grad():
            found = replay(graph, model, (x.clone(),))
        assert torch.equal(expected["last"], found["last"])
        assert torch.equal(expected["all"][0], found["all"][0])
        assert torch.equal(expected["all"][1][0], found["all"][1][0])
    ids = set()
    for scope in graph.scopes.values():
        known = set()
        for node in scope.nodes:
            assert {r.id for r in iter_refs((node.args, node.kwargs))} <= known
            assert set(node.writes) <= known
            known.add(node.id)
        assert not known & ids
        ids |= known


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(program=steps(1))
def test_shapes_alone_give_the_same_graph_as_numbers(program):
    """Ids, names, arguments and shapes do not depend on how the model was run."""
    torch.manual_seed(0)
    model = Program(program).eval()
    x = torch.randn(2, WIDTH)
    real, fake = capture(model, (x,), how="real"), capture(model, (x,), how="fake")
    for key, scope in real.scopes.items():
        for a, b in zip(scope.nodes, fake.scopes[key].nodes, strict=True):
            assert (a.id, a.name, a.type, a.args, a.outputs) == (
                b.id,
                b.name,
                b.type,
                b.args,
                b.outputs,
            )
