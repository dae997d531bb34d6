"""What a scene says: rows, boxes, runs, shortcuts, ports and chips."""

import json

import pytest
from drawn import MODELS

from nbsurgery.render import Cache, compose, default_open

HERO = {"layer1", "layer2", "layer3", "layer4", "layer1.0"}


def items(group):
    """Every item of a group and of the groups in it."""
    for item in group["items"]:
        yield item
        if item["kind"] == "group":
            yield from items(item)


def groups(group):
    """A group and all groups in it."""
    yield group
    for item in group["items"]:
        if item["kind"] == "group":
            yield from groups(item)


def find(scene, key):
    return next(g for g in [scene["group"], *items(scene["group"])] if g["key"] == key)


def test_the_hero(graph_of):
    """ResNet-18 with one block open: its rows, its boxes, its one shortcut."""
    scene = compose(graph_of("resnet18"), HERO)
    block = find(scene, "s:layer1.0")
    assert ("0", "BasicBlock", "74.0K", 2) == tuple(
        block[k] for k in ("name", "type", "params", "depth")
    )
    rows = [[(r["name"], r["type"], r["params"]) for r in c["rows"]] for c in block["items"]]
    assert [
        [("conv1", "Conv2d", "36.9K"), ("bn1", "BatchNorm2d", "128"), ("relu", "ReLU", "")],
        [("conv2", "Conv2d", "36.9K"), ("bn2", "BatchNorm2d", "128")],
        [("add", "", ""), ("relu", "ReLU", "")],
    ] == rows
    assert [("i:layer1.0#0", f"c:{block['items'][2]['key'][2:]}")] == [
        (e["from"], e["to"]) for e in block["edges"] if e["skip"]
    ]
    stem = find(scene, "c:#1")
    assert ["64×16×16", "64×16×16", "64×16×16", "64×8×8"] == [r["shape"] for r in stem["rows"]]
    assert ["conv", "norm", "act", "pool"] == [r["family"] for r in stem["rows"]]
    closed = find(scene, "b:layer1.1")
    assert (1, "BasicBlock", "64×8×8", "74.0K") == tuple(
        closed[k] for k in ("count", "type", "shape", "params")
    )
    assert 0 == sum(e["skip"] for g in groups(scene["group"]) if g is not block for e in g["edges"])


@pytest.mark.parametrize("name", MODELS)
def test_scenes_are_json(graph_of, name):
    """A scene survives the way to the page, and nothing in it is lost on repetition."""
    graph = graph_of(name)
    scene = compose(graph, graph.scopes)
    assert scene == json.loads(json.dumps(scene))


@pytest.mark.parametrize("name", MODELS)
def test_every_operation_is_drawn_once(graph_of, name):
    """Fully open, the rows are the graph's operations, apart from parameters that fold."""
    graph = graph_of(name)
    scene = compose(graph, graph.scopes)
    rows = [r["node"] for i in items(scene["group"]) if i["kind"] == "card" for r in i["rows"]]
    expected = [
        n.name
        for n in graph.flat
        if n.kind in ("module", "function", "method") and (n.outputs or n.kind == "module")
    ]
    assert sorted(expected) == sorted(rows)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("what", ["closed", "full"])
def test_every_dependency_is_drawn(graph_of, name, what):
    """Following the drawn edges from a value leads to each operation that reads it, and no other."""
    graph = graph_of(name)
    scene = compose(graph, graph.scopes if what == "full" else (), runs=False)
    drawn = set()  # (value, item) pairs, in any group
    for group in groups(scene["group"]):
        for edge in group["edges"]:
            for value in edge.get("values", [edge["value"]]):
                drawn.add((value, edge["to"]))
        for item in group["items"]:
            for edge in item.get("more", {}).get("edges", ()):
                drawn.add((edge["value"], item["key"]))
    of, chain = {}, {}
    for item in items(scene["group"]):
        if item["kind"] == "card":
            ids = [row["key"][2:] for row in item["rows"]]
            of.update(dict.fromkeys(ids, item["key"]))
            chain.update(zip(ids[1:], ids, strict=False))
        elif item["kind"] == "pill":
            of[item["key"][2:]] = item["key"]
    shown = {n.id: n for n in graph.flat if n.id in of}
    for node in shown.values():
        sources = [graph.by_id[s] for s in graph.inputs_of(node.id)]
        wanted = {s.id for s in sources if s.kind not in ("parameter", "constant")}
        into = {value for value, key in drawn if key == of[node.id]}
        if node.id in chain:
            assert {chain[node.id]} == wanted or chain[node.id] in wanted
            continue
        assert into <= wanted  # sizes that are read are no edges: not every source has one
        tensors = {
            r
            for arg in [*node.args, *node.kwargs.values()]
            for ref in ([arg] if hasattr(arg, "id") else [])
            if not graph.by_id[ref.id].glue
            for r in graph.sources(node.scope, ref)
            if graph.by_id[r].kind not in ("parameter", "constant")
        }
        assert tensors <= into


