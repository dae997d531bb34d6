"""Running foreign code without a trace: random state, gradient mode and defaults are put back."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def still(seed: int | None = 0) -> Iterator[None]:
    """Put random state, gradient mode and the default dtype back afterwards, also after an error.

    Args:
        seed: Seeds the CPU and every CUDA device in use inside; ``None`` leaves them as they are.
    """
    numpy = sys.modules.get("numpy")
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    cpu, python = torch.get_rng_state(), random.getstate()
    cuda = [torch.cuda.get_rng_state(d) for d in devices]
    arrays = numpy.random.get_state() if numpy else None
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    # torch's fused attention layers round differently from what they do step by step
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        if seed is not None:
            # not torch.manual_seed: it queues a seed for a CUDA that starts later
            torch.default_generator.manual_seed(seed)
            random.seed(seed)
            if numpy:
                numpy.random.seed(seed)
            for d in devices:
                torch.cuda.default_generators[d].manual_seed(seed)
        yield
    finally:
        torch.set_rng_state(cpu)
        random.setstate(python)
        if numpy:
            numpy.random.set_state(arrays)
        for d, state in zip(devices, cuda):
            torch.cuda.set_rng_state(state, d)
        torch.set_grad_enabled(grad)
        torch.backends.mha.set_fastpath_enabled(fused)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)
