"""What is known of particular libraries: functions and objects that are recorded as single calls.

By Python module; ``None`` stands for every public name. Functions that their author registered with
``torch.fx.wrap`` are whole anyway.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

# Functions that stay one call. Mask makers decide on the values of a mask: opened, that holds for
# one input only; called, for any.
WHOLE: dict[str, tuple[str, ...] | None] = {
    "torchvision.ops": None,
    "transformers.masking_utils": (
        "create_causal_mask",
        "create_bidirectional_mask",
        "create_sliding_window_causal_mask",
        "create_bidirectional_sliding_window_mask",
        "create_chunked_causal_mask",
        "create_recurrent_attention_mask",
        "create_masks_for_generate",
    ),
    "transformers.modeling_attn_mask_utils": (
        "_prepare_4d_causal_attention_mask",
        "_prepare_4d_causal_attention_mask_for_sdpa",
        "_prepare_4d_attention_mask",
        "_prepare_4d_attention_mask_for_sdpa",
    ),
}

# Objects that a forward makes and passes on: their constructor and methods are single calls, what
# is inside is nobody's business.
CLOSED: dict[str, tuple[str, ...] | None] = {
    "transformers.cache_utils": None,
}

# Methods of theirs that change the object, and how those begin that do not; any other is watched.
CHANGES = frozenset({"update", "reorder_cache", "crop", "reset", "batch_repeat_interleave"})
READS = ("get_", "is_", "has_", "max_")

# The same, but their attributes are read directly.
OPEN: dict[str, tuple[str, ...] | None] = {
    "torchvision.models.detection.image_list": ("ImageList",),
}


def classes(table: dict[str, tuple[str, ...] | None]) -> Iterator[type]:
    """The classes that a table names, of modules that are loaded, and those that derive from them."""
    todo, seen = [], set()
    for module_name, names in table.items():
        module = sys.modules.get(module_name)
        for name, value in list(vars(module).items()) if module is not None else ():
            listed = names is None or name in names
            if listed and isinstance(value, type) and value.__module__ == module_name:
                todo.append(value)
    while todo:
        kind = todo.pop()
        if kind not in seen:
            seen.add(kind)
            todo += type.__subclasses__(kind)
            yield kind
