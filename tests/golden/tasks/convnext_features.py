from torch import nn


class ConvNeXtFeatures(nn.Module):
    """ConvNeXt that returns the outputs of `stages.0` … `stages.3` as `c2` … `c5`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.stem = model.stem
        self.stages = model.stages

    def forward(self, x):
        x = self.stem(x)
        c2 = self.stages[0](x)
        c3 = self.stages[1](c2)
        c4 = self.stages[2](c3)
        c5 = self.stages[3](c4)
        return {"c2": c2, "c3": c3, "c4": c4, "c5": c5}


# tap stages.0 … stages.3; norm_pre and head go
model = ConvNeXtFeatures(model)
