"""Words that messages share."""

import pytest

from nbsurgery.errors import an


@pytest.mark.parametrize(
    "said",
    [
        "a list", "an int", "an LSTM", "an RNN", "a ReLU", "a Linear", "an Upsample", "an Unfold",
        "an UninitializedParameter", "a UNet", "a UNet2DModel", "a Unit", "a UserDict", "a uint8",
        "a OneHot", "an Output", "an nn.Conv2d", "an Embedding", "a GELU", "an MLP", "a module",
    ],
)  # fmt: skip
def test_the_article_follows_the_sound(said):
    assert an(said.partition(" ")[2]) == said
