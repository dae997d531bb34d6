"""Each check of the report: what it says where all is well, and that it sees the mistake it is for."""

import dataclasses
import gc
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nbsurgery import verify
from nbsurgery.capture import capture
from nbsurgery.claims import OutputEquals, OutputsEqual, PartEqualsOutput, SameOutput
from nbsurgery.errors import ShapeError
from nbsurgery.session import Session
from nbsurgery.verify.subject import listed, regions


class Net(nn.Module):
    """A shared in-place ReLU, a BatchNorm, a residual addition."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.block = nn.Sequential(nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1))
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = self.relu(self.bn(self.conv(x)))
        x = self.relu(x + self.block(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Tied(nn.Module):
    """A language model in small, embedding and head tied."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.mix = nn.Linear(4, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.mix(self.embed(ids)))


GOLDEN = Path(__file__).parents[1] / "golden" / "emitted"
X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
IDS = torch.arange(6).reshape(2, 3)
IMPORTS = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


def examine(text, model, *args, claims=(), full=False, namespace=None, edited="plan", own=None):
    """The report on a text; as the plan of the wiring serves nothing, or a graph that is given."""
    before = capture(model, args)
    built = verify.execute(IMPORTS + text, model, namespace=namespace)
    mine = args if own is None else own
    after = verify.after(built, mine)
    call = verify.full if full else verify.check
    subject = verify.Subject(
        before, model, built, after if isinstance(after, tuple) else (after,),
        None if edited == "plan" else edited, mine, {}, tuple(claims), args,
    )  # fmt: skip
    return call(subject)


def said(report, severity):
    return [f.text for f in report.findings if f.severity == severity]


def has(report, severity, part):
    assert any(part in text for text in said(report, severity)), str(report)


def node(graph, name):
    return next(n.id for s in graph.scopes.values() for n in s.nodes if n.name == name)


# --- shapes, values, wiring ------------------------------------------------------------------------


def test_a_new_head_in_numbers(net):
    """Shape, parameters, keys and the checkpoint, each with its number."""
    report = examine("model.fc = nn.Linear(model.fc.in_features, 2)", net, X)
    assert report.ok and report.count("warning") == 0
    facts = {f.label: (f.before, f.after) for f in report.facts}
    assert facts["Output"] == ("(2, 5)", "(2, 2)")
    assert facts["Parameters"] == ("185", "170")
    assert facts["state_dict keys"] == ("13", "13")
    has(report, "info", "25 parameters go, with fc")
    has(report, "info", "10 parameters are new, in fc")
    has(report, "info", "11 of 13 state_dict keys keep name and weights, 2 with new weights (fc)")
    has(report, "info", "no longer loads as it is: fc.weight is (2, 4), there (5, 4)")


def test_the_output_that_was_to_stay(net):
    """`SameOutput` holds for an identity and fails for a doubling, with the size of the difference."""
    good = examine("model.block.append(nn.Identity())", net, X, claims=[SameOutput()])
    has(good, "ok", "the output equals the original's, bit for bit")
    bad = examine("model.bn = nn.Identity()", net, X, claims=[SameOutput()])
    assert not bad.ok
    has(bad, "error", "the output was to equal the original's, and shows a difference of up to")


def test_a_cut_is_held_to_the_original_s_inner_value(net):
    """The right shape with the wrong numbers, a lost ReLU, is an error: the worst bug there is."""
    claim = OutputEquals(node(capture(net, (X,)), "flatten"))
    text = """
class Cut(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.conv, self.bn, self.relu, self.block = model.conv, model.bn, model.relu, model.block
        self.training = model.training

    def forward(self, x):
        x = self.relu(self.bn(self.conv(x)))
        x = self.relu(x + self.block(x))
        return torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)

model = Cut(model)
"""
    good = examine(text, net, X, claims=[claim])
    has(good, "ok", "the output equals the original's value of flatten, bit for bit")
    bad = examine(text.replace("self.relu(x + self.block(x))", "x + self.block(x)"), net, X,
                  claims=[claim])  # fmt: skip
    has(bad, "error", "was to equal the original's value of flatten")
    assert "(2, 4)" in {f.label: f.after for f in bad.facts}["Output"]


def test_a_tap_before_an_inplace_layer_needs_its_clone():
    """The original's value is the one before the ReLU overwrote it; part by part."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)).eval()
    claims = [OutputsEqual({"pre": node(capture(model, (X,)), "0")}), PartEqualsOutput("out")]
    text = """
