"""The structural copy: computes the same, shares the weights, and nothing done to it reaches the original."""

import copy
import functools
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from nbsurgery.errors import CaptureError
from nbsurgery.verify.copy import BUFFER_BUDGET, Copier, structural_copy


class Net(nn.Module):
    """Ties, an alias, a buffer, tensors and modules in plain attributes, a config."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 4)
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.alias = self.body[0]
        self.head = nn.Linear(4, 11, bias=False)
        self.head.weight = self.embed.weight
        self.scale = torch.full((4,), 2.0)
        self.config = type("Config", (), {})()
        self.config.layers = 2
        self.table = {"act": [self.body[2]]}
        self.me = weakref.ref(self)
        self.step = functools.partial(self.alias.forward)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, ids):
        x = self.body(self.embed(ids).mean(1)) * self.scale + self.shift
        return self.head(self.table["act"][0](self.step(x)))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


IDS = torch.arange(6).reshape(2, 3)


def test_computes_the_same_on_the_same_memory(net):
    """Equal output, every parameter a new object on the old memory, no module in common."""
    made = structural_copy(net)
    assert type(made) is Net
    assert torch.equal(made(IDS), net(IDS))
    for (name, old), (other, new) in zip(net.named_parameters(), made.named_parameters()):
        assert name == other and old is not new and old.data_ptr() == new.data_ptr()
        assert old.requires_grad == new.requires_grad
    assert not set(map(id, net.modules())) & set(map(id, made.modules()))


def test_ties_aliases_and_references_point_into_the_copy(net):
    """Whatever was one object is one object; references of every sort lead to the copy."""
    made = structural_copy(net)
    assert made.head.weight is made.embed.weight
    assert made.alias is made.body[0]
    assert made.table["act"][0] is made.body[2]
    assert made.me() is made
    assert made.step.func.__self__ is made.alias
    assert made.config is not net.config and made.config.layers == 2


def test_nothing_done_to_the_copy_reaches_the_original(net):
    """Train mode, attributes, requires_grad, buffers and configuration of the original stay."""
    state = {k: v.clone() for k, v in net.state_dict().items()}
    made = structural_copy(net)
    made.train()(IDS)
    made.body[0] = nn.Identity()
    made.config.layers = 7
    made.embed.weight.requires_grad_(False)
    made.scale.zero_()
    made.body[2].register_forward_hook(lambda *a: None)
    assert not net.training and net.config.layers == 2 and net.embed.weight.requires_grad
    assert isinstance(net.body[0], nn.Linear) and not net.body[2]._forward_hooks
    assert bool((net.scale == 2).all())
    assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items())


def test_hooks_come_along_and_reach_the_copy(net):
    """Hooks run on the copy; a closure over a module of the original is pointed at the copy's."""
    net.body.register_forward_hook(lambda module, args, out: net.alias(out) + 1)
    made = structural_copy(net)
    assert torch.equal(made(IDS), net(IDS))
    seen = []
    made.alias.register_forward_hook(lambda module, *_: seen.append(module))
    net.alias.register_forward_hook(lambda module, *_: pytest.fail("the original was called"))
    made(IDS)
    assert seen and all(module is made.alias for module in seen)


def test_a_forward_assigned_on_the_instance_reaches_the_copy(net):
    """``net.body.forward = lambda x: old(x)`` closes over the original: the copy's closes over itself."""
    old = net.body.forward
    net.body.forward = lambda x: old(x) * 2
    made = structural_copy(net)
    net.body[0].register_forward_hook(lambda *_: pytest.fail("the original was called"))
    made(IDS)


def test_parametrizations_are_removed_from_the_copy_alone():
    """The class of a parametrized module belongs to one instance: the copy has one of its own."""
    layer = parametrizations.weight_norm(nn.Linear(3, 3))
    model = nn.Sequential(layer)
    x = torch.randn(2, 3)
    made = structural_copy(model)
    assert torch.equal(made(x), model(x))
    parametrize.remove_parametrizations(made[0], "weight")
    assert parametrize.is_parametrized(layer, "weight")
    assert torch.equal(made(x), model(x))


def test_old_weight_norm_and_lazy_modules():
    """Hook objects of weight_norm work on the copy; a lazy module is materialised there alone."""
    with pytest.warns(FutureWarning):
        normed = nn.utils.weight_norm(nn.Linear(3, 3))
    x = torch.randn(2, 3)
    assert torch.equal(structural_copy(normed)(x), normed(x))
    lazy = nn.Sequential(nn.LazyLinear(2))
    structural_copy(lazy)(x)
    assert isinstance(lazy[0], nn.LazyLinear)


