"""The tree of small graphs: what a scope holds, what crosses its borders, and how things are named."""

import torch
import torchvision

from nbsurgery.capture import capture
from nbsurgery.graph import Ref, iter_refs
from tests.capture import small as models
from tests.capture.small import EXACT, MODELS


def captured(name):
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    args, kwargs = inputs(2)
    return capture(make().eval(), args, kwargs)


def test_a_basic_block_is_one_small_graph():
    """Its operations in order, the projection as one node, the in-place writes on record."""
    model = torchvision.models.resnet18(weights=None).eval()
    scope = capture(model, (torch.randn(1, 3, 64, 64),)).scopes["layer2.0"]
    assert [n.name for n in scope.nodes] == [
        "layer2.0.x",
        "layer2.0.conv1",
        "layer2.0.bn1",
        "layer2.0.relu",
        "layer2.0.conv2",
        "layer2.0.bn2",
        "layer2.0.downsample",
        "layer2.0.add",
        "layer2.0.relu_1",
        "layer2.0.output",
    ]
    by_name = {n.name: n for n in scope.nodes}
    add = by_name["layer2.0.add"]
    assert add.refs == (by_name["layer2.0.bn2"].id, by_name["layer2.0.downsample"].id)
    assert by_name["layer2.0.relu_1"].writes == (add.id,)
    assert (by_name["layer2.0.relu_1"].call, by_name["layer2.0.relu_1"].calls) == (2, 2)
    assert add.frames[0].code is type(model.layer2[0]).forward.__code__


def test_no_reference_crosses_a_border():
    """Every Ref of a scope names a node of that scope that stands before it."""
    for name in MODELS:
        graph = captured(name)
        for scope in graph.scopes.values():
            known = set()
            for node in scope.nodes:
                assert set(node.refs) <= known, (name, node)
                known.add(node.id)
            assert [n.kind for n in scope.nodes].count("output") == 1
            up = graph.parent(scope.key)
            if up is not None:
                outside = {n.id for n in graph.scopes[up].nodes}
                for binding in scope.bindings.values():
                    assert {r.id for r in iter_refs(binding)} <= outside


def test_ids_and_names_are_unique():
    """An id over the whole graph, a name among the flat nodes."""
    for name in MODELS:
        graph = captured(name)
        ids = [n.id for s in graph.scopes.values() for n in s.nodes]
        names = [n.name for n in graph.flat]
        assert len(ids) == len(set(ids))
        assert len(names) == len(set(names)), name


def test_a_module_called_twice_opens_two_scopes():
    """The second is ``shared_1``; calls are counted over the model."""
    graph = captured("Net")
    first, second = graph.scopes["shared"], graph.scopes["shared_1"]
    assert first.path == second.path == "shared"
    assert [n.name for n in second.nodes if n.kind == "module"] == [
        "shared.conv1_1",
        "shared.relu_2",
        "shared.conv2_1",
        "shared.relu_3",
    ]
    calls = [n for n in graph.root.nodes if n.kind == "module" and n.target == "shared"]
    assert [(n.call, n.calls) for n in calls] == [(1, 2), (2, 2)]


def test_a_second_call_never_takes_the_name_of_another_module():
    """Layers called ``conv`` and ``conv_1``, blocks called ``block`` and ``block_1``."""

    class Numbered(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.conv_1 = torch.nn.Conv2d(3, 3, 1), torch.nn.Conv2d(3, 3, 1)
            self.block, self.block_1 = models.JustAdd(), models.JustAdd()

        def forward(self, x):
            x = self.conv(self.conv(self.conv_1(x)))
            return self.block(self.block(self.block_1(x)))

    graph = capture(Numbered(), (torch.randn(1, 3, 4, 4),))
    assert [n.name for n in graph.flat if n.kind == "module"] == ["conv_1", "conv", "conv_2"]
    assert list(graph.scopes) == ["", "block_1", "block", "block_2"]
    assert [graph.scopes[k].path for k in graph.scopes] == ["", "block_1", "block", "block"]


def test_a_value_that_enters_by_an_attribute_is_a_stowaway():
    """The child reads a tensor of its parent that was not passed."""
    graph = captured("Closure")
    scope = graph.scopes["inner"]
    (stowaway,) = scope.stowaways
    lin = next(n for n in graph.root.nodes if n.name == "lin")
    assert scope.bindings[stowaway] == Ref(lin.id)
    assert stowaway not in scope.places


def test_parts_of_a_tuple_hang_below_its_node():
    """Unpacking is glue; the facts of both parts are known."""
    graph = captured("Recurrent")
    lstm = next(n for n in graph.root.nodes if n.name == "lstm")
    assert [t.shape for t in lstm.outputs] == [(2, 7, 12), (4, 2, 6), (4, 2, 6)]
    parts = [n for n in graph.root.nodes if n.type == "getitem" and lstm.id in n.refs]
    assert parts
    assert all(n.glue for n in parts)


def test_layers_of_torch_made_of_modules_are_opened_and_attention_is_not():
    """An encoder layer shows its attention and its linear layers."""
    torch.manual_seed(0)
    graph = capture(models.Encoder().eval(), (torch.randn(2, 5, 8),))
    names = [n.name for n in graph.flat]
    assert "encoder.layers.1.self_attn" in names
    assert "encoder.layers.1.linear1" in names
    assert not any("out_proj" in n for n in names)


def test_an_operator_is_told_from_a_method():
    """``out += identity`` reads as an addition and writes in place."""
    graph = captured("Residual")
    add = next(n for n in graph.flat if n.name == "add")
    assert (add.kind, add.type) == ("function", "add")
    assert add.target.__name__ == "iadd"
    assert len(add.writes) == 1


def test_positions_are_those_of_the_expression():
    """The last frame of an operation is the text that the author wrote."""
    import linecache

    graph = captured("Flat")
    relu = next(n for n in graph.flat if n.name == "relu")
    frame = relu.frames[-1]
    line, end, start, stop = frame.position
    text = linecache.getline(frame.file, frame.line)
    assert line == frame.line
    assert "x = F.relu(self.conv(x))" in text
    if EXACT:
        assert end == line
        assert text[start:stop] == "F.relu(self.conv(x))"


def test_a_hook_that_changes_values_is_seen_and_its_scope_says_so():
    """The operations of hooks are nodes; the forward's text alone would not be the whole truth."""
    graph = captured("Hooked")
    scope = graph.scopes["inner"]
    assert [n.type for n in scope.nodes if n.kind == "function"] == ["add", "add", "sub"]
    assert "hook" in scope.opaque


def test_specialisations_name_expression_value_and_line():
    """What the run decided is on record as the author wrote it."""
    graph = captured("Loop")
    (spec,) = graph.specialisations
    assert (spec.kind, spec.value) == ("range", 4)
    if EXACT:
        assert spec.expression == "range(x.shape[1])"
    assert "range(x.shape[1])" in spec.expression
    assert spec.source.startswith("small.py:")
    assert graph.scopes[""].opaque is None
    (spec,) = captured("Training").specialisations
    assert (spec.kind, spec.expression, spec.value) == ("training", "self.training", False)
