"""One file per check: each looks at a `Subject` and says what it finds. New ones are listed here."""

from __future__ import annotations

from . import (
    batchnorm,
    bfloat16,
    calls,
    dead_weights,
    deepcopy_pickle,
    device_dtype,
    export,
    hooks,
    interface,
    keys,
    modes,
    optimizer,
    other_batch,
    other_size,
    own,
    padded_mask,
    parameters,
    rerun,
    script,
    shapes,
    ties,
    train_mode,
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
    interface.check,
    calls.check,
    dead_weights.check,
    modes.check,
    batchnorm.check,
    device_dtype.check,
    ties.check,
    hooks.check,
    optimizer.check,
    own.check,
    rerun.check,
)

# these run the model many times: on request, and when emitting
FULL = (
    other_batch.check,
    other_size.check,
    padded_mask.check,
    train_mode.check,
    bfloat16.check,
    deepcopy_pickle.check,
    export.original,
    export.check,
    script.check,
)

# one call of torch each, of some seconds, that nothing can interrupt: it patches torch while it lasts,
# so it can go into no thread, and what a notebook defines cannot be pickled into another process
HOLDING = (export.original, export.check)
