# keep only the first of 2 model layers; 9,280 parameters go
model.model.layers = model.model.layers[:1]
model.config.num_hidden_layers = 1
