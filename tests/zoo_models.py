"""The models of the sweep, by group: how each is made, and its inputs for a batch and a size.

Each entry is ``(make, inputs)``; ``inputs(batch, bigger)`` gives ``(args, kwargs)``, with ``bigger`` on
another image size or sequence length. No weights are loaded.
"""

from __future__ import annotations

import os

import torch
from torch import nn

from tests import zoo_libraries

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")


def _images(size, bigger=None, frames=None):
    def make(batch, more=False):
        side = (bigger or size) if more else size
        shape = (batch, 3, side, side) if frames is None else (batch, 3, frames, side, side)
        return (torch.randn(shape),), {}

    return make


def torchvision_models():
    """All 123 of torchvision, two of the quantised ones really quantised."""
    import torchvision.models as zoo

    found = {}
    for name in zoo.list_models():
        kind = zoo.get_model_builder(name).__module__
        options = {"weights": None}
        inputs = _images(64, 96)
        if ".detection" in kind:
            options["weights_backbone"] = None
            if "ssd" in name:
                options.update(score_thresh=0.003, detections_per_img=8)
            elif "retina" in name or "fcos" in name:
                limit = 0.0001 if "fcos" in name else 0.001
                options.update(min_size=128, max_size=160, score_thresh=limit, detections_per_img=8)
            else:
                options.update(
                    min_size=128,
                    max_size=160,
                    box_score_thresh=0.001,
                    box_detections_per_img=8,
                    rpn_post_nms_top_n_test=50,
                )

            def inputs(batch, more=False):
                size = (130, 150) if more else (120, 140)
                return ([torch.rand(3, *size) for _ in range(batch)],), {}

        elif ".segmentation" in kind:
            options["weights_backbone"] = None
        elif ".optical_flow" in kind:

            def inputs(batch, more=False):
                size = 144 if more else 128
                pair = torch.randn(batch, 3, size, size), torch.randn(batch, 3, size, size)
                return pair, {"num_flow_updates": 2}

        elif ".video" in kind:
            whole = name.startswith("mvit") or name == "s3d"
            inputs = _images(224, frames=16) if whole else _images(64, 80, frames=4)
        elif name.startswith(("vit", "maxvit")):
            inputs = _images(224)
        elif "inception" in name:
            inputs = _images(96, 128)
        if name in ("googlenet", "inception_v3"):
            options.update(init_weights=False, aux_logits=True)
        found[name] = (lambda name=name, options=options: zoo.get_model(name, **options), inputs)
    for name in ("quantized_resnet18", "quantized_mobilenet_v2"):
        found[f"{name}_Q"] = (
            lambda name=name: zoo.get_model(name, weights=None, quantize=True),
            _images(64),
        )
    return found


