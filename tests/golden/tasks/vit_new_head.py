from torch import nn

# heads.head: 1000 → 10 classes, new weights
model.heads.head = nn.Linear(model.heads.head.in_features, 10)
