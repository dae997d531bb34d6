"""Models of other libraries are seen whole; each opaque scope gives its reason, the rest is exact."""

import pytest
import torch
import torchvision

from nbsurgery.capture import capture, replay
from nbsurgery.errors import ReplayRefused


def tensors(value):
    """Every tensor of an output, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def assert_exact(graph, model, args, kwargs=None):
    """The replay equals the model to the last bit."""
    kwargs = kwargs or {}
    with torch.no_grad():
        expected, found = model(*args, **kwargs), replay(graph, model, args, kwargs)
    assert type(expected) is type(found)
    a, b = tensors(expected), tensors(found)
    assert len(a) == len(b) > 0
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def opaque(graph):
    return {s.key: s.opaque for s in graph.scopes.values() if s.opaque}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "size"),
    [("resnet50", 64), ("vit_b_32", 224), ("densenet121", 64), ("swin_t", 64), ("googlenet", 64)],
)
def test_classifiers_have_no_opaque_scope(name, size):
    """All of them can be rewritten anywhere."""
    model = torchvision.models.get_model(name, weights=None).eval()
    graph = capture(model, (torch.randn(1, 3, size, size),))
    assert opaque(graph) == {}
    assert_exact(graph, model, (torch.randn(2, 3, size, size),))


@pytest.mark.filterwarnings("ignore")
def test_a_detection_model_is_drawn_whole_and_says_where_it_loops_over_images():
    """Backbone and heads are open; what handles the list of images is not."""
    model = torchvision.models.detection.fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, min_size=64, max_size=80, box_score_thresh=0.0
    ).eval()
    images = [torch.rand(3, 60, 70), torch.rand(3, 64, 64)]
    graph = capture(model, (images,))
    reasons = opaque(graph)
    assert "loops over a list" in reasons[""]
    assert "transform" in reasons
    assert not any(key.startswith("backbone.body") for key in reasons)
    assert {"backbone.body.conv1", "rpn.head.cls_logits", "roi_heads.box_predictor.cls_score"} <= {
        n.name for n in graph.flat
    }
    assert_exact(graph, model, (images,))
    with pytest.raises(ReplayRefused, match="was 2 in the recorded run and is 1"):
        replay(graph, model, (images[:1],))


def test_a_timm_convnext_is_open():
    """No opaque scope, exact at another size."""
    timm = pytest.importorskip("timm")
    model = timm.create_model("convnext_atto", num_classes=5).eval()
    graph = capture(model, (torch.randn(1, 3, 64, 64),))
    assert opaque(graph) == {}
    assert_exact(graph, model, (torch.randn(2, 3, 96, 64),))


@pytest.fixture
def transformers():
    return pytest.importorskip("transformers")


def words(batch, length, padded):
    mask = torch.ones(batch, length, dtype=torch.long)
    if padded:
        mask[0, length // 2 :] = 0
    return {"input_ids": torch.randint(5, 90, (batch, length)), "attention_mask": mask}


def bert(transformers):
    config = transformers.BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=99,
    )
    return transformers.BertModel(config).eval()


def test_bert_with_a_padded_mask_is_exact_at_any_length(transformers):
    """The mask stays a value: other batches, lengths and paddings, no scope opaque."""
    model = bert(transformers)
    graph = capture(model, (), words(2, 7, padded=True))
    assert opaque(graph) == {}
    assert_exact(graph, model, (), words(3, 9, padded=True))


def test_bert_with_a_mask_of_ones_says_that_it_decided_and_refuses_padding(transformers):
    """An all-ones mask means "no mask": right for such masks only."""
    model = bert(transformers)
    graph = capture(model, (), words(2, 7, padded=False))
    assert opaque(graph) == {}  # text can ask again, and guard the answer
    assert [d.kind for d in graph.specialisations if d.node and "mask" in d.expression] == ["none"]
    assert_exact(graph, model, (), words(3, 9, padded=False))
    with pytest.raises(ReplayRefused, match="create_bidirectional_mask"):
        replay(graph, model, (), words(2, 7, padded=True))


def test_gpt2_makes_its_cache_in_one_call_and_hands_it_on(transformers):
    """Constructor and ``update`` are single nodes; tied weights are one."""
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, vocab_size=99)
    model = transformers.GPT2LMHeadModel(config).eval()
    graph = capture(model, (), words(2, 7, padded=True))
    nodes = [n for s in graph.scopes.values() for n in s.nodes]
    assert sum(n.type == "DynamicCache" for n in nodes) == 1
    assert [n.kind for n in nodes if n.type == "update"] == ["method"] * 2
    assert_exact(graph, model, (), words(3, 9, padded=True))
    assert type(capture(model, (), words(2, 7, padded=True), how="fake").root).__name__ == "Scope"


def test_a_cache_of_the_models_own_is_followed_as_its_base_is(transformers):
    """A class derived from a library's cache, with a method of its own that keeps a tensor."""
    from transformers.cache_utils import DynamicCache

    class Own(DynamicCache):
        def __init__(self):
            super().__init__()
            self.kept = []

        def keep(self, tensor):
            self.kept.append(tensor)

    class Keeps(torch.nn.Module):
        def forward(self, x):
            cache = Own()
            cache.keep(x * 2)
            return x, cache

    graph = capture(Keeps(), (torch.ones(2, 3),))
    x = torch.randn(2, 3)
    _, cache = replay(graph, Keeps(), (x,))
    assert torch.equal(cache.kept[0], x * 2)
