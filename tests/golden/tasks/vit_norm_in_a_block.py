from torch import nn


class EncoderBlockNorm(nn.Module):
    """EncoderBlock with a LayerNorm after the first addition."""

    def __init__(self, block):
        super().__init__()
        self.training = block.training
        self.ln_1 = block.ln_1
        self.self_attention = block.self_attention
        self.dropout = block.dropout
        self.ln_2 = block.ln_2
        self.mlp = block.mlp
        self.norm = nn.LayerNorm(32)

    def forward(self, input):
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x)
        x = x + input
        x = self.norm(x)
        y = self.ln_2(x)
        y = self.mlp(y)
        return x + y


# encoder.layers.encoder_layer_0: nn.LayerNorm(32) after the first addition, new weights
model.encoder.layers.encoder_layer_0 = EncoderBlockNorm(model.encoder.layers.encoder_layer_0)
