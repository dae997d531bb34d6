import torch
from torch import nn


class BottleneckHead(nn.Module):
    """Bottleneck, up to `layer2.0.conv2`."""

    def __init__(self, block):
        super().__init__()
        self.training = block.training
        self.conv1 = block.conv1
        self.bn1 = block.bn1
        self.conv2 = block.conv2
        self.relu = block.relu

    def forward(self, x):
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        return self.conv2(out)


class ResNetHead(nn.Module):
    """ResNet, up to `layer2.0.conv2`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.conv1 = model.conv1
        self.bn1 = model.bn1
        self.relu = model.relu
        self.maxpool = model.maxpool
        self.layer1 = model.layer1
        self.layer2 = nn.Sequential(BottleneckHead(model.layer2[0]))

    def forward(self, x):
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.maxpool(x)
        layer1 = self.layer1(x)
        x = self.layer2(layer1)
        return layer1, x


class BottleneckTail(nn.Module):
    """Bottleneck, what follows `layer2.0.conv2`."""

    def __init__(self, block):
        super().__init__()
        self.training = block.training
        self.bn2 = block.bn2
        self.conv3 = block.conv3
        self.bn3 = block.bn3
        self.relu = block.relu
        self.downsample = block.downsample

    def forward(self, values):
        x, conv2 = values
        out = self.bn2(conv2)
        out = self.relu(out)
        out = self.conv3(out)
        out = self.bn3(out)
        identity = self.downsample(x)
        out = out + identity
        return self.relu(out)


class ResNetTail(nn.Module):
    """ResNet, what follows `layer2.0.conv2`."""

    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.layer3 = model.layer3
        self.layer4 = model.layer4
        self.avgpool = model.avgpool
        self.fc = model.fc
        self.layer2 = nn.Sequential(BottleneckTail(model.layer2[0]), *model.layer2[1:])

    def forward(self, layer1, conv2):
        x = self.layer2((layer1, conv2))
        x = self.layer3(x)
        x = self.layer4(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.fc(x)


# split after layer2.0.conv2: head (N, 3, 32, 32) → (N, 256, 8, 8) and (N, 128, 4, 4), tail →
# (N, 1000)
head = ResNetHead(model)
tail = ResNetTail(model)
