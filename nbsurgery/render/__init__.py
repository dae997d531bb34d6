"""The picture: a captured graph laid out by Graphviz, scope by scope, and drawn."""

from .engine import Engine, find_engine
from .scene import Cache, compose
from .svg import to_svg

__all__ = ["Cache", "Engine", "compose", "find_engine", "to_svg"]
