"""Every explanation: the numbers in it are those of the layer, and nothing is left unexplained."""

import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import nbsurgery as nbs
from nbsurgery.errors import SelectionError
from nbsurgery.explain import explain
from nbsurgery.explain.subject import REGISTERED, words
from tests.handmade import Net, net_graph


class Call(nn.Module):
    """A function as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Wrap(nn.Module):
    """A layer as a child of a model, under the name ``layer``."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *args):
        return self.layer(*args)


def said(layer, *inputs, train=False):
    model = (Wrap(layer) if isinstance(layer, nn.Module) else Call(layer)).train(train)
    graph = nbs.capture(model, *inputs)
    return next(n for n in graph.nodes if n.kind in ("module", "function", "method")).explain()


IMAGE, TOKENS, ROWS = torch.ones(2, 4, 8, 8), torch.ones(2, 5, 8), torch.ones(2, 6)


@pytest.mark.parametrize(
    ("layer", "inputs", "expected"),
    [
        (nn.Conv2d(4, 6, 3, 2, 1), (IMAGE,),
         ["3×3 convolution from 4 channels to 6", "8×8 becomes 4×4", "6·4·3·3 = 216", "bias of 6",
          "sum of 36 products"]),
        (nn.Conv2d(4, 4, 3, groups=4, bias=False), (IMAGE,), ["depthwise", "4·1·3·3 = 36", "no bias"]),
        (nn.Conv2d(4, 4, 3, groups=2), (IMAGE,), ["cut into 2 groups", "4·2·3·3 = 72"]),
        (nn.Conv2d(4, 6, 1), (IMAGE,), ["mixes the channels at one position", "stays 8×8"]),
        (nn.Conv2d(4, 6, 3, padding=2, dilation=2), (IMAGE,), ["dilation 2", "stays 8×8"]),
        (nn.Conv2d(4, 6, 3, padding="same"), (IMAGE,), ["'same'", "8×8 becomes 8×8"]),
        (nn.ConvTranspose2d(4, 2, 2, 2), (IMAGE,), ["4×8×8 becomes 2×16×16", "34 parameters"]),
        (nn.BatchNorm2d(4), (IMAGE,), ["4 channels", "eval mode", "2·4 = 8"]),
        (nn.BatchNorm2d(4, affine=False), (IMAGE,), ["learns nothing"]),
        (nn.LayerNorm(8), (TOKENS,), ["its own 8 numbers", "16 parameters"]),
        (nn.GroupNorm(2, 4), (IMAGE,), ["2 groups of 2 channels"]),
        (nn.InstanceNorm2d(4), (IMAGE,), ["each channel of each example"]),
        (nn.Linear(6, 3), (ROWS,), ["3 outputs", "6 inputs", "3·6 + 3 = 21"]),
        (nn.Linear(8, 3, bias=False), (TOKENS,), ["each of 5 positions", "3·8 = 24"]),
        (nn.Embedding(10, 4, padding_idx=0), (torch.zeros(2, 3, dtype=torch.long),),
         ["10·4 = 40", "Row 0 is padding", "2×3 becomes 2×3×4"]),
        (nn.Dropout(0.25), (ROWS,), ["25%", "eval mode now and does nothing"]),
        (nn.Dropout(0.0), (ROWS,), ["Drops nothing"]),
        (nn.MaxPool2d(3, 2, 1), (IMAGE,), ["largest number of each 3×3 window, 2 apart", "8×8 becomes 4×4"]),
        (nn.AvgPool2d(2), (IMAGE,), ["mean of each 2×2 window"]),
        (nn.AdaptiveAvgPool2d(1), (IMAGE,), ["one number per channel", "8×8 becomes 1×1"]),
        (nn.AdaptiveMaxPool2d(2), (IMAGE,), ["largest of each part"]),
        (nn.PReLU(4), (IMAGE,), ["It learns 4 numbers"]),
        (nn.GELU(), (ROWS,), ["GELU of each number", "Φ"]),
        (nn.LeakyReLU(), (ROWS,), ["a small part of x where negative"]),
        (nn.Softmax(dim=-1), (ROWS,), ["axis -1 of 6", "sum to 1"]),
        (nn.Flatten(), (IMAGE,), ["4·8·8 = 256"]),
        (nn.Identity(), (ROWS,), ["unchanged"]),
        (nn.Upsample(scale_factor=2), (IMAGE,), ["2×4×8×8 becomes 2×4×16×16"]),
        (nn.ZeroPad2d(1), (IMAGE,), ["border"]),
        (nn.MultiheadAttention(8, 2, batch_first=True), (TOKENS, TOKENS, TOKENS),
         ["2 heads of 4", "Each of 5 positions", "288 parameters"]),
        (nn.LSTM(8, 3, num_layers=2, bidirectional=True, batch_first=True), (TOKENS,),
         ["LSTM of 2 layers in both directions", "5 steps", "3 tensors"]),
        (nn.Bilinear(6, 6, 2), (ROWS, ROWS), ["2 outputs"]),
        (lambda x: torch.flatten(x, 1), (IMAGE,), ["2×4×8×8 becomes 2×256", "loses it"]),
        (lambda x: F.relu(x), (ROWS,), ["max(0, x)", "no list of modules"]),
        (lambda x: F.max_pool2d(x, 2), (IMAGE,), ["2×2 window, 2 apart"]),
        (lambda x: F.adaptive_avg_pool2d(x, 1), (IMAGE,), ["one number per channel"]),
        (lambda x: F.dropout(x, 0.5, False), (ROWS,), ["50%", "does nothing"]),
        (lambda x, y: x + y, (ROWS, ROWS), ["Adds", "nothing is learned"]),
        (lambda x, y: x - y, (ROWS, ROWS), ["Subtracts"]),
        (lambda x: x + 1, (ROWS,), ["Adds a number"]),
        (lambda x, y: x * y, (IMAGE, torch.ones(2, 4, 1, 1)), ["Multiplies"]),
        (lambda x, y: torch.cat([x, y], 1), (IMAGE, IMAGE), ["2 tensors", "channels: 4 + 4 = 8"]),
        (lambda x, y: torch.stack([x, y]), (ROWS, ROWS), ["new axis 0: 2×2×6"]),
        (lambda x, y: x @ y.T, (ROWS, ROWS), ["Axes change places"]),
        (lambda x, y: torch.matmul(x, y), (ROWS, torch.ones(6, 3)), ["2×6 by 6×3 gives 2×3"]),
        (lambda x: x.permute(0, 2, 1), (TOKENS,), ["2×5×8 becomes 2×8×5"]),
        (lambda x: x.reshape(4, 20), (TOKENS,), ["2×5×8 becomes 4×20"]),
        (lambda x: x[:, 0], (TOKENS,), ["2×5×8 becomes 2×8", "0.2 of the numbers"]),
        (lambda x: x.mean((2, 3)), (IMAGE,), ["the mean over some axes"]),
        (lambda x: x.chunk(2, 1)[0], (IMAGE,), ["2 pieces of 2×2×8×8"]),
        (lambda x: F.interpolate(x, scale_factor=2), (IMAGE,), ["2×4×8×8 becomes 2×4×16×16"]),
        (lambda q: F.scaled_dot_product_attention(q, q, q), (torch.ones(2, 3, 5, 4),),
         ["each of 3 heads", "5 queries weighs 5 keys", "√4"]),
        (lambda x: F.conv2d(x, x.new_ones(2, 4, 3, 3)), (IMAGE,), []),
        (lambda x: torch.cumsum(x, 1), (ROWS,), ["function cumsum keeps the shape 2×6"]),
    ],
)  # fmt: skip
def test_what_is_said(layer, inputs, expected):
    """The numbers of the layer stand in its explanation, which is made of sentences."""
    text = said(layer, *inputs)
    for part in expected:
        assert part.lower() in text.lower(), text
    assert text.endswith(".") and ".." not in text and "None" not in text and "  " not in text


