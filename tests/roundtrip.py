"""Print every scope of a model unchanged, put the classes in place of the modules, run the WHOLE model.

``python tests/roundtrip.py`` sweeps real libraries; ``python tests/roundtrip.py resnet18 bert`` some of
them; ``-g`` prints guards where a run decided, ``-v`` shows the texts of what failed. The tests use `check` on small models.
"""

from __future__ import annotations

import collections
import copy
import sys
import traceback
import warnings
from dataclasses import dataclass

import torch
from torch import nn

from nbsurgery.emit.names import import_block
from nbsurgery.emit.printer import print_class
from nbsurgery.errors import EmissionError

_GUARD = "RuntimeError: this forward "


@dataclass
class Row:
    """One scope: its text, or why there is none, and what went wrong when it ran."""

    key: str
    type: str
    text: str | None = None
    refused: str | None = None
    wrong: str | None = None
    guarded: str | None = None


def tensors(value, depth: int = 0) -> list:
    """Every tensor in an output, through containers and plain objects."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item, depth + 1)]
    if isinstance(value, dict):
        return [t for key in value for t in tensors(value[key], depth + 1)]
    if hasattr(value, "__dict__") and depth < 8 and not callable(value):
        state = vars(value)
        return [t for key in sorted(state) for t in tensors(state[key], depth + 1)]
    return []


def difference(expected, actual) -> str | None:
    """How two outputs differ; ``None`` where they are exactly equal."""
    if type(expected) is not type(actual):
        return f"type {type(expected).__name__} became {type(actual).__name__}"
    left, right = tensors(expected), tensors(actual)
    if len(left) != len(right):
        return f"{len(left)} tensors became {len(right)}"
    for a, b in zip(left, right, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{tuple(a.shape)} {a.dtype} became {tuple(b.shape)} {b.dtype}"
        if not torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)):
            return f"differs by {(a.double() - b.double()).abs().max().item():.2g}"
    return None


def run(model, args, kwargs):
    """Output and buffers after one seeded run on copies of the inputs."""
    torch.manual_seed(3)
    with torch.no_grad():
        out = model(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    return out, [b.clone() for b in model.buffers()]


def load(row: Row, printed) -> type:
    """The printed class, executed alone."""
    space: dict = {"__name__": "emitted"}
    row.text = import_block(printed.imports) + "\n\n\n" + printed.text + "\n"
    exec(compile(row.text, f"<{row.type}>", "exec"), space)  # noqa: S102 - what it is for
    return space["Printed"]


def put(model: nn.Module, path: str, cls: type, form: str) -> nn.Module:
    """The model with the module at `path` exchanged for its printed class, wherever it hangs."""
    old = model.get_submodule(path)
    if form == "sub":
        old.__class__ = cls
        return model
    new = cls(old)
    if path == "":
        return new
    for module in list(model.modules()):
        for name, child in list(module._modules.items()):
            if child is old:
                module._modules[name] = new
    return model


def check(model, args, kwargs=None, *, graph, others=(), train=True, form="copy", **options):
    """Print every scope and compare; `others` are further ``(args, kwargs)`` to compare on.

    Returns:
        A row for each scope; ``wrong`` says what differed.
    """
    kwargs = kwargs or {}
    classes: dict[str, type] = {}
    rows = []
    seen = set()
    for scope in graph.scopes.values():
        if scope.path in seen:
            continue
        seen.add(scope.path)
        row = Row(scope.key, scope.type)
        rows.append(row)
        try:
            printed = print_class(
                graph,
                scope,
                model.get_submodule(scope.path),
                name="Printed",
                arg="block",
                form=form,
                **options,
            )
            classes[scope.path] = load(row, printed)
        except EmissionError as error:
            row.refused = str(error)
        except Exception as error:  # noqa: BLE001 - a crash is a finding too
            at = traceback.extract_tb(error.__traceback__)[-1]
            row.wrong = f"crash: {type(error).__name__}: {error} ({at.name}:{at.lineno})"
    inputs = [(args, kwargs), *others]
    was = [m.training for m in model.modules()]
    modes = [False, True] if train else [False]
    cases = []
    for mode in modes:
        reference = copy.deepcopy(model)
        if mode:
            reference.train()
        for a, k in inputs:
            fresh = copy.deepcopy(reference)
            try:
                cases.append((mode, a, k, run(fresh, a, k)))
            except Exception:  # what the model itself can't do (small images in train mode)
                if not cases:
                    raise

    def wrong(group: list[Row]) -> str | None:
        deepest = sorted(group, key=lambda r: -len(r.key.split(".")) + (r.key == ""))
        for mode, a, k, expected in cases:
            try:
                edited = copy.deepcopy(model)
                if mode:
                    edited.train()
                for row in deepest:
                    path = graph.scopes[row.key].path
                    edited = put(edited, path, classes[path], form)
                out, state = run(edited, a, k)
            except Exception as error:  # noqa: BLE001 - what the printed text raises is the finding
                return f"{type(error).__name__}: {str(error)[:160]}"
            label = "train" if mode else "eval"
            if found := difference(expected[0], out):
                return f"{label}: {found}"
            if form == "sub" and (found := difference(expected[1], state)):
                return f"{label}, buffers: {found}"
        return None

    printed_rows = [r for r in rows if r.text is not None and r.wrong is None]
    if printed_rows and wrong(printed_rows):
        groups = collections.defaultdict(list)
        for row in printed_rows:
            groups[row.type, row.text].append(row)
        for group in groups.values():
            found = wrong(group)
            for row in group:
                if found and _GUARD in found:
                    row.guarded = found
                else:
                    row.wrong = found
    assert was == [m.training for m in model.modules()]
    return rows


def models() -> dict:
    """What the sweep runs on: name → function that gives ``(model, args, kwargs, other inputs)``."""
    import torchvision

    def image(name: str, size: int = 64, **options):
        def build():
            model = getattr(torchvision.models, name)(weights=None, **options)
            return (
                model.eval(),
                (torch.randn(2, 3, size, size),),
                {},
                [((torch.randn(3, 3, size, size),), {})],
            )

        return build

    def timm_model(name: str, size: int = 64, **options):
        def build():
            import timm

            model = timm.create_model(name, pretrained=False, **options).eval()
            return (
                model,
                (torch.randn(2, 3, size, size),),
                {},
                [((torch.randn(3, 3, size, size),), {})],
            )

        return build

    def words(kind: str):
        def build():
            import transformers as tf

            small = {"vocab_size": 50}
            if kind == "bert":
                config = tf.BertConfig(
                    hidden_size=32,
                    num_hidden_layers=3,
                    num_attention_heads=4,
                    intermediate_size=48,
                    **small,
                )
                model = tf.BertModel(config)
            else:
                config = tf.GPT2Config(n_embd=32, n_layer=3, n_head=4, n_positions=32, **small)
                model = tf.GPT2LMHeadModel(config)

            def inputs(batch):
                mask = torch.ones(batch, 9, dtype=torch.long)
                mask[-1, -3:] = 0
                return (), {"input_ids": torch.randint(0, 50, (batch, 9)), "attention_mask": mask}

            return model.eval(), *inputs(2), [inputs(3)]

        return build

    found = {
        name: image(name)
        for name in (
            "resnet18", "resnet50", "densenet121", "mobilenet_v2", "mobilenet_v3_small",
            "shufflenet_v2_x0_5", "squeezenet1_1", "efficientnet_b0", "regnet_y_400mf", "mnasnet0_5",
            "convnext_tiny", "swin_t", "swin_v2_t",
        )
    }  # fmt: skip
    found["vit_b_16"] = image("vit_b_16", 224)
    found["googlenet"] = image("googlenet", 64, aux_logits=True, init_weights=False)
    found["inception_v3"] = image("inception_v3", 128, aux_logits=True, init_weights=False)
    found["vgg11_bn"] = image("vgg11_bn")
    for name in ("resnet26d", "convnext_atto", "efficientnet_lite0", "mobilenetv3_small_050"):
        found["timm." + name] = timm_model(name)
    found["timm.vit_tiny"] = timm_model("vit_tiny_patch16_224", 224)
    found["bert"], found["gpt2"] = words("bert"), words("gpt2")
    return found


def main(names: list[str]) -> None:
    """Print one line a model, and what was refused or wrong."""
    from nbsurgery.capture import capture

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    verbose = "-v" in names
    table = models()
    chosen = [n for n in names if not n.startswith("-")] or list(table)
    total = collections.Counter()
    for name in chosen:
        torch.manual_seed(0)
        try:
            model, args, kwargs, others = table[name]()
            graph = capture(model, args, kwargs, how="real")
        except Exception as error:  # noqa: BLE001 - the sweep goes on
            print(f"{name:24s} FAILED {type(error).__name__}: {str(error)[:100]}", flush=True)
            continue
        rows = check(
            model, args, kwargs, graph=graph, others=others, allow_specialised="-g" in names
        )
        good = [r for r in rows if r.text and not r.wrong and not r.guarded]
        guarded = [r for r in rows if r.guarded]
        refused = [r for r in rows if r.refused]
        bad = [r for r in rows if r.wrong]
        counts = {
            "exact": len(good),
            "guarded": len(guarded),
            "refused": len(refused),
            "wrong": len(bad),
        }
        total.update(scopes=len(rows), **counts)
        print(f"{name:24s} {len(rows):3d} scopes {counts}", flush=True)
        tally = collections.Counter(
            (r.type, (r.refused or r.wrong or r.guarded)[:230]) for r in refused + bad + guarded
        )
        for (kind, why), count in tally.most_common(8):
            print(f"      {count} × {kind}: {why}")
        if verbose:
            for text in dict.fromkeys(r.text for r in bad if r.text):
                print(text)
    print(dict(total))


if __name__ == "__main__":
    main(sys.argv[1:])
