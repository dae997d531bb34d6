"""The edited graph evaluated without the emitted text: a second opinion on the wiring, and no more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from nbsurgery.capture import replay

from ..graph import Graph
from .compare import cloned
from .still import still


def evaluate(
    graph: Graph,
    model: nn.Module,
    args: tuple,
    kwargs: Mapping[str, Any] | None = None,
    *,
    values: Iterable[str] | None = None,
) -> Any:
    """Run an edited graph with the modules and parameters of the built model.

    The order of the operations and what each reads come from the graph; the leaves, new ones
    included, from `model`, so that equal numbers show equal wiring. With `values`, ids of nodes, their
    values by id come along.

    Raises:
        ReplayRefused: a decision of the recorded run does not hold for this input.
    """
    with still(), torch.no_grad():
        return replay(graph, model, cloned(tuple(args)), cloned(dict(kwargs or {})), values=values)
