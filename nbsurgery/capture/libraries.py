"""What is known of particular libraries: functions of theirs that are recorded as one call."""

from __future__ import annotations

# By Python module: the functions that stay whole; ``None`` means every public one. Functions that an
# author registered with ``torch.fx.wrap`` are whole anyway.
WHOLE: dict[str, tuple[str, ...] | None] = {
    "torchvision.ops": None,
}
