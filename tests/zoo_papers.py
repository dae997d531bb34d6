"""Models of well-known papers, written out small: what people build by hand."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, t):
        half = self.width // 2
        steps = torch.arange(half, device=t.device)
        freqs = torch.exp(-math.log(10000) * steps / half)
        angles = t[:, None].float() * freqs[None]
        return self.mlp(torch.cat([angles.sin(), angles.cos()], dim=-1))


class TimedBlock(nn.Module):
    def __init__(self, inputs, outputs, width):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(width, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.skip(x)


class DiffusionUNet(nn.Module):
    """Ho et al. 2020."""

    def __init__(self, width=16):
        super().__init__()
        self.time = TimeEmbedding(width)
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(
            [TimedBlock(width, width, width), TimedBlock(width, 2 * width, width)]
        )
        self.middle = TimedBlock(2 * width, 2 * width, width)
        self.up = nn.ModuleList(
            [TimedBlock(4 * width, width, width), TimedBlock(2 * width, width, width)]
        )
        self.out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        t = self.time(t)
        x, skips = self.stem(x), []
        for block in self.down:
            x = block(x, t)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle(x, t)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([x, skips.pop()], 1), t)
        return self.out(x)


class UNet(nn.Module):
    """Ronneberger et al. 2015, with padding to odd sizes."""

    def __init__(self, width=8):
        super().__init__()
        self.enc1, self.enc2 = self.block(3, width), self.block(width, 2 * width)
        self.mid = self.block(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec2, self.dec1 = self.block(4 * width, 2 * width), self.block(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.ReLU(inplace=True),
        )

    @staticmethod
    def join(x, skip):
        dy, dx = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
        x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return torch.cat([skip, x], dim=1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool2d(a, 2))
        x = self.mid(F.max_pool2d(b, 2))
        x = self.dec2(self.join(self.up2(x), b))
        x = self.dec1(self.join(self.up1(x), a))
        return torch.sigmoid(self.head(x))


class Generator(nn.Module):
    """DCGAN."""

    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(16, 32, 4, 1, 0, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(True),
            nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(True),
            nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z.view(z.size(0), -1, 1, 1))


class Discriminator(nn.Module):
    """SNGAN: spectrally normalised."""

    def __init__(self):
        super().__init__()
        self.c1 = parametrizations.spectral_norm(nn.Conv2d(3, 8, 4, 2, 1))
        self.c2 = parametrizations.spectral_norm(nn.Conv2d(8, 16, 4, 2, 1))
        self.fc = parametrizations.spectral_norm(nn.Linear(16 * 4 * 4, 1))

    def forward(self, x):
        x = F.leaky_relu(self.c1(x), 0.2)
        x = F.leaky_relu(self.c2(x), 0.2)
        return self.fc(x.flatten(1)).squeeze(1)


class VAE(nn.Module):
    """Kingma and Welling 2013; random noise inside."""

    def __init__(self):
        super().__init__()
        self.fc1, self.mu, self.logvar = nn.Linear(20, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.fc3, self.fc4 = nn.Linear(4, 16), nn.Linear(16, 20)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        h = F.relu(self.fc1(x.view(-1, 20)))
        mu, logvar = self.mu(h), self.logvar(h)
        z = self.reparameterize(mu, logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


class CausalAttention(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)
        mask = torch.tril(torch.ones(block, block)).view(1, 1, block, block)
        self.register_buffer("mask", mask)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        y = self.drop(F.softmax(att, dim=-1)) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(B, T, C))


class DecoderBlock(nn.Module):
    def __init__(self, width, heads, block):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalAttention(width, heads, block)
        self.mlp = nn.ModuleDict(
            {"fc": nn.Linear(width, 4 * width), "proj": nn.Linear(4 * width, width)}
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        h = self.mlp.fc(self.ln2(x)) if hasattr(self.mlp, "fc") else self.mlp["fc"](self.ln2(x))
        return x + self.mlp["proj"](F.gelu(h))


class SmallGPT(nn.Module):
    """A GPT written out, with tied weights and an optional loss."""

    def __init__(self, vocabulary=50, width=16, layers=2, block=32):
        super().__init__()
        self.block = block
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
        self.h = nn.ModuleList([DecoderBlock(width, 4, block) for _ in range(layers)])
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.wte.weight = self.head.weight

    def forward(self, idx, targets=None):
        _, t = idx.size()
        assert t <= self.block, f"sequence of {t}"
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class Transformer(nn.Module):
    """Vaswani et al. 2017, on torch's own layers."""

    def __init__(self, width=16):
        super().__init__()
        self.source, self.target = nn.Embedding(30, width), nn.Embedding(30, width)
        self.transformer = nn.Transformer(width, 4, 1, 1, 32, batch_first=True)
        self.out = nn.Linear(width, 30)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        x = self.transformer(self.source(src), self.target(tgt), tgt_mask=mask)
        return self.out(x)


