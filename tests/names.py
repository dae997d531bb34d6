"""Compare node names with torchvision's on every classification model that it can trace.

Run ``python tests/names.py`` for the whole list, or with model names for a few of them.

The rule of the comparison. Compared: calls of layers, of functions and of methods, in order. Left
out on both sides, and counted: inputs and the output; plumbing (``getattr``, ``getitem``, ``size`` and
arithmetic on sizes, assertions): what torch.fx records of shapes, Python computes here on tracked numbers; parameters
read; what is computed from buffers alone, which torch.fx works out while it traces (later names of the same
kind count on from there). One difference is kept: torchvision cuts a final ``_2`` from the path of a MODULE too, so that
the layer ``ln_2`` of a ViT is called ``ln_1`` there. Here a layer's node carries the layer's own path; such
layers are compared by path, and counted as "numbered path".
"""

import collections
import re
import sys
import warnings
from unittest import mock

import torch
import torchvision
from torchvision.models import feature_extraction

from nbsurgery.capture import capture

PLUMBING = ("getattr", "getitem", "size", "dim", "_assert")
SIZES = {"inception_v3": 299}


def theirs(model):
    """Names and what was left out, from torchvision's own tracer, with no leaf modules at all."""
    seen = {}
    original = feature_extraction.NodePathTracer.trace

    def trace(self, *args, **kwargs):
        graph = original(self, *args, **kwargs)
        seen["tracer"] = self
        return graph

    with (
        mock.patch.object(feature_extraction, "_get_leaf_modules_for_ops", list),
        mock.patch.object(feature_extraction.NodePathTracer, "trace", trace),
    ):
        _, names = feature_extraction.get_graph_node_names(
            model, tracer_kwargs={"leaf_modules": []}, suppress_diff_warning=True
        )
    nodes = dict(
        zip(seen["tracer"].node_to_qualname.values(), seen["tracer"].node_to_qualname, strict=True)
    )
    assert list(nodes) == names
    kept, excluded = [], collections.Counter()
    sizes, calls = set(), collections.Counter()
    for name, node in nodes.items():
        target = getattr(node.target, "__name__", node.target)
        inputs = node.all_input_nodes
        if node.op in ("placeholder", "output"):
            continue
        if node.op == "get_attr":
            excluded["parameter"] += 1
        elif node.op == "call_module":
            calls[target] += 1
            if re.search(r"_[0-9]+$", target):
                excluded["numbered path"] += 1
                name = target if calls[target] == 1 else f"{target}_{calls[target] - 1}"
            kept.append(name)
        elif target in PLUMBING:
            excluded[target] += 1
            if target in ("getattr", "size", "dim") or any(i in sizes for i in inputs):
                sizes.add(node)
        elif node.op == "call_function" and inputs and all(i in sizes for i in inputs):
            excluded["size arithmetic"] += 1
            sizes.add(node)
        else:
            kept.append(name)
    return kept, excluded


def ours(graph):
    """Names of layers, functions and methods, and what was left out."""
    kept, excluded = [], collections.Counter()
    fixed, skipped = set(), collections.Counter()
    for node in graph.flat:
        if node.kind == "parameter":
            excluded["parameter"] += 1
            if node.type == "Tensor":
                fixed.add(node.id)
        elif node.kind in ("module", "function", "method"):
            sources = graph.inputs_of(node.id)
            base = re.sub(r"_[0-9]+$", "", node.name)
            if node.type in PLUMBING:
                excluded[node.type] += 1
            elif node.kind != "module" and sources and fixed.issuperset(sources):
                excluded["on buffers alone"] += 1
                fixed.add(node.id)
                skipped[base] += 1
            elif node.kind != "module" and skipped[base]:
                number = int(node.name[len(base) + 1 :] or 0) - skipped[base]
                kept.append(f"{base}_{number}" if number else base)
            else:
                kept.append(node.name)
    return kept, excluded


def check(name):
    """A line for the table: model, names that agree, what was left out, first difference."""
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None).eval()
    try:
        expected, left_out = theirs(model)
    except Exception as error:  # noqa: BLE001 whatever the tracer cannot do
        return name, None, f"torchvision cannot trace it: {type(error).__name__}", None
    size = SIZES.get(name, 224)
    graph = capture(model, (torch.zeros(1, 3, size, size),))
    found, our_left_out = ours(graph)
    difference = None
    if found != expected:
        pairs = [(a, b) for a, b in zip(expected, found, strict=False) if a != b]
        difference = (
            len(expected),
            len(found),
            pairs[:3],
            [e for e in expected if e not in set(found)][:4],
            [e for e in found if e not in set(expected)][:4],
        )
    return name, len(found), (dict(left_out), dict(our_left_out)), difference


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    names = sys.argv[1:] or torchvision.models.list_models(module=torchvision.models)
    bad = 0
    for name in names:
        line = check(name)
        bad += line[3] is not None
        print(*line, flush=True)
    sys.exit(bool(bad))
