"""What an operation promises of its result, checked against the ORIGINAL run. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """Base of all claims."""


@dataclass(frozen=True)
class SameOutput(Claim):
    """The output equals the original's on the (adapted) example: a neutral change."""


@dataclass(frozen=True)
class OutputEquals(Claim):
    """The whole output equals the value that node `node` of the base graph made in the original run."""

    node: str


@dataclass(frozen=True)
class OutputsEqual(Claim):
    """Each named part of a dict output equals the value of a node of the base graph."""

    nodes: Mapping[str, str]


@dataclass(frozen=True)
class PartEqualsOutput(Claim):
    """One named part of a dict output equals the original's whole output."""

    key: str