class Tap(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.training = net.training

    def forward(self, x):
        pre = self.net[0](x)
        kept = pre.clone()
        return {"pre": kept, "out": self.net[1](pre)}

model = Tap(model)
"""
    good = examine(text, model, X, claims=claims)
    has(good, "ok", "the output 'pre' equals the original's value of 0, bit for bit")
    has(good, "ok", "part 'out' equals the original's output, bit for bit")
    bad = examine(text.replace("pre.clone()", "pre"), model, X, claims=claims)
    has(bad, "error", "part 'pre' was to equal the original's value of 0")


def test_code_that_is_wired_otherwise_than_planned(net):
    """The oracle sees a skip that the text forgot, though every shape is right."""
    plan = capture(net, (X,))
    good = examine("model.relu = model.relu", net, X, edited=plan)
    has(good, "ok", "the code is wired as planned")
    text = """
class Net2(type(model)):
    def forward(self, x):
        x = self.relu(self.bn(self.conv(x)))
        x = self.relu(self.block(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))

model.__class__ = Net2
"""
    bad = examine(text, net, X, edited=plan)
    has(bad, "error", "the code is not wired as planned")
    assert not bad.ok


def test_numbers_of_a_random_model_are_not_compared():
    """Dropout in train mode: no verdict on numbers, and it is said why."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).train()
    report = examine("model[0] = nn.Linear(3, 3)", model, torch.ones(4, 3), claims=[SameOutput()])
    assert report.ok
    has(report, "info", "draws random numbers")


def test_an_example_that_the_edit_made_wider(net):
    """Four channels for the edited model, three for the original: still the same output."""
    text = """
old = model.conv
new = nn.Conv2d(4, 4, 3, padding=1)
with torch.no_grad():
    new.weight.zero_()
    new.weight[:, :3] = old.weight[:, :3]
    new.bias.copy_(old.bias)
model.conv = new
"""
    wide = torch.cat([X, torch.ones(2, 1, 8, 8)], 1)
    report = examine(text, net, X, own=(wide,), claims=[SameOutput()])
    assert report.ok, str(report)
    has(report, "ok", "the output equals the original's")
    has(report, "info", "conv.weight is (4, 4, 3, 3), there (4, 3, 3, 3)")


# --- parameters, keys, ties ------------------------------------------------------------------------


def test_renumbered_children_put_wrong_weights_under_old_names():
    """`del` renumbers: an old checkpoint would load without an error, into the wrong layers."""
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(3)))
    report = examine("del model[1]", model, torch.ones(1, 3))
    has(report, "warning", "2 keys now mean other weights (1.weight was 2.weight)")
    kept = examine("model[1] = nn.Identity()", model, torch.ones(1, 3))
    assert kept.count("warning") == 0
    has(kept, "info", "an old checkpoint loads with strict=False: 2 of its keys are not used")


def test_keys_that_get_a_new_name(net):
    """Wrapping a module renames its keys."""
    report = examine("model.fc = nn.Sequential(model.fc)", net, X)
    has(report, "info", "2 are renamed (fc.weight → fc.0.weight)")
    assert "12 parameters" not in str(report)
    has(report, "ok", "all 185 parameters are kept")


def test_new_keys_and_written_weights(net):
    """New keys stay as made; weights that the code writes are told."""
    report = examine("model.block.append(nn.Conv2d(4, 4, 1))\nmodel.fc.bias.data.zero_()", net, X)
    has(report, "info", "12 of 13 state_dict keys keep name and weights")
    has(report, "info", "1 with new weights (fc.bias), 2 new (block.2)")
    has(report, "info", "2 keys not in it stay as made")
    has(report, "info", "the code writes new values into fc.bias")


def test_ties_that_break():
    """A head with a weight of its own is told, an unrelated edit keeps the tie."""
    model = Tied().eval()
    good = examine("model.mix = nn.Identity()", model, IDS)
    has(good, "ok", "1 tied weight is still tied")
    bad = examine("model.head = nn.Linear(4, 7, bias=False)", model, IDS)
    has(bad, "warning", "embed.weight and head.weight were one weight and are 2 now: 28 parameters")


