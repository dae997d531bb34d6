from torch import nn


class UNetFeatures(nn.Module):
    """UNet that returns the output of `middle` as `z`, and its own output as `mask`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.down1 = model.down1
        self.down2 = model.down2
        self.middle = model.middle
        self.up1 = model.up1
        self.up2 = model.up2
        self.out = model.out

    def forward(self, x):
        s1, x = self.down1(x)
        s2, x = self.down2(x)
        z = self.middle(x)
        mask = self.out(self.up2(self.up1(z, s2), s1))
        return {"z": z, "mask": mask}


# tap middle
model = UNetFeatures(model)
