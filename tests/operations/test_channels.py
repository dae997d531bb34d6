"""Widths that others must follow: through normalisations, additions and readers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nbsurgery.errors import StepError
from nbsurgery.session import Session
from tests.session.zoo import build


def session(name: str) -> Session:
    """A fresh session on a small model."""
    model, args, kwargs = build(name)
    return Session(model, args, kwargs, namespace={})


def test_what_must_follow_is_said():
    """Without follow, the layers that must change too are named, and nothing changes."""
    s = session("resnet18")
    with pytest.raises(StepError, match=r"layer1\.0\.bn1, layer1\.0\.conv2 \(inputs\)"):
        s.do("channels", {"where": "layer1.0.conv1", "outputs": 48})
    assert s.recipe == ()


def test_width_inside_a_block():
    """One convolution, its BatchNorm and its reader change; the output keeps its shape."""
    s = session("resnet18")
    s.do("channels", {"where": "layer1.0.conv1", "outputs": 48, "follow": True})
    edited = s.build()
    assert edited.layer1[0].bn1.num_features == 48
    assert tuple(edited.layer1[0].conv2.weight.shape) == (64, 48, 3, 3)
    assert s.report.ok, str(s.report)
    kept = s.original.layer1[0].conv1.weight[:48]
    assert edited.layer1[0].conv1.weight.equal(kept)


def test_width_through_additions():
    """Both branches of every addition on the way follow, and the next stage reads the new width."""
    s = session("resnet18")
    s.do("channels", {"where": "layer2.0.conv2", "outputs": 96, "follow": True})
    edited = s.build()
    widths = [m.out_channels for m in (edited.layer2[0].downsample[0], edited.layer2[1].conv2)]
    assert widths == [96, 96]
    assert edited.layer3[0].conv1.in_channels == edited.layer3[0].downsample[0].in_channels == 96
    assert s.report.ok, str(s.report)


def changed(s: Session, where: str, outputs: int):
    """The model after a step with followers, its report checked."""
    s.do("channels", {"where": where, "outputs": outputs, "follow": True})
    assert s.report.ok, str(s.report)
    return s.build()


def same(s: Session) -> bool:
    """Whether the report proved that no number of the output changed."""
    return any("the output equals the original's" in f.text for f in s.report.findings)


def test_concatenation_keeps_the_place_of_the_others():
    """Of what reads a concatenation only the changed value's columns move; zeros change no number."""
    s = session("unet")
    edited = changed(s, "down1.conv", 12)
    old, new = s.original.up2.conv, edited.up2.conv
    assert new.in_channels == 20
    assert new.weight[:, :16].equal(old.weight) and not new.weight[:, 16:].any()
    assert same(s)
    s.do("channels", {"where": "up2.up", "outputs": 6, "follow": True})
    new = s.build().up2.conv
    assert new.weight[:, :6].equal(old.weight[:, :6])
    assert new.weight[:, 6:14].equal(old.weight[:, 8:]) and not new.weight[:, 14:].any()


def test_dense_block_and_fire_module():
    """A value concatenated in every later layer; two halves of one concatenation."""
    s = session("squeezenet1_1")
    edited = changed(s, "features.3.expand1x1", 80)
    assert edited.features[4].squeeze.in_channels == 144
    assert same(s)


def test_depthwise_and_squeeze_excite():
    """Depthwise filters belong to channels one by one; the factors of a product follow."""
    s = session("mobilenet_v3_small")
    edited = changed(s, "features.2.block.0.0", 80)
    assert edited.features[2].block[1][0].groups == 80
    s = session("mobilenet_v3_small")
    edited = changed(s, "features.4.block.0.0", 112)
    assert edited.features[4].block[2].fc2.out_channels == 112
    assert same(s)


class Mixed(nn.Module):
    """A transposed convolution, grouped statistics, one value twice in a concatenation, a flatten."""

    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(8, 6, 4, 2, 1)
        self.norm = nn.GroupNorm(2, 6)
        self.act = nn.PReLU(6)
        self.conv = nn.Conv2d(12, 4, 3, padding=1)
        self.fc = nn.Linear(4 * 64, 5)

    def forward(self, x):
        x = self.act(self.norm(self.up(x)))
        x = self.conv(torch.cat([x, x], 1))
        return self.fc(x.view(x.size(0), -1))


def mixed() -> Session:
    torch.manual_seed(0)
    return Session(Mixed().eval(), (torch.randn(2, 8, 4, 4),), {}, namespace={})


def test_flatten_multiplies_by_the_positions():
    s = mixed()
    edited = changed(s, "conv", 3)
    assert edited.fc.weight.equal(s.original.fc.weight[:, : 3 * 64])


def test_two_places_of_one_value():
    """Both copies of the value carry over; the text refuses to run twice, and says so."""
    s = mixed()
    edited = changed(s, "up", 10)
    old = s.original.conv.weight
    assert edited.conv.weight[:, :6].equal(old[:, :6])
    assert edited.conv.weight[:, 10:16].equal(old[:, 6:])
    assert edited.up.weight[:, :6].equal(s.original.up.weight)
    assert edited.norm.num_channels == 10 and edited.act.num_parameters == 10
    assert "is widened already" in s.code
    assert not same(s)


def test_groups_must_divide():
    s = mixed()
    with pytest.raises(StepError, match="'norm' has 2 groups, which do not divide 9"):
        s.do("channels", {"where": "up", "outputs": 9, "follow": True})


