"""What a cell's output holds: the live widget, and beside it a picture for when it is gone."""

import base64
import re
import types

import IPython.display
import pytest
import torch
from torch import nn

import nbsurgery as nbs
from nbsurgery.widget import fallback
from nbsurgery.widget import notebook as here

LIVE = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def shown(monkeypatch):
    """What is displayed, in place of a notebook: data, and its updates."""
    found = []

    def display(data, raw, metadata=None, display_id=None):
        assert raw
        found.append(data)
        if display_id:
            return types.SimpleNamespace(update=lambda data, raw: found.append(data))
        return None

    monkeypatch.setattr(IPython.display, "display", display)
    return found


@pytest.fixture
def surgery():
    return nbs.Surgery(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.randn(1, 3))


def picture(data):
    """The SVG inside of a static output."""
    assert LIVE not in data and 'class="nbs-static"' in data["text/html"]
    return base64.b64decode(re.search(r"base64,([^\"]+)", data["text/html"])[1]).decode()


def test_two_outputs(shown, surgery):
    """The second one is the picture as an image, marked so that the page can hide it."""
    surgery._ipython_display_()
    live, static = shown
    assert live[LIVE]["model_id"] == surgery.model_id
    assert picture(static).startswith("<svg") and "ReLU" in picture(static)


def test_the_picture_follows_the_edits(shown, surgery):
    """The saved notebook shows the model as it was left."""
    surgery._ipython_display_()
    surgery.replace("1", "nn.GELU()")
    assert len(shown) == 3
    assert "GELU" in picture(shown[-1]) and "ReLU" not in picture(shown[-1])


def test_the_picture_of_a_cell_stays_when_another_cell_edits(shown, surgery, monkeypatch):
    """A reader finds at each cell what that cell has shown."""
    surgery._ipython_display_()
    monkeypatch.setattr(here, "running_cell", lambda: True)
    surgery.replace("1", "nn.GELU()")
    assert len(shown) == 2


@pytest.mark.parametrize(("theme", "follows"), [("auto", True), ("dark", False)])
def test_the_picture_follows_the_page(shown, theme, follows):
    """As an image it takes the colour scheme of the notebook, unless one was asked for."""
    nbs.Surgery(nn.Sequential(nn.Linear(3, 4)), torch.randn(1, 3), theme=theme)._ipython_display_()
    text = picture(shown[-1])
    assert ("prefers-color-scheme:dark" in text) is follows
    assert ("#0f1420" in text) and ("#ffffff" in text) is follows


def test_a_picture_that_fails_does_not_take_the_widget_along(shown, surgery, monkeypatch):
    """The live widget is shown alone."""
    monkeypatch.setattr(fallback, "svg", lambda *a, **k: 1 / 0)
    surgery._ipython_display_()
    assert len(shown) == 1
