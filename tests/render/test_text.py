"""Widths, short numbers, shapes and families."""

import doctest
import glob

import pytest

from nbsurgery.render import style, text


def test_examples():
    """The examples in the docstrings hold."""
    for module in (text, style):
        assert 0 == doctest.testmod(module).failed


def test_widths_are_those_of_the_font():
    """Against the font itself, where this machine has it."""
    image = pytest.importorskip("PIL.ImageFont")
    files = glob.glob("/usr/share/fonts/**/LiberationSans-Regular.ttf", recursive=True)
    if not files:
        pytest.skip("no Liberation Sans here")
    font = image.truetype(files[0], 2048)
    for words in ("BatchNorm2d", "layer1.0.conv1", "64×56×56", "Größe 1–5 →", "ABCxyz,.;_"):
        expected = sum(font.getlength(c) for c in words) / 2048 * 12
        assert abs(expected - text.width(words, 12)) < 0.1


def test_unknown_characters_are_wide():
    """What the table does not know gets room, what has no width gets none."""
    assert 10 == text.width("日", 10)
    assert 0 == text.width("\u0301", 10)
    assert text.width("a", 10, True) >= text.width("a", 10)


@pytest.mark.parametrize("room", [0, 5, 40, 120])
def test_fit_keeps_both_ends(room):
    """A long name keeps its beginning and its end, within the room."""
    name = "encoder_layer_with_a_long_name_11"
    short = text.fit(name, 12, room, True)
    assert text.width(short, 12, True) <= max(room, text.width("…", 12, True))
    if room >= 40:
        assert short[0] == name[0]
        assert short[-1] == name[-1]
    assert name == text.fit(name, 12, 1000)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, ""), (None, ""), (1, "1"), (9999, "9,999"), (10_000, "10.0K"), (999_949, "999.9K"),
     (999_950, "1.0M"), (1_500_000_000, "1.5B")],
)  # fmt: skip
def test_counts(number, expected):
    """Counts are exact below ten thousand, else one decimal and a unit."""
    assert expected == style.count(number)


@pytest.mark.parametrize(
    ("type", "expected"),
    [("Conv2d", "conv"), ("ConvTranspose2d", "conv"), ("Linear", "linear"), ("LayerNorm", "norm"),
     ("ReLU", "act"), ("relu_", "act"), ("MaxPool2d", "pool"), ("MultiheadAttention", "attn"),
     ("add", "merge"), ("cat", "merge"), ("flatten", "shape"), ("Dropout", "drop"),
     ("Embedding", "embed"), ("LSTM", "other"), ("my_function", "other")],
)  # fmt: skip
def test_families(type, expected):
    """Each common type is in the family that its colour says."""
    assert expected == style.family(type)
    assert style.family(type) in style.FAMILIES


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colours", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_text_can_be_read(colours):
    """Every text stands out from its ground by 4.5 to 1, every shortcut by 2.9 to 1."""

    def contrast(front, back):
        high, low = sorted((_luminance(colours[front]), _luminance(colours[back])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    tints = ["bg", "tint1", "tint2", "tint3"]
    for front, backs, least in (
        ("ink", [*tints, "node", "box", "head1", "head2", "head3"], 4.5),
        ("sub", [*tints, "node", "box", "head1", "head2", "head3"], 4.5),
        ("muted", ["node", "box"], 4.5),
        ("times", ["box"], 4.5),
        ("warn", ["warnfill"], 4.5),
        ("skip", tints, 2.9),
        ("edge", tints, 2.9),
    ):
        for back in backs:
            assert contrast(front, back) >= least, (front, back)
