"""Weights that the edited model holds and its run never reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from ...graph import Graph
from ..report import Finding
from ..subject import Subject, counted, listed, regions


def check(subject: Subject) -> Iterator[Finding]:
    """Dead parameters of the edited model that were not dead before."""
    if len(subject.after) != len(subject.built.modules):
        return
    already = set()
    for name, parameter in _dead(subject.before, subject.original):
        already.add(name)
    dead = []
    for prefix, root, graph in zip(subject.prefixes, subject.built.modules, subject.after):
        for name, parameter in _dead(graph, root):
            if subject.came_from(parameter) not in already:
                dead.append((prefix + name, parameter))
    if dead:
        size = sum(p.numel() for _, p in dead)
        everything = [k for k, _, is_parameter in subject.tensors() if is_parameter]
        owners = regions([n for n, _ in dead], everything)
        yield Finding(
            "warning",
            f"{counted(size, 'parameter')} in {listed(owners)} stay in the model and are never read",
        )
    else:
        yield Finding("ok", "no dead weights: the run reads every parameter that stays")


def _dead(graph: Graph, model: nn.Module) -> Sequence[tuple[str, nn.Parameter]]:
    """Parameters that no operation of a captured run reads."""
    read: set[int] = set()
    for scope in graph.scopes.values():
        for node in scope.nodes:
            if node.kind == "module" and node.child is None:
                owner = _find(model, node.target)
                if isinstance(owner, nn.Module):
                    read.update(id(p) for p in owner.parameters())
            elif node.kind == "parameter":
                read.add(id(_find(model, node.target)))
        if scope.opaque:  # what it reads cannot be told apart: nothing of its own is called dead
            owner = _find(model, scope.path)
            if isinstance(owner, nn.Module):
                read.update(id(p) for p in owner.parameters(recurse=False))
    return [(n, p) for n, p in model.named_parameters() if id(p) not in read]


def _find(model: nn.Module, path: str):
    found = model
    for part in path.split(".") if path else ():
        tables = found.__dict__ if isinstance(found, nn.Module) else {}
        for table in ("_modules", "_parameters", "_buffers"):
            if part in tables.get(table, ()):
                found = tables[table][part]
                break
        else:
            found = getattr(found, part, None)
    return found
