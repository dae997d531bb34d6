"""Models of libraries that the project was not built with: segmentation, speech, graphs, diffusion.

Each function gives one group of the sweep as ``{name: (make, inputs)}`` (see `zoo_models`) and raises
``ImportError`` where its library is not installed.
"""

from __future__ import annotations

import torch
from torch import nn


def _made(library, name, **options):
    return lambda: getattr(library, name)(**options)


# ---- segmentation_models_pytorch

_ENCODERS = ("resnet18", "mobilenet_v2", "timm-efficientnet-b0", "mit_b0", "tu-convnext_atto")
_HARD = {  # decoders that want an encoder which keeps its resolution, or dilates
    "mit_b0": ("UnetPlusPlus", "Linknet", "DeepLabV3", "DeepLabV3Plus", "PAN"),
    "tu-convnext_atto": ("UnetPlusPlus", "Linknet", "DeepLabV3", "DeepLabV3Plus", "PAN"),
}


def segmentation_models():
    """Every decoder of segmentation_models_pytorch on five encoders."""
    import segmentation_models_pytorch as smp

    def images(side, bigger):
        def inputs(batch, more=False):
            size = bigger if more else side
            return (torch.randn(batch, 3, size, size),), {}

        return inputs

    inputs = images(64, 96)
    found = {}
    for decoder in sorted(smp.MODEL_ARCHITECTURES_MAPPING):
        cls = smp.MODEL_ARCHITECTURES_MAPPING[decoder]
        if decoder == "dpt":
            continue
        for encoder in _ENCODERS:
            if cls.__name__ not in _HARD.get(encoder, ()):
                make = _made(
                    smp, cls.__name__, encoder_name=encoder, encoder_weights=None, classes=2
                )
                sizes = images(128, 160) if decoder == "pan" else inputs
                found[f"smp_{decoder}_{encoder}"] = (make, sizes)
    found["smp_dpt_vit_tiny"] = (
        _made(smp, "DPT", encoder_name="tu-vit_tiny_patch16_224", encoder_weights=None),
        images(224, 224),
    )
    found["smp_unet_scse_aux"] = (
        _made(
            smp,
            "Unet",
            encoder_name="resnet18",
            encoder_weights=None,
            decoder_attention_type="scse",
            aux_params={"classes": 3, "dropout": 0.2},
        ),
        inputs,
    )
    return found


# ---- torchaudio


