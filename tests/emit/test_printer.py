"""How printed classes read, and what is refused."""

from __future__ import annotations

import copy
import types

import pytest
import torch
from torch import nn

import nbsurgery as nbs
from nbsurgery.capture import capture
from nbsurgery.emit.names import import_block
from nbsurgery.emit.printer import print_class
from nbsurgery.errors import EmissionError
from nbsurgery.graph import Node, Ref
from nbsurgery.rewrite import inline, insert_after, returning
from tests import models


def captured(name: str, batch: int = 2):
    make, inputs = models.MODELS[name]
    model = make().eval()
    return model, capture(model, inputs(batch), {}, how="real")


def body(printed) -> str:
    """The statements of forward, without their indent."""
    text = printed.text.partition("    def forward(")[2]
    return "\n".join(line[8:] for line in text.split("\n")[1:])


def printed(name: str, key: str = "", **options):
    model, graph = captured(name)
    scope = graph.scopes[key]
    options = {"name": "Printed", "arg": "block", **options}
    return print_class(graph, scope, model.get_submodule(scope.path), **options)


def test_names_sizes_and_constants_are_the_authors():
    """Unpacked shapes, `self.num_heads` instead of 2, nesting where he nested."""
    assert body(printed("Sizes")) == (
        "B, N, C = x.shape\n"
        "qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)\n"
        "q, k, v = qkv.unbind(0)\n"
        "attn = (q @ k.transpose(-2, -1)) * self.scale\n"
        "attn = attn.softmax(dim=-1)\n"
        "x = (attn @ v).transpose(1, 2).reshape(B, N, C)\n"
        "return self.proj(x)"
    )


def test_a_value_that_is_read_again_gets_the_authors_second_name():
    """`residual = hidden_states` stands where it stood."""
    assert body(printed("Encoder")) == (
        "residual = hidden_states\n"
        "hidden_states = self.norm(hidden_states)\n"
        "hidden_states = self.attention(hidden_states)\n"
        "hidden_states = residual + hidden_states\n"
        "residual = hidden_states\n"
        "hidden_states = self.mlp(self.norm(hidden_states))\n"
        "return residual + hidden_states"
    )


def test_loops_are_loops_again():
    """Five equal lines over a container are one loop."""
    assert body(printed("Stack")) == (
        "for layer in self.layers:\n    x = layer(x)\nreturn self.norm(x)"
    )


def test_nested_unpacking_keeps_its_shape():
    """`out, (h, c)` with an unused `c`."""
    assert body(printed("Recurrent")).startswith("out, (h, _) = self.lstm(x)\n")


def test_a_copy_takes_only_what_forward_reads():
    """Buffers stay buffers with their persistence, flags come along, dead children do not."""
    text = printed("Functional").text
    assert 'self.register_buffer("offset", block.offset, persistent=False)' in text
    assert "F.dropout(x, self.p, self.training)" in text
    assert printed("Mixed").keeps == ("stem", "heads", "0")


def test_additions_stay_in_place_where_somebody_could_tell():
    """On an input, or with a second reader, `+=` stays; on a fresh value it becomes `a + b`."""
    assert "x += 1" in body(printed("InplaceOnInput"))
    assert "h += 1" in body(printed("ReadAfterInplace"))
    assert "out = out + x" in body(printed("SharedReLU"))


def test_flags_that_steered_are_checked_and_others_left_out():
    """A steering argument raises when it is another one; one that nobody reads is no parameter."""
    assert "def forward(self, x, mask=None):" in printed("Flags").text
    assert body(printed("Flags", "inner")).startswith("if mask is not None or not double:\n")


@pytest.mark.parametrize(
    ("name", "place"), [("Branches", "self.training"), ("SizeBranch", "x.shape[0] > 2")]
)
def test_a_decision_is_refused_unless_it_may_be_guarded(name, place):
    """The message quotes the decision and its line."""
    with pytest.raises(EmissionError) as error:
        printed(name)
    assert place in str(error.value) and "models.py:" in str(error.value)
    assert "raise RuntimeError(" in printed(name, allow_specialised=True).text


def test_a_check_is_no_decision():
    """`if …: raise` and `torch._assert` only refuse: printing needs no guard."""
    assert body(printed("Checked")) == "return self.lin(x)"


def test_a_decision_after_the_end_does_not_matter():
    """Cut in front of `if self.training`, the text holds in both modes."""
    model, graph = captured("Branches")
    scope = returning(graph.root, Ref(graph.by_name["lin"].id))
    assert "raise" not in print_class(graph, scope, model, name="P", arg="model").text


