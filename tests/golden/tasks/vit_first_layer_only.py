# keep only the first of 2 encoder layers; 8,544 parameters go
model.encoder.layers = model.encoder.layers[:1]
