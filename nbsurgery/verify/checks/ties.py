"""Tied weights that are no longer one, and new ones that are."""

from __future__ import annotations

from collections.abc import Iterator

from ..report import Finding
from ..subject import Subject, listed


def check(subject: Subject) -> Iterator[Finding]:
    """Names that meant one parameter in the original, what they mean now, and new ones that mean one."""
    yield from _shared(subject)
    groups: dict[int, list[str]] = {}
    for name, parameter in subject.original.named_parameters(remove_duplicate=False):
        groups.setdefault(id(parameter), []).append(name)
    # names of one aliased module are one place, not a tie
    tied = [g for g in groups.values() if len({_owner(subject, n) for n in g}) > 1]
    if not tied:
        return
    after = {
        key.partition(".")[2] if subject.prefixes != ("",) else key: (tensor, key)
        for key, tensor, is_parameter in subject.tensors()
        if is_parameter
    }
    kept = 0
    for names in tied:
        there = [n for n in names if n in after]
        if len(there) < 2:
            continue
        if len({id(after[n][0]) for n in there}) > 1:
            more = sum(
                after[n][0].numel() for n in there[1:] if after[n][0] is not after[there[0]][0]
            )
            yield Finding(
                "warning",
                f"{listed(there)} were one weight and are {len(there)} now: {more:,} parameters more, "
                "and training moves them apart",
            )
        else:
            kept += 1
    if kept:
        yield Finding("ok", f"{kept} tied weight{'s are' if kept > 1 else ' is'} still tied")


def _shared(subject: Subject) -> Iterator[Finding]:
    """One new module at several places, as a variable of the notebook puts it there."""
    places: dict[int, list[str]] = {}
    for prefix, root in zip(subject.prefixes, subject.built.modules):
        for path, module in root.named_modules(remove_duplicate=False):
            own = list(module.parameters(recurse=False))
            if own and subject.is_new(module) and not any(map(subject.came_from, own)):
                places.setdefault(id(module), []).append(prefix + path)
    before = dict(subject.original.named_modules(remove_duplicate=False))
    for paths in places.values():
        if len(paths) > 1 and len({id(before.get(path, path)) for path in paths}) > 1:
            yield Finding(
                "info", f"one new module, with one set of weights, stands at {listed(paths)}"
            )


def _owner(subject: Subject, name: str) -> int:
    return id(subject.original.get_submodule(name.rpartition(".")[0]))
