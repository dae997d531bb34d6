# freeze up to encoder.layers.encoder_layer_0: 15,296 of 56,904 parameters
model.conv_proj.requires_grad_(False)
model.encoder.layers.encoder_layer_0.requires_grad_(False)
model.class_token.requires_grad_(False)
model.encoder.pos_embedding.requires_grad_(False)