def test_an_opaque_scope_is_refused_with_its_reason():
    """The sentence names the scope and says why."""
    model, graph = captured("Context")
    scope = graph.root.with_(opaque="it asks for the time of day")
    with pytest.raises(EmissionError, match=r"\(Context\).*time of day"):
        print_class(graph, scope, model, name="P", arg="model")


def test_a_part_without_gradients_is_a_with_block_again():
    """Writes into slices stay statements, and nothing is moved over a write."""
    assert body(printed("Context")) == (
        "with torch.no_grad():\n"
        "    y = self.lin(x)\n"
        "    y = y.clone()\n"
        "    y[:, 0] = 0\n"
        "lin = self.lin(y)\n"
        "y = y.clamp_(min=0)\n"
        "return lin + y"
    )


def test_new_modules_come_last_and_carry_the_name_on():
    """An inserted call keeps the variable of the value that it changes."""
    model, graph = captured("SharedReLU")
    add = graph.by_name["add"]
    new = Node("@1#0", "", "module", "norm", "BatchNorm2d", "norm", (Ref(add.id),), step=1)
    scope = insert_after(graph.root, add.id, new)
    result = print_class(
        graph, scope, model, name="P", arg="model", new={"norm": "nn.BatchNorm2d(3)"}
    )
    assert result.text.index("self.relu = model.relu") < result.text.index("self.norm = nn.Batch")
    assert body(result).endswith("out = out + x\nout = self.norm(out)\nreturn self.relu(out)")


def test_an_opened_child_reads_by_its_path():
    """`self.layers[0].norm(x)`, its own numbers by its path, and the model's numbers unchanged."""
    model, graph = captured("Stack")
    call = next(n for n in graph.root.nodes if n.child == "layers.0")
    scope = inline(graph, graph.root, call.id)
    inner = next(n for n in scope.nodes if n.child == "layers.0.attention")
    scope = inline(graph, scope, inner.id)
    result = print_class(graph, scope, model, name="Printed", arg="model")
    assert "self.layers[0].attention.proj(out)" in result.text
    assert "self.layers[0].attention.num_heads" in result.text
    assert "for layer in self.layers[1:]:" in result.text
    space = {}
    exec(import_block(result.imports) + "\n\n\n" + result.text, space)  # noqa: S102
    x = torch.randn(3, 5, 4)
    assert torch.equal(space["Printed"](copy.deepcopy(model))(x), model(x))


def test_calls_that_ran_other_operations_share_no_class():
    """One module, called once with a mask and once without: one text can't serve both."""

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = models.Steered()

        def forward(self, x):
            return self.inner(self.inner(x), x)

    model = Twice().eval()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    with pytest.raises(EmissionError, match="2 calls"):
        print_class(graph, graph.scopes["inner"], model.inner, name="P", arg="block")


def test_the_end_of_a_container_that_nobody_reads_goes():
    """Cut in the third of five layers that are called one by one: two stay behind."""
    model, graph = captured("Stack")
    calls = [n for n in graph.root.nodes if n.child]
    scope = returning(graph.root, Ref(calls[2].id))
    result = print_class(graph, scope, model, name="P", arg="model", base=graph)
    assert "self.layers = model.layers[:3]" in result.text
    assert body(result) == "for layer in self.layers:\n    x = layer(x)\nreturn x"
    result = print_class(graph, scope, model, name="P", arg="model", base=graph, form="sub")
    assert body(result) == "for layer in self.layers[:3]:\n    x = layer(x)\nreturn x"


class Fills(nn.Module):
    """Appends to a list that it was given, only where it is asked to."""

    def forward(self, x, found=None):
        if found is not None and isinstance(found, list):
            found.append(x * 2)
        return x + 1


class Leaves(nn.Module):
    """Sets an attribute of a child, and fills a list of its own."""

    def __init__(self):
        super().__init__()
        self.child = nn.ReLU()

    def forward(self, x):
        mine = []
        mine.append(self.child(x))
        self.child.memory = x
        return mine[0]