def test_runs_fold(graph_of):
    """Like siblings in a row are one box; opening one of them leaves the others folded."""
    graph = graph_of("resnet50")
    box = find(compose(graph, {"layer3"}), "b:layer3.1")
    assert ("1–5", 5, [f"layer3.{i}" for i in range(1, 6)]) == (
        box["name"],
        box["count"],
        box["scopes"],
    )
    scene = compose(graph, {"layer3.1"})
    assert "2–5" == find(scene, "b:layer3.2")["name"]
    assert 5 == len(find(compose(graph, {"layer3"}, runs=False), "s:layer3")["items"]) - 1


def test_projection_shortcuts_are_orange(graph_of):
    """The way through a downsample branch is one shortcut, outside and inside its box."""
    scene = compose(graph_of("resnet18"), {"layer2.0.downsample"})
    block = find(scene, "s:layer2.0")
    assert {"s:layer2.0.downsample", "c:layer2.0#7"} <= {
        e["to"] for e in block["edges"] if e["skip"]
    } | {"c:layer2.0#7"}
    assert 2 == sum(e["skip"] for e in block["edges"])
    assert all(e["skip"] for e in find(scene, "s:layer2.0.downsample")["edges"])


def test_a_shortcut_added_in_the_next_module(graph_of):
    """Where the sum is made inside a module, the shortcut runs into it."""
    graph = graph_of("postnorm")
    scene = compose(graph, {"output"})
    assert ["s:output"] == [e["to"] for e in scene["group"]["edges"] if e["skip"]]
    inner = find(scene, "s:output")
    assert [True] == [e["skip"] for e in inner["edges"] if e["from"].startswith("i:output#1")]


def test_sums_of_unlike_things_are_no_shortcuts(graph_of):
    """A value that only feeds side branches does not make a shortcut; concatenated encoders do."""
    scene = compose(graph_of("gather"), ())
    assert not any(e["skip"] for e in scene["group"]["edges"])
    unet = compose(graph_of("unet"), ())
    assert 2 == sum(e["skip"] for e in unet["group"]["edges"])
    google = compose(graph_of("googlenet"), graph_of("googlenet").scopes)
    assert not any(e["skip"] for g in groups(google["group"]) for e in g["edges"])


def test_crowded_items_have_a_chip(graph_of):
    """Beyond a few sources the far ones are a chip that counts them and knows their ways."""
    graph = graph_of("dense")
    last = [i for i in items(compose(graph, ())["group"]) if i.get("more")][-1]
    assert f"+{last['more']['count']}" == last["more"]["label"]
    assert last["more"]["count"] == len(last["more"]["edges"]) >= 4


def test_lists_that_are_taken_apart_have_ports(graph_of):
    """Each item of the list enters where it is used, and each result leaves by itself."""
    scene = compose(graph_of("split"), {"inner"})
    inner = find(scene, "s:inner")
    assert 2 == len({e["from"] for e in inner["edges"] if e["from"].startswith("i:")})
    assert 2 == len({e["to"] for e in inner["edges"] if e["to"].startswith("o:")})


def test_fields_of_output_objects_are_told_apart(graph_of):
    """Who reads one field of an output object reads that value, not all that the object holds."""
    graph = graph_of("states")
    scene = compose(graph, ())
    into = {e["to"]: e for e in scene["group"]["edges"]}
    pooler = into["b:pooler"]
    assert "values" not in pooler
    assert graph.by_id[pooler["value"]].name.startswith("encoder.layer.2.")
    assert len(into[f"n:{graph.root.output.id}"].get("values", ())) == 1 or len(
        [e for e in scene["group"]["edges"] if e["to"] == f"n:{graph.root.output.id}"]
    )


def test_long_sums_of_sizes():
    """Plumbing may be deeper than Python's stack."""
    from nbsurgery.graph import Graph, Node, Ref, Scope, Tensor

    out = (Tensor((1, 4), "float32", "cpu"),)
    nodes = [Node("#0", "", "input", "x", "input", "x", outputs=out)]
    nodes.append(
        Node("#1", "", "function", "shape", "getattr", None, (Ref("#0"), "shape"), glue=True)
    )
    nodes += [
        Node(
            f"#{i}",
            "",
            "function",
            f"add_{i}",
            "add",
            None,
            (Ref(f"#{i - 1}"), 1),
            value=i,
            glue=True,
        )
        for i in range(2, 3000)
    ]
    nodes.append(
        Node("#3000", "", "method", "view", "view", "view", (Ref("#0"), Ref("#2999")), outputs=out)
    )
    nodes.append(
        Node("#3001", "", "output", "output", "output", None, (Ref("#3000"),), outputs=out)
    )
    scene = compose(Graph({"": Scope("", "", "Deep", tuple(nodes))}), ())
    assert [("n:#0", "c:#3000"), ("c:#3000", "n:#3001")] == [
        (e["from"], e["to"]) for e in scene["group"]["edges"]
    ]


