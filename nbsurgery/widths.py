"""Layers made anew with other widths: convolutions and linear layers."""

from __future__ import annotations

import torch
from torch import nn

CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def widths(layer: nn.Module) -> tuple[int, int]:
    """Input and output width of a convolution or linear layer."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    return layer.in_channels, layer.out_channels


def make(layer: nn.Module, ins: int, outs: int) -> nn.Module:
    """The new layer on the meta device, to ask it things."""
    with torch.device("meta"):
        return eval(constructor(layer, ins, outs), {"nn": nn, "torch": torch, "old": layer})


def constructor(layer: nn.Module, ins: int, outs: int, old: str = "old") -> str:
    """The call that makes the layer with other widths; only what differs from the defaults is named."""
    name = f"nn.{_plain(layer)}"
    old_ins, old_outs = widths(layer)
    if isinstance(layer, nn.Linear):
        parts = [
            f"{old}.in_features" if ins == old_ins else str(ins),
            f"{old}.out_features" if outs == old_outs else str(outs),
        ]
    else:
        parts = [
            f"{old}.in_channels" if ins == old_ins else str(ins),
            f"{old}.out_channels" if outs == old_outs else str(outs),
            f"{old}.kernel_size",
        ]
        plain = {"stride": 1, "padding": 0, "dilation": 1}
        changed = {
            k for k, v in plain.items()
            if getattr(layer, k) != (v,) * len(layer.kernel_size)
        }  # fmt: skip
        for k in ("stride", "padding", "dilation"):
            later = [
                x
                for x in ("stride", "padding", "dilation")[
                    ("stride", "padding", "dilation").index(k) :
                ]
                if x in changed
            ]
            if later:
                parts.append(f"{old}.{k}")
        if layer.padding_mode != "zeros":
            parts.append(f"padding_mode={old}.padding_mode")
    if layer.bias is None:
        parts.append("bias=False")
    return f"{name}({', '.join(parts)})"


def _plain(layer: nn.Module) -> str:
    return next(c.__name__ for c in (*CONVS, nn.Linear) if isinstance(layer, c))
