"""Where emitted text finds functions, and what a variable may be called."""

from __future__ import annotations

import collections
import math

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from nbsurgery.emit.expressions import quoted
from nbsurgery.emit.names import Imports, identifier, import_block, is_name
from nbsurgery.paths import singular
from nbsurgery.errors import EmissionError


@pytest.mark.parametrize(
    ("value", "text", "line"),
    [
        (torch.flatten, "torch.flatten", "import torch"),
        (F.relu, "F.relu", "import torch.nn.functional as F"),
        (F.gelu, "F.gelu", "import torch.nn.functional as F"),
        (torch.nn.functional.interpolate, "F.interpolate", "import torch.nn.functional as F"),
        (nn.Linear, "nn.Linear", "from torch import nn"),
        (math.sqrt, "math.sqrt", "import math"),
        (len, "len", None),
        (collections.OrderedDict, "OrderedDict", "from collections import OrderedDict"),
        (
            torchvision.ops.stochastic_depth,
            "stochastic_depth",
            "from torchvision.ops import stochastic_depth",
        ),
    ],
)
def test_functions_are_named_where_people_find_them(value, text, line):
    """The public place, and its import."""
    imports = Imports()
    assert imports.reference(value) == text
    assert list(imports.lines) == ([line] if line else [])


def test_a_local_function_has_no_name():
    """What no import reaches is refused."""
    with pytest.raises(EmissionError, match="lambda"):
        Imports().reference(lambda x: x)


def test_imports_are_merged_and_grouped():
    """Standard library first, then the others; one line a module."""
    lines = ["from torch import nn", "import torch", "from b import y", "from b import x"]
    assert import_block([*lines, "import math"]) == (
        "import math\n\nimport torch\nfrom b import x, y\nfrom torch import nn"
    )


def test_words_of_python_are_no_variables():
    """Keywords, what the text imports, and builtins that it calls."""
    assert not any(map(is_name, ("class", "torch", "F", "len", "_", "a b", "1x")))
    assert identifier("max-pool2d") == "max_pool2d" and identifier("lambda") == "lambda_"
    assert identifier("3") == "value_3" and is_name(identifier("self"))


def test_an_item_is_named_after_its_container():
    """`layers` gives `layer`."""
    assert [singular(n) for n in ("layers", "blocks", "h", "entries", "class")] == [
        "layer", "block", "block", "entry", "class",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["plain", "it's", 'say "x"', "back\\slash", "new\nline", "é'\""])
def test_strings_are_data(text):
    """Whatever a model's name contains, the literal evaluates to it."""
    assert eval(quoted(text)) == text