def test_two_steps_on_neighbours():
    """The second step meets widths that the first one changed; each layer is made once."""
    s = session("unet")
    s.do("channels", {"where": "down1.conv", "outputs": 12, "follow": True})
    s.do("channels", {"where": "down2.conv", "outputs": 20, "follow": True})
    s.do("channels", {"where": "down1.conv", "outputs": 10, "follow": True})
    edited = s.build()
    assert tuple(edited.down2.conv.weight.shape) == (20, 10, 3, 3)
    assert edited.down2.conv.weight[:16, :8].equal(s.original.down2.conv.weight)
    assert s.code.count("model.down2.conv = new") == 1
    assert s.report.ok, str(s.report)


class Chunked(nn.Module):
    """A width that is cut in two: no rule."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(4, 2)

    def forward(self, x):
        left, right = self.a(x).chunk(2, -1)
        return self.b(left * right)


def test_where_no_rule_is_known_the_place_is_named():
    s = Session(Chunked().eval(), (torch.randn(2, 4),), {}, namespace={})
    with pytest.raises(StepError, match="chunk"):
        s.do("channels", {"where": "a", "outputs": 12, "follow": True})
    assert s.recipe == ()


class FirstNorm(nn.LayerNorm):
    """Normalises the channels of pictures, as several libraries' own classes do."""

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = nn.functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ActNorm(nn.BatchNorm2d):
    """A BatchNorm with an activation of its own."""

    def __init__(self, width):
        super().__init__(width)
        self.act = nn.Tanh()

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        return self.act(nn.functional.batch_norm(x, mean, var, self.weight, self.bias))


class OwnNorms(nn.Module):
    """Normalisations of classes that torch does not have."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 2, 1)
        self.first, self.act = FirstNorm(8), ActNorm(8)

    def forward(self, x):
        return self.c(self.act(self.b(self.first(self.a(x)))))


def test_normalisations_of_other_classes_stay_what_they_are():
    """They take the tensors of a plain one of the new width; class, children and the rest stay."""
    torch.manual_seed(0)
    s = Session(OwnNorms().eval(), (torch.randn(2, 3, 8, 8),), {}, namespace={})
    edited = changed(s, "b", 12)
    assert type(edited.act) is ActNorm and type(edited.act.act) is nn.Tanh
    assert edited.act.num_features == 12 and edited.act.running_var.shape == (12,)
    assert same(s)
    edited = changed(s, "a", 6)
    assert type(edited.first) is FirstNorm and edited.first.normalized_shape == (6,)
    assert edited.first.weight.equal(s.original.first.weight[:6])
    assert "a: 8 → 6 output channels" in s.code


class OwnConv(nn.Conv2d):
    """A convolution that computes something of its own."""

    def forward(self, x):
        return super().forward(x) * 2


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (lambda: OwnConv(3, 8, 1), "is an OwnConv, a class of its own"),
        (lambda: nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 8, 1)), r"is parametrized \(weight\)"),
        (lambda: nn.Conv2d(3, 6, 1, groups=3), "has 3 groups"),
        (lambda: nn.Conv2d(3, 3, 3, groups=3), "one filter for each of its 3 channels"),
    ],
)  # fmt: skip
def test_layers_that_a_plain_one_would_not_replace(layer, why):
    """As target and as follower: what a new layer would lose silently is refused."""
    torch.manual_seed(0)
    made = layer()
    s = Session(nn.Sequential(made).eval(), (torch.randn(2, 3, 4, 4),), {}, namespace={})
    with pytest.raises(StepError, match=why):
        s.do("channels", {"where": "0", "outputs": 12})
    if made.out_channels == made.in_channels:
        return  # a depthwise one follows
    net = nn.Sequential(nn.Conv2d(3, 3, 1), made).eval()
    s = Session(net, (torch.randn(2, 3, 4, 4),), {}, namespace={})
    with pytest.raises(StepError, match=f"{why}|no rule is known"):
        s.do("channels", {"where": "0", "outputs": 6, "follow": True})


class Counts(nn.Module):
    """Reads the width of a value as a number."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        x = self.a(x)
        return self.b(x) * x.shape[1] * x.size(0)


def test_a_width_that_is_read_as_a_number_promises_nothing():
    """The output changes with the number: no promise, and so no error."""
    s = Session(Counts().eval(), (torch.randn(2, 3, 4, 4),), {}, namespace={})
    changed(s, "a", 6)
    assert not same(s)


@pytest.mark.parametrize("weights", ["mean", "sum"])
def test_fewer_input_channels_by_mean_or_sum(weights):
    """From colour to grey: one filter of all three, and the comment says which."""
    torch.manual_seed(0)
    s = Session(
        nn.Sequential(nn.Conv2d(3, 4, 3)).eval(), (torch.randn(2, 3, 6, 6),), {}, namespace={}
    )
    s.do("channels", {"where": "0", "inputs": 1, "weights": weights})
    old = s.original[0].weight
    assert torch.equal(s.build()[0].weight, getattr(old, weights)(1, keepdim=True))
    assert f"each filter is the {weights} over the old channels" in s.code
    assert any("run twice, the code gives the same" in f.text for f in s.report.findings)


def test_repeated_filters_answer_repeated_channels_as_before():
    """Each old filter stands there several times, and all of them together weigh as much as it did."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    x = torch.randn(2, 3, 8, 8)
    session = Session(model, (x,), namespace={})
    session.do("channels", {"where": "0", "inputs": 9, "weights": "repeat"})
    assert torch.allclose(session.build()(torch.cat([x, x, x], 1)), model(x), atol=1e-5)
