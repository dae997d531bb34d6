from torch import nn

# classifier: 2 → 5 classes, new weights
model.classifier = nn.Linear(model.classifier.in_features, 5)
model.config.num_labels = 5
model.num_labels = 5
