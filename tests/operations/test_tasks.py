"""More tasks on more kinds of models: the text of each is a golden file, and its report is clean.

``python -m tests.operations.test_tasks`` writes the files anew; read the difference before you commit it.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor

from nbsurgery.session import Session
from tests.models import MODELS
from tests.session.zoo import build

GOLDEN = Path(__file__).parents[1] / "golden" / "tasks"
NORM = {"class": "torch.nn.modules.batchnorm.BatchNorm2d"}
TASKS = {
    "resnet50_split_inside_a_block": ("resnet50", [("split", {"after": "layer2.0.conv2"})]),
    "resnet50_start_at_layer3": ("resnet50", [("start", {"at": "layer3"})]),
    "resnet50_groupnorm": (
        "resnet50",
        [("replace", {"where": NORM, "new": "nn.GroupNorm(32, old.num_features)", "weights": "keep"})],
    ),
    "resnet50_checkpoint": ("resnet50", [("checkpoint", {"where": ["layer1", "layer2", "layer3"]})]),
    "resnet50_dilate_layer4": (
        "resnet50",
        [
            ("set", {"where": "layer4.0.conv2", "stride": 1}),
            ("set", {"where": "layer4.0.downsample.0", "stride": 1}),
            ("set", {"where": ["layer4.1.conv2", "layer4.2.conv2"], "dilation": 2, "padding": 2}),
        ],
    ),
    "resnet50_skip_over_a_stage": (
        "resnet50", [("connect", {"source": "layer2", "into": "layer4", "project": True})],
    ),
    "resnet50_gray": ("resnet50", [("channels", {"where": "conv1", "inputs": 1, "weights": "sum"})]),
    "resnet50_cut_inside_a_block": ("resnet50", [("cut", {"after": "layer3.2.bn2"})]),
    "vit_new_head": ("vit", [("channels", {"where": "heads.head", "outputs": 10})]),
    "vit_drop_head": ("vit", [("cut", {"before": "heads.head"})]),
    "vit_first_layer_only": (
        "vit", [("remove", {"where": "encoder.layers.encoder_layer_1"})],
    ),
    "vit_freeze_first_layer": ("vit", [("freeze", {"until": "encoder.layers.encoder_layer_0"})]),
    "convnext_new_head": (
        "timm/convnext_atto", [("channels", {"where": "head.fc", "outputs": 10})],
    ),
    "convnext_rgbd": (
        "timm/convnext_atto", [("channels", {"where": "stem.0", "inputs": 4, "weights": "mean"})],
    ),
    "convnext_features": (
        "timm/convnext_atto",
        [("tap", {"nodes": {f"stages.{i}": f"c{i + 2}" for i in range(4)}})],
    ),
    "bert_first_layer": ("bert", [("remove", {"where": "bert.encoder.layer.1"})]),
    "bert_freeze_embeddings": (
        "bert", [("freeze", {"where": ["bert.embeddings", "bert.encoder.layer.0"]})],
    ),
    "bert_new_head": ("bert", [("channels", {"where": "classifier", "outputs": 5})]),
    "gpt2_first_block": ("gpt2", [("remove", {"where": "transformer.h.1"})]),
    "llama_first_layer": ("llama", [("remove", {"where": "model.layers.1"})]),
    "unet_skip_dropped": ("unet", [("remove", {"where": "down1.norm"})]),
    "unet_norm_after_cat": ("unet", [("insert", {"after": "up1.cat", "new": "nn.BatchNorm2d(32)"})]),
    "unet_three_classes": ("unet", [("channels", {"where": "out", "outputs": 3})]),
    "unet_bottleneck": ("unet", [("tap", {"nodes": {"middle": "z"}, "output": "mask"})]),
    "unet_split_after_the_middle": ("unet", [("split", {"after": "middle"})]),
    "bert_adapter": (
        "bert",
        [("insert", {"after": "bert.encoder.layer.0.output.dense", "new": "nn.Linear(32, 32)"})],
    ),
    "gpt2_block_activation": (
        "gpt2", [("replace", {"where": "transformer.h.0.mlp.act", "new": "nn.SiLU()"})],
    ),
    "llama_rms_norm": (
        "llama",
        [("replace", {
            "where": {"class": "transformers.models.llama.modeling_llama.LlamaRMSNorm"},
            "new": "nn.RMSNorm(old.weight.numel(), eps=old.variance_epsilon)", "weights": "keep",
        })],
    ),
    "vit_norm_in_a_block": (
        "vit",
        [("insert", {"after": "encoder.layers.encoder_layer_0.add", "new": "nn.LayerNorm(32)"})],
    ),
    "convnext_split": ("timm/convnext_atto", [("split", {"after": "stages.1"})]),
    "fasterrcnn_two_classes": (
        "fasterrcnn",
        [("replace", {
            "where": "roi_heads.box_predictor",
            "new": "FastRCNNPredictor(old.cls_score.in_features, 2)",
        })],
    ),
    "fasterrcnn_freeze_stem": ("fasterrcnn", [("freeze", {"until": "backbone.body.layer2"})]),
    "fasterrcnn_head_activation": (
        "fasterrcnn", [("replace", {"where": {"call": "roi_heads.box_head.relu"}, "new": "nn.GELU()"})],
    ),
    "fasterrcnn_checkpoint": (
        "fasterrcnn", [("checkpoint", {"where": ["backbone.body.layer1", "backbone.body.layer2"]})],
    ),
    "condition_that_stays": ("Branches", [("insert", {"after": "lin", "new": "nn.LayerNorm(4)"})]),
    "lstm_to_gru": (
        "lstm", [("replace", {"where": "lstm", "new": "nn.GRU(16, 16, batch_first=True, bidirectional=True)"})],
    ),
    "lstm_norm_before_head": ("lstm", [("insert", {"before": "head", "new": "nn.LayerNorm(32)"})]),
    "lstm_drop_head": ("lstm", [("cut", {"before": "head"})]),
}  # fmt: skip


PLAINER = (  # Python 3.10 knows no columns: less is nested
    "lstm_to_gru", "lstm_norm_before_head", "fasterrcnn_head_activation",
)  # fmt: skip


@functools.cache
def session(name: str) -> Session:
    """One session a model; every task undoes what it did."""
    if name in MODELS:  # the project's own: text that is spliced holds the author's source
        make, inputs = MODELS[name]
        return Session(make().eval(), inputs(2), namespace={})
    model, args, kwargs = build(name)
    return Session(model, args, kwargs, namespace={"FastRCNNPredictor": FastRCNNPredictor})


def emitted(task: str) -> tuple[str, object]:
    """Text and report of a task."""
    name, steps = TASKS[task]
    if "/" in name:
        pytest.importorskip("timm")
    if name in ("bert", "gpt2", "llama"):
        pytest.importorskip("transformers")
    s = session(name)
    try:
        for operation, arguments in steps:
            s.do(operation, arguments)
        return s.code, s.report
    finally:
        while s.can_undo:
            s.undo()


@pytest.mark.parametrize("task", TASKS)
def test_task(task):
    """The text is the golden one; nothing in the report is wrong."""
    text, report = emitted(task)
    if sys.version_info >= (3, 11) or task not in PLAINER:
        assert text == (GOLDEN / f"{task}.py").read_text(encoding="utf-8")
    assert report.ok, str(report)


def main() -> None:
    """Write every golden file anew."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        try:
            text, report = emitted(task)
        except Exception as error:
            print(f"{task}: {type(error).__name__}: {error}")
            continue
        (GOLDEN / f"{task}.py").write_text(text, encoding="utf-8")
        wrong = [f.text for f in report.findings if f.severity in ("error", "warning")]
        print(task, *wrong, sep="\n    ")


if __name__ == "__main__":
    main()
