"""Capture: one run of a model recorded as a tree of small graphs, and its replay."""

from nbsurgery.capture.compare import compare
from nbsurgery.capture.inputs import make
from nbsurgery.capture.main import capture
from nbsurgery.capture.replay import replay

__all__ = ["capture", "compare", "make", "replay"]
