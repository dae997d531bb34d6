"""A quick part of the sweep of ``tests/zoo.py``: exact on four kinds of input, never silently wrong."""

import pytest
import torch

from nbsurgery.capture import capture
from tests import zoo
from tests.zoo_models import GROUPS
from tests.zoo_papers import PAPERS

QUICK = [
    *(f"papers:paper_{name}" for name in PAPERS),
    "torchvision:mobilenet_v3_small",
    "torchvision:lraspp_mobilenet_v3_large",
    "torchvision:quantized_mobilenet_v2_Q",
    "torchvision:r3d_18",
    "timm:resnet10t",
    "timm:lcnet_100",
    "hf:hf_llama_lm",
    "hf:hf_t5",
    "hf:hf_bart",
    "hf:hf_qwen2_moe",
    "hf:hf_swin",
    "hf:hf_whisper",
    "hf:hf_clip",
    "segmentation:smp_unetplusplus_resnet18",
    "segmentation:smp_pspnet_mobilenet_v2",
    "audio:conformer",
    "audio:convtasnet",
    "audio:wav2vec2_lengths",
    "graphs:pyg_GCNConv",
    "graphs:pyg_GATConv",
    "graphs:pyg_GPS",
    "diffusion:diffusers_unet2d_condition",
    "diffusion:diffusers_autoencoder_kl",
]
LIBRARIES = {
    "timm": "timm",
    "hf": "transformers",
    "segmentation": "segmentation_models_pytorch",
    "audio": "torchaudio",
    "graphs": "torch_geometric",
    "diffusion": "diffusers",
}


@pytest.fixture(autouse=True)
def _plain_kernels():
    """Fused attention rounds differently; a recording sees what it does only without it."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


@pytest.fixture(scope="module")
def groups():
    """The groups that were asked for so far."""
    return {}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", QUICK)
def test_a_model_of_the_zoo_is_exact(entry, groups):
    """Same batch, another batch, another size and train mode, wherever the model itself allows it."""
    group, _, name = entry.partition(":")
    pytest.importorskip(LIBRARIES.get(group, "torch"))
    if group not in groups:
        groups[group] = GROUPS[group]()
    line = zoo.measure(capture, *groups[group][name])
    for check in zoo.CHECKS:
        assert line[check] is None or line[check] == "exact" or line[check].startswith("model"), (
            line
        )
    assert line["same"] == line["batch"] == "exact"
    assert line["facts"] == "ok" or line["facts"].startswith("counter")
