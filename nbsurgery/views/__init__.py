"""What people hold in code: a captured model, its nodes, its scopes, its table."""

from .model_graph import ModelGraph, capture
from .node import Node
from .scope import Scope
from .table import Row, Table

__all__ = ["ModelGraph", "Node", "Row", "Scope", "Table", "capture"]