def test_dead_weights(net):
    """A module that stays and is not called any more; one that never was is not this edit's doing."""
    net.unused = nn.Linear(2, 2)
    text = """
class Short(type(model)):
    def forward(self, x):
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(self.conv(x), 1), 1))

model.__class__ = Short
"""
    report = examine(text, net, X)
    has(report, "warning", "48 parameters in bn and block stay in the model and are never read")
    has(examine("model.fc = nn.Linear(4, 2)", net, X), "ok", "no dead weights")


# --- modes, calls, hooks, devices --------------------------------------------------------------------


def test_a_new_dropout_in_an_eval_model(net):
    """Born in train mode: a warning, unless the text says the mode; a Linear does not care."""
    bad = examine("model.fc = nn.Sequential(nn.Dropout(0.5), model.fc)", net, X)
    has(bad, "warning", "fc.0 (Dropout) is in train mode inside a model in eval mode")
    good = examine(
        "model.fc = nn.Sequential(nn.Dropout(0.5).train(model.training), model.fc)", net, X
    )
    has(good, "ok", "the new module's mode fits")
    assert not said(examine("model.fc = nn.Linear(4, 2)", net, X), "warning")
    wrong = examine("model.fc = nn.Sequential(nn.Dropout(0.5).eval(), model.fc)", net.train(), X)
    has(wrong, "warning", "is in eval mode inside a model in train mode")


def test_one_assignment_that_changes_two_calls(net):
    """The number of calls that a shared module serves is said."""
    has(
        examine("model.relu = nn.GELU()", net, X), "info", "relu serves 2 calls: all of them change"
    )
    assert "serves" not in str(examine("model.fc = nn.Linear(4, 2)", net, X))


def test_hooks_of_an_exchanged_module(net):
    """A hook goes with its module; one elsewhere stays."""
    net.fc.register_forward_hook(lambda *_: None)
    has(examine("model.fc = nn.Linear(4, 2)", net, X), "warning", "1 hook on fc will be lost")
    has(examine("model.bn = nn.Identity()", net, X), "ok", "1 hook stays in place")


def test_a_head_in_another_dtype(net):
    """A float32 head on a bfloat16 model does not run; made double beside float, it is told."""
    half = net.bfloat16()
    with pytest.raises(ShapeError, match="fc holds float32, gets bfloat16"):
        examine("model.fc = nn.Linear(4, 2)", half, X.bfloat16())
    text = "model.fc = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, dtype=torch.bfloat16))"
    assert not said(examine(text, half, X.bfloat16()), "warning")
    text = """
class Up(nn.Linear):
    def forward(self, x):
        return super().forward(x.double())

model.fc = Up(4, 2, dtype=torch.float64)
"""
    report = examine(text, net.float(), X)
    has(report, "warning", "fc.weight and fc.bias are float64 on cpu, where float32 on cpu was")


def test_a_frozen_batchnorm_still_drifts(net):
    """Frozen parameters, moving statistics: a warning with its cure; a pinned one is fine."""
    report = examine("model.bn.requires_grad_(False)", net, X)
    has(report, "warning", "1 frozen BatchNorm layer (bn) still updates the running statistics")
    cure = next(f.cure for f in report.findings if f.cure)
    assert cure["operation"] == "freeze" and cure["arguments"]["batchnorm"] == "frozen"
    pinned = """
class Frozen(nn.BatchNorm2d):
    def train(self, mode=True):
        return super().train(False)

model.bn.requires_grad_(False)
model.bn.__class__ = Frozen
"""
    assert not said(examine(pinned, net, X), "warning")


def test_an_optimizer_that_was_made_before(net):
    """It holds the old weights only; an optimizer of another model is none of our business."""
    stale = torch.optim.SGD(net.parameters(), lr=1.0)
    other = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    space = {"opt": stale, "other": other}
    report = examine("model.fc = nn.Linear(4, 2)", net, X, namespace=space)
    has(report, "warning", "the optimizer 'opt' does not hold the 10 new parameters")
    assert len(said(report, "warning")) == 1
    assert not said(examine("model.fc = nn.Identity()", net, X, namespace=space), "warning")


def test_a_run_that_reaches_the_model_before_the_edit(net):
    """A forward that reads a global name meets the person's own model: an error."""
    globals()["outside"] = net
    try:
        net.bn.forward = lambda x: outside.conv(x.narrow(1, 0, 3))  # noqa: F821
        report = examine("model.fc = nn.Linear(4, 2)", net, X)
    finally:
        del globals()["outside"]
    has(report, "error", "still calls conv of the model before the edit")


