"""The picture: a captured graph laid out by Graphviz, scope by scope, and drawn."""

from .dot import to_graphviz
from .engine import Engine, find_engine
from .opening import default_open
from .scene import Cache, compose
from .svg import to_svg

__all__ = [
    "Cache",
    "Engine",
    "compose",
    "default_open",
    "find_engine",
    "to_graphviz",
    "to_svg",
]
