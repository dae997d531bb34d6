"""The scene that the page's own tests draw; run as a script, it is written anew."""

import json
from pathlib import Path

import torch
import torchvision

from nbsurgery.annotate import annotate
from nbsurgery.capture import capture
from nbsurgery.render import Cache, compose

FILE = Path(__file__).parent.parent / "js" / "scene_resnet18.json"
OPEN = {"layer1", "layer2", "layer3", "layer4", "layer1.0"}


def sample() -> dict:
    """ResNet-18 with one block open, without what differs between machines."""
    model = torchvision.models.resnet18(weights=None).eval()
    graph = annotate(capture(model, (torch.zeros(1, 3, 224, 224),), {}), model)
    scene = compose(graph, OPEN, cache=Cache())
    del scene["stats"]["seconds"]
    _without_lines(scene["group"])
    return scene


def _without_lines(group: dict) -> None:
    for item in group["items"]:
        if item["kind"] == "group":
            _without_lines(item)
        for row in item.get("rows", ()):
            row["tip"] = "\n".join(line for line in row["tip"].split("\n") if ".py:" not in line)


if __name__ == "__main__":
    FILE.write_text(json.dumps(sample(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
