from torch import nn


class BertOutputLinear(nn.Module):
    """BertOutput with a Linear between `dense` and `dropout`."""

    def __init__(self, block):
        super().__init__()
        self.training = block.training
        self.dense = block.dense
        self.LayerNorm = block.LayerNorm
        self.dropout = block.dropout
        self.linear = nn.Linear(32, 32)

    def forward(self, hidden_states, input_tensor):
        hidden_states = self.dense(hidden_states)
        hidden_states = self.linear(hidden_states)
        hidden_states = self.dropout(hidden_states)
        return self.LayerNorm(hidden_states + input_tensor)


# bert.encoder.layer.0.output: nn.Linear(32, 32) after `dense`, new weights
model.bert.encoder.layer[0].output = BertOutputLinear(model.bert.encoder.layer[0].output)
