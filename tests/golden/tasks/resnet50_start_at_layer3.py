from collections import OrderedDict

from torch import nn

if not hasattr(model, "conv1"):
    raise RuntimeError("conv1 is gone already: run this on a fresh model")

# start at layer3: takes `layer2` (N, 512, 4, 4); 1,444,928 parameters before it go
model = nn.Sequential(
    OrderedDict(
        layer3=model.layer3,
        layer4=model.layer4,
        avgpool=model.avgpool,
        flatten=nn.Flatten(1),
        fc=model.fc,
    )
)
