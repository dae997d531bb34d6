import torch
from torch import nn


class LSTMClassifierNorm(nn.Module):
    """LSTMClassifier with a LayerNorm between `drop` and `head`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.embed = model.embed
        self.lstm = model.lstm
        self.drop = model.drop
        self.head = model.head
        self.norm = nn.LayerNorm(32)

    def forward(self, ids):
        x = self.embed(ids)
        _, (h, _) = self.lstm(x)
        return self.head(self.norm(self.drop(torch.cat([h[0], h[1]], dim=1))))


# the model: nn.LayerNorm(32) before `head`, new weights
model = LSTMClassifierNorm(model)
