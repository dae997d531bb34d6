"""Outputs of any structure, compared and described."""

import dataclasses
import math
from collections import OrderedDict, namedtuple

import pytest
import torch

from nbsurgery.verify.compare import cloned, difference, leaves, shapes, tensors

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Out:
    logits: torch.Tensor
    hidden: tuple | None = None


class Cache:
    def __init__(self, *layers):
        self.layers = list(layers)
        self.me = self


T = torch.tensor


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(2),
        (torch.ones(2), [torch.zeros(1), 3, None, "a"]),
        {"a": torch.ones(1), "b": Point(torch.ones(1), 2)},
        Out(torch.ones(2), (torch.ones(1),)),
        Cache(torch.ones(2), torch.zeros(2)),
        T([math.nan, math.inf]),
        torch.ones(2, dtype=torch.bool),
        torch.ones(2, dtype=torch.complex64),
        torch.eye(2).to_sparse(),
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(0, 3),
        torch.ones(3, device="meta"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_equal_to_itself(value):
    """Every structure equals its clone, bit for bit, and a clone shares no memory."""
    assert difference(cloned(value), value).equal


def test_where_the_largest_difference_is():
    """The path of the worst number, and its size."""
    old = {"a": torch.zeros(2), "b": [torch.zeros(3), Out(torch.zeros(1))]}
    new = cloned(old)
    new["a"][0] = 0.25
    new["b"][0][1] = -2.0
    found = difference(new, old)
    assert (found.max_abs, found.where) == (2.0, "['b'][0]")
    assert str(found) == "a difference of up to 2 at ['b'][0]"
    assert not found.close


@pytest.mark.parametrize(
    "new, old, said",
    [
        (torch.ones(2), torch.ones(3), "shape (2,) in place of (3,)"),
        (torch.ones(2), torch.ones(2).double(), "dtype torch.float32 in place of torch.float64"),
        ({"a": 1}, {"a": 1, "b": 2}, "1 parts in place of 2 (['b'] first)"),
        ((torch.ones(1),), torch.ones(1), "tuple in place of (1,)"),
        ([torch.ones(1), None], [torch.ones(1), "x"], "None in place of 'x' at [1]"),
        (Out(T(1.0)), Out(T(1.0), (T(2.0),)), "None in place of tuple at .hidden"),
    ],
)
def test_structures_that_differ(new, old, said):
    """What came and what was expected, in words."""
    found = difference(new, old)
    assert str(found) == said and found.max_abs == math.inf and not found.close


def test_round_off_is_told_from_an_error():
    """A last-bit difference is close, a thousandth is not; in bfloat16 a hundredth is."""
    one = torch.ones(4)
    assert difference(one + 1e-6, one).close and not difference(one + 1e-6, one).equal
    assert not difference(one + 1e-3, one).close
    assert difference((one + 1e-2).bfloat16(), one.bfloat16()).close
    assert not difference(torch.ones(2, dtype=torch.long), torch.zeros(2, dtype=torch.long)).close


def test_a_number_that_becomes_nan_is_a_difference():
    """NaN in one of the two is infinitely far."""
    assert difference(T([math.nan, 1.0]), T([1.0, 1.0])).max_abs == math.inf
    assert not difference(T([math.nan]), T([1.0])).close


def test_shapes_keep_the_structure():
    """Dicts, tuples and objects read as themselves; long ones are cut."""
    a, b = torch.zeros(2, 3), torch.zeros(4)
    assert shapes(a) == "(2, 3)"
    assert shapes((a, [b])) == "((2, 3), [(4,)])"
    assert shapes((a,)) == "((2, 3),)"
    assert shapes({"c2": a, "n": 3}) == "{'c2': (2, 3), 'n': 3}"
    assert shapes(Out(a)) == "Out(logits=(2, 3))"
    assert shapes(OrderedDict(out=a)) == "OrderedDict(out=(2, 3))"
    assert shapes([b] * 9).endswith("… 9 in all]")


def test_leaves_and_tensors_in_order():
    """Paths as one would type them."""
    value = {"a": (T(1.0), 2), "p": Point(T(3.0), None)}
    assert [path for path, _ in leaves(value)] == ["['a'][0]", "['a'][1]", "['p'].x", "['p'].y"]
    assert [float(t) for t in tensors(value)] == [1.0, 3.0]


def test_tensors_only():
    """Flags of an object are left out, where a tensor differs is still said."""
    old, new = Cache(torch.zeros(2)), Cache(torch.zeros(2))
    new.seen = old.seen = 3
    new.seen = 4
    assert not difference(new, old).equal
    assert difference(new, old, tensors_only=True).equal
    new.layers[0][1] = 5.0
    found = difference(new, old, tensors_only=True)
    assert (found.max_abs, found.where) == (5.0, ".layers[0]")
    assert difference(torch.ones(1), torch.zeros(1), tensors_only=True).where == ""