def audio_models():
    """The models of torchaudio, small."""
    import torchaudio.models as zoo

    def frames(width, kind=torch.randn):
        def inputs(batch, more=False):
            length = 40 if more else 32
            lengths = torch.full((batch,), length)
            lengths[0] = length - 3
            lengths[-1] = length
            return (kind(batch, length, width), lengths), {}

        return inputs

    def wave(*channels, long=2000, longer=2400):
        return lambda batch, more=False: (
            (torch.randn(batch, *channels, longer if more else long),),
            {},
        )

    def emformer(batch, more=False):
        length = 24 if more else 16
        return (torch.randn(batch, length + 2, 16), torch.full((batch,), length)), {}

    def tacotron(batch, more=False):
        length, mels = (9, 12) if more else (7, 10)
        tokens = torch.randint(1, 20, (batch, length))
        return (tokens, torch.full((batch,), length), torch.randn(batch, 80, mels)), {
            "mel_specgram_lengths": torch.full((batch,), mels)
        }

    def wavernn(batch, more=False):
        count = 12 if more else 10
        return (
            torch.randn(batch, 1, (count - 4) * 8),
            torch.randn(batch, 1, 8, count),
        ), {}

    def transducer(batch, more=False):
        length = 20 if more else 16
        return (
            torch.randn(batch, length, 80),
            torch.full((batch,), length),
            torch.randint(0, 20, (batch, 5)),
            torch.full((batch,), 5),
        ), {}

    small = {
        "extractor_mode": "group_norm",
        "extractor_conv_layer_config": [(16, 10, 5), (16, 3, 2)],
        "extractor_conv_bias": False,
        "encoder_embed_dim": 32,
        "encoder_projection_dropout": 0.1,
        "encoder_pos_conv_kernel": 8,
        "encoder_pos_conv_groups": 2,
        "encoder_num_layers": 2,
        "encoder_num_heads": 4,
        "encoder_attention_dropout": 0.1,
        "encoder_ff_interm_features": 64,
        "encoder_ff_interm_dropout": 0.1,
        "encoder_dropout": 0.1,
        "encoder_layer_norm_first": False,
        "encoder_layer_drop": 0.0,
        "aux_num_out": 12,
    }

    def wavlm():
        options = {k: v for k, v in small.items() if k != "encoder_layer_drop"}
        return zoo.wavlm_model(
            **options, encoder_num_buckets=16, encoder_max_distance=32, encoder_layer_drop=0.0
        )

    def lengths(batch, more=False):
        long = 2400 if more else 2000
        given = torch.full((batch,), long)
        given[0] = long - 500
        return (torch.randn(batch, long), given), {}

    conformer = {"input_dim": 16, "num_heads": 4, "ffn_dim": 32, "num_layers": 2}
    return {
        "conformer": (
            _made(zoo, "Conformer", **conformer, depthwise_conv_kernel_size=7),
            frames(16),
        ),
        "conformer_group_norm": (
            _made(
                zoo,
                "Conformer",
                **conformer,
                depthwise_conv_kernel_size=7,
                use_group_norm=True,
                convolution_first=True,
            ),
            frames(16),
        ),
        "convtasnet": (
            _made(
                zoo, "ConvTasNet", enc_num_feats=32, msk_num_feats=16, msk_num_hidden_feats=32,
                msk_num_layers=3, msk_num_stacks=2,
            ),
            wave(1),
        ),
        "deepspeech": (
            _made(zoo, "DeepSpeech", n_feature=16, n_hidden=32, n_class=9),
            lambda batch, more=False: ((torch.randn(batch, 1, 40 if more else 32, 16),), {}),
        ),
        "emformer": (
            lambda: zoo.Emformer(16, 4, 32, 2, 4, right_context_length=2),
            emformer,
        ),
        "hdemucs": (
            _made(zoo, "HDemucs", sources=["a", "b"], audio_channels=1, channels=8, nfft=1024, depth=5),
            wave(1, long=8192, longer=10240),
        ),
        "tacotron2": (
            _made(
                zoo, "Tacotron2", n_symbol=20, encoder_embedding_dim=32, attention_rnn_dim=32,
                attention_hidden_dim=16, decoder_rnn_dim=32, prenet_dim=16,
                postnet_embedding_dim=16, symbol_embedding_dim=32, attention_location_n_filter=4,
            ),
            tacotron,
        ),
        "wav2letter": (_made(zoo, "Wav2Letter", num_classes=9), wave(1)),
        "wav2letter_mfcc": (
            _made(zoo, "Wav2Letter", num_classes=9, input_type="mfcc", num_features=16),
            wave(16, long=200, longer=240),
        ),
        "wavernn": (
            _made(
                zoo, "WaveRNN", upsample_scales=[2, 2, 2], n_classes=16, hop_length=8,
                n_res_block=2, n_rnn=32, n_fc=32, n_freq=8, n_hidden=16, n_output=16,
            ),
            wavernn,
        ),
        "wav2vec2": (lambda: zoo.wav2vec2_model(**small), wave()),
        "wav2vec2_lengths": (lambda: zoo.wav2vec2_model(**small), lengths),
        "wav2vec2_norm_first": (
            lambda: zoo.wav2vec2_model(
                **{**small, "extractor_mode": "layer_norm", "encoder_layer_norm_first": True}
            ),
            wave(),
        ),
        "wavlm": (wavlm, wave()),
        "squim_objective": (zoo.squim_objective_base, wave(long=8000, longer=9600)),
        "rnnt": (
            lambda: zoo.rnnt.emformer_rnnt_model(
                input_dim=80, encoding_dim=32, num_symbols=20, segment_length=8,
                right_context_length=2, time_reduction_input_dim=16, time_reduction_stride=2,
                transformer_num_heads=2, transformer_ffn_dim=32, transformer_num_layers=2,
                transformer_dropout=0.1, transformer_activation="gelu",
                transformer_left_context_length=4, transformer_max_memory_size=0,
                transformer_weight_init_scale_strategy="depthwise",
                transformer_tanh_on_mem=True, symbol_embedding_dim=16, num_lstm_layers=1,
                lstm_layer_norm=False, lstm_layer_norm_epsilon=1e-5, lstm_dropout=0.1,
            ),
            transducer,
        ),
    }  # fmt: skip