class GCN(nn.Module):
    """Kipf and Welling 2016, on a dense adjacency matrix."""

    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x, adjacency):
        a = adjacency + torch.eye(adjacency.size(-1), device=x.device)
        d = a.sum(-1).rsqrt()
        a = d.unsqueeze(-1) * a * d.unsqueeze(-2)
        return F.log_softmax(a @ self.w2(F.relu(a @ self.w1(x))), dim=-1)


class MessagePassing(nn.Module):
    """Edges as index pairs, gathered and scattered."""

    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(12, 8), nn.GRUCell(8, 6)

    def forward(self, x, edges):
        for _ in range(2):
            src, dst = edges
            m = F.relu(self.message(torch.cat([x[src], x[dst]], -1)))
            total = torch.zeros(x.size(0), 8, dtype=x.dtype).index_add(0, dst, m)
            x = self.update(total, x)
        return x.mean(0)


class PointNet(nn.Module):
    """Qi et al. 2017, with its transformation network."""

    def __init__(self):
        super().__init__()
        self.t1, self.t2 = nn.Conv1d(3, 16, 1), nn.Linear(16, 9)
        self.c1, self.c2 = nn.Conv1d(3, 16, 1), nn.Conv1d(16, 32, 1)
        self.fc = nn.Linear(32, 4)

    def forward(self, x):
        t = F.relu(self.t1(x)).max(dim=2)[0]
        t = self.t2(t).view(-1, 3, 3) + torch.eye(3).unsqueeze(0)
        x = torch.bmm(x.transpose(2, 1), t).transpose(2, 1)
        x = self.c2(F.relu(self.c1(x)))
        x, _ = torch.max(x, 2)
        return self.fc(x)


class Siamese(nn.Module):
    """One tower, called twice."""

    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, a, b):
        return F.pairwise_distance(self.tower(a), self.tower(b))


class NeRF(nn.Module):
    """Mildenhall et al. 2020: positions encoded, a skip into the middle."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(27, 16), nn.Linear(16, 16), nn.Linear(43, 16), nn.Linear(16, 16)]
        )
        self.sigma, self.rgb = nn.Linear(16, 1), nn.Linear(16, 3)

    @staticmethod
    def encode(x, levels=4):
        parts = [x]
        for i in range(levels):
            parts += [torch.sin(2.0**i * x), torch.cos(2.0**i * x)]
        return torch.cat(parts, -1)

    def forward(self, x):
        h = e = self.encode(x)
        for i, layer in enumerate(self.layers):
            if i == 2:
                h = torch.cat([h, e], -1)
            h = F.relu(layer(h))
        return torch.cat([self.rgb(h).sigmoid(), F.relu(self.sigma(h))], -1)


class MixtureOfExperts(nn.Module):
    """Soft routing: every expert runs, the best two count."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])

    def forward(self, x):
        scores = self.gate(x)
        top, index = scores.topk(2, dim=-1)
        weights = torch.zeros_like(scores).scatter(-1, index, top.softmax(-1))
        outs = torch.stack([expert(x) for expert in self.experts], dim=-2)
        return (weights.unsqueeze(-1) * outs).sum(-2)


