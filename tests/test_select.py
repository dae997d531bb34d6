"""What a `where` selects, and the errors for what selects nothing."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nbsurgery.errors import SelectionError
from nbsurgery.select import glob_pattern, modules, select
from tests.handmade import Block, Net, net_graph

GRAPH, MODEL = net_graph(), Net()


def names(where, **more):
    return [GRAPH.by_id[id].name for id in select(GRAPH, MODEL, where, **more)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("fc", ["fc"]),
        ("blocks.0.relu", ["blocks.0.relu", "blocks.0.relu_1"]),  # the path: every call
        ("blocks.0.relu_1", ["blocks.0.relu_1"]),  # the call: only that
        ("blocks.1", ["blocks.1"]),
        ("relu", ["relu"]),
        ("blocks.*", ["blocks.0", "blocks.1"]),
        ("blocks.*.lin", ["blocks.0.lin", "blocks.1.lin"]),
        ("**.relu", [f"blocks.{i}.relu{s}" for i in (0, 1) for s in ("", "_1")] + ["relu"]),
        ("blocks.**.relu_1", ["blocks.0.relu_1", "blocks.1.relu_1"]),
        ("*", ["x", "relu", "flatten", "fc", "output"]),
        ("blocks.[!0].lin", ["blocks.1.lin"]),
        ("blocks.?.add", ["blocks.0.add", "blocks.1.add"]),
        (nn.Linear, ["blocks.0.lin", "blocks.1.lin", "fc"]),
        (Block, ["blocks.0", "blocks.1"]),
        (torch.flatten, ["flatten"]),
        (F.relu, ["relu"]),
        (lambda node: node.type == "add", ["blocks.0.add", "blocks.1.add"]),
        (["fc", nn.ReLU, "blocks.0.relu_1"], None),
        (MODEL.blocks[1].relu, ["blocks.1.relu", "blocks.1.relu_1"]),
        (MODEL.blocks[1], ["blocks.1"]),
        (GRAPH.by_name["blocks.0.add"], ["blocks.0.add"]),
    ],
)
def test_select(where, expected):
    """Each kind of `where` gives its calls, once, in execution order."""
    if expected is None:
        expected = [f"blocks.{i}.relu{s}" for i in (0, 1) for s in ("", "_1")] + ["fc"]
    assert names(where) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("", [""]),
        ("blocks", ["blocks"]),
        ("unused", ["unused"]),
        ("blocks.0.relu_1", ["blocks.0.relu"]),
        ("blocks.*", ["blocks.0", "blocks.1"]),
        (nn.Linear, ["blocks.0.lin", "blocks.1.lin", "fc", "unused"]),
        ([MODEL.fc, "blocks.0"], ["blocks.0", "fc"]),
        (lambda node: node.kind == "module", None),
    ],
)
def test_modules(where, expected):
    """Modules are found by path also where the run never calls them."""
    if expected is None:
        expected = ["blocks.0.lin", "blocks.0.relu", "blocks.1.lin", "blocks.1.relu", "fc"]
    assert modules(GRAPH, MODEL, where) == expected


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("blocks.0.lim", "nearest: 'blocks.0.lin'"),
        ("lin", "'blocks.0.lin'"),
        ("fcc*", "matches no name"),
        (nn.LSTM, "LSTM is called; called are: Linear, ReLU"),
        ("unused", "not called in this run"),
        ("blocks", "what it holds is: 'blocks.0', 'blocks.1'"),
        ("", "whole model"),
        (nn.Linear(1, 1), "no part of the captured model"),
        (7, "an? int"),
        ([], "empty list"),
        (["fc", nn.LSTM], "LSTM"),
        (torch.cat, "matches nothing"),
        (lambda node: False, "matches nothing"),
    ],
)
def test_select_refuses(where, message):
    """What selects nothing says what came and what is near."""
    with pytest.raises(SelectionError, match=message):
        select(GRAPH, MODEL, where)


def test_functions_have_no_module():
    """The call of a function is refused where a module is needed."""
    with pytest.raises(SelectionError, match="'relu' is a function"):
        modules(GRAPH, MODEL, "relu")


def test_empty_is_allowed_where_asked_but_a_wrong_name_never_is():
    """`empty=True` is for searches; a typing error is still told."""
    assert names(nn.LSTM, empty=True) == []
    with pytest.raises(SelectionError):
        names("blocks.0.lim", empty=True)


def test_shared_module_is_found_by_each_of_its_paths():
    """An alias of a module means the same calls."""
    model = Net()
    model.alias = model.fc
    assert [GRAPH.by_id[i].name for i in select(GRAPH, model, "alias")] == ["fc"]
    assert modules(GRAPH, model, "alias") == ["fc"]


def test_a_view_is_what_a_function_gets():
    """The caller decides what a function of a node sees."""
    seen = []
    select(GRAPH, MODEL, lambda n: seen.append(n) or True, view=lambda node: node.name.upper())
    assert seen == [n.name.upper() for n in GRAPH.flat]


def test_glob_specials_are_literal():
    """Dots and brackets in a glob are not read as a regular expression."""
    assert not glob_pattern("a.b").fullmatch("axb")
    assert glob_pattern("**.c").fullmatch("c") and not glob_pattern("**.c").fullmatch("bc")
    assert glob_pattern("a.**").fullmatch("a.b.c") and not glob_pattern("a.*").fullmatch("a.b.c")
