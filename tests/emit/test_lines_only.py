"""Before Python 3.11 only lines are known: text is as exact, and mostly as readable."""

from __future__ import annotations

import dataclasses

import pytest

from nbsurgery.capture import capture
from nbsurgery.emit.printer import print_class
from nbsurgery.emit.splice import splice
from nbsurgery.graph import Graph
from tests import roundtrip
from tests.emit.test_splice import edited
from tests.models import MODELS


def captured(name: str) -> tuple:
    """A model and its graph as Python 3.10 would record it."""
    make, inputs = MODELS[name]
    model = make().eval()
    graph = capture(model, inputs(2), {}, how="real")
    scopes = {}
    for key, scope in graph.scopes.items():
        nodes = []
        for node in scope.nodes:
            frames = [dataclasses.replace(f, position=(f.line, *[None] * 3)) for f in node.frames]
            nodes.append(node.with_(frames=tuple(frames)))
        scopes[key] = scope.with_(nodes=tuple(nodes))
    return model, Graph(scopes, graph.specialisations, graph.how), inputs


@pytest.mark.parametrize("name", MODELS)
def test_printed_text_is_exact(name):
    """Nothing is wrong where names and nesting had to be guessed."""
    model, graph, inputs = captured(name)
    others = [(inputs(4), {})]
    rows = roundtrip.check(model, inputs(2), graph=graph, others=others, allow_specialised=True)
    assert [row.text for row in rows if row.wrong] == []


@pytest.mark.parametrize("name", ["Sizes", "Encoder", "Recurrent"])
def test_one_call_of_a_name_on_a_line_is_found(name):
    """Where a line holds one call of that name, the text is the same as with exact positions."""
    model, graph, inputs = captured(name)
    exact = capture(model, inputs(2), {}, how="real")
    options = {"name": "P", "arg": "block"}
    assert print_class(graph, graph.root, model, **options) == print_class(
        exact, exact.root, model, **options
    )


def test_splicing_finds_its_place():
    """The edit goes into the author's text by the line and the name of the call."""
    model, graph, _ = captured("Branches")
    after = edited(graph.root, graph.by_name["lin"], "insert")
    text = splice(graph, after, model, name="Edited", new={"extra": "nn.ReLU()"}).text
    assert "        x = self.lin(x)\n        x = self.extra(x)\n" in text
