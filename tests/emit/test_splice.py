"""An edit spliced into the author's own text: how it reads, that it is right, what is refused."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from nbsurgery import rewrite
from nbsurgery.capture import capture
from nbsurgery.emit.names import import_block
from nbsurgery.emit.printer import print_class
from nbsurgery.emit.splice import splice
from nbsurgery.errors import EmissionError
from nbsurgery.graph import Node, Ref
from tests import roundtrip
from tests.models import MODELS


class Negate(nn.Module):
    """Visible wherever it is put; takes whatever the old call took."""

    def forward(self, x, *args, **kwargs):
        return -x


def captured(name: str, batch: int = 2):
    make, inputs = MODELS[name]
    model = make().eval()
    return model, capture(model, inputs(batch), {}, how="real")


def edited(scope, node: Node, kind: str):
    """The scope with one edit at a node, or ``None`` where that makes no sense."""
    prefix = scope.path + "." if scope.path else ""
    new = Node("@1#0", scope.key, "module", "extra", "Negate", prefix + "extra", (Ref(node.id),),
               outputs=node.outputs, step=1)  # fmt: skip
    first = node.args[0] if node.args else None
    if kind == "insert":
        return rewrite.insert_after(scope, node.id, new)
    if node.kind == "input" or not isinstance(first, Ref):
        return None
    if kind == "before":
        return rewrite.insert_before(scope, node.id, first.id, new.with_(args=(first,)))
    if kind == "remove":
        return rewrite.without_dead(rewrite.bypassed(scope, node.id, first.id))
    call = node.with_(kind="module", target=new.target, child=None, frames=(), writes=(), step=1)
    return rewrite.without_dead(rewrite.exchanged(scope, call))


def spliced(model, graph, scope, after):
    """The edited model by the spliced class, and its text."""
    module = model.get_submodule(scope.path)
    new = {"extra": "Negate()"} if any(n.id.startswith("@") for n in after.nodes) or any(
        n.step for n in after.nodes
    ) else {}  # fmt: skip
    printed = splice(graph, after, module, name="Edited", new=new)
    space: dict = {}
    exec(import_block(printed.imports) + "\n\n\n" + printed.text, space)  # noqa: S102
    result = copy.deepcopy(model)
    place = result.get_submodule(scope.path)
    if new:
        place.add_module("extra", Negate())
    place.__class__ = space["Edited"]
    return result, printed.text


def printed(model, graph, scope, after):
    """The edited model by the printed class."""
    module = model.get_submodule(scope.path)
    text = print_class(
        graph, after, module, name="Edited", arg="block", new={"extra": "Negate()"}, base=graph,
        allow_specialised=True,
    )  # fmt: skip
    space: dict = {"Negate": Negate}
    exec(import_block(text.imports) + "\n\n\n" + text.text, space)  # noqa: S102
    return roundtrip.put(copy.deepcopy(model), scope.path, space["Edited"], "copy")


@pytest.mark.parametrize("name", ["SharedReLU", "ReadAfterInplace", "Sizes", "Encoder", "Outputs",
                                  "Functional", "Recurrent", "Branches", "Flags", "Mixed", "Stack",
                                  "Loops"])  # fmt: skip
def test_both_ways_of_writing_an_edit_agree(name):
    """At every node: insert, insert before, replace, remove; spliced and printed text do the same."""
    model, graph = captured(name)
    inputs = [MODELS[name][1](2), MODELS[name][1](3)]
    done = 0
    for scope in graph.scopes.values():
        for node in scope.nodes:
            if node.kind in ("output", "parameter", "constant") or node.glue or not node.outputs:
                continue
            for kind in ("insert", "before", "replace", "remove"):
                after = edited(scope, node, kind)
                if after is None:
                    continue
                try:
                    one, text = spliced(model, graph, scope, after)
                except EmissionError:
                    continue
                other = printed(model, graph, scope, after)
                for args in inputs:
                    assert agree(one, other, args), f"{kind} at {node.name}:\n{text}"
                done += 1
    assert done >= 8


def agree(one, other, args) -> bool:
    """Equal results, or both raise."""
    results = []
    for model in (one, other):
        try:
            results.append(roundtrip.run(model, args, {})[0])
        except Exception:  # noqa: BLE001 - an edit may fit nowhere
            results.append(None)
    if results[0] is None or results[1] is None:
        return results[0] is results[1]
    return roundtrip.difference(*results) is None


def test_the_authors_text_stays():
    """Condition and names survive; the import is the class's own; no annotation is added."""
    model, graph = captured("Branches")
    after = edited(graph.root, graph.by_name["lin"], "insert")
    result = splice(
        graph, after, model, name="BranchesNorm", new={"extra": "nn.ReLU()"}, doc="Doc."
    )
    assert result.imports == ("from tests.models import Branches",)
    assert result.text == (
        "class BranchesNorm(Branches):\n"
        '    """Doc."""\n'
        "\n"
        "    def forward(self, x):\n"
        "        x = self.lin(x)\n"
        "        x = self.extra(x)\n"
        "        if self.training:\n"
        "            x = x * 2\n"
        "        return x + 1"
    )


