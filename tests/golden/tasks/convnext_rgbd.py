import torch
from torch import nn

# stem.0: 3 → 4 input channels; the RGB filters stay, the fourth starts as their mean
old = model.stem[0]
new = nn.Conv2d(4, old.out_channels, old.kernel_size, old.stride)
with torch.no_grad():
    new.weight[:, :3] = old.weight[:, :3]
    new.weight[:, 3:] = old.weight[:, :3].mean(1, keepdim=True)
    new.bias.copy_(old.bias)
model.stem[0] = new