# --- run twice -------------------------------------------------------------------------------------


def test_run_twice(net):
    """The same once and twice; nesting is an error; a deliberate stop is fine, a crash is not."""
    once = "run twice, the code gives the same model as once"
    has(examine("model.fc = nn.Linear(model.fc.in_features, 2)", net, X), "ok", once)
    nests = examine("model.fc = nn.Sequential(model.fc, nn.Linear(5, 5))", net, X)
    has(nests, "error", "run twice, the code gives another model than once")
    text = (
        "if isinstance(model.fc, nn.Sequential):\n    raise RuntimeError('fc is wrapped already')\n"
        "model.fc = nn.Sequential(model.fc)\n"
    )
    has(examine(text, net, X), "ok", "stops before it changes anything: fc is wrapped already")
    halfway = "model.block.append(nn.Identity())\na, b, c = model.block"
    has(examine(halfway, net, X), "error", "run twice, the code fails half-way (ValueError")
    shared = "a, b = model.block\nmodel.block = nn.Sequential(a)"
    has(examine(shared, net, X), "warning", "run twice, the code fails with ValueError")


# --- splits ----------------------------------------------------------------------------------------


SPLIT = """
class Head(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.conv, self.bn, self.relu = model.conv, model.bn, model.relu
        self.block = model.block

    def forward(self, x):
        x = self.relu(self.bn(self.conv(x)))
        return x, self.block(x)


class Tail(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.training = model.training
        self.relu, self.fc = model.relu, model.fc

    def forward(self, x, out):
        x = self.relu(x + out)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


head, tail = Head(model), Tail(model)
"""


def test_a_split_that_hands_on_two_tensors(net):
    """The parts run one after the other; keys are complete and in one part each."""
    report = examine(SPLIT, net, X, claims=[SameOutput()])
    assert report.ok and report.count("warning") == 0, str(report)
    facts = {f.label: f.after for f in report.facts}
    assert facts["Handed on"] == "((2, 4, 8, 8), (2, 4, 8, 8))"
    has(report, "ok", "the output equals the original's, bit for bit")
    has(report, "ok", "the parts' keys are the original's 13, each in one part")
    has(report, "ok", "no dead weights")
    twice = SPLIT.replace("self.relu, self.fc =", "self.fc = model.fc\n        self.bn = model.bn\n"
                          "        self.relu, _ =")  # fmt: skip
    report = examine(twice, net, X)
    has(report, "warning", "2 weights in several parts: bn.weight and bn.bias")
    has(report, "warning", "8 parameters in tail.bn stay in the model and are never read")


def test_the_full_report_on_a_split(net):
    """Every further check works on parts, too."""
    report = examine(SPLIT, net, X, claims=[SameOutput()], full=True)
    assert report.ok and report.count("warning") == 0, str(report)
    has(report, "ok", "it runs at batch size 3")


# --- the full report -------------------------------------------------------------------------------


def test_the_full_report_holds(net):
    """Batch, size, train mode and backward, bfloat16, deepcopy, pickle, export."""
    report = examine("model.fc = nn.Linear(4, 2)", net, X, full=True)
    assert report.ok and report.count("warning") == 0, str(report)
    for part in ("batch size 3", "image size 12×12", "backward pass reaches", "bfloat16",
                 "deepcopy and pickle", "torch.export works"):  # fmt: skip
        has(report, "ok", part)


def test_a_baked_batch_size(net):
    """A view frozen to the example's batch is found."""
    text = """
class Baked(type(model)):
    def forward(self, x):
        x = self.relu(self.bn(self.conv(x)))
        x = self.relu(x + self.block(x))
        return self.fc(F.adaptive_avg_pool2d(x, 1).view(2, 4))

model.__class__ = Baked
"""
    report = examine(text, net, X, full=True)
    has(report, "error", "at batch size 3 the original runs and the edited model fails")


def test_numbers_that_hold_on_the_example_only(net):
    """Equal at batch 2, another result at batch 3: an error that names the batch."""
    text = """
class Odd(type(model)):
    def forward(self, x):
        return super().forward(x) + (0 if len(x) == 2 else 1)

model.__class__ = Odd
"""
    report = examine(text, net, X, claims=[SameOutput()], full=True)
    has(report, "error", "at batch size 3 the output was to equal the original's")


