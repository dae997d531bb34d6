from torch import nn


class UNetHead(nn.Module):
    """UNet, up to `middle`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.down1 = model.down1
        self.down2 = model.down2
        self.middle = model.middle

    def forward(self, x):
        s1, x = self.down1(x)
        s2, x = self.down2(x)
        x = self.middle(x)
        return s1, s2, x


class UNetTail(nn.Module):
    """UNet, what follows `middle`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.up1 = model.up1
        self.up2 = model.up2
        self.out = model.out

    def forward(self, s1, s2, middle):
        return self.out(self.up2(self.up1(middle, s2), s1))


# split after middle: head (N, 3, 32, 32) → (N, 8, 32, 32) and (N, 16, 16, 16) and (N, 32, 8, 8),
# tail → (N, 2, 32, 32)
head = UNetHead(model)
tail = UNetTail(model)
