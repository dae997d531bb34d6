"""Models that do not fit or take long: captured from shapes alone, with the facts that they have."""

import pytest
import torch
import torchvision

from nbsurgery.annotate import annotate
from nbsurgery.capture import capture, make

LLAMA = {
    "7B": (
        {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32},
        {"num_attention_heads": 32, "num_key_value_heads": 32},
        6_738_415_616,
    ),
    "70B": (
        {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80},
        {"num_attention_heads": 64, "num_key_value_heads": 8},
        68_976_648_192,
    ),
}


def storage(model, device):
    """Bytes of the weights on a device."""
    return sum(p.nbytes for p in model.parameters() if p.device.type == device)


@pytest.mark.parametrize("size", LLAMA)
def test_a_llama_that_fits_nowhere(size):
    """On the meta device: whole, with every weight counted, and none made."""
    transformers = pytest.importorskip("transformers")
    shape, heads, params = LLAMA[size]
    with torch.device("meta"):
        config = transformers.LlamaConfig(vocab_size=32000, **shape, **heads)
        model = transformers.LlamaForCausalLM(config).eval()
    tokens = torch.zeros(1, 512, dtype=torch.long, device="meta")
    graph = annotate(capture(model, (tokens,)), model)
    assert graph.how == "fake"
    assert graph.totals["params"] == params
    layers = [n for n in graph.flat if n.type == "Linear"]
    assert len(layers) == 7 * shape["num_hidden_layers"] + 1
    # every weight of a linear layer multiplies each token once; attention comes on top
    weights = sum(n.facts["params"] for n in layers)
    assert weights * 512 < graph.totals["macs"] < weights * 512 * 1.1
    assert storage(model, "cpu") == 0
    assert graph.root.output.outputs[0].shape == (1, 512, 32000)


def test_a_large_vision_transformer():
    """ViT-H/14 without its 2.5 GB."""
    with torch.device("meta"):
        model = torchvision.models.vit_h_14(weights=None).eval()
    graph = annotate(capture(model, make(model, (1, 3, 224, 224))), model)
    assert graph.totals["params"] == sum(p.numel() for p in model.parameters()) == 632_045_800
    assert storage(model, "cpu") == 0


def test_a_batch_that_is_dear_is_run_on_shapes():
    """A ResNet on 8 images of 224 by 224: chosen by itself, told, and the weights are the same."""
    model = torchvision.models.resnet50(weights=None).eval()
    before = [(p, p._version, p.data_ptr()) for p in model.parameters()]
    graph = capture(model, (torch.randn(8, 3, 224, 224),))
    assert graph.how == "fake"
    assert graph.root.output.outputs[0].shape == (8, 1000)
    for p, version, place in before:
        assert (p._version, p.data_ptr(), p.grad) == (version, place, None)
