import torch.nn.functional as F
from torch import nn


class TwoMLPHeadGELU(nn.Module):
    """TwoMLPHead whose first `relu` is a GELU of its own."""

    def __init__(self, block):
        super().__init__()
        self.training = block.training
        self.fc6 = block.fc6
        self.fc7 = block.fc7
        self.gelu = nn.GELU()

    def forward(self, x):
        x = x.flatten(start_dim=1)
        x = self.gelu(self.fc6(x))
        return F.relu(self.fc7(x))


# roi_heads.box_head: the first `relu` becomes nn.GELU
model.roi_heads.box_head = TwoMLPHeadGELU(model.roi_heads.box_head)
