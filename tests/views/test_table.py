"""The table: every node, group rows, totals; as data, text and HTML."""

import re
from html.parser import HTMLParser

import pytest
from torch import nn

from nbsurgery.graph import Graph
from nbsurgery.views import ModelGraph
from tests.handmade import Net, net_graph


@pytest.fixture
def table():
    return ModelGraph(net_graph(), Net()).table()


def test_rows_are_all_nodes_and_the_groups(table):
    """Each flat node has a row, each opened module a group row before what it holds."""
    assert [r.layer for r in table if r.kind != "group"] == [n.name for n in net_graph().flat]
    assert [r.layer for r in table if r.kind == "group"] == ["blocks.0", "blocks.1"]
    row = next(r for r in table if r.layer == "blocks.1.add")
    assert (row.type, row.shape, row.params, row.depth) == ("add", (2, 4), 0, 1)
    assert row.connected == ("blocks.1.relu", "blocks.0.relu_1")


def test_parts_sum_to_the_total(table):
    """Rows of nodes and what no row used make the total."""
    parts = sum(r.params for r in table if r.kind != "group")
    assert parts + table.totals["unused"] == table.totals["params"] == 61


def test_text_is_aligned_and_shows_everything(table):
    """The golden text of the small net."""
    text = str(table.to_text(90))
    lines = text.splitlines()
    assert lines[2].split("  ")[0] == "Layer"
    column = lines[2].index("Connected to")
    assert [line[column:] for line in lines[4:8]] == ["", "x", "x", "blocks.0.lin"]
    assert "  blocks.0.relu_1  ReLU (2/2)  2×4" in text
    assert re.search(r"Total params +61\n", text)


@pytest.mark.parametrize("width", [60, 70, 90, 140])
def test_text_keeps_its_width_and_loses_nothing(width):
    """Long names are said inside their module, else wrap; every name can still be read."""
    graph = ModelGraph(_long_names(), Net())
    text = graph.table().to_text(width)
    assert max(map(len, text.splitlines())) <= max(width, 83)
    squeezed = re.sub(r"\s+", "", text)
    for node in graph.nodes:
        assert node.name.rpartition(".")[2] in squeezed


def test_names_are_said_inside_their_module_where_they_do_not_fit(table):
    """A name with a dot in front belongs to the module of the row; others stay whole."""
    text = table.to_text(66)
    assert re.search(r"^  \.relu_1 +ReLU \(2/2\)", text, re.MULTILINE)
    assert re.search(r"\.add .* \.relu,\n +blocks\.0\.relu_1", text)
    assert "blocks.0.lin" not in text


def _long_names():
    graph = net_graph()
    block = graph.scopes["blocks.0"]
    nodes = tuple(
        n.with_(name="encoder.layers.encoder_layer_11.self_attention." + n.name)
        for n in block.nodes
    )
    return graph.with_scopes({"blocks.0": block.with_(nodes=nodes)})


class _Checker(HTMLParser):
    """Collects the cells, and checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.rows = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += text


def test_html_holds_the_same_cells(table):
    """The HTML parses, and has a row for each row."""
    parser = _Checker()
    parser.feed(table.to_html())
    assert parser.open == []
    assert parser.rows[0] == ["Layer", "Type", "Output shape", "Params", "Connected to"]
    body = parser.rows[1 : 1 + len(table)]
    assert [cells[0] for cells in body] == [row.layer for row in table]
    assert "<script" not in table.to_html()


def test_html_escapes_what_comes_from_the_model():
    """Names are data: nothing of them becomes markup."""
    graph = net_graph()
    evil = "<img src=x onerror='alert(1)'>"
    root = graph.root.with_(
        nodes=tuple(n.with_(name=evil, type=evil) if n.id == "#4" else n for n in graph.root.nodes)
    )
    html = ModelGraph(graph.with_scopes({"": root}), Net()).table().to_html()
    assert "<img" not in html and "&lt;img" in html


def test_shared_weights_are_marked():
    """A row whose weights an earlier row counted says so instead of showing nothing."""
    net = Net()
    net.fc = net.blocks[0].lin
    row = next(r for r in ModelGraph(net_graph(), net).table() if r.layer == "fc")
    assert row.params == 0 and "earlier" in row.note
    assert "shared" in ModelGraph(net_graph(), net).table().to_text(100)


def test_an_opaque_scope_says_why():
    """The reason is kept with the group row."""
    graph = net_graph()
    opaque = graph.scopes["blocks.1"].with_(opaque="it calls numpy")
    table = ModelGraph(graph.with_scopes({"blocks.1": opaque}), Net()).table()
    assert [r.note for r in table if r.kind == "group"] == ["", "it calls numpy"]
    assert "it calls numpy" in table.to_html()


def test_an_empty_model_has_a_table():
    """No node, no error."""
    graph = net_graph()
    bare = Graph({"": graph.root.with_(nodes=())})
    assert "Total params" in str(ModelGraph(bare, nn.Identity()).table())