def test_an_inplace_layer_that_breaks_training_alone():
    """Fine in eval, an error in the backward pass."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.Linear(4, 2)).eval()
    text = "model[1] = nn.Sequential(nn.Sigmoid(), nn.ReLU(inplace=True))"
    report = examine(text, model, torch.ones(2, 4), full=True)
    has(report, "error", "in train mode the original runs and trains, and the edited model fails")
    assert all("backward" not in t for t in said(report, "ok"))


def test_weights_that_get_no_gradient(net):
    """A detach cuts the trunk off: the number of weights is said."""
    text = """
class Cut(type(model)):
    def forward(self, x):
        x = self.relu(self.bn(self.conv(x))).detach()
        x = self.relu(x + self.block(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))

model.__class__ = Cut
"""
    has(examine(text, net, X, full=True), "warning", "4 trainable weights get no gradient")


def test_what_cannot_be_saved_any_more(net):
    """A lambda on the instance breaks pickling, which worked before."""
    report = examine("model.fc.train = lambda mode=True: None", net, X, full=True)
    has(report, "warning", "pickle worked and fails now")


def test_what_cannot_be_scripted_any_more(net):
    """A forward that TorchScript does not understand, where it understood the old one."""
    good = examine("model.fc = nn.Linear(4, 2)", net, X, full=True)
    has(good, "ok", "torch.jit.script works, as before")
    text = """
class Vague(type(model)):
    def forward(self, *args):
        return super().forward(*args)

model.__class__ = Vague
"""
    has(examine(text, net, X, full=True), "warning", "torch.jit.script worked and fails now")


def test_a_mask_that_only_padding_shows():
    """With a mask of ones the mistake is invisible; one position of padding finds it."""

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 4)

        def forward(self, ids, attention_mask):
            x = self.embed(ids) * attention_mask[..., None]
            return x.sum(1) / attention_mask.sum(1, keepdim=True)

    text = """
class Unmasked(type(model)):
    def forward(self, ids, attention_mask):
        return self.embed(ids).mean(1)

model.__class__ = Unmasked
"""
    example = (IDS, torch.ones(2, 3))
    good = examine("model = model", Masked().eval(), *example, claims=[SameOutput()], full=True)
    has(good, "ok", "it runs at a padded mask, and what held on the example holds there")
    bad = examine(text, Masked().eval(), *example, claims=[SameOutput()], full=True)
    has(bad, "error", "at a padded mask the output was to equal the original's")


def test_a_model_that_cannot_train_or_export_is_not_blamed_on_the_edit():
    """Checks that the original fails are left out."""

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.hook = lambda: None  # cannot be pickled

        def forward(self, x):
            if self.training:
                raise RuntimeError("inference only")
            return self.fc(x) if float(x.sum()) > 0 else x

    report = examine("model.fc = nn.Linear(3, 2)", Odd().eval(), torch.ones(2, 3), full=True)
    assert report.ok and report.count("warning") == 0, str(report)
    assert "train mode it runs" not in str(report) and "pickle" not in str(report)


# --- real models and real texts --------------------------------------------------------------------


class Recurrent(nn.Module):
    """An LSTM with a nested tuple as output."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lstm = nn.LSTM(4, 4, batch_first=True)
        self.fc = nn.Linear(4, 2)

    def forward(self, ids):
        out, state = self.lstm(self.embed(ids))
        return self.fc(out[:, -1]), state


