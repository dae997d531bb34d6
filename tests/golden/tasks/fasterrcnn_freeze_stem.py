from torch import nn


class FrozenBatchNorm2d(nn.BatchNorm2d):
    """BatchNorm2d that stays in eval mode whatever `train()` says."""

    def train(self, mode=True):
        return super().train(False)


# freeze up to backbone.body.layer2: 1,444,928 of 41,808,406 parameters, and the running statistics
# there
for module in (
    model.backbone.body.conv1,
    model.backbone.body.bn1,
    model.backbone.body.layer1,
    model.backbone.body.layer2,
):
    module.requires_grad_(False)
    for bn in module.modules():
        if isinstance(bn, nn.BatchNorm2d):
            bn.__class__ = FrozenBatchNorm2d
            bn.eval()
