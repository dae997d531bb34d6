"""What the kernel knows of the notebook around it."""

import gc
import types

import pytest

from nbsurgery.widget import notebook


class Events:
    def __init__(self):
        self.calls = []

    def register(self, name, call):
        assert name == "post_run_cell"
        self.calls.append(call)

    def unregister(self, name, call):
        self.calls.remove(call)


@pytest.fixture
def shell(monkeypatch):
    """A made-up shell that runs a cell."""
    parent = {"header": {"msg_type": "execute_request"}, "metadata": {"cellId": "abc"}}
    made = types.SimpleNamespace(
        kernel=types.SimpleNamespace(get_parent=lambda channel: parent),
        parent=parent,
        user_ns={},
        events=Events(),
        written=[],
    )
    made.set_next_input = lambda text, replace: made.written.append((text, replace))
    monkeypatch.setattr(notebook, "shell", lambda: made)
    return made


def test_the_cell_that_runs(shell):
    """Its id comes from the message; empty where the host does not send one."""
    assert notebook.cell_id() == "abc"
    shell.parent["metadata"] = {}
    assert notebook.cell_id() == ""


def test_the_persons_own_name(shell):
    """The newest name that is neither private nor a history entry."""
    model = object()
    shell.user_ns.update({"net": model, "_": model, "_3": model, "other": object()})
    assert notebook.variable_of(model) == "net"
    assert notebook.variable_of(object()) == "model"


def test_the_next_cell_only_from_a_cell(shell):
    """From a widget's message it would leak into the cell that runs next."""
    assert notebook.next_cell("x = 1") is True
    assert shell.written == [("x = 1", False)]
    shell.parent["header"]["msg_type"] = "comm_msg"
    assert notebook.next_cell("x = 2") is False
    assert len(shell.written) == 1


def test_without_a_shell(monkeypatch):
    """In a script nothing of it is there, and nothing fails."""
    monkeypatch.setattr(notebook, "shell", lambda: None)
    assert notebook.cell_id() == ""
    assert notebook.next_cell("x") is False
    assert notebook.variable_of(object()) == "model"
    notebook.after_each_cell(Events().register)


def test_after_each_cell_holds_nobody_alive(shell):
    """The call ends with its object."""

    class Seen:
        count = 0

        def look(self):
            Seen.count += 1

    seen = Seen()
    notebook.after_each_cell(seen.look)
    shell.events.calls[0](None)
    assert Seen.count == 1
    del seen
    gc.collect()
    shell.events.calls[0](None)
    assert Seen.count == 1 and shell.events.calls == []
