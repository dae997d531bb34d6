"""Models to draw: small, each with a shape of its own."""

import torch
import torchvision
from torch import nn


class UNet(nn.Module):
    """Three levels down and up, joined by concatenation."""

    def __init__(self):
        super().__init__()
        self.enc1, self.enc2, self.mid = self.block(3, 4), self.block(4, 8), self.block(8, 16)
        self.pool = nn.MaxPool2d(2)
        self.up2 = nn.ConvTranspose2d(16, 8, 2, 2)
        self.dec2 = self.block(16, 8)
        self.up1 = nn.ConvTranspose2d(8, 4, 2, 2)
        self.dec1 = self.block(8, 4)
        self.head = nn.Conv2d(4, 1, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 1)
        )

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(self.pool(a))
        y = self.up2(self.mid(self.pool(b)))
        y = self.up1(self.dec2(torch.cat([y, b], 1)))
        return self.head(self.dec1(torch.cat([y, a], 1)))


class Classifier(nn.Module):
    """An LSTM whose last states are joined."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(16, 3)

    def forward(self, ids):
        _, (h, _) = self.lstm(self.emb(ids))
        return self.fc(torch.cat([h[-2], h[-1]], 1))


class Added(nn.Module):
    """The sum of a block, in a module of its own."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, hidden, residual):
        return self.norm(self.dense(hidden) + residual)


class PostNorm(nn.Module):
    """A shortcut that runs around one child and is added inside the next."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.output = Added()

    def forward(self, x):
        return self.output(self.inner(x), x)


class Gather(nn.Module):
    """One input for two embeddings of different depth: a sum that is no shortcut."""

    def __init__(self):
        super().__init__()
        self.words, self.kinds, self.places = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, where):
        near = where * 2
        return (self.words(x) + self.kinds(near * 3)) + self.places(near)


class Dense(nn.Module):
    """Every layer reads all before it."""

    def __init__(self, layers=7):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4 * (i + 1), 4) for i in range(layers))

    def forward(self, x):
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


class Split(nn.Module):
    """A list is handed down and taken apart."""

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, pair):
            return [self.one(pair[0]), self.two(pair[1])]

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4)
        self.inner = self.Inner()

    def forward(self, x):
        a, b = self.inner([self.left(x), self.right(x)])
        return a * b


def _image(size=32):
    return (torch.zeros(1, 3, size, size),)


def _of(name, **more):
    return lambda: (getattr(torchvision.models, name)(weights=None, **more), _image())


def _bert(**more):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=32,
        num_hidden_layers=3,
        vocab_size=40,
        **more,
    )
    return BertModel(config), (torch.ones(2, 6, dtype=torch.long),)


def _gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_embd=16, n_head=2, n_layer=3, vocab_size=40, bos_token_id=1, eos_token_id=1
    )
    return GPT2LMHeadModel(config), (torch.ones(2, 6, dtype=torch.long),)


MODELS = {
    "resnet18": _of("resnet18"),
    "resnet50": _of("resnet50"),
    "vit": lambda: (
        torchvision.models.VisionTransformer(32, 8, 3, 2, 16, 32),
        _image(),
    ),
    "densenet121": _of("densenet121"),
    "googlenet": _of("googlenet", init_weights=False),
    "swin_t": _of("swin_t"),
    "shufflenet": _of("shufflenet_v2_x1_0"),
    "unet": lambda: (UNet(), _image()),
    "lstm": lambda: (Classifier(), (torch.ones(2, 5, dtype=torch.long),)),
    "bert": _bert,
    "states": lambda: _bert(output_hidden_states=True),
    "gpt2": _gpt2,
    "transformer": lambda: (
        nn.Transformer(16, 2, 2, 2, 32, batch_first=True),
        (torch.zeros(1, 5, 16), torch.zeros(1, 4, 16)),
    ),
    "postnorm": lambda: (PostNorm(), (torch.zeros(2, 4),)),
    "gather": lambda: (Gather(), (torch.zeros(2, 4), torch.zeros(2, 4))),
    "dense": lambda: (Dense(), (torch.zeros(2, 4),)),
    "split": lambda: (Split(), (torch.zeros(2, 4),)),
}
