"""connect: the value that is named is the one that arrives."""

import torch
from torch import nn

import nbsurgery as nbs


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.relu = nn.ReLU(inplace=True)
        self.second = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)

    def forward(self, x):
        x = self.relu(self.first(x))
        return self.last(self.second(x))


def test_a_value_overwritten_on_the_way_arrives_as_it_was():
    model, x = Block().eval(), torch.randn(3, 4)
    surgery = nbs.Surgery(model, x)
    surgery.connect("first", into="last")
    before = model.first(x)
    expected = model.last(model.second(before.relu()) + before)
    assert (before < 0).any()
    torch.testing.assert_close(surgery.build()(x), expected)


def test_a_value_overwritten_only_later_is_not_copied():
    surgery = nbs.Surgery(
        nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU(True)), torch.randn(3, 4)
    )
    surgery.connect("0", into="1")
    assert "clone" not in surgery.code