def test_a_parameter_subclass_and_its_attributes_stay():
    """Class and marks of a parameter are kept."""

    class Marked(nn.Parameter):
        pass

    model = nn.Linear(2, 2)
    model.weight = Marked(model.weight.detach())
    model.bias.optimizer = "none"
    made = structural_copy(model)
    assert type(made.weight) is Marked and made.weight.data_ptr() == model.weight.data_ptr()
    assert made.bias.optimizer == "none"


def test_chosen_tensors_get_memory_of_their_own(net):
    """A tied weight that is cloned stays tied; the others stay shared."""
    made = Copier(net, clone={id(net.embed.weight)}).root
    assert made.head.weight is made.embed.weight
    assert made.embed.weight.data_ptr() != net.embed.weight.data_ptr()
    assert made.alias.weight.data_ptr() == net.alias.weight.data_ptr()


def test_two_parameters_on_one_storage_stay_on_one_storage():
    """Views of one flat tensor are cloned as views of one flat clone."""
    flat = torch.randn(6)
    model = nn.Module()
    model.a, model.b = nn.Parameter(flat[:3]), nn.Parameter(flat[2:])
    made = Copier(model, clone={id(model.a), id(model.b)}).root
    with torch.no_grad():
        made.a[2] = 9.0
    assert made.b[0] == 9.0 and flat[2] != 9.0


def test_buffers_beyond_the_budget_are_shared():
    """A model that keeps its weights in buffers is not copied; the shared ones are on the watch list."""
    model = nn.Module()
    model.register_buffer("small", torch.zeros(4))
    model.register_buffer("big", torch.empty(BUFFER_BUDGET + 1, dtype=torch.uint8))
    copier = Copier(model)
    assert copier.root.big.data_ptr() == model.big.data_ptr()
    assert copier.root.small.data_ptr() != model.small.data_ptr()
    assert [id(model.big)] in copier.shared.values()


def test_a_meta_copy_has_no_memory(net):
    """On the meta device, ties and all."""
    made = Copier(net, device="meta").root
    assert all(p.is_meta for p in (*made.parameters(), *made.buffers()))
    assert made.head.weight is made.embed.weight


def test_scripted_children_share_weights_and_keep_their_buffers():
    """A ScriptModule inside is a new shell; its statistics are its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases call it deprecated
        scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    model = nn.Sequential(scripted)
    made = structural_copy(model)
    assert [p.data_ptr() for p in made.parameters()] == [p.data_ptr() for p in model.parameters()]
    mean = model.state_dict()["0.1.running_mean"].clone()
    made.train()(torch.randn(4, 2))
    assert torch.equal(model.state_dict()["0.1.running_mean"], mean)
    assert not torch.equal(made.state_dict()["0.1.running_mean"], mean)


def test_graph_modules_recompile_alone():
    """A traced module's forward lives in its class: recompiling the copy leaves the original's."""
    model = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    made = structural_copy(model)
    x = torch.randn(1, 2)
    assert torch.equal(made(x), model(x))
    code = type(model).forward
    made.recompile()
    assert type(model).forward is code


def test_what_cannot_be_copied_is_shared_and_told_or_refused():
    """A lock is shared silently, a file with a note; no module at all is an error."""
    import tempfile
    import threading

    model = nn.Linear(1, 1)
    model.lock = threading.Lock()
    with tempfile.TemporaryFile() as file:
        model.log = file
        copier = Copier(model)
        assert copier.root.lock is model.lock and copier.root.log is file
    assert len(copier.notes) == 1 and "cannot be copied" in copier.notes[0]
    with pytest.raises(CaptureError, match="torch.nn.Module; this is list"):
        structural_copy([model])


def test_equal_to_deepcopy_on_a_real_model():
    """On resnet18 the copy has deepcopy's modules, keys, modes and numbers."""
    torchvision = pytest.importorskip("torchvision")
    model = torchvision.models.resnet18(weights=None).eval()
    model.layer1.train()
    made, reference = structural_copy(model), copy.deepcopy(model)
    kinds = [(n, type(m), m.training) for n, m in made.named_modules()]
    assert kinds == [(n, type(m), m.training) for n, m in reference.named_modules()]
    assert list(made.state_dict()) == list(reference.state_dict())
    x = torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(made.eval()(x), model.eval()(x))
