from torch import nn

# transformer.h.0.mlp.act: NewGELUActivation → nn.SiLU
model.transformer.h[0].mlp.act = nn.SiLU()
