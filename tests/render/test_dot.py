"""People's own DOT: clusters, counts, and the same edges as the graph."""

import subprocess

import pytest

from nbsurgery.render import find_engine, to_graphviz


def _edges(source):
    found = set()
    for line in source.splitlines():
        if " -> " in line:
            a, b = line.strip().split(" -> ")
            found.add((a.strip('"'), b.strip('"')))
    return found


@pytest.mark.parametrize("name", ["resnet18", "googlenet", "swin_t", "lstm", "transformer", "bert"])
@pytest.mark.parametrize("depth", [0, 1, 2, None])
def test_it_renders_without_warnings(graph_of, name, depth):
    """The shipped engine draws it and says nothing."""
    dot = to_graphviz(graph_of(name), depth)
    done = subprocess.run(
        [find_engine().command, "-Tsvg"],
        input=dot.source.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (0, b"") == (done.returncode, done.stderr)


def test_clusters_and_counts(graph_of):
    """Depth one makes a cluster of each stage and a box of each block."""
    source = to_graphviz(graph_of("resnet18"), 1).source
    assert 4 == source.count("subgraph cluster_")
    assert 'label="layer1 (Sequential), 148.0K params"' in source
    assert '"layer1.0" [label="0 (BasicBlock)\\n64x8x8, 74.0K params"' in source
    assert 'conv1 [label="conv1 (Conv2d)\\n64x16x16, 9,408 params"' in source
    assert 0 == to_graphviz(graph_of("resnet18"), 0).source.count("subgraph")


def test_edges_are_those_of_the_graph(graph_of):
    """Fully open, the edges are each node's inputs."""
    graph = graph_of("resnet18")
    expected = {(graph.by_id[s].name, n.name) for n in graph.flat for s in graph.inputs_of(n.id)}
    assert expected == _edges(to_graphviz(graph, None).source)


def test_edges_end_at_what_is_shown(graph_of):
    """Closed, an edge runs between the boxes of the calls."""
    edges = _edges(to_graphviz(graph_of("resnet18"), 0).source)
    assert {("maxpool", "layer1"), ("layer1", "layer2"), ("layer4", "avgpool")} <= edges
    assert 10 - 1 == len(edges) - 3


def test_it_shows_itself_without_a_graphviz_on_the_system(monkeypatch):
    """A notebook shows the picture by the engine that came along."""
    monkeypatch.setenv("PATH", "")
    from tests.handmade import net_graph

    shown = to_graphviz(net_graph(), depth=1)._repr_mimebundle_()
    assert shown["image/svg+xml"].count("<svg") == 1