def _bert():
    transformers = pytest.importorskip("transformers")
    return transformers.BertModel(
        transformers.BertConfig(
            hidden_size=16, num_hidden_layers=8, num_attention_heads=2, intermediate_size=16,
            vocab_size=32,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    "make, x",
    [(Net, X), (Tied, IDS), (Recurrent, IDS), (_bert, IDS)],
    ids=["conv", "tied", "lstm", "bert"],
)
def test_an_edit_that_changes_nothing_raises_no_alarm(make, x):
    """Every check holds, the full ones too, and there is nothing to remark."""
    model = make().eval()
    graph = capture(model, (x,))
    built = verify.execute("model = model", model)
    after = verify.after(built, (x,))
    subject = verify.Subject(graph, model, built, (after,), graph, (x,), claims=(SameOutput(),))
    report = verify.full(subject)
    assert [f for f in report.findings if f.severity != "ok"] == [], str(report)
    assert report.count("ok") > 9


def test_fewer_layers_of_bert():
    """The configuration that the text changes is the copy's own."""
    model = _bert().eval()
    text = (GOLDEN / "14_bert_first_six_layers.py").read_text()
    report = examine(text, model, IDS)
    assert report.ok and report.count("warning") == 0, str(report)
    has(report, "info", "parameters go, with encoder.layer.6 and encoder.layer.7")
    assert model.config.num_hidden_layers == 8 and len(model.encoder.layer) == 8


@pytest.fixture(scope="module")
def resnet50():
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    return torchvision.models.resnet50(weights=None).eval()


@pytest.mark.parametrize(
    "path", [p for p in sorted(GOLDEN.glob("[0-9]*.py")) if "bert" not in p.name],
    ids=lambda p: p.stem,
)  # fmt: skip
def test_the_models_of_emitted_text_have_clean_reports(path, resnet50):
    """What an expert would type passes every immediate check, and promises hold bit for bit."""
    x = torch.randn(1, 3, 64, 64)
    mine = (torch.cat([x, x[:, :1]], 1),) if path.stem.startswith("05") else (x,)
    same = path.stem[:2] in ("05", "11", "12", "13")
    report = examine(path.read_text(), resnet50, x, own=mine, claims=[SameOutput()] if same else [])
    assert report.ok and report.count("warning") == 0, str(report)
    if same:
        has(report, "ok", "the output equals the original's")


# --- the whole -------------------------------------------------------------------------------------


def test_a_plan_whose_recording_holds_on_the_example_only():
    """A recorded value that is baked in says nothing elsewhere: no false alarm about the wiring."""

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.sizes = {2: 1.0, 3: 5.0}

        def forward(self, x):
            return self.fc(x) * self.sizes[len(x)]

    model = Table().eval()
    plan = capture(model, (torch.ones(2, 3),))
    report = examine("model = model", model, torch.ones(2, 3), edited=plan, full=True)
    assert report.ok, str(report)
    has(report, "ok", "it runs at batch size 3")


def test_no_second_copy_of_the_weights(net):
    """Copies of a report share the memory of the original's parameters."""
    before = capture(net, (X,))
    built = verify.execute("model.bn = model.bn", net)
    subject = verify.Subject(before, net, built, args=(X,))
    own = {p.data_ptr() for p in net.parameters()}
    for root in (*built.modules, *subject.parts):
        assert {p.data_ptr() for p in root.parameters()} == own


def test_a_weight_written_between_two_reports_is_seen(net):
    """The original's run is kept from step to step, until training moves a weight."""
    copy = verify.structural_copy(net)
    examine("model.block.append(nn.Identity())", copy, X, claims=[SameOutput()])
    with torch.no_grad():
        net.fc.bias.add_(1)
    report = examine("model.block.append(nn.Identity())", copy, X, claims=[SameOutput()])
    has(report, "ok", "the output equals the original's, bit for bit")


def test_nothing_outlives_the_model():
    """Runs that are kept hold neither the original nor what was built."""
    model = Net().eval()
    examine("model.fc = nn.Linear(4, 2)", model, X)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_statistics_of_nobody_move(net):
    """In train mode every run happens on a copy: original and built model keep their buffers."""
    net.train()
    mean = net.bn.running_mean.clone()
    built = verify.execute(IMPORTS + "model.fc = nn.Linear(4, 2)", net)
    verify.full(verify.Subject(capture(net, (X,)), net, built, args=(X,)))
    assert torch.equal(net.bn.running_mean, mean)
    assert torch.equal(built.model.bn.running_mean, mean)
    assert all(p.grad is None for p in (*net.parameters(), *built.model.parameters()))


def test_a_check_that_fails_spoils_nothing(net, monkeypatch):
    """Its failure is a finding, and the others report."""

    def broken(subject):
        raise KeyError("x")
        yield

    monkeypatch.setattr(verify.verify, "IMMEDIATE", (broken, *verify.verify.IMMEDIATE))
    report = examine("model.fc = nn.Linear(4, 2)", net, X)
    has(report, "warning", "failed: KeyError: 'x'")
    has(report, "info", "25 parameters go")


def test_outputs_of_any_structure():
    """Dataclasses with None, dicts and tuples go through the whole report."""

    @dataclasses.dataclass
    class Out:
        logits: torch.Tensor
        extra: dict | None = None

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)
            self.act = nn.ReLU()

        def forward(self, x, *, scale=1.0):
            y = self.fc(x)
            return Out(self.act(y) * scale, {"y": (y, None)})

    report = examine("model.act = nn.GELU()", Model(), torch.ones(2, 3), full=True)
    assert report.ok, str(report)
    assert report.facts[0].after == "Out(logits=(2, 3), extra={'y': ((2, 3), None)})"


