# layer4.0.conv2: stride 2 → 1
model.layer4[0].conv2.stride = (1, 1)

# layer4.0.downsample.0: stride 2 → 1
model.layer4[0].downsample[0].stride = (1, 1)

# layer4.1.conv2 … layer4.2.conv2: dilation 1 → 2, padding 1 → 2
for block in model.layer4[1:]:
    block.conv2.dilation = (2, 2)
    block.conv2.padding = (2, 2)
