"""Functions that a graph can hold for what has no function of its own: modes, odd calls, objects.

A region (``with torch.no_grad():``) is recorded as two impure nodes of its scope, so that the
replay computes in the same mode.
"""

from __future__ import annotations

import torch


def enter_grad(enabled: bool) -> bool:
    """Switch gradients on or off; returns what to restore."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(enabled)
    return before


def leave_grad(before: bool) -> None:
    """Restore the gradient mode."""
    torch._C._set_grad_enabled(before)


def enter_autocast(device: str, dtype: torch.dtype, enabled: bool, cache: bool):
    """Enter an autocast region; returns the context to leave."""
    context = torch.autocast(device, dtype=dtype, enabled=enabled, cache_enabled=cache)
    context.__enter__()
    return context


def leave_autocast(context) -> None:
    """Leave an autocast region."""
    context.__exit__(None, None, None)


def apply_function(cls, *args, **kwargs):
    """Call a custom ``torch.autograd.Function``."""
    return cls.apply(*args, **kwargs)


def rebuild(cls, state: dict):
    """An object with the attributes that it had when it was passed on."""
    made = cls.__new__(cls)
    made.__dict__.update(state)
    return made


def call_script(function, *args, **kwargs):
    """Call a scripted function."""
    return function(*args, **kwargs)