def test_regions_and_lists():
    """The largest place that holds only what is meant; long lists are cut."""
    every = ["a.0.w", "a.0.b", "a.1.w", "c.w", "d"]
    assert regions(["a.0.w", "a.0.b"], every) == ["a.0"]
    assert regions(["a.0.w", "a.0.b", "a.1.w"], every) == ["a"]
    assert regions(["d", "c.w"], every) == ["d", "c"]
    assert listed("abcde") == "a, b, c and 2 more" and listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"


class Ones(nn.Module):
    """Adds a tensor of its own making."""

    def forward(self, x):
        return x + torch.ones(x.shape)


def test_export_knows_where_new_tensors_are_made():
    """A module that makes a tensor in its forward exports as well as before: no false alarm."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    session = Session(model, (torch.randn(2, 4),), namespace={"Ones": Ones})
    session.do("insert", {"after": "0", "new": "Ones()"})
    assert "torch.export works, as before" in [f.text for f in session.verify().findings]


def test_gradients_of_the_check_are_not_kept():
    """Each gradient goes as soon as it came: the whole would be a second copy of the weights."""
    seen = []

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            y = self.first(x)
            if y.requires_grad:  # comes back when the second layer's own gradients were made
                y.register_hook(lambda _: seen.append(self.second.weight.grad))
            return self.second(y)

    model = Two()
    session = Session(model, (torch.randn(2, 4),), namespace={})
    session.do("replace", {"where": "second", "new": "nn.Linear(4, 4)"})
    report = session.verify()
    assert seen and all(grad is None for grad in seen)
    assert any("reaches every trainable weight" in f.text for f in report.findings)
    assert all(p.grad is None for p in model.parameters())


def test_a_large_model_is_not_copied_for_bfloat16(monkeypatch):
    from nbsurgery.verify.checks import bfloat16

    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    session = Session(model, (torch.randn(2, 4),), namespace={})
    session.do("replace", {"where": "1", "new": "nn.GELU()"})
    monkeypatch.setattr(bfloat16, "_LIMIT", 10)
    texts = [f.text for f in session.verify().findings]
    assert any(text.startswith("bfloat16 was not tried") for text in texts)


def test_a_write_in_place_that_breaks_training_comes_with_its_cure():
    """The finding names writer and value; its cure, applied as a step, lets the model train."""
    model = nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(0.2, inplace=True), nn.Linear(4, 2))
    session = Session(model, (torch.randn(2, 4),), namespace={})
    session.do("insert", {"after": "0", "new": "nn.Sigmoid()"})
    found = next(f for f in session.verify().findings if f.severity == "error")
    assert found.text.startswith("a backward pass fails: 1 writes in place over what sigmoid needs")
    assert found.cure["arguments"] == {"where": "1", "new": "nn.LeakyReLU(negative_slope=0.2)"}
    session.do(found.cure["operation"], found.cure["arguments"])
    assert session.verify().ok, str(session.verify())


class Talkative(nn.Module):
    """A model with more to it than forward."""

    def __init__(self):
        super().__init__()
        self.config = {"size": 4}
        self.linear = nn.Linear(4, 4)

    def forward(self, x, labels=None):
        y = self.linear(x)
        return y.relu() if labels is None else y - labels

    def generate(self, x):
        return self(x)


def test_what_a_class_of_its_own_lacks_is_told():
    """Arguments, methods and attributes that go with the old class; nothing where it stays."""
    session = Session(Talkative().eval(), (torch.randn(2, 4),), namespace={})
    session.do("tap", {"nodes": {"linear": "y"}})
    found = [f.text for f in session.report.findings if "a class of its own" in f.text]
    assert found == [
        "TalkativeFeatures is a class of its own: of Talkative it lacks 1 argument of forward (labels), "
        "1 method (generate) and 1 attribute (config)"
    ]
    session.undo()
    session.do("replace", {"where": "linear", "new": "nn.Linear(4, 4)"})
    assert not any("a class of its own" in f.text for f in session.report.findings)
