import torch
from torch import nn

# conv1: 3 → 1 input channels; each filter is the sum over the old channels
old = model.conv1
new = nn.Conv2d(1, old.out_channels, old.kernel_size, old.stride, old.padding, bias=False)
with torch.no_grad():
    new.weight.copy_(old.weight.sum(1, keepdim=True))
model.conv1 = new
