"""The own formatter agrees with ruff on what emission writes."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from nbsurgery.emit.format import docstring, fit

LONG = ", ".join(f"argument_{i}" for i in range(12))
LINES = [
    f"from package.module import {LONG}",
    f"{LONG} = self.layer(x)",
    f"{LONG} = self.layer({LONG})",
    f"{LONG} = values",
    f"{LONG[:82]} = self.layer({LONG})",
    f"{LONG[:82]}, abcd = self.layer({LONG})",
    f"{LONG[:82]}, abcde = self.layer({LONG})",
    f"{LONG[:82]}, abcdef = self.layer({LONG})",
    f"{LONG[:82]}, abcdefg = self.layer({LONG})",
    f"{LONG[:82]} = self.layer(argument)",
    "x = torch.arange(first_argument, second_argument, dtype=torch.int64, device=something.device.x)[:, None]",
    f"model = nn.Sequential(OrderedDict({LONG.replace(', ', '=1, ')}=1))",
    f"x = function(*[{LONG}])",
    f'raise RuntimeError("{"a long message " * 6}")',
    f"x = self.layer({LONG})",
    f"return self.layer({LONG})",
    f"return {{{', '.join(f'{chr(34)}c{i}{chr(34)}: some_value_{i}' for i in range(8))}}}",
    "return " + " + ".join(f"some_value_number_{i}" for i in range(7)),
    "x = (value_one + value_two_is_longer) * self.scale + self.function_name(argument_one, argument_two)",
    "qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4).contiguous()",
    "first_result, second_result = self.some_module(first_argument, second_argument, key=third_argument_x)",
    f"x = self.layer(self.other({LONG}), dim=1)",
    f"if first_condition_holds({LONG}):",
    "x = torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x), self.branch5(x)], 1)",
    'x = function("a string, with (brackets] and commas", other=self.attribute.that_is.long, one=True, k=1)',
]


@pytest.mark.parametrize("line", LINES)
def test_long_lines_break_as_ruff_breaks_them(line):
    """Inside a method, where most text stands."""
    text = f"class X:\n    def forward(self):\n        {line}\n"
    if line.endswith(":"):
        text += "            pass\n"
    ruff = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--line-length", "100", "-"],
        input=text, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert fit(text) == ruff


def test_short_lines_and_comments_stay():
    """What fits is not touched, comments never are."""
    text = "x = 1\n# " + "long comment " * 20
    assert fit(text) == text


def test_a_remark_behind_a_statement_is_not_broken():
    line = f"values = self.bias(x)  # of shape ({LONG})"
    assert fit(line) == line
    broken = fit(f"values = self.bias({LONG})  # of shape (a, b)").splitlines()
    assert broken[0] == "values = self.bias(  # of shape (a, b)" and broken[-1] == ")"


def test_a_docstring_is_data():
    """Quotes and backslashes from a model cannot end the docstring."""
    for text in ('ends in "', 'has """ inside', "back\\slash", "long " * 60, "two\nlines"):
        found: dict = {}
        exec(f"class X:\n{docstring(text, '    ')}\n", found)  # noqa: S102
        assert " ".join(found["X"].__doc__.split()) == " ".join(text.split())
        assert all(len(line) <= 100 for line in docstring(text, "    ").split("\n"))


@pytest.mark.parametrize("right", ["x.unbind(0)", "x", "self.split(first, second, third=[4] * 9)"])
@pytest.mark.parametrize("nested", [False, True])
def test_an_unpacking_of_thirty(right, nested):
    """One variable a line, also where some are unpacked further; the same statement as before."""
    names = [f"value_{i}" for i in range(30)]
    if nested:
        names[10:12] = ["(left_hand, right_hand)"]
    line = f"{', '.join(names)} = {right}"
    text = fit(line)
    assert max(map(len, text.split("\n"))) <= 100
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(line))