def test_parameters_fold_into_their_reader(graph_of):
    """The class token and the positions are counted where they are read, without items."""
    scene = compose(graph_of("vit"), default_open(graph_of("vit")))
    rows = {r["node"]: r for i in items(scene["group"]) if i["kind"] == "card" for r in i["rows"]}
    assert "class_token" not in rows
    assert "16" == rows["expand"]["params"]
    assert "reads class_token" in rows["expand"]["tip"]


def test_toggling_lays_out_only_what_changed(graph_of):
    """Opening one block asks for its level and for its ancestors; closing it asks for nothing."""
    graph, cache = graph_of("resnet18"), Cache()
    compose(graph, {"layer1", "layer2"}, cache=cache)
    again = compose(graph, {"layer1", "layer2"}, cache=cache)["stats"]
    assert (0, 0) == (again["laid_out"], again["asked"])
    opened = compose(graph, {"layer1", "layer2", "layer1.0"}, cache=cache)["stats"]
    assert opened["laid_out"] <= 3  # layer1.0, layer1 and the root
    closed = compose(graph, {"layer1", "layer2"}, cache=cache)["stats"]
    assert (0, 0) == (closed["laid_out"], closed["asked"])


def test_equal_blocks_are_laid_out_once(graph_of):
    """Three like layers need no more layouts than one."""
    graph = graph_of("gpt2")
    one = compose(
        graph, {k for k in graph.scopes if ".h.1" not in k and ".h.2" not in k}, cache=Cache()
    )
    all = compose(graph, graph.scopes, cache=Cache())
    assert all["stats"]["levels"] > one["stats"]["levels"] + 5
    assert all["stats"]["asked"] <= one["stats"]["asked"]


def test_differences_are_marked(graph_of):
    """A changed node marks its row, and the closed modules around it."""
    graph = graph_of("resnet18")
    diff = {graph.by_name["layer1.0.conv1"].id: "changed"}
    assert "changed" == find(compose(graph, (), diff=diff), "b:layer1")["diff"]
    scene = compose(graph, {"layer1.0"}, diff=diff)
    card = find(scene, "s:layer1.0")["items"][0]
    assert ["changed", None, None] == [r["diff"] for r in card["rows"]]
    assert find(scene, "b:layer1.1")["diff"] is None
    assert find(scene, "b:layer2")["diff"] is None


def test_unknown_keys_are_left_out(graph_of):
    """What is open may outlive the model that it was opened in."""
    graph = graph_of("resnet18")
    assert compose(graph, {"layer1"})["group"] == compose(graph, {"layer1", "gone.0"})["group"]


def test_opaque_scopes_have_a_badge(graph_of):
    """A scope that cannot be rewritten says so, closed and open."""
    import dataclasses

    graph = graph_of("resnet18")
    why = "its forward branches on a value"
    marked = graph.with_scopes(
        {"layer1.0": dataclasses.replace(graph.scopes["layer1.0"], opaque=why)}
    )
    assert {"count": 1, "text": why} == find(compose(marked, ()), "b:layer1")["badge"]
    assert {"count": 1, "text": why} == find(compose(marked, {"layer1.0"}), "s:layer1.0")["badge"]
    assert find(compose(marked, {"layer1.0"}), "s:layer1")["badge"] is None


def test_a_failed_run_is_drawn_up_to_its_failure():
    """The failing node is there, marked, with the model's own error."""
    import torch
    from torch import nn

    from nbsurgery.capture import capture
    from nbsurgery.errors import ModelFailed

    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(5, 2))
    with pytest.raises(ModelFailed) as caught:
        capture(model, (torch.zeros(1, 4),), {})
    scene = compose(caught.value.graph, ())
    failed = [
        r for i in items(scene["group"]) if i["kind"] == "card" for r in i["rows"] if r["failed"]
    ]
    assert ["2"] == [r["name"] for r in failed]
    assert "1x3" in failed[0]["badge"]["text"]


def test_what_is_open_at_first(graph_of):
    """A ResNet shows its stages and one block; a deep model stays small."""
    assert HERO == default_open(graph_of("resnet18"))
    for name in MODELS:
        graph = graph_of(name)
        scene = compose(graph, default_open(graph))
        assert scene["stats"]["items"] <= 140, name


def test_the_sample_for_the_page_is_current():
    """The page's own tests draw what is composed today; `python tests/render/sample.py` writes it."""
    import sample

    assert json.loads(sample.FILE.read_text(encoding="utf-8")) == sample.sample()