class Base(nn.Module):
    """A forward that a subclass calls by `super()`."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        """A docstring that is left out."""
        return self.lin(x) * scale  # a comment that stays


class Derived(Base):
    """Calls its base."""

    def forward(self, x):
        y = super().forward(x)
        return torch.relu(y)


def test_annotations_go_and_super_still_means_the_base():
    """`super()` is spelled out, so that the author's base is called and not the author's class."""
    model = Derived().eval()
    x = torch.randn(2, 4)
    graph = capture(model, (x,), {}, how="real")
    after = edited(graph.root, graph.by_name["relu"], "insert")
    result, text = spliced(model, graph, graph.root, after)
    assert "y = super(Derived, self).forward(x)" in text
    assert torch.equal(result(x), -model(x))
    model = Base().eval()
    graph = capture(model, (x,), {}, how="real")
    _, text = spliced(model, graph, graph.root, edited(graph.root, graph.by_name["lin"], "insert"))
    assert (
        "def forward(self, x, scale=2.0):\n        return self.extra(self.lin(x)) * scale  #"
        in text
    )
    assert "Tensor" not in text and "left out" not in text


@pytest.mark.parametrize(
    ("node", "kind", "lines"),
    [
        ("sin", "insert", ["for i, (lin, norm) in enumerate(zip(self.lins, self.norms, strict=True)):",
                           "        x = torch.sin(x)", "        if i == 1:",
                           "            x = self.extra(x)"]),
        ("relu_1", "insert", ["    x = (self.step_2 if i == 1 else self.step)(lin(x), norm)"]),
        ("neg_2", "insert", ["    outs.append(self.extra(x.neg()) if i == 2 else x.neg())"]),
        ("add_8", "insert", ["for index, lin in enumerate(self.lins, 1):"]),
        ("tanh_4", "remove", ["        for i in range(self.depth):"]),
        ("lins.1_2", "insert", [
            "parts = [self.extra(lin(out)) if i == 1 else lin(out) for i, (lin, out) in enumerate("]),
    ],
)  # fmt: skip
def test_one_turn_of_a_loop(node, kind, lines):
    """The loop counts, and the edit stands behind a test for the turn in which it was recorded."""
    model, graph = captured("Loops")
    after = edited(graph.root, graph.by_name[node], kind)
    _, text = spliced(model, graph, graph.root, after)
    for line in lines:
        assert line in text, text


def test_a_loop_over_what_comes_in_is_refused():
    """Another input turns it more often: which turns were meant is not known."""
    model, graph = captured("Items")
    target = next(n for n in graph.root.nodes if n.name == "lin")
    with pytest.raises(EmissionError, match="stands in a loop over what the module is given"):
        spliced(model, graph, graph.root, edited(graph.root, target, "insert"))


@pytest.mark.parametrize(
    ("node", "called", "helper"),
    [
        ("cat", "halves", "        return self.extra(torch.cat((second, first), dim=-1))"),
        ("cat_1", "halves", "        return self.extra(torch.cat((second, first), dim=-1))"),
        ("sub", "mix", "    def mix(self, a, b):\n        return self.extra(a * 2 - b)"),
        ("tanh", "mild", "    def mild(self, x):\n        return self.extra(torch.tanh(x))"),
    ],
)
def test_a_helper_is_copied_for_the_one_call(node, called, helper):
    """The function becomes a method with the edit in it; only that call of it calls the copy."""
    model, graph = captured("Helpers")
    after = edited(graph.root, graph.by_name[node], "insert")
    result, text = spliced(model, graph, graph.root, after)
    assert helper in text
    assert text.count("def ") == (1 if called == "mix" else 2)
    assert text.count(f"self.{called}(") == (called != "mix")
    x = torch.randn(3, 4)
    with torch.no_grad():
        assert torch.equal(result(x), printed(model, graph, graph.root, after)(x))


def test_a_helper_that_a_variable_holds_is_guarded():
    """Another function in that variable raises: the text holds the one that ran."""
    model, graph = captured("Helpers")
    result, text = spliced(
        model, graph, graph.root, edited(graph.root, graph.by_name["tanh"], "insert")
    )
    assert "        if act is not mild:\n" in text
    result.mode = "hard"
    with pytest.raises(RuntimeError, match="a run with act=mild"):
        result(torch.randn(2, 4))


def test_a_helper_that_is_handed_the_module():
    """A name that every module has is not taken."""
    model, graph = captured("Hidden")
    result, text = spliced(
        model, graph, graph.root, edited(graph.root, graph.by_name["lin"], "insert")
    )
    assert "return self.apply_2(self, x)" in text
    assert "return self.extra(module.lin(x))" in text
    x = torch.randn(2, 4)
    assert torch.equal(result(x), -model(x))


def test_another_edit_is_refused():
    """A cut is no single call."""
    model, graph = captured("Encoder")
    after = rewrite.returning(graph.root, Ref(graph.root.nodes[2].id))
    with pytest.raises(EmissionError):
        splice(graph, after, model, name="Edited")


def test_a_removal_that_leaves_calls_for_nothing_is_refused():
    """Without the addition the whole branch would still run."""
    model, graph = captured("Encoder")
    add = next(n for n in graph.root.nodes if n.type == "add")
    with pytest.raises(EmissionError, match="for nothing"):
        splice(graph, edited(graph.root, add, "remove"), model, name="Edited")


class Coder:
    """A plain object with a method that calls another of its methods."""

    scale = 3.0

    def decode(self, x):
        return self.shift(x * self.scale)

    def shift(self, x, by=1.0):
        return torch.tanh(x) + by


class Coded(nn.Module):
    """Keeps a plain object, and calls it twice."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.coder = Coder()

    def forward(self, x):
        x = self.coder.decode(self.lin(x))
        return self.coder.decode(x)


