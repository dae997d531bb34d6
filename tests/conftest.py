"""What every test starts from: one thread, a fixed seed."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed():
    """Every test draws the same numbers, alone or among others."""
    torch.manual_seed(0)
