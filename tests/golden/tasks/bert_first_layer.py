# keep only the first of 2 encoder layers; 8,544 parameters go
model.bert.encoder.layer = model.bert.encoder.layer[:1]
model.config.num_hidden_layers = 1
