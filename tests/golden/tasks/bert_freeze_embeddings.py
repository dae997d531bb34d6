# freeze bert.embeddings, bert.encoder.layer.0: 28,224 of 37,890 parameters
model.bert.embeddings.requires_grad_(False)
model.bert.encoder.layer[0].requires_grad_(False)
