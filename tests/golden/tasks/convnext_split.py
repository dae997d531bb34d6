from collections import OrderedDict

from torch import nn


class ConvNeXtHead(nn.Module):
    """ConvNeXt, up to `stages.1`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.stem = model.stem
        self.stages = model.stages[:2]

    def forward(self, x):
        x = self.stem(x)
        x = self.stages[0](x)
        return self.stages[1](x)


# split after stages.1: head (N, 3, 32, 32) → (N, 80, 4, 4), tail → (N, 1000)
head = ConvNeXtHead(model)
tail = nn.Sequential(OrderedDict(stages=model.stages[2:], norm_pre=model.norm_pre, head=model.head))
