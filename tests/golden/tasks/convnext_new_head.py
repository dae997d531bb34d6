from torch import nn

# head.fc: 1000 → 10 classes, new weights
model.head.fc = nn.Linear(model.head.fc.in_features, 10)