# ---- torch_geometric


def _ring(nodes):
    """A ring with chords, both directions."""
    here = torch.arange(nodes)
    there = torch.cat([(here + 1) % nodes, (here + 3) % nodes])
    edges = torch.stack([torch.cat([here, here]), there])
    return torch.cat([edges, edges.flip(0)], 1)


def _graphs(batch, more=False, width=8):
    """`batch` graphs as one: features, edges, and which graph each node belongs to."""
    nodes = 9 if more else 7
    edges = torch.cat([_ring(nodes) + i * nodes for i in range(batch)], 1)
    member = torch.arange(batch).repeat_interleave(nodes)
    return torch.randn(batch * nodes, width), edges, member


class _Stack(nn.Module):
    """Layers that take features and edges, then a mean over each graph."""

    def __init__(self, layers, pool):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.pool = pool

    def forward(self, x, edge_index, batch):
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return self.pool(x, batch)


class _GPS(nn.Module):
    """Layers that also take which graph a node belongs to."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x, edge_index, batch):
        for layer in self.layers:
            x = layer(x, edge_index, batch=batch)
        return x


def graph_models():
    """Layers and models of torch_geometric."""
    import torch_geometric.nn as pyg

    def flat(batch, more=False):
        return _graphs(batch, more)[:2], {}

    def grouped(batch, more=False):
        return _graphs(batch, more), {}

    def weighted(batch, more=False):
        x, edges, _ = _graphs(batch, more)
        return (x, edges, torch.rand(edges.shape[1])), {}

    def featured(batch, more=False):
        x, edges, member = _graphs(batch, more)
        return (x, edges, torch.randn(edges.shape[1], 4), member), {}

    def atoms(batch, more=False):
        nodes = 9 if more else 7
        member = torch.arange(batch).repeat_interleave(nodes)
        return (torch.randint(1, 9, (batch * nodes,)), torch.randn(batch * nodes, 3), member), {}

    def stack(make):
        return lambda: _Stack([make(8, 16), make(16, 16)], pyg.global_mean_pool)

    def mlp(a, b):
        return nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b))

    degrees = torch.tensor([0, 0, 1, 2, 9])
    pna = {
        "aggregators": ["mean", "min", "max", "std"],
        "scalers": ["identity", "amplification", "attenuation"],
        "deg": degrees,
    }
    layers = {
        "GCNConv": lambda a, b: pyg.GCNConv(a, b),
        "GATConv": lambda a, b: pyg.GATConv(a, b // 4, heads=4),
        "GATv2Conv": lambda a, b: pyg.GATv2Conv(a, b // 4, heads=4),
        "SAGEConv": lambda a, b: pyg.SAGEConv(a, b),
        "SAGEConv_max": lambda a, b: pyg.SAGEConv(a, b, aggr="max", project=True),
        "GINConv": lambda a, b: pyg.GINConv(mlp(a, b)),
        "EdgeConv": lambda a, b: pyg.EdgeConv(mlp(2 * a, b)),
        "PNAConv": lambda a, b: pyg.PNAConv(a, b, **pna),
        "TransformerConv": lambda a, b: pyg.TransformerConv(a, b // 4, heads=4, beta=True),
        "ChebConv": lambda a, b: pyg.ChebConv(a, b, K=3),
        "TAGConv": lambda a, b: pyg.TAGConv(a, b),
        "SGConv": lambda a, b: pyg.SGConv(a, b, K=2),
        "ARMAConv": lambda a, b: pyg.ARMAConv(a, b, num_stacks=2, num_layers=2),
        "GraphConv": lambda a, b: pyg.GraphConv(a, b),
        "GENConv": lambda a, b: pyg.GENConv(a, b),
        "LEConv": lambda a, b: pyg.LEConv(a, b),
        "ClusterGCNConv": lambda a, b: pyg.ClusterGCNConv(a, b),
        "FiLMConv": lambda a, b: pyg.FiLMConv(a, b),
        "GeneralConv": lambda a, b: pyg.GeneralConv(a, b),
        "SuperGATConv": lambda a, b: pyg.SuperGATConv(a, b // 4, heads=4),
        "ResGatedGraphConv": lambda a, b: pyg.ResGatedGraphConv(a, b),
    }
    found = {name: (stack(make), grouped) for name, make in layers.items()}
    for name in ("GCN", "GAT", "GraphSAGE", "GIN", "EdgeCNN"):
        found[name] = (_made(pyg, name, in_channels=8, hidden_channels=16, num_layers=3), flat)
    found["GCN_jk"] = (
        _made(
            pyg,
            "GCN",
            in_channels=8,
            hidden_channels=16,
            num_layers=3,
            out_channels=4,
            jk="lstm",
            norm="GraphNorm",
        ),
        flat,
    )
    found["GCN_weights"] = (
        _made(pyg, "GCN", in_channels=8, hidden_channels=16, num_layers=2),
        weighted,
    )
    found["PNA"] = (
        _made(pyg, "PNA", in_channels=8, hidden_channels=16, num_layers=2, **pna),
        flat,
    )
    found["GPS"] = (
        lambda: _GPS([pyg.GPSConv(8, pyg.GINConv(mlp(8, 8)), heads=2) for _ in range(2)]),
        grouped,
    )
    found["AttentiveFP"] = (
        _made(
            pyg,
            "AttentiveFP",
            in_channels=8,
            hidden_channels=16,
            out_channels=4,
            edge_dim=4,
            num_layers=2,
            num_timesteps=2,
        ),
        featured,
    )
    found["GraphUNet"] = (
        _made(
            pyg,
            "GraphUNet",
            in_channels=8,
            hidden_channels=16,
            out_channels=4,
            depth=2,
        ),
        flat,
    )
    found["SGFormer"] = (
        _made(pyg, "SGFormer", in_channels=8, hidden_channels=16, out_channels=4),
        grouped,
    )
    found["PMLP"] = (
        _made(
            pyg,
            "PMLP",
            in_channels=8,
            hidden_channels=16,
            out_channels=4,
            num_layers=3,
        ),
        flat,
    )
    found["LightGCN"] = (
        _made(pyg, "LightGCN", num_nodes=21, embedding_dim=8, num_layers=2),
        lambda batch, more=False: ((_graphs(batch, more)[1],), {}),
    )

    class SchNetLike(nn.Module):
        """Distances of all pairs within a graph, smeared, filter the messages."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 16)
            self.smear = pyg.models.schnet.GaussianSmearing(0.0, 5.0, 12)
            self.blocks = nn.ModuleList(
                pyg.models.schnet.InteractionBlock(16, 12, 16, 5.0) for _ in range(2)
            )
            self.read = pyg.models.schnet.ShiftedSoftplus()
            self.out = nn.Linear(16, 1)

        def forward(self, z, pos, batch):
            here, there = (batch[:, None] == batch[None, :]).nonzero().unbind(1)
            edges = torch.stack([here, there])[:, here != there]
            distance = (pos[edges[0]] - pos[edges[1]]).norm(dim=-1)
            h = self.embedding(z)
            for block in self.blocks:
                h = h + block(h, edges, distance, self.smear(distance))
            return pyg.global_add_pool(self.out(self.read(h)), batch)

    found["SchNetLike"] = (SchNetLike, atoms)
    return {f"pyg_{name}": entry for name, entry in found.items()}  # fmt: skip


