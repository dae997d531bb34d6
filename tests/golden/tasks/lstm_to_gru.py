import torch
from torch import nn


class LSTMClassifierGRU(nn.Module):
    """LSTMClassifier that reads the hidden state of a GRU from `lstm`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.embed = model.embed
        self.lstm = model.lstm
        self.drop = model.drop
        self.head = model.head

    def forward(self, ids):
        x = self.embed(ids)
        _, h = self.lstm(x)
        return self.head(self.drop(torch.cat([h[0], h[1]], dim=1)))


# lstm: LSTM → nn.GRU(16, 16, batch_first=True, bidirectional=True), new weights
model.lstm = nn.GRU(16, 16, batch_first=True, bidirectional=True)

# the model: `lstm` returns (out, h) now, without a cell state
model = LSTMClassifierGRU(model)
