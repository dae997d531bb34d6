from torch import nn


class BottleneckToBn2(nn.Module):
    """Bottleneck up to `bn2`: (N, 1024, 2, 2) → (N, 256, 2, 2)."""

    def __init__(self, block):
        super().__init__()
        self.training = block.training
        self.conv1 = block.conv1
        self.bn1 = block.bn1
        self.conv2 = block.conv2
        self.bn2 = block.bn2
        self.relu = block.relu

    def forward(self, x):
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        return self.bn2(out)


class ResNetToLayer32Bn2(nn.Module):
    """ResNet up to `layer3.2.bn2`: (N, 3, 32, 32) → (N, 256, 2, 2)."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.conv1 = model.conv1
        self.bn1 = model.bn1
        self.relu = model.relu
        self.maxpool = model.maxpool
        self.layer1 = model.layer1
        self.layer2 = model.layer2
        self.layer3 = model.layer3

    def forward(self, x):
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.maxpool(x)
        x = self.layer1(x)
        x = self.layer2(x)
        return self.layer3(x)


# keep the first 3 of 6 modules of layer3; 3,351,552 parameters go
model.layer3 = model.layer3[:3]

# layer3.2: ends after layer3.2.bn2
model.layer3[2] = BottleneckToBn2(model.layer3[2])

# cut after layer3.2.bn2: layer4, avgpool, flatten and fc go, with 17,013,736 parameters
model = ResNetToLayer32Bn2(model)