TIMM = """
beit_base_patch16_224 halonet_h1 mobileone_s1 cait_xxs24_224 coat_tiny convit_tiny convmixer_768_32
convnext_zepto_rms cpubone_nano crossvit_tiny_240 csatv2 cs3darknet_focus_s cspnext_tiny davit_tiny
deit_tiny_patch16_224 densenet121 dla46x_c dpn48b edgenext_xx_small efficientformer_l1
efficientformerv2_s0 mobilenetv2_035 efficientvim_m1 efficientvit_b0 efficientvit_m0
eva02_tiny_patch14_224 fasternet_t0 fastvit_t8 focalnet_tiny_srf gcvit_xxtiny ghostnet_050
hardcorenas_b hgnetv2_b0 hiera_tiny_224 hrnet_w18_small iformer_t inception_next_atto
inception_resnet_v2 inception_v3 inception_v4 lcnetv2_small levit_128s lowformer_b0 mambaout_femto
maxvit_pico_rw_256 poolformerv2_s12 gmlp_ti16_224 mobilenetv3_small_050 mobilenetv5_base
mobilevit_xxs mvitv2_tiny naflexvit_base_patch16_parfac_gap nasnetalarge nest_tiny nextvit_small
nf_regnet_b0 pit_ti_224 pnasnet5large pvt_v2_b0 rdnet_tiny regnetx_002 repghostnet_050 repvit_m1
res2next50 resnest14d resnet10t resnetv2_18 rexnet_100 selecsls42 legacy_seresnet18 sequencer2d_s
shvit_s1 skresnet18 starnet_s050 swiftformer_xs swin_tiny_patch4_window7_224
swinv2_tiny_window16_256 swinv2_cr_tiny_224 tiny_vit_5m_224 tnt_s_legacy_patch16_224 tresnet_m
twins_svt_small vgg11 visformer_tiny vit_dwee_patch16_reg1_gap_256 vit_base_mci_224
samvit_base_patch16_224 ese_vovnet19b_slim_dw legacy_xception xception41 vit_base_patch32_clip_256
mobilenetv2_120d resnet50t regnety_016 maxxvit_rmlp_tiny_rw_256 gcresnext50ts sedarknet21
fastvit_sa12 crossvit_small_240 vit_base_patch16_rope_224 lcnet_100 convnext_pico levit_256
resnetv2_50t poolformerv2_s36 deit_small_distilled_patch16_224 swinv2_cr_small_ns_224
haloregnetz_b gmlp_s16_224 dla60_res2next nf_regnet_b4 resnet26d convnext_atto vit_tiny_patch16_224
mixer_s32_224 resmlp_12_224 tf_efficientnetv2_b0 ecaresnet26t seresnext26t_32x4d xcit_nano_12_p16_224
"""


def timm_models():
    """One or more of each family, at the size that each was made for."""
    import timm

    known = set(timm.list_models())
    found = {}
    for name in TIMM.split():
        if name in known:
            size = timm.get_pretrained_cfg(name)
            side = size.input_size[-1] if size is not None and size.input_size else 224
            found[name] = (lambda name=name: timm.create_model(name), _images(side))
    return found


_TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 99,
    "pad_token_id": 0,
}
_CAUSAL = {**_TEXT, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64}
_SEQ2SEQ = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 99,
    "pad_token_id": 0,
    "max_position_embeddings": 64,
}
_T5 = {
    "d_model": 32,
    "d_ff": 64,
    "d_kv": 8,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 99,
    "pad_token_id": 0,
}
_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 99}
_VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
_SMALL = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}
_EXPERTS = {
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}

