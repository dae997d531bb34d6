"""Parts of a split model: what stays whole, what is left out, how values that cross are called."""

from __future__ import annotations

import types

import torch
from torch import nn

from nbsurgery.session import Session
from tests.session.zoo import build


class Deep(nn.Module):
    """A loop over a list of layers, and two values that live on."""

    def __init__(self, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(layers))

    def forward(self, x):
        low, high = x.chunk(2, dim=-1)
        x = torch.cat([high, low], dim=-1)
        for layer in self.layers:
            x = layer(x).relu()
        return x * low.sum() - high.sum()


def split(layers: int, after: str) -> tuple[str, Session]:
    """The text of a split."""
    session = Session(Deep(layers).eval(), (torch.randn(2, 4),), namespace={})
    session.do("split", {"after": after})
    assert session.report.ok, str(session.report)
    warnings = [f.text for f in session.report.findings if f.severity == "warning"]
    assert not warnings, warnings
    return session.code, session


def test_the_end_of_a_list_keeps_its_keys_and_nothing_else():
    """Every parameter is in one part, under its old key; a loop stays one."""
    text, session = split(6, "layers.1")
    assert "self.layers = nn.ModuleDict({str(i): model.layers[i] for i in range(2, 6)})" in text
    assert "for layer in self.layers.values():" in text
    head, tail = session.build()
    keys = [*head.state_dict(), *tail.state_dict()]
    assert sorted(keys) == sorted(session.original.state_dict())


def test_one_item_of_a_list_is_read_by_its_number():
    """Few items are written out."""
    text, session = split(3, "layers.1")
    assert 'self.layers = nn.ModuleDict({"2": model.layers[2]})' in text
    assert 'x = self.layers["2"]' in text
    x = torch.randn(3, 4)
    head, tail = session.build()
    with torch.no_grad():
        assert torch.equal(tail(*head(x)), session.original(x))


def test_values_that_cross_have_the_authors_names():
    """What a function made is called as he called it, what a layer made after the layer."""
    text, _ = split(3, "layers.1")
    assert (
        "def forward(self, low, high, relu):" in text
        or "def forward(self, low, high, layers" in text
    )


def test_every_layer_of_a_transformer_is_in_one_part():
    """The list in the middle of a library's model."""
    model, args, kwargs = build("bert")
    session = Session(model, args, kwargs, namespace={})
    session.do("split", {"after": "bert.encoder.layer.0"})
    texts = [f.text for f in session.report.findings if f.severity == "warning"]
    assert not texts, texts


def test_what_an_inner_part_hands_out_is_unpacked():
    """Several values from inside, under the author's names."""

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.deep = Deep(3)

        def forward(self, x):
            return self.deep(x) + 1

    session = Session(Outer().eval(), (torch.randn(2, 4),), namespace={})
    session.do("split", {"after": "deep.layers.1"})
    assert "low, high, layers = self.deep(x)\n        return low, high, layers" in session.code


def test_items_that_the_author_reads_are_no_unpacking():
    """A list of a given object is read where he reads it."""

    class Reads(nn.Module):
        def forward(self, given):
            return given.values[0] + given.values[1]

    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.reads, self.lin = Reads(), nn.Linear(4, 4)

        def forward(self, x):
            return self.lin(self.reads(types.SimpleNamespace(values=[x * 3, x * 2])))

    session = Session(Holds().eval(), (torch.randn(2, 4),), namespace={})
    session.do("insert", {"before": {"call": "reads.add"}, "new": "nn.Identity()"})
    assert "self.identity(given.values[0])" in session.code
    assert "+ given.values[1]" in session.code
