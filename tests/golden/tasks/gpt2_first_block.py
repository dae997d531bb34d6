# keep only the first of 2 transformer layers; 12,704 parameters go
model.transformer.h = model.transformer.h[:1]
model.config.num_hidden_layers = 1
