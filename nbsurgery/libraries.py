"""What a library keeps beside its modules and must follow an edit: one small rule per library."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

# Configuration entries that count the layers of a stack, by the names Hugging Face gives them.
_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers")


def beside_container(model: nn.Module, path: str, keep: int) -> Iterator[tuple[str, str]]:
    """Attributes to set when the container at `path` keeps its first `keep` children.

    Yields:
        The path of the attribute from the root, and its new value as source.
    """
    container = model.get_submodule(path)
    config = getattr(model, "config", None)
    if config is None or not hasattr(config, "to_dict"):
        return
    for name in _COUNTS:
        if getattr(config, name, None) == len(container):
            yield f"config.{name}", str(keep)
            return
