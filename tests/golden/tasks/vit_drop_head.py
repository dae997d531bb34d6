from torch import nn

# drop heads: the output is the vector (N, 32)
model.heads = nn.Identity()
