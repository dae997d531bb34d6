"""The emitted text against golden files that an expert would sign, and what each file claims."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn

from nbsurgery.session import Session

GOLDEN = Path(__file__).parents[1] / "golden" / "emitted"
RELU = {"class": "torch.nn.modules.activation.ReLU"}
TASKS = {
    "01_replace_head": [("replace", {"where": "fc", "new": "nn.Linear(old.in_features, 10)"})],
    "02_drop_head": [("cut", {"before": "fc"})],
    "03_cut_after_layer4": [("cut", {"after": "layer4"})],
    "04_feature_pyramid": [("tap", {"nodes": {f"layer{i}": f"c{i + 1}" for i in (1, 2, 3, 4)}})],
    "05_in_channels_4": [("channels", {"where": "conv1", "inputs": 4, "weights": "zero"})],
    "06_relu_to_gelu": [("replace", {"where": RELU, "new": "nn.GELU()"})],
    "07_one_call_of_a_shared_relu": [
        ("replace", {"where": {"call": "layer1.0.relu_2"}, "new": "nn.GELU()"})
    ],
    "08_insert_after_add": [("insert", {"after": "layer2.0.add", "new": "nn.BatchNorm2d(512)"})],
    "11_split_after_layer2": [("split", {"after": "layer2"})],
    "12_as_sequential": [("sequential", {})],
    "13_freeze_to_layer2": [("freeze", {"until": "layer2"})],
    "09_bypass_block": [("remove", {"where": "layer3.2"})],
    "10_dilate_layer4": [
        ("set", {"where": ["layer4.0.conv2", "layer4.0.downsample.0"], "stride": 1}),
        ("set", {"where": ["layer4.1.conv2", "layer4.2.conv2"], "dilation": 2, "padding": 2}),
    ],
}


@functools.cache
def session(name: str = "resnet50") -> Session:
    """One session per model: goldens undo what they did."""
    torch.manual_seed(0)
    if name.startswith("timm/"):
        timm = pytest.importorskip("timm")
        model = timm.create_model(name[5:], pretrained=False).eval()
    else:
        model = torchvision.models.get_model(name, weights=None).eval()
    return Session(model, (torch.randn(2, 3, 224, 224),), namespace={})


def emitted(steps, name: str = "resnet50") -> tuple[str, object]:
    """The text and report for some steps on a fresh recipe."""
    s = session(name)
    try:
        for operation, arguments in steps:
            s.do(operation, arguments)
        return s.code, s.report
    finally:
        while s.can_undo:
            s.undo()


@pytest.mark.parametrize("task", TASKS)
def test_text_is_the_golden_one(task):
    """Letter for letter what stands in the golden file; the report finds nothing wrong."""
    text, report = emitted(TASKS[task])
    assert text == (GOLDEN / f"{task}.py").read_text()
    assert report.ok, str(report)


@pytest.mark.parametrize("way", ["channels", "remove"])
def test_two_ways_to_the_same_text(way):
    """An edit that can be asked for in two ways gives one text."""
    steps, task = {
        "channels": ([("channels", {"where": "fc", "outputs": 10})], "01_replace_head"),
        "remove": ([("remove", {"where": "fc"})], "02_drop_head"),
    }[way]
    assert emitted(steps)[0] == (GOLDEN / f"{task}.py").read_text()


def run(text: str, model: nn.Module, times: int = 1) -> nn.Module:
    """The text executed as a cell would be."""
    space = {"model": model}
    for _ in range(times):
        exec(compile(text, "<cell>", "exec"), space)
    return space["model"]


def fresh(name: str) -> nn.Module:
    """A new model of the session's kind."""
    torch.manual_seed(0)
    if name.startswith("timm/"):
        import timm

        return timm.create_model(name[5:], pretrained=False).eval()
    return torchvision.models.get_model(name, weights=None).eval()


@pytest.mark.parametrize("name", ["resnet18", "wide_resnet50_2", "timm/resnet26"])
def test_same_tasks_on_other_resnets(name):
    """The nine tasks on other residual networks: the text does what its comment says."""
    reference, x = fresh(name), torch.randn(1, 3, 64, 64)
    width = reference.fc.in_features
    last = "relu_2" if width == 2048 and not name.startswith("timm") else "relu_1"
    timm = name.startswith("timm")
    add = "layer2.0.add"
    s = session(name)
    names = set(s.base.by_name)
    with torch.no_grad():
        y = reference(x)
        taps = {}
        for i in (1, 2, 3, 4):
            reference.get_submodule(f"layer{i}").register_forward_hook(
                lambda m, a, o, k=f"c{i + 1}": taps.setdefault(k, o.clone())
            )
        reference(x)
        for m in reference.modules():
            m._forward_hooks.clear()

        def done(steps, times=2):
            text, report = emitted(steps, name)
            assert report.ok, str(report)
            compile(text, "<cell>", "exec")
            return run(text, fresh(name), times)

        assert done(TASKS["01_replace_head"])(x).shape == (1, 10)
        assert done(TASKS["02_drop_head"])(x).shape == (1, width)
        assert torch.equal(done(TASKS["03_cut_after_layer4"])(x), taps["c5"])
        out = done(TASKS["04_feature_pyramid"])(x)
        assert list(out) == list(taps)
        assert all(torch.equal(out[k], taps[k]) for k in taps)
        wide = done(TASKS["05_in_channels_4"])(torch.cat([x, torch.randn(1, 1, 64, 64)], 1))
        torch.testing.assert_close(wide, y, rtol=1e-4, atol=1e-4)
        gelu = done(TASKS["06_relu_to_gelu"])
        assert not any(isinstance(m, nn.ReLU) for m in gelu.modules())
        call = "layer1.0.act2" if timm else f"layer1.0.{last}"
        if call in names and not timm:
            one = done([("replace", {"where": {"call": call}, "new": "nn.GELU()"})], 1)
            assert set(one.state_dict()) == set(reference.state_dict())
            assert not torch.equal(one(x), y)
            one.layer1[0].gelu = nn.ReLU()
            assert torch.equal(one(x), y)
        channels = s.base.by_name[add].shape[1]
        new = f"nn.BatchNorm2d({channels})"
        norm = done([("insert", {"after": add, "new": new})], 1)
        norm.layer2[0].norm = nn.Identity()
        assert torch.equal(norm(x), y)
        by = done([("remove", {"where": "layer3.1"})])
        assert by(x).shape == y.shape