# name in the table: (model type, class or None for the bare model, options)
HF_TEXT = {
    "bert": ("bert", None, _TEXT),
    "bert_cls": ("bert", "BertForSequenceClassification", _TEXT),
    "roberta": ("roberta", None, _TEXT),
    "electra": ("electra", None, _TEXT),
    "albert": ("albert", None, {**_TEXT, "embedding_size": 16}),
    "distilbert": (
        "distilbert",
        None,
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 99},
    ),
    "deberta": (
        "deberta-v2",
        None,
        {**_TEXT, "pos_att_type": ["c2p", "p2c"], "relative_attention": True},
    ),
    "gpt2": ("gpt2", None, _GPT2),
    "gpt2_lm": ("gpt2", "GPT2LMHeadModel", _GPT2),
    "gpt_neox": ("gpt_neox", None, _TEXT),
    "llama": ("llama", None, _CAUSAL),
    "llama_lm": ("llama", "LlamaForCausalLM", _CAUSAL),
    "llama_cls": ("llama", "LlamaForSequenceClassification", _CAUSAL),
    "opt": ("opt", None, {**_TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32}),
    "bloom": ("bloom", None, {**_TEXT, "n_layer": 2, "n_head": 4}),
    "mobilebert": ("mobilebert", None, {**_TEXT, "embedding_size": 32}),
    "t5": ("t5", None, _T5),
    "mt5": ("mt5", None, _T5),
    "umt5": ("umt5", None, _T5),
    "longt5": ("longt5", None, _T5),
    **{n: (n, None, _CAUSAL) for n in ("mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3")},
    **{n: (n, None, _CAUSAL) for n in ("olmo", "olmo2", "stablelm", "starcoder2", "cohere")},
    **{n: (n, None, _CAUSAL) for n in ("granite", "nemotron", "persimmon", "phi")},
    **{
        n: (n, None, {**_CAUSAL, **_EXPERTS})
        for n in ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "granitemoe", "gpt_oss", "phimoe")
    },
    "gemma3": ("gemma3_text", None, _CAUSAL),
    **{
        n: (n, None, _SEQ2SEQ)
        for n in ("bart", "mbart", "marian", "pegasus", "m2m_100", "blenderbot")
    },
    **{
        n: (n, None, {**_TEXT, "max_position_embeddings": 64})
        for n in (
            "xlm-roberta", "camembert", "roformer", "fnet", "big_bird", "longformer",
            "nystromformer", "convbert", "ibert", "mpnet", "modernbert", "esm", "data2vec-text",
            "ernie", "rembert",
        )
    },
    "squeezebert": ("squeezebert", None, {**_TEXT, "embedding_size": 32}),
    "xglm": ("xglm", None, {"d_model": 32, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4}),
    "mpt": ("mpt", None, {"d_model": 32, "n_heads": 4, "n_layers": 2, "vocab_size": 99}),
    "mamba": ("mamba", None, {**_TEXT, "state_size": 4, "time_step_rank": 4}),
    "rwkv": ("rwkv", None, _TEXT),
}  # fmt: skip
HF_VISION = {
    **{
        n: (n, None, _VISION)
        for n in (
            "vit", "deit", "dinov2", "dinov3_vit", "beit", "data2vec-vision", "vit_mae", "vit_msn",
            "ijepa", "dpt", "siglip_vision_model", "clip_vision_model", "sam_vision_model",
        )
    },
    "vit_cls": ("vit", "ViTForImageClassification", _VISION),
    "swin": (
        "swin",
        None,
        {
            "image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 2],
            "num_heads": [2, 4], "window_size": 4,
        },
    ),
    "convnext": ("convnext", None, _SMALL),
    "resnet": ("resnet", None, {**_SMALL, "embedding_size": 8}),
    "focalnet": ("focalnet", None, {"image_size": 32, "patch_size": 4, "embed_dim": 16}),
    **{
        n: (n, None, {})
        for n in ("poolformer", "mobilevit", "mobilenet_v1", "mobilenet_v2", "swiftformer", "textnet")
    },
}  # fmt: skip


_SIDES = {"textnet": 64, "swiftformer": 64, "mobilevit": 64}


def _pixels(side):
    return lambda batch, more=False: ((), {"pixel_values": torch.randn(batch, 3, side, side)})


def _words(config):
    def make(batch, more=False):
        length = 9 if more else 7
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[0, length - 2 :] = 0  # padded: an all-ones mask means "no mask"
        given = {"input_ids": torch.randint(5, 90, (batch, length)), "attention_mask": mask}
        if getattr(config(), "is_encoder_decoder", False):
            given["decoder_input_ids"] = torch.randint(5, 90, (batch, 5))
        return (), given

    return make


def hf_models():
    """Hugging Face architectures from small configurations."""
    import transformers

    found = {}

    def add(name, kind, cls, options, inputs):
        def config():
            return transformers.AutoConfig.for_model(kind, **options)

        def make():
            if cls is None:
                return transformers.AutoModel.from_config(config())
            return getattr(transformers, cls)(config())

        found[f"hf_{name}"] = (make, inputs(config) if inputs is _words else inputs)

    for name, entry in HF_TEXT.items():
        add(name, *entry, _words)
    for name, entry in HF_VISION.items():
        add(name, *entry, _pixels(_SIDES.get(name, 32)))
    found.update(_multimodal(transformers))
    return found