class StateSpace(nn.Module):
    """A diagonal state-space layer, scanned."""

    def __init__(self, width=6, state=4):
        super().__init__()
        self.log_a = nn.Parameter(torch.randn(width, state))
        self.b, self.c = nn.Linear(width, state), nn.Linear(width, state)
        self.dt = nn.Linear(width, width)

    def forward(self, x):
        dt = F.softplus(self.dt(x))
        a = torch.exp(-dt.unsqueeze(-1) * self.log_a.exp())
        u = dt.unsqueeze(-1) * self.b(x).unsqueeze(2) * x.unsqueeze(-1)
        h, ys = torch.zeros_like(u[:, 0]), []
        for t in range(x.shape[1]):
            h = a[:, t] * h + u[:, t]
            ys.append((h * self.c(x)[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(ys, 1)


class WaveNet(nn.Module):
    """Dilated causal convolutions, gated, with skips."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(1, 8, 1)
        self.filters = nn.ModuleList([nn.Conv1d(8, 8, 2, dilation=2**i) for i in range(3)])
        self.gates = nn.ModuleList([nn.Conv1d(8, 8, 2, dilation=2**i) for i in range(3)])
        self.mix = nn.ModuleList([nn.Conv1d(8, 8, 1) for _ in range(3)])
        self.out = nn.Conv1d(8, 4, 1)

    def forward(self, x):
        x, total = self.stem(x), 0
        for i, (f, g, m) in enumerate(zip(self.filters, self.gates, self.mix, strict=True)):
            padded = F.pad(x, (2**i, 0))
            h = m(torch.tanh(f(padded)) * torch.sigmoid(g(padded)))
            total = total + h
            x = x + h
        return self.out(F.relu(total))


class Capsules(nn.Module):
    """Sabour et al. 2017: routing by agreement."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 6, 3, 4, 4) * 0.1)

    @staticmethod
    def squash(x):
        n = (x**2).sum(-1, keepdim=True)
        return n / (1 + n) * x / (n.sqrt() + 1e-8)

    def forward(self, u):
        votes = (self.weight @ u[:, :, None, :, None]).squeeze(-1)
        logits = torch.zeros(*votes.shape[:3], 1)
        for i in range(3):
            v = self.squash((logits.softmax(2) * votes).sum(1, keepdim=True))
            if i < 2:
                logits = logits + (votes * v).sum(-1, keepdim=True)
        return v.squeeze(1)


class Seq2Seq(nn.Module):
    """Bahdanau et al. 2014: an attending decoder, step by step."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.encoder = nn.GRU(8, 8, batch_first=True, bidirectional=True)
        self.bridge, self.score = nn.Linear(16, 8), nn.Linear(24, 1)
        self.cell, self.out = nn.GRUCell(24, 8), nn.Linear(8, 20)

    def forward(self, src, tgt):
        memory, h = self.encoder(self.embed(src))
        h = torch.tanh(self.bridge(torch.cat([h[0], h[1]], -1)))
        outs = []
        for step in self.embed(tgt).unbind(1):
            query = h.unsqueeze(1).expand(-1, memory.size(1), -1)
            a = self.score(torch.cat([memory, query], -1)).softmax(1)
            h = self.cell(torch.cat([step, (a * memory).sum(1)], -1), h)
            outs.append(self.out(h))
        return torch.stack(outs, 1)


class FPN(nn.Module):
    """Lin et al. 2017: a dict of feature maps."""

    def __init__(self):
        super().__init__()
        self.body = nn.ModuleList([nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 16, 3, 2, 1)])
        self.lateral = nn.ModuleDict({"p0": nn.Conv2d(8, 8, 1), "p1": nn.Conv2d(16, 8, 1)})

    def forward(self, x):
        maps = {}
        for i, conv in enumerate(self.body):
            x = maps[f"p{i}"] = F.relu(conv(x))
        out = {k: self.lateral[k](v) for k, v in maps.items()}
        size = out["p0"].shape[-2:]
        out["p0"] = out["p0"] + F.interpolate(out["p1"], size=size, mode="nearest")
        return out


class YoloHead(nn.Module):
    """Boxes from a grid, decoded."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2 * 7, 8, stride=8)
        self.register_buffer("anchors", torch.tensor([[1.0, 2.0], [3.0, 1.5]]))

    def forward(self, x):
        y = self.conv(x)
        bs, _, ny, nx = y.shape
        y = y.view(bs, 2, 7, ny, nx).permute(0, 1, 3, 4, 2).contiguous()
        gy, gx = torch.meshgrid(torch.arange(ny), torch.arange(nx), indexing="ij")
        grid = torch.stack((gx, gy), 2).view(1, 1, ny, nx, 2).float()
        y = y.sigmoid()
        xy = (y[..., 0:2] * 2 - 0.5 + grid) * 8
        wh = (y[..., 2:4] * 2) ** 2 * self.anchors.view(1, 2, 1, 1, 2)
        return torch.cat((xy, wh, y[..., 4:]), -1).view(bs, -1, 7)


class DLRM(nn.Module):
    """Naumov et al. 2019: embedding bags and pairwise products."""

    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(10, 4, mode="sum") for _ in range(3)])
        self.bottom = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
        self.top = nn.Linear(4 + 6, 1)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        parts = [x] + [bag(sparse[:, i : i + 1]) for i, bag in enumerate(self.bags)]
        t = torch.stack(parts, 1)
        z = torch.bmm(t, t.transpose(1, 2))
        li, lj = torch.tril_indices(t.shape[1], t.shape[1], offset=-1)
        return torch.sigmoid(self.top(torch.cat([x, z[:, li, lj]], 1)))


class MLPMixer(nn.Module):
    """Tolstikhin et al. 2021."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 8, 8)
        self.norm1, self.norm2 = nn.LayerNorm(8), nn.LayerNorm(8)
        self.tokens = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16))
        self.channels = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norm2(x))
        return x.mean(dim=1)


class ConvLSTM(nn.Module):
    """Shi et al. 2015: states of images over time."""

    def __init__(self):
        super().__init__()
        self.gates = nn.Conv2d(3 + 4, 16, 3, padding=1)

    def forward(self, frames):
        b, t, _, h, w = frames.shape
        state = frames.new_zeros(b, 4, h, w)
        cell = torch.zeros_like(state)
        for i in range(t):
            z = self.gates(torch.cat([frames[:, i], state], 1))
            i_, f, o, g = z.chunk(4, 1)
            cell = f.sigmoid() * cell + i_.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
        return state


class StyleBlock(nn.Module):
    """Karras et al. 2020: weights modulated per sample, one grouped convolution."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 6, 4, 3, 3))
        self.style = nn.Linear(8, 4)

    def forward(self, x, w):
        b, c, h, width = x.shape
        s = self.style(w).view(b, 1, c, 1, 1)
        k = self.weight * (s + 1)
        k = k * torch.rsqrt(k.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8)
        x = x.reshape(1, b * c, h, width)
        out = F.conv2d(x, k.view(b * 6, c, 3, 3), padding=1, groups=b)
        return out.view(b, 6, h, width)


class Highway(nn.Module):
    """Srivastava et al. 2015, the same layer unrolled."""

    def __init__(self):
        super().__init__()
        self.h, self.t = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        for _ in range(3):
            gate = torch.sigmoid(self.t(x))
            x = F.relu(self.h(x)) * gate + x * (1 - gate)
        return x


class NeuralODE(nn.Module):
    """Chen et al. 2018: a fixed-step Runge-Kutta solver over a function of a module."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

    @staticmethod
    def step(f, y, h):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3))

    def forward(self, y):
        for _ in range(2):
            y = self.step(lambda v: self.f(v) * 0.5, y, 0.1)
        return y


class VectorQuantizer(nn.Module):
    """van den Oord et al. 2017: the nearest code, straight through."""

    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(12, 4)

    def forward(self, z):
        flat = z.reshape(-1, 4)
        d = (
            flat.pow(2).sum(1, keepdim=True)
            - 2 * flat @ self.codes.weight.t()
            + self.codes.weight.pow(2).sum(1)
        )
        q = self.codes(d.argmin(1)).view_as(z)
        return z + (q - z).detach(), F.mse_loss(q.detach(), z)


def _image(b, size):
    return torch.randn(b, 3, size, size)


# name: (make, inputs(batch, bigger) -> args); `bigger` asks for another size where the model takes one
PAPERS = {
    "diffusion_unet": (
        DiffusionUNet,
        lambda b, g: (_image(b, 48 if g else 32), torch.randint(0, 1000, (b,))),
    ),
    "unet": (UNet, lambda b, g: (_image(b, 37 if g else 32),)),
    "dcgan_generator": (Generator, lambda b, g: (torch.randn(b, 16),)),
    "sngan_discriminator": (Discriminator, lambda b, g: (_image(b, 16),)),
    "vae": (VAE, lambda b, g: (torch.randn(b, 20),)),
    "gpt": (SmallGPT, lambda b, g: (torch.randint(0, 50, (b, 9 if g else 7)),)),
    "gpt_with_loss": (
        SmallGPT,
        lambda b, g: (
            torch.randint(0, 50, (b, 9 if g else 7)),
            torch.randint(0, 50, (b, 9 if g else 7)),
        ),
    ),
    "transformer": (
        Transformer,
        lambda b, g: (
            torch.randint(0, 30, (b, 8 if g else 6)),
            torch.randint(0, 30, (b, 7 if g else 5)),
        ),
    ),
    "gcn": (
        GCN,
        lambda b, g: (
            torch.randn(b, 7 if g else 5, 6),
            (torch.rand(b, 7 if g else 5, 7 if g else 5) > 0.5).float(),
        ),
    ),
    "message_passing": (
        MessagePassing,
        lambda b, g: (torch.randn(4 * b, 6), torch.randint(0, 4, (2, 11 if g else 9))),
    ),
    "pointnet": (PointNet, lambda b, g: (torch.randn(b, 3, 20 if g else 12),)),
    "siamese": (Siamese, lambda b, g: (torch.randn(b, 8), torch.randn(b, 8))),
    "nerf": (NeRF, lambda b, g: (torch.randn(b, 5, 3) if g else torch.randn(b, 4, 3),)),
    "mixture_of_experts": (
        MixtureOfExperts,
        lambda b, g: (torch.randn(b, 5 if g else 3, 8),),
    ),
    "state_space": (StateSpace, lambda b, g: (torch.randn(b, 5, 6),)),
    "wavenet": (WaveNet, lambda b, g: (torch.randn(b, 1, 30 if g else 20),)),
    "capsules": (Capsules, lambda b, g: (torch.randn(b, 6, 4),)),
    "seq2seq": (
        Seq2Seq,
        lambda b, g: (torch.randint(0, 20, (b, 9 if g else 6)), torch.randint(0, 20, (b, 4))),
    ),
    "fpn": (FPN, lambda b, g: (_image(b, 40 if g else 32),)),
    "yolo_head": (YoloHead, lambda b, g: (_image(b, 40 if g else 32),)),
    "dlrm": (DLRM, lambda b, g: (torch.randn(b, 5), torch.randint(0, 10, (b, 3)))),
    "mlp_mixer": (MLPMixer, lambda b, g: (_image(b, 32),)),
    "conv_lstm": (
        ConvLSTM,
        lambda b, g: (torch.randn(b, 3, 3, 10 if g else 8, 8),),
    ),
    "style_block": (
        StyleBlock,
        lambda b, g: (torch.randn(b, 4, 10 if g else 8, 8), torch.randn(b, 8)),
    ),
    "highway": (Highway, lambda b, g: (torch.randn(b, 8),)),
    "neural_ode": (NeuralODE, lambda b, g: (torch.randn(b, 4),)),
    "vector_quantizer": (VectorQuantizer, lambda b, g: (torch.randn(b, 6 if g else 5, 4),)),
}
