from torch import nn

# classifier: 2 → 5 classes, new weights
model.classifier = nn.Linear(model.classifier.in_features, 5)
