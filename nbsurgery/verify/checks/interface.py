"""What can no longer be said to the edited model: arguments of ``forward``, methods, settings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from torch import nn

from ..report import Finding
from ..subject import Subject, counted, listed


def check(subject: Subject) -> Iterator[Finding]:
    """A class of its own for the whole model has what its forward needs, and no more."""
    if len(subject.built.modules) != 1:
        return
    old, new = subject.original, subject.built.modules[0]
    if isinstance(new, type(old)):
        return
    taken = _parameters(new)
    swallows = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    named = [
        n
        for n, p in _parameters(old).items()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    arguments = [] if swallows or not taken else [n for n in named if n not in taken]
    known = {*dir(nn.Module), *dir(new)}
    methods = [n for n in dir(type(old)) if n not in known and not n.startswith("_")]
    settings = [n for n in vars(old) if n not in known and not n.startswith("_")]
    parts: list[str] = []
    for names, one, many in (
        (arguments, "argument of forward", "arguments of forward"),
        (_first(methods), "method", "methods"),
        (_first(settings), "attribute", "attributes"),
    ):
        if names:
            shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            parts.append(f"{counted(len(names), one, many)} ({shown})")
    if parts:
        yield Finding(
            "info",
            f"{type(new).__name__} is a class of its own: of {type(old).__name__} it lacks "
            + listed(parts),
        )


# what people call first, where it is there
_KNOWN = ("generate", "save_pretrained", "config", "forward_features")


def _first(names: list[str]) -> list[str]:
    return sorted(names, key=lambda n: _KNOWN.index(n) if n in _KNOWN else len(_KNOWN))


def _parameters(module: nn.Module) -> Mapping[str, inspect.Parameter]:
    """What a forward takes; nothing where it does not tell."""
    try:
        return inspect.signature(module.forward).parameters
    except (TypeError, ValueError):
        return {}
