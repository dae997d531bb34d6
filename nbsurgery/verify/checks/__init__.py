"""One file per check: each looks at a `Subject` and says what it finds. New ones are listed here."""

from __future__ import annotations

from . import (
    batchnorm,
    calls,
    dead_weights,
    device_dtype,
    hooks,
    keys,
    modes,
    own,
    parameters,
    rerun,
    shapes,
    ties,
    values,
    wiring,
)

# in the order in which facts and findings of one severity are shown
IMMEDIATE = (
    shapes.check,
    values.check,
    wiring.check,
    parameters.check,
    keys.check,
    calls.check,
    dead_weights.check,
    modes.check,
    batchnorm.check,
    device_dtype.check,
    ties.check,
    hooks.check,
    own.check,
    rerun.check,
)