# ---- diffusers


def diffusion_models():
    """Networks of diffusers from small configurations."""
    import diffusers

    def latents(channels, side=16, bigger=24, **more_inputs):
        def inputs(batch, more=False):
            size = bigger if more else side
            given = {k: make(batch) for k, make in more_inputs.items()}
            return (torch.randn(batch, channels, size, size),), given

        return inputs

    def steps(batch):
        return torch.randint(0, 100, (batch,))

    def text(width, length=5):
        return lambda batch: torch.randn(batch, length, width)

    unet = {
        "sample_size": 16,
        "block_out_channels": (16, 32),
        "layers_per_block": 1,
        "norm_num_groups": 4,
    }
    found = {
        "unet2d": (
            "UNet2DModel",
            {
                **unet,
                "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
                "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
                "attention_head_dim": 8,
            },
            latents(3, timestep=steps),
        ),
        "unet2d_resnet": (
            "UNet2DModel",
            {
                **unet,
                "down_block_types": ("ResnetDownsampleBlock2D", "DownBlock2D"),
                "up_block_types": ("UpBlock2D", "ResnetUpsampleBlock2D"),
                "resnet_time_scale_shift": "scale_shift",
                "num_class_embeds": 5,
            },
            latents(3, timestep=steps, class_labels=lambda b: torch.randint(0, 5, (b,))),
        ),
        "unet2d_condition": (
            "UNet2DConditionModel",
            {**unet, **_CONDITION},
            latents(4, timestep=steps, encoder_hidden_states=text(16)),
        ),
        "unet2d_condition_linear": (
            "UNet2DConditionModel",
            {**unet, **_CONDITION, "use_linear_projection": True, "upcast_attention": True},
            latents(4, timestep=steps, encoder_hidden_states=text(16)),
        ),
        "unet3d_condition": (
            "UNet3DConditionModel",
            {
                **unet,
                "cross_attention_dim": 16,
                "attention_head_dim": 4,
                "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
                "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
            },
            lambda batch, more=False: (
                (torch.randn(batch, 4, 3, 16, 16), steps(batch), torch.randn(batch, 5, 16)),
                {},
            ),
        ),
        "unet1d": (
            "UNet1DModel",
            {
                "sample_size": 64,
                "in_channels": 2,
                "out_channels": 2,
                "block_out_channels": (32, 32),
                "down_block_types": ("DownBlock1DNoSkip", "AttnDownBlock1D"),
                "up_block_types": ("AttnUpBlock1D", "UpBlock1DNoSkip"),
                "mid_block_type": "UNetMidBlock1D",
                "extra_in_channels": 32,
                "time_embedding_type": "positional",
                "layers_per_block": 1,
            },
            lambda batch, more=False: (
                (torch.randn(batch, 2, 96 if more else 64), steps(batch)),
                {},
            ),
        ),
        "autoencoder_kl": (
            "AutoencoderKL",
            {**_AUTO, "latent_channels": 4},
            latents(3, 32, 48),
        ),
        "autoencoder_asymmetric": (
            "AsymmetricAutoencoderKL",
            {
                "down_block_types": ("DownEncoderBlock2D",),
                "down_block_out_channels": (16,),
                "layers_per_down_block": 1,
                "up_block_types": ("UpDecoderBlock2D",),
                "up_block_out_channels": (16,),
                "layers_per_up_block": 1,
                "norm_num_groups": 4,
            },
            latents(3, 32, 48),
        ),
        "autoencoder_tiny": (
            "AutoencoderTiny",
            {
                "encoder_block_out_channels": (16, 16),
                "decoder_block_out_channels": (16, 16),
                "num_encoder_blocks": (1, 1),
                "num_decoder_blocks": (1, 1),
            },
            latents(3, 32, 48),
        ),
        "autoencoder_dc": (
            "AutoencoderDC",
            {
                "in_channels": 3,
                "latent_channels": 4,
                "attention_head_dim": 8,
                "encoder_block_types": ("ResBlock", "EfficientViTBlock"),
                "decoder_block_types": ("ResBlock", "EfficientViTBlock"),
                "encoder_block_out_channels": (16, 16),
                "decoder_block_out_channels": (16, 16),
                "encoder_layers_per_block": (1, 1),
                "decoder_layers_per_block": (1, 1),
                "encoder_qkv_multiscales": ((), (5,)),
                "decoder_qkv_multiscales": ((), (5,)),
            },
            latents(3, 32, 48),
        ),
        "autoencoder_oobleck": (
            "AutoencoderOobleck",
            {
                "encoder_hidden_size": 8,
                "downsampling_ratios": [2, 2],
                "channel_multiples": [1, 2],
                "decoder_channels": 8,
                "decoder_input_channels": 4,
                "audio_channels": 1,
            },
            lambda batch, more=False: ((torch.randn(batch, 1, 128 if more else 96),), {}),
        ),
        "vq": (
            "VQModel",
            {**_AUTO, "latent_channels": 4, "num_vq_embeddings": 16},
            latents(3, 32, 48),
        ),
        "dit": (
            "DiTTransformer2DModel",
            {
                "sample_size": 16,
                "num_layers": 2,
                "num_attention_heads": 2,
                "attention_head_dim": 8,
                "in_channels": 4,
                "out_channels": 8,
                "num_embeds_ada_norm": 10,
                "patch_size": 2,
                "norm_num_groups": 4,
            },
            latents(4, 16, 16, timestep=steps, class_labels=lambda b: torch.randint(0, 10, (b,))),
        ),
        "transformer2d": (
            "Transformer2DModel",
            {
                "num_attention_heads": 2,
                "attention_head_dim": 8,
                "in_channels": 16,
                "num_layers": 2,
                "norm_num_groups": 4,
                "cross_attention_dim": 16,
            },
            latents(16, encoder_hidden_states=text(16)),
        ),
        "pixart": (
            "PixArtTransformer2DModel",
            {
                "sample_size": 16,
                "num_layers": 2,
                "num_attention_heads": 2,
                "attention_head_dim": 8,
                "in_channels": 4,
                "out_channels": 8,
                "cross_attention_dim": 16,
                "caption_channels": 16,
                "use_additional_conditions": False,
                "norm_num_groups": 4,
            },
            latents(4, 16, 24, timestep=steps, encoder_hidden_states=text(16)),
        ),
        "sd3": (
            "SD3Transformer2DModel",
            {
                "sample_size": 16,
                "patch_size": 2,
                "in_channels": 4,
                "out_channels": 4,
                "num_layers": 2,
                "attention_head_dim": 8,
                "num_attention_heads": 2,
                "joint_attention_dim": 16,
                "caption_projection_dim": 16,
                "pooled_projection_dim": 12,
                "pos_embed_max_size": 16,
            },
            latents(
                4, 16, 24, timestep=steps, encoder_hidden_states=text(16),
                pooled_projections=lambda b: torch.randn(b, 12),
            ),
        ),
        "uvit": (
            "UVit2DModel",
            {
                "hidden_size": 32,
                "cond_embed_dim": 16,
                "micro_cond_encode_dim": 8,
                "micro_cond_embed_dim": 40,
                "encoder_hidden_size": 16,
                "vocab_size": 32,
                "codebook_size": 24,
                "in_channels": 32,
                "block_out_channels": 32,
                "num_res_blocks": 1,
                "block_num_heads": 2,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "intermediate_size": 64,
                "sample_size": 8,
            },
            lambda batch, more=False: (
                (
                    torch.randint(0, 24, (batch, 8, 8)),
                    torch.randn(batch, 5, 16),
                    torch.randn(batch, 16),
                    torch.rand(batch, 5),
                ),
                {},
            ),
        ),
        "prior": (
            "PriorTransformer",
            {
                "num_attention_heads": 2,
                "attention_head_dim": 8,
                "num_layers": 2,
                "embedding_dim": 16,
                "num_embeddings": 5,
                "additional_embeddings": 4,
            },
            lambda batch, more=False: (
                (
                    torch.randn(batch, 16),
                    steps(batch),
                    torch.randn(batch, 16),
                    torch.randn(batch, 5, 16),
                    torch.ones(batch, 5, dtype=torch.bool),
                ),
                {},
            ),
        ),
        "transformer_temporal": (
            "TransformerTemporalModel",
            {
                "num_attention_heads": 2,
                "attention_head_dim": 8,
                "in_channels": 16,
                "num_layers": 1,
                "norm_num_groups": 4,
            },
            lambda batch, more=False: (
                (torch.randn(batch * 3, 16, 8, 8),),
                {"num_frames": 3},
            ),
        ),
        "controlnet": (
            "ControlNetModel",
            {
                **{k: v for k, v in unet.items() if k != "sample_size"},
                "cross_attention_dim": 16,
                "attention_head_dim": 4,
                "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
                "conditioning_embedding_out_channels": (8, 16),
            },
            lambda batch, more=False: (
                (
                    torch.randn(batch, 4, 16, 16),
                    steps(batch),
                    torch.randn(batch, 5, 16),
                    torch.randn(batch, 3, 32, 32),
                ),
                {},
            ),
        ),
    }  # fmt: skip
    return {
        f"diffusers_{name}": (_made(diffusers, cls, **options), inputs)
        for name, (cls, options, inputs) in found.items()
    }


_CONDITION = {
    "cross_attention_dim": 16,
    "attention_head_dim": 4,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}
_AUTO = {
    "block_out_channels": (16, 32),
    "layers_per_block": 1,
    "norm_num_groups": 4,
    "down_block_types": ("DownEncoderBlock2D", "DownEncoderBlock2D"),
    "up_block_types": ("UpDecoderBlock2D", "UpDecoderBlock2D"),
}

GROUPS = {
    "segmentation": segmentation_models,
    "audio": audio_models,
    "graphs": graph_models,
    "diffusion": diffusion_models,
}
