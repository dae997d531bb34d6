"""Models for random surgery, real and written by chance: a model, its arguments and keywords."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from tests.session import generated


def _vision(name: str, size: int = 64, **options) -> Callable:
    def make():
        model = torchvision.models.get_model(name, weights=None, **options).eval()
        return model, (torch.randn(2, 3, size, size),), {}

    return make


def _text(kind: str) -> Callable:
    def make():
        import transformers as t

        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
        if kind == "bert":
            config = t.BertConfig(intermediate_size=64, vocab_size=99, **sizes)
            model = t.BertForSequenceClassification(config)
        elif kind == "gpt2":
            config = t.GPT2Config(
                n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=32, bos_token_id=1,
                eos_token_id=1,
            )  # fmt: skip
            model = t.GPT2LMHeadModel(config)
        else:
            config = t.LlamaConfig(
                intermediate_size=64, vocab_size=99, num_key_value_heads=2, bos_token_id=1,
                eos_token_id=1, **sizes,
            )  # fmt: skip
            model = t.LlamaForCausalLM(config)
        ids = torch.randint(5, 90, (2, 8))
        mask = torch.ones(2, 8, dtype=torch.long)
        mask[1, 5:] = 0
        return model.eval(), (), {"input_ids": ids, "attention_mask": mask}

    return make


def _timm(name: str, size: int = 64, **options) -> Callable:
    def make():
        import timm

        return timm.create_model(name, **options).eval(), (torch.randn(2, 3, size, size),), {}

    return make


class LSTMClassifier(nn.Module):
    """Embedding, both directions of an LSTM, a linear head."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 16, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(32, 3)

    def forward(self, ids):
        x = self.embed(ids)
        _, (h, _) = self.lstm(x)
        return self.head(self.drop(torch.cat([h[0], h[1]], dim=1)))


class Down(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Conv2d(a, b, 3, padding=1)
        self.norm = nn.BatchNorm2d(b)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return x, self.pool(x)


class Up(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.up = nn.ConvTranspose2d(a, b, 2, 2)
        self.conv = nn.Conv2d(2 * b, b, 3, padding=1)

    def forward(self, x, skip):
        return torch.relu(self.conv(torch.cat([self.up(x), skip], dim=1)))


class UNet(nn.Module):
    """A small U-Net: blocks that return two values, skips across the model."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2 = Down(3, 8), Down(8, 16)
        self.middle = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=True))
        self.up1, self.up2 = Up(32, 16), Up(16, 8)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        s1, x = self.down1(x)
        s2, x = self.down2(x)
        x = self.middle(x)
        return self.out(self.up2(self.up1(x, s2), s1))


class TwoInputs(nn.Module):
    """Dict in, dict out."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 8), nn.Linear(6, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, batch):
        h = torch.relu(self.left(batch["left"])) + self.right(batch["right"])
        return {"logits": self.head(h), "hidden": h}


class Branch(nn.Module):
    """A layer called twice, a functional call, and a sequence."""

    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.act = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 1), nn.ReLU()
        self.seq = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))

    def forward(self, x):
        x = self.act(self.c2(self.act(self.c1(x))))
        return self.seq(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Siamese(nn.Module):
    """One branch that runs on both inputs."""

    def __init__(self):
        super().__init__()
        self.branch, self.head = Branch(), nn.Linear(8, 2)

    def forward(self, a, b):
        return self.head(torch.abs(self.branch(a) - self.branch(b)))


def _detection():
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=5, min_size=64, max_size=96,
        rpn_pre_nms_top_n_test=50, rpn_post_nms_top_n_test=10, box_detections_per_img=5,
        box_score_thresh=0.0,
    )  # fmt: skip
    return model.eval(), ([torch.rand(3, 64, 80)],), {}


MODELS: dict[str, Callable] = {
    "resnet18": _vision("resnet18"),
    "resnet50": _vision("resnet50", 32),
    "mobilenet_v3_small": _vision("mobilenet_v3_small"),
    "densenet121": _vision("densenet121"),
    "googlenet": _vision("googlenet", 96, init_weights=False),
    "swin_t": _vision("swin_t", 32),
    "efficientnet_b0": _vision("efficientnet_b0", 32),
    "convnext_tiny": _vision("convnext_tiny", 32),
    "squeezenet1_1": _vision("squeezenet1_1"),
    "vgg11": _vision("vgg11", 32),
    "shufflenet_v2_x0_5": _vision("shufflenet_v2_x0_5"),
    "vit": lambda: (
        torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64).eval(),
        (torch.randn(2, 3, 32, 32),), {},
    ),  # fmt: skip
    "bert": _text("bert"),
    "gpt2": _text("gpt2"),
    "llama": _text("llama"),
    "detection": _detection,
    "timm/convnext_atto": _timm("convnext_atto", 32),
    "lstm": lambda: (LSTMClassifier().eval(), (torch.randint(0, 50, (2, 7)),), {}),
    "unet": lambda: (UNet().eval(), (torch.randn(2, 3, 32, 32),), {}),
    "dicts": lambda: (
        TwoInputs().eval(), ({"left": torch.randn(2, 4), "right": torch.randn(2, 6)},), {},
    ),  # fmt: skip
    "siamese": lambda: (
        Siamese().eval(), (torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)), {},
    ),  # fmt: skip
}  # fmt: skip
LARGE: dict[str, Callable] = {  # too slow for random surgery
    "fasterrcnn": lambda: (
        torchvision.models.detection.fasterrcnn_resnet50_fpn(
            weights=None, weights_backbone=None, min_size=64, max_size=64, box_detections_per_img=5
        ).eval(),
        ([torch.rand(3, 64, 64), torch.rand(3, 48, 64)],), {},
    ),  # fmt: skip
}  # fmt: skip
SMALL = (
    "resnet18",
    "mobilenet_v3_small",
    "squeezenet1_1",
    "vit",
    "bert",
    "gpt2",
    "lstm",
    "unet",
    "dicts",
)


def build(name: str):
    """A fresh model of this name with its inputs, the same each time; ``cell 7`` is written by chance."""
    torch.manual_seed(0)
    kind, _, seed = name.partition(" ")
    return generated.make(int(seed)) if kind == "cell" else {**MODELS, **LARGE}[name]()


def names_for(model: nn.Module) -> dict[str, Any]:
    """The names of the notebook in which the model's classes were defined."""
    return {type(m).__name__: type(m) for m in model.modules() if type(m).__module__ == "__main__"}
