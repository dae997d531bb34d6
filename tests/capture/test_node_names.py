"""Names of nodes are torchvision's: a quick part of ``tests/names.py``."""

import pytest

from tests import names

QUICK = [
    "alexnet",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "swin_t",
    "vgg11_bn",
    "vit_b_32",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUICK)
def test_names_equal_torchvisions(name):
    """Every call of a layer, function and method, in order."""
    _, count, left_out, difference = names.check(name)
    assert difference is None
    assert count > 20
    theirs, ours = left_out
    assert set(theirs) <= {
        "getattr",
        "getitem",
        "size",
        "dim",
        "_assert",
        "size arithmetic",
        "parameter",
        "numbered path",
    }
    assert set(ours) <= {"getitem", "parameter", "on buffers alone"}
