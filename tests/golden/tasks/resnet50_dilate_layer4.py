# layer4: stride 2 → 1, 3×3 convolutions dilated by 2: (N, 2048, 1, 1) → (N, 2048, 2, 2)
model.layer4[0].conv2.stride = (1, 1)
model.layer4[0].downsample[0].stride = (1, 1)
for block in model.layer4[1:]:
    block.conv2.dilation = (2, 2)
    block.conv2.padding = (2, 2)