def _multimodal(tf):
    def clip():
        text = {**_TEXT, "eos_token_id": 98, "bos_token_id": 97, "pad_token_id": 1}
        return tf.CLIPModel(
            tf.CLIPConfig(text_config=text, vision_config=_VISION, projection_dim=16)
        )

    def whisper():
        options = {k: v for k, v in _SEQ2SEQ.items() if k != "max_position_embeddings"}
        return tf.WhisperModel(
            tf.WhisperConfig(
                **options,
                num_mel_bins=16,
                max_source_positions=20,
                max_target_positions=30,
                bos_token_id=1,
                eos_token_id=2,
                decoder_start_token_id=1,
            )
        )

    def wav2vec2():
        return tf.Wav2Vec2Model(
            tf.Wav2Vec2Config(
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                conv_dim=[16, 16],
                conv_stride=[4, 4],
                conv_kernel=[8, 8],
                num_conv_pos_embeddings=8,
                num_conv_pos_embedding_groups=2,
            )
        )

    def detr():
        backbone = tf.ResNetConfig(
            hidden_sizes=[8, 16, 24, 32],
            embedding_size=8,
            depths=[1, 1, 1, 1],
            out_features=["stage4"],
        )
        return tf.DetrForObjectDetection(
            tf.DetrConfig(
                use_timm_backbone=False,
                use_pretrained_backbone=False,
                backbone=None,
                backbone_config=backbone,
                d_model=32,
                encoder_layers=1,
                decoder_layers=1,
                encoder_ffn_dim=32,
                decoder_ffn_dim=32,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                num_queries=6,
            )
        )

    def pair(batch, more=False):
        mask = torch.ones(batch, 7, dtype=torch.long)
        mask[0, 5:] = 0
        return (), {
            "pixel_values": torch.randn(batch, 3, 32, 32),
            "input_ids": torch.randint(5, 90, (batch, 7)),
            "attention_mask": mask,
        }

    def speech(batch, more=False):
        return (), {
            "input_features": torch.randn(batch, 16, 40),
            "decoder_input_ids": torch.randint(5, 90, (batch, 6 if more else 5)),
        }

    def wave(batch, more=False):
        return (), {"input_values": torch.randn(batch, 1000 if more else 800)}

    def picture(batch, more=False):
        side = 96 if more else 64
        return (), {"pixel_values": torch.randn(batch, 3, side, side)}

    return {
        "hf_clip": (clip, pair),
        "hf_whisper": (whisper, speech),
        "hf_wav2vec2": (wav2vec2, wave),
        "hf_detr": (detr, picture),
    }


def custom_models():
    """Small models with one difficulty each."""
    from tests.capture import small

    def without_size(inputs):
        return lambda batch, more=False: inputs(batch)

    found = {name: (make, without_size(inputs)) for name, (make, inputs) in small.MODELS.items()}

    def floats(batch, more=False):
        return (torch.randn(batch, 6),), {}

    found["DataIf"] = (small.DataIf, floats)
    found["Numpy"] = (small.Numpy, floats)
    found["Encoder"] = (
        small.Encoder,
        lambda batch, more=False: ((torch.randn(batch, 6 if more else 5, 8),), {}),
    )
    found["ImageList"] = (
        small.ImageList,
        lambda batch, more=False: (([torch.randn(3, 8, 9) for _ in range(batch)],), {}),
    )
    found["bfloat16"] = (
        lambda: nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.LayerNorm(6)).bfloat16(),
        lambda batch, more=False: ((torch.randn(batch, 6).bfloat16(),), {}),
    )
    found["DataParallel"] = (lambda: nn.DataParallel(small.DataIf()), floats)
    return found


def paper_models():
    """Models of papers, written out small."""
    from tests.zoo_papers import PAPERS

    def adapt(inputs):
        return lambda batch, more=False: (inputs(batch, more), {})

    return {f"paper_{name}": (make, adapt(inputs)) for name, (make, inputs) in PAPERS.items()}


GROUPS = {
    "torchvision": torchvision_models,
    "timm": timm_models,
    "hf": hf_models,
    "papers": paper_models,
    "custom": custom_models,
    **zoo_libraries.GROUPS,
}
