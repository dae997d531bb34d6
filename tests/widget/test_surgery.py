"""The widget over made-up answers: traits follow the session, every request is answered."""

import pytest

from nbsurgery.widget import notebook, protocol, scenery


def test_opens_on_the_first_picture(fake):
    """The first picture is drawn, nothing is selected, the code says that nothing was done."""
    assert fake._scene["group"]["type"] == "ResNet"
    assert fake.selection == [] and fake.steps == []
    assert fake.code == "# no edits"


def test_its_id_is_known_to_the_page(fake):
    """The page finds its own cell by this id."""
    assert fake._widget_id == fake.model_id


def drawn(scene):
    """Every name and key of the scene."""
    found = set()

    def walk(item):
        found.add(item["key"])
        for child in (*item.get("items", ()), *item.get("rows", ())):
            walk(child)

    walk(scene["group"])
    return found


def test_toggle_opens_and_closes(fake, ask):
    """A closed module becomes a group, and a box again."""
    assert "b:layer2.0" in drawn(fake._scene)
    assert ask("toggle", scope="layer2.0") == {"id": "v:1", "ok": True, "result": {}}
    assert "s:layer2.0" in drawn(fake._scene)
    ask("toggle", scope="layer2.0")
    assert "b:layer2.0" in drawn(fake._scene)


def test_toggle_recursive(fake, ask):
    """All below opens and closes together."""
    ask("toggle", scope="layer2")
    assert "b:layer2" in drawn(fake._scene)
    ask("toggle", scope="layer2", recursive=True)
    assert {"s:layer2", "s:layer2.0", "s:layer2.1"} <= drawn(fake._scene)


@pytest.mark.parametrize(("depth", "groups"), [(0, 1), (1, 5), (2, 13), (9, 13)])
def test_expand_to(fake, ask, depth, groups):
    """All modules down to a depth are open, no other."""
    ask("expand_to", depth=depth)
    assert sum(key.startswith("s:") for key in drawn(fake._scene)) == groups


def test_a_hidden_name_that_is_selected_is_opened(fake):
    """Selecting in Python shows what was selected."""
    fake.selection = ["layer3.1.conv2"]
    assert "s:layer3.1" in drawn(fake._scene)


def test_facts(ask):
    """The panel gets rows with links to the neighbours."""
    facts = ask("facts", names=["layer1.0.add"])["result"]
    links = [link["name"] for row in facts["rows"] for link in row["links"]]
    assert facts["title"] == "layer1.0.add"
    assert {"layer1.0.bn2", "maxpool", "layer1.0.relu_1"} <= set(links)


@pytest.mark.parametrize(
    ("method", "params", "kind", "words"),
    [
        ("facts", {"names": ["layer9"]}, "SelectionError", "layer9"),
        ("toggle", {"scope": "conv1"}, "SelectionError", "conv1"),
        ("apply", {"operation": "replace", "arguments": {"where": ["nope"]}}, "SelectionError", "nope"),
        ("apply", {"operation": "replace", "arguments": {"where": ["fc"], "new": "boom"}}, "StepError", "boom"),
        ("view", {"which": "sideways"}, "SurgeryError", "sideways"),
        ("dance", {}, "LookupError", "dance"),
        ("facts", {}, "TypeError", "names"),
    ],
)  # fmt: skip
def test_a_refusal_is_a_reply_and_changes_nothing(fake, ask, method, params, kind, words):
    """Each error arrives as one reply that names what came; the traits are as before."""
    before = fake.get_state()
    reply = ask(method, **params)
    assert reply["ok"] is False
    assert reply["error"]["type"] == kind
    assert words in reply["error"]["message"]
    assert fake.get_state() == before


def test_messages_that_ask_nothing_get_no_reply():
    """Nobody waits for an answer to these."""
    for message in (None, 1, "text", [], {}, {"id": 1}, {"method": "x"}):
        assert protocol.answer({}, message) is None


def test_edit_undo_redo(fake, ask):
    """Steps, code and report follow; undo and redo are told as possible or not."""
    ask("apply", operation="replace", arguments={"where": ["fc"], "new": "nn.Linear(1, 2)"})
    assert [s["text"] for s in fake.steps] == ["replace fc"]
    assert "model.fc = nn.Linear(1, 2)" in fake.code
    assert fake.report["findings"] and fake._can == {"undo": True, "redo": False, "emit": True}
    ask("undo")
    assert fake.steps == [] and fake._can == {"undo": False, "redo": True, "emit": False}
    ask("redo")
    assert len(fake.steps) == 1


def test_steps_by_click_and_by_index(fake, ask):
    """The page names a step by its uid, people by its place."""
    fake.replace(["fc"], "nn.Identity()")
    fake.remove(["relu"])
    ask("toggle_step", uid=fake.steps[0]["uid"])
    assert [s["enabled"] for s in fake.steps] == [False, True]
    fake.toggle(0)
    fake.drop(1)
    assert [s["text"] for s in fake.steps] == ["replace fc"]
    with pytest.raises(Exception, match="there is no step 5"):
        fake.drop(5)


def test_methods_are_operations(fake, monkeypatch):
    """Each method is one operation with its arguments; None stands for one left out."""
    done = []

    def do(operation, arguments):
        done.append((operation, {k: v for k, v in arguments.items() if v is not None}))

    monkeypatch.setattr(fake._session, "do", do)
    fake.cut(after="layer4")
    fake.insert("nn.ReLU()", before="fc")
    fake.tap({"layer1": "c2"})
    fake.channels("conv1", inputs=4, weights="zero")
    fake.replace("relu", "nn.GELU()", call=2)
    assert done == [
        ("cut", {"after": "layer4"}),
        ("insert", {"new": "nn.ReLU()", "before": "fc"}),
        ("tap", {"nodes": {"layer1": "c2"}}),
        ("channels", {"where": "conv1", "inputs": 4, "weights": "zero"}),
        ("replace", {"where": "relu", "new": "nn.GELU()", "call": 2}),
    ]


def test_find_puts_names_before_types(fake, ask):
    """All words must occur; an exact name is first."""
    assert ask("find", query="fc")["result"] == ["fc"]
    assert ask("find", query="layer1.0 conv")["result"] == ["layer1.0.conv1", "layer1.0.conv2"]
    assert ask("find", query="basicblock")["result"][0] == "layer1.0"
    assert ask("find", query="  ")["result"] == []
    assert ask("find", query="nothing like it")["result"] == []


def test_emit_outside_a_notebook_prints(fake, capsys, monkeypatch):
    """Where there is no next cell the code is printed."""
    monkeypatch.setattr(notebook, "shell", lambda: None)
    fake.remove(["relu"])
    fake.emit()
    assert capsys.readouterr().out == fake.code + "\n"


def test_plain_data_for_the_page():
    """Whatever Python holds arrives as JSON."""
    value = {"a": (1, {2.5}), 3: None, "b": pytest}
    assert scenery.plain(value) == {"a": [1, [2.5]], "3": None, "b": str(pytest)}
