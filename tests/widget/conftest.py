"""Widgets over the made-up session, with the plain picture in place of Graphviz."""

from __future__ import annotations

import pytest

from nbsurgery.widget import scenery
from nbsurgery.widget.surgery import Surgery
from tests.widget.fake_session import FakeSession, plain_compose


@pytest.fixture
def fake(monkeypatch):
    """A widget over a `FakeSession`, and the messages that it sends."""
    monkeypatch.setattr(scenery, "compose", plain_compose)
    widget = Surgery._over(FakeSession())
    widget.sent = []
    monkeypatch.setattr(widget, "send", lambda content, buffers=None: widget.sent.append(content))
    return widget


@pytest.fixture
def ask(fake):
    """Sends a request as the page does; gives the one reply."""

    def ask(method, **params):
        fake._on_message(fake, {"id": "v:1", "method": method, "params": params}, [])
        assert len(fake.sent) == 1
        return fake.sent.pop()

    return ask