def test_what_a_forward_leaves_behind_is_not_lost_silently():
    """A list filled for the caller and an attribute set are refused, quoted; a branch not taken is not."""
    model = Leaves().eval()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    with pytest.raises(EmissionError, match=r"self\.child\.memory = x"):
        print_class(graph, graph.root, model, name="P", arg="model")
    model = Fills().eval()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    assert print_class(graph, graph.root, model, name="P", arg="model").text.endswith("x + 1")

    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Fills()

        def forward(self, x):
            found = []
            return self.inner(x, found)

    model = Around().eval()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    with pytest.raises(EmissionError):
        print_class(graph, graph.scopes["inner"], model.inner, name="P", arg="block")


def test_a_kept_result_still_depends_on_later_decisions():
    """A tap that keeps the original output needs the guard that a cut does not need."""
    model, graph = captured("SizeBranch")  # its last operation comes before the decision
    scope = returning(graph.root, {"out": graph.root.output.args[0]})
    options = {"name": "P", "arg": "model", "base": graph}
    with pytest.raises(EmissionError, match=r"x\.shape\[0\] > 2"):
        print_class(graph, scope, model, **options)
    text = print_class(graph, scope, model, allow_specialised=True, **options).text
    assert "if x.shape[0] > 2:" in text


def attend(q, mask=None):
    """Takes `None` for a mask without a word."""
    return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)


class Masked(nn.Module):
    """Hands an optional mask to a helper."""

    def forward(self, x, mask=None):
        return torch.nn.functional.layer_norm(attend(x, mask), (4,))


def test_an_optional_tensor_that_was_given_must_be_given():
    """Where `None` would pass silently, the text asks for it; defaults of torch are not written."""
    model = Masked().eval()
    mask = torch.ones(5, 5, dtype=torch.bool)
    graph = capture(model, (torch.randn(2, 5, 4), mask), {}, how="real")
    lines = body(print_class(graph, graph.root, model, name="P", arg="model")).split("\n")
    assert lines[0] == "if mask is None:"
    assert lines[-1].endswith(", (4,))") and "eps" not in lines[-1] and "weight" not in lines[-1]


class Optional(nn.Module):
    """Optional values whose absence Python would notice by itself, and a helper that asks."""

    def __init__(self):
        super().__init__()
        self.inner = Asks()

    def forward(self, x):
        return self.inner(x, types.SimpleNamespace(h=x * 2), x > 0)


class Asks(nn.Module):
    def forward(self, x, state=None, mask=None):
        if state is not None:
            x = x + state.h
        return masked(x, mask)


def masked(x, mask=None):
    return x if mask is None else x.masked_fill(mask, 0)


def test_an_optional_value_that_was_asked_for_is_named_where_it_is_missing():
    """Objects count as tensors do; a helper may ask, too. The guard comes before Python's own error."""
    model = Optional().eval()
    x = torch.randn(2, 4)
    graph = capture(model, (x,), {}, how="real")
    text = print_class(graph, graph.scopes["inner"], model.inner, name="Printed", arg="block",
                       allow_specialised=True)  # fmt: skip
    assert "if state is None or mask is None:" in text.text
    assert body(text).endswith("x = x + state.h\nreturn x.masked_fill(mask, 0)")


class WrittenParts(nn.Module):
    """Writes into parts of a value, and reads a nested entry of a dict."""

    def __init__(self):
        super().__init__()
        self.options = {"scale": {"out": 2.0}}

    def forward(self, x):
        h = x * 1
        h[:, 0] += 1.0
        h[h > 0] *= 2.0
        return h * self.options["scale"]["out"]


def test_a_part_written_in_place_is_one_statement():
    """``h[:, 0] += 1`` alone does what Python records as a read, an addition and a write."""
    model, x = WrittenParts(), torch.randn(2, 4)
    surgery = nbs.Surgery(model, x)
    surgery.tap({"mul": "kept"}, output="out")
    assert "h[:, 0] += 1.0\n" in surgery.code
    assert "] = h[" not in surgery.code
    assert 'self.options["scale"]["out"]' in surgery.code
    assert torch.equal(surgery.build()(x)["out"], model(x))


class TwoHeads(nn.Module):
    """Heads in a dict of modules."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})

    def forward(self, x):
        return {name: head(x) for name, head in self.heads.items()}


def test_a_dict_of_modules_holds_what_is_read():
    """A head that a cut leaves behind does not stay as dead weight."""
    model, x = TwoHeads(), torch.randn(2, 4)
    surgery = nbs.Surgery(model, x)
    surgery.cut(after="heads.b")
    assert list(surgery.build().state_dict()) == ["heads.b.weight", "heads.b.bias"]
    assert torch.equal(surgery.build()(x), model(x)["b"])
    assert surgery.verify().ok
