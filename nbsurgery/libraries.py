"""What a library keeps beside its modules and must follow an edit: one small rule per library."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from torch import nn

from .source import own_methods, sizes_demanded

# Configuration entries that count the layers of a stack, by the names Hugging Face gives them.
_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers")
_OF_DECODER = ("num_decoder_layers", "decoder_layers")
_OF_ENCODER = ("num_encoder_layers", "encoder_layers")
# Those that say something of each layer.
_LISTS = ("layer_types", "mlp_layer_types", "layers_block_type", "no_rope_layers", "indexer_types")


def beside_container(model: nn.Module, path: str, keep: int) -> Iterator[tuple[str, str]]:
    """Attributes to set when the container at `path` keeps its first `keep` children.

    Yields:
        The path of the attribute from the root, and its new value as source; ``{}`` in it is the
        attribute as it is.
    """
    container = model.get_submodule(path)
    where, config = _config(model, path)
    if config is None or not isinstance(container, nn.ModuleList):
        return
    if any(part.isdigit() for part in path.split(".")):
        return  # a part of one layer, however many parts it has
    count = len(container)
    for name in _counts(config, path):
        if getattr(config, name, None) == count:
            yield f"{where}.{name}", str(keep)
            break
    else:
        return
    for name in _LISTS:
        of_each = getattr(config, name, None)
        if isinstance(of_each, (list, tuple)) and len(of_each) == count:
            yield f"{where}.{name}", f"{{}}[:{keep}]"


def beside_head(model: nn.Module, old: int, new: int) -> Iterator[tuple[str, str]]:
    """Attributes that count the classes, where the model's head gives `new` instead of `old`.

    Yields:
        The path of the attribute from the root, and its new value as source.
    """
    config = getattr(model, "config", None)
    if config is None or not hasattr(config, "to_dict"):
        return
    if getattr(config, "num_labels", None) == old:
        yield "config.num_labels", str(new)
        if getattr(model, "num_labels", None) == old:
            yield "num_labels", str(new)


def beside_inputs(
    model: nn.Module, path: str, old: int, axes: Collection[int], first: bool
) -> Iterator[str]:
    """Attributes that say how many channels enter, where the layer at `path` reads `old` of them.

    These are what a module around the layer compares with the size of what it is given and, for what
    enters the model, what a configuration calls ``num_channels``, with the modules that repeat it.

    Args:
        model: The model.
        path: Of the layer.
        old: How many channels it reads.
        axes: Where a tensor has its channels, counted from either end.
        first: Whether the layer reads what enters the model.

    Yields:
        The path of each attribute from the root.
    """
    where, config = _config(model, path)
    entry = "num_channels" if first and getattr(config, "num_channels", None) == old else None
    parts = path.split(".")[:-1]
    for i in range(len(parts), -1, -1):
        around = model.get_submodule(".".join(parts[:i]))
        demanded = {
            name
            for code in own_methods(type(around))
            for name, axis in sizes_demanded(code)
            if axis in axes
        }
        for name in sorted({*demanded, *((entry,) if entry else ())}):
            if vars(around).get(name) == old:
                yield ".".join([*parts[:i], name])
    if entry is not None:
        yield f"{where}.{entry}"


def _config(model: nn.Module, path: str) -> tuple[str, Any]:
    """The configuration that describes a stack, as the root keeps it: the part for its tower."""
    root = getattr(model, "config", None)
    if root is None or not hasattr(root, "to_dict"):
        return "", None
    parts = path.split(".")
    for i in range(len(parts) - 1, 0, -1):
        own = getattr(model.get_submodule(".".join(parts[:i])), "config", None)
        for name, value in vars(root).items():
            if own is not None and value is own:
                return f"config.{name}", own
    return "config", root


def _counts(config: Any, path: str) -> tuple[str, ...]:
    """The entries that may count this stack; encoder and decoder have each their own."""
    parts = path.split(".")
    if "decoder" in parts and any(hasattr(config, n) for n in _OF_DECODER):
        return _OF_DECODER
    return (*_OF_ENCODER, *_COUNTS) if "encoder" in parts else _COUNTS