def test_modes_are_told():
    """What the mode changes is said as it is now."""
    assert "train mode now, so two calls differ" in said(nn.Dropout(), ROWS, train=True)
    assert "running statistics move" in said(nn.BatchNorm2d(4), IMAGE, train=True)


def test_a_subclass_is_explained_as_its_nearest_class():
    """A library's own Linear is explained like nn.Linear."""

    class Special(nn.Linear):
        def forward(self, x):
            return super().forward(x)

    graph = net_graph()
    net = Net()
    net.fc = Special(4, 3)
    assert "3·4 + 3 = 15" in explain(graph, net, "fc")


def test_scopes_and_ends():
    """Blocks are told by what they hold; inputs and outputs by their shapes."""
    graph, net = net_graph(), Net()
    assert "identity shortcut" in explain(graph, net, "blocks.0")
    assert "61 parameters" in explain(graph, net, "")
    assert "2×4" in explain(graph, net, "x") and "2×3" in explain(graph, net, "output")
    opaque = graph.with_scopes(
        {"blocks.0": graph.scopes["blocks.0"].with_(opaque="it calls numpy")}
    )
    assert "author's own text: it calls numpy" in explain(opaque, net, "blocks.0")


def test_a_projection_shortcut_is_told():
    """A block whose shortcut changes the shape says so."""
    torchvision = pytest.importorskip("torchvision")
    model = torchvision.models.resnet18(weights=None).eval()
    graph = nbs.capture(model, torch.zeros(1, 3, 32, 32))
    assert "projection shortcut" in graph["layer2.0"].explain()
    assert "identity shortcut" in graph["layer2.1"].explain()


def test_wrong_names_and_double_explanations_are_refused():
    """A name that is not there gives the nearest; two explanations of one thing are a mistake."""
    with pytest.raises(SelectionError, match=re.escape("'blocks.0.lin'")):
        explain(net_graph(), Net(), "blocks.0.lim")
    with pytest.raises(ValueError, match="explained twice"):
        words(next(iter(REGISTERED)))(lambda subject: "again")
