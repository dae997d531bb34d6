from tests.models import Branches
from torch import nn


class BranchesNorm(Branches):
    """Branches with a LayerNorm between `lin` and the addition."""

    def forward(self, x):
        x = self.lin(x)
        x = self.norm(x)
        if self.training:
            x = x * 2
        return x + 1


# the model: nn.LayerNorm(4) after `lin`, new weights
model.norm = nn.LayerNorm(4)
model.__class__ = BranchesNorm
