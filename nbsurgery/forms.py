"""The form of a step that was made already: that of its operation, filled in with its arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .draft import Draft
from .errors import SurgeryError
from .graph import Node
from .operations import OPERATIONS
from .operations.base import Field, Offer
from .targets import resolve, spelled_where

PLACES = {
    "where": "Where",
    "source": "From",
    "into": "Into",
    "after": "After",
    "before": "Before",
    "at": "At",
    "until": "Up to",
}


def filled(draft: Draft, operation: str, arguments: Mapping[str, Any]) -> Offer:
    """The form of a step, on the draft that its predecessors made.

    A single place is a field as well; several, or all of a class, are told in the note and stay. Where
    the operation offers nothing there any more, each argument is a field by its kind of value.
    """
    arguments = OPERATIONS[operation].as_form(arguments)
    offer = _nearest(draft, operation, arguments)
    fields = [
        Field(name, PLACES[name], "node", _name(value), (), "a name or a pattern")
        for name, value in arguments.items()
        if name in PLACES and _name(value) is not None
    ]
    told = [
        f"{PLACES[name].lower()}: {spelled_where(value)}"
        for name, value in arguments.items()
        if name in PLACES and _name(value) is None
    ]
    if offer is not None:
        fields += [
            dataclasses.replace(f, default=_written(f, arguments.get(f.name, f.default)))
            for f in offer.fields
        ]
    named = {f.name for f in fields}
    fields += [
        _plain_field(name, value)
        for name, value in arguments.items()
        if name not in named and name not in PLACES and _is_simple(value)
    ]
    fixed = {k: v for k, v in arguments.items() if k not in {f.name for f in fields}}
    return Offer(operation, operation, "", tuple(fields), fixed, 1, "; ".join(told))


def changed(old: Mapping[str, Any], new: Mapping[str, Any], nones: bool) -> dict[str, Any]:
    """Arguments with some of them changed; ``None`` leaves one out, where it is not itself a value.

    A place that was one call stays one call under its new name.
    """
    merged = dict(old)
    for name, value in new.items():
        was = old.get(name)
        if isinstance(was, Mapping) and "call" in was and isinstance(value, str):
            value = {"call": value}
        merged[name] = value
    return {k: v for k, v in merged.items() if v is not None or nones}


def _nearest(draft: Draft, operation: str, arguments: Mapping[str, Any]) -> Offer | None:
    """Of what the operation offers on the step's places, the form that holds most of its arguments."""
    try:
        offers = OPERATIONS[operation].offers(draft, _first_calls(nodes(draft, arguments)))
    except SurgeryError:
        return None

    def fit(offer: Offer) -> tuple[int, int]:
        names = {*offer.arguments, *(f.name for f in offer.fields)}
        return len(names & set(arguments)), -len(names - set(arguments))

    return max(offers, key=fit, default=None)


def nodes(draft: Draft, arguments: Mapping[str, Any]) -> list[Node]:
    """The calls that a step's places mean, in the order of its arguments."""
    found: dict[str, Node] = {}
    for name in (*PLACES, "nodes"):
        value = arguments.get(name)
        if value is not None:
            where = list(value) if name == "nodes" else value
            found.update((n.id, n) for t in resolve(draft, where) for n in t.nodes)
    return list(found.values())


def _first_calls(found: list[Node]) -> list[Node]:
    """One call of each module: a form is about modules, not about their calls."""
    first: dict[Any, Node] = {}
    for node in found:
        first.setdefault(node.target if node.kind == "module" else node.id, node)
    return list(first.values())


def _name(where: Any) -> str | None:
    """The one name that a place has, or ``None``."""
    if isinstance(where, Mapping):
        where = where.get("call")
    return where if isinstance(where, str) else None


def _written(field: Field, value: Any) -> Any:
    """A value as its field shows it."""
    if field.type in ("text", "code") and not isinstance(value, str):
        return "" if value is None else str(value)
    return value


def _is_simple(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str))


def _plain_field(name: str, value: Any) -> Field:
    kinds = ((bool, "bool"), (int, "int"))
    kind = next((k for t, k in kinds if isinstance(value, t)), "code" if name == "new" else "text")
    return Field(name, name, kind, value if kind in ("bool", "int") else str(value))
