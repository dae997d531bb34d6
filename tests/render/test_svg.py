"""The SVG file is sound XML, says what the scene says, and survives any name."""

import xml.etree.ElementTree as ET

import pytest
import torch
from geometry import faults
from torch import nn

from nbsurgery.capture import capture
from nbsurgery.render import compose, default_open, to_graphviz, to_svg
from nbsurgery.render.engine import find_engine

NS = "{http://www.w3.org/2000/svg}"
NAMES = [
    "<b>bold</b>",
    "a&b;",
    "x&lt;y",
    'say "hi"',
    "it's",
    "back\\slash\\n",
    "\\N",
    "]]><script>alert(1)</script>",
    "port:n",
    "new\nline",
    "nul\x00bell\x07",
    "naïve-π-日本-😀",
    "lone\ud800",
    "{record|<f0>}",
    "x" * 300,
    "digraph",
    "-->",
    "%s %(x)s {0}",
]


def _strange(names):
    model = nn.Sequential()
    for i, name in enumerate(names):
        inner = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        model.add_module(name, inner if i % 2 else nn.Linear(2, 2))
    return capture(model, (torch.zeros(1, 2),), {})


@pytest.mark.parametrize("dark", [False, True])
def test_it_says_what_the_scene_says(graph_of, dark):
    """Each row, box and title of the scene is text of the picture; it has a title and a description."""
    graph = graph_of("resnet18")
    scene = compose(graph, default_open(graph))
    root = ET.fromstring(to_svg(scene, dark=dark))
    assert (str(scene["width"]), scene["height"]) == (root.get("width"), float(root.get("height")))
    said = ["".join(t.itertext()) for t in root.iter(NS + "text")]
    for expected in (
        "conv1Conv2d",
        "64×8×8",
        "9,408",
        "layer1Sequential",
        "147,968"[:0] or "148.0K",
    ):
        assert expected in said
    assert "ResNet" in root.find(NS + "title").text
    assert "layer1 (Sequential)" in root.find(NS + "desc").text
    paths = [p for p in root.iter(NS + "path") if "skip" in (p.get("class") or "")]
    assert 1 == len(paths)


def test_the_themes_can_share_a_page(graph_of):
    """Light and dark have other colours, classes and ids."""
    scene = compose(graph_of("unet"), ())
    ids = [
        {e.get("id") for e in ET.fromstring(to_svg(scene, dark)).iter() if e.get("id")}
        for dark in (False, True)
    ]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_any_name_is_only_text():
    """Names with markup, quotes, controls and lone surrogates stay text, in their boxes."""
    graph = _strange(NAMES)
    for open in ((), graph.scopes):
        scene = compose(graph, open)
        assert [] == faults(scene)
        root = ET.fromstring(to_svg(scene).encode())
        assert not [e for e in root.iter() if e.tag in (NS + "script", NS + "b")]
        said = " ".join("".join(t.itertext()) for t in root.iter(NS + "text"))
        assert "<b>bold</b>" in said
        assert 'say "hi"' in said


def test_any_name_is_a_label_in_dot():
    """Graphviz draws every node, with its name as text, and finds nothing to warn of."""
    graph = _strange(NAMES)
    for depth in (0, None):
        dot = to_graphviz(graph, depth)
        root = ET.fromstring(find_engine().render(dot.source))
        boxes = [g for g in root.iter(NS + "g") if g.get("class") == "node"]
        rows = len(NAMES) if depth == 0 else len(NAMES) // 2 * 2 + (len(NAMES) + 1) // 2
        assert rows + 2 == len(boxes)
        edges = [g for g in root.iter(NS + "g") if g.get("class") == "edge"]
        assert rows + 1 == len(edges)
        said = "".join(root.itertext())
        for name in (
            "<b>bold</b>",
            "a&b;",
            "x&lt;y",
            'say "hi"',
            "back\\slash\\n",
            "port:n",
            "π-日本",
        ):
            assert name in said