def test_a_method_of_an_object_that_the_module_keeps():
    """It is copied for the one call; the object becomes its first argument."""
    model, x = Coded().eval(), torch.randn(2, 4)
    graph = capture(model, (x,), {}, how="real")
    after = edited(graph.root, graph.by_name["tanh"], "insert")
    result, text = spliced(model, graph, graph.root, after)
    assert "x = self.decode(self.coder, self.lin(x))\n        return self.coder.decode(x)" in text
    assert "def decode(module, self, x):\n        return module.shift(self, x * self.scale)" in text
    assert "return module.extra(torch.tanh(x)) + by" in text
    with torch.no_grad():
        assert torch.equal(result(x), printed(model, graph, graph.root, after)(x))


class Convolution(nn.Conv2d):
    """Has the forward of torch's own class."""


def test_what_torch_wrote_is_called_by_the_new_forward():
    """There is no text of the author's to change: what it returns goes through the new module."""
    model, x = nn.Sequential(Convolution(3, 4, 1)).eval(), torch.randn(2, 3, 4, 4)
    graph = capture(model, (x,), {}, how="real")
    scope = graph.scopes["0"]
    result, text = spliced(model, graph, scope, edited(scope, scope.nodes[-2], "insert"))
    assert "def forward(self, input):\n        return self.extra(super().forward(input))" in text
    assert torch.equal(result(x), -model(x))


class Named(nn.ModuleDict):
    """Runs whatever it holds."""

    def forward(self, x):
        found = {}
        for name, module in self.items():
            x = module(x)
            found[name] = x
        return x + found["first"]


class Handed(nn.Module):
    """Gives all its children to a function."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return one_after_another(self.children(), x) * 2


def one_after_another(modules, x):
    for module in modules:
        x = module(x)
    return x


def test_a_loop_over_all_children_passes_over_the_new_one():
    """A new child joins the container; the loop over it would run it once more."""
    model = Named({"first": nn.Linear(4, 4), "second": nn.Linear(4, 4)}).eval()
    x = torch.randn(2, 4)
    graph = capture(model, (x,), {}, how="real")
    after = edited(graph.root, graph.by_name["first"], "insert")
    result, text = spliced(model, graph, graph.root, after)
    assert text.endswith(
        "        for i, (name, module) in enumerate(self.items()):\n"
        "            if module is self.extra:\n"
        "                continue\n"
        "            x = module(x)\n"
        "            if i == 0:\n"
        "                x = self.extra(x)\n"
        "            found[name] = x\n"
        '        return x + found["first"]'
    )
    first = -model["first"](x)
    with torch.no_grad():
        assert torch.equal(result(x), model["second"](first) + first)


def test_all_children_handed_on_are_refused():
    """The function would call the new one as well."""
    model = Handed().eval()
    graph = capture(model, (torch.randn(2, 4),), {}, how="real")
    with pytest.raises(EmissionError, match="a new one would join"):
        spliced(model, graph, graph.root, edited(graph.root, graph.by_name["mul"], "insert"))
