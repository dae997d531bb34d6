"""Pictures keep the rules of geometry, and the checker sees what breaks them."""

import copy

import pytest
from drawn import MODELS
from geometry import faults

from nbsurgery.render import compose, default_open

HERO = {"layer1", "layer2", "layer3", "layer4", "layer1.0"}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("what", ["closed", "default", "full"])
def test_pictures_are_sound(graph_of, name, what):
    """Nothing overlaps, no edge crosses what it does not belong to, every text fits."""
    graph = graph_of(name)
    open = {"closed": (), "default": default_open(graph), "full": graph.scopes}[what]
    assert [] == faults(compose(graph, open))


@pytest.mark.parametrize("name", ["resnet18", "unet", "dense", "transformer", "gpt2"])
def test_one_column_is_sound(graph_of, name, monkeypatch):
    """Without Graphviz there is a picture too, which says why it is plain."""
    monkeypatch.setattr("nbsurgery.render.scene.find_engine", lambda: None)
    graph = graph_of(name)
    scene = compose(graph, graph.scopes)
    assert [] == faults(scene)
    assert "graphviz-pure" in scene["stats"]["notices"][0]


def _inside(group, key):
    for item in group["items"]:
        if item["key"] == key:
            return item
        if item["kind"] == "group" and (found := _inside(item, key)):
            return found
    return None


def _overlap(scene):
    cards = scene["group"]["items"]
    cards[2]["y"] = cards[1]["y"] + 5


def _outside(scene):
    _inside(scene["group"], "s:layer1.0")["items"][0]["x"] = -3


def _loose(scene):
    edge = scene["group"]["edges"][0]
    edge["d"] = edge["d"].replace("V", "L0,0V")


def _short(scene):
    scene["group"]["edges"][1]["d"] = "M150,170V180"


def _through(scene):
    block = _inside(scene["group"], "s:layer1.0")
    edge = next(e for e in block["edges"] if e["skip"])
    first = block["items"][0]
    middle = first["x"] + first["w"] / 2
    edge["d"] = edge["d"].replace("M", f"M{middle},0V60L", 1)


def _long(scene):
    scene["group"]["items"][1]["rows"][0]["name"] = "a_name_that_is_much_too_long_for_its_row"


def _title(scene):
    block = _inside(scene["group"], "s:layer1.0")
    block["edges"][0]["d"] = f"M10,0L{block['w'] - 10},20V{block['h']}"


def _twice(scene):
    scene["group"]["items"][0]["key"] = scene["group"]["items"][1]["key"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_overlap, "overlaps"),
        (_outside, "stands out"),
        (_loose, "crosses"),
        (_short, "off the border"),
        (_through, "crosses"),
        (_long, "needs"),
        (_title, "through the title"),
        (_twice, "not unique"),
    ],
)
def test_the_checker_sees_faults(graph_of, spoil, said):
    """Each rule is broken once in a sound picture."""
    scene = copy.deepcopy(compose(graph_of("resnet18"), HERO))
    assert [] == faults(scene)
    spoil(scene)
    assert any(said in fault for fault in faults(scene)), faults(scene)
