"""Networks on signals, volumes and steps, in PyTorch: convolutions of one and three dims, RNNs, a
step of a decoder with caches, a layer of experts."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class WaveNet(nn.Module):
    """Gated dilated convolutions over a signal (van den Oord et al., "WaveNet", 2016)."""

    def __init__(self, width: int = 64, depth: int = 8, repeats: int = 2) -> None:
        super().__init__()
        dilations = [1 << level for _ in range(repeats) for level in range(depth)]
        self.dilations = dilations
        self.first = nn.Conv1d(1, width, 1)
        self.gated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in dilations)
        self.residual = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in dilations)
        self.skip = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in dilations)
        self.last = nn.Sequential(
            nn.ReLU(), nn.Conv1d(2 * width, 256, 1), nn.ReLU(), nn.Conv1d(256, 256, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        total = None
        layers = zip(self.dilations, self.gated, self.residual, self.skip, strict=True)
        for dilation, gated, residual, skip in layers:
            signal, gate = gated(F.pad(x, (dilation, 0))).chunk(2, 1)
            y = torch.tanh(signal) * torch.sigmoid(gate)
            total = skip(y) if total is None else total + skip(y)
            x = x + residual(y)
        return self.last(total)


class HiFiGan(nn.Module):
    """A vocoder of transposed convolutions and dilated residual blocks (Kong et al., 2020, V2)."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.first = nn.Conv1d(80, width, 7, padding=3)
        self.up, self.blocks = nn.ModuleList(), nn.ModuleList()
        for factor in (8, 8, 2, 2):
            self.up.append(
                nn.ConvTranspose1d(width, width // 2, 2 * factor, factor, padding=factor // 2)
            )
            width //= 2
            kernels = nn.ModuleList()
            for kernel in (3, 7, 11):
                dilated = (
                    nn.Conv1d(width, width, kernel, dilation=d, padding=d * (kernel // 2))
                    for d in (1, 3, 5)
                )
                kernels.append(nn.ModuleList(dilated))
            self.blocks.append(kernels)
        self.last = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for up, kernels in zip(self.up, self.blocks, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            total = None
            for dilated in kernels:  # type: ignore[attr-defined]
                y = x
                for conv in dilated:
                    y = y + conv(F.leaky_relu(y, 0.1))
                total = y if total is None else total + y
            x = total / 3
        return torch.tanh(self.last(F.leaky_relu(x)))


class BasicBlock3d(nn.Module):
    """Two 3×3×3 convolutions and a residual."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(inputs, outputs, 3, stride, 1),
            nn.ReLU(),
            nn.Conv3d(outputs, outputs, 3, 1, 1),
        )
        keep = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if keep else nn.Conv3d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layers(x) + self.shortcut(x))


class ResNet3d(nn.Module):
    """The 18-layer network for videos of Tran et al., 2018 (R3D), without batch normalization."""

    def __init__(self, width: int = 64, classes: int = 400) -> None:
        super().__init__()
        self.first = nn.Conv3d(3, width, (3, 7, 7), (1, 2, 2), (1, 3, 3))
        blocks: list[nn.Module] = []
        inputs = width
        for stage in range(4):
            for index in range(2):
                stride = 2 if stage and not index else 1
                blocks.append(BasicBlock3d(inputs, width << stage, stride))
                inputs = width << stage
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        y = self.blocks(F.relu(self.first(x)))
        return self.classify(y.mean((2, 3, 4)))


class Recurrent(nn.Module):
    """Two layers of LSTM or GRU cells in both directions and a product."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU], width: int = 256) -> None:
        super().__init__()
        self.cells = kind(128, width, num_layers=2, bidirectional=True)
        self.classify = nn.Linear(2 * width, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.classify(self.cells(x)[0])


class DecoderLayer(nn.Module):
    """Self-attention with a cache, attention over an encoder's results, and an MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.cross_query, self.cross_out = nn.Linear(width, width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def split(self, x: Tensor) -> Tensor:
        """[1, T, W] as [1, heads, T, W / heads]."""
        return x.view(1, x.shape[1], self.heads, -1).transpose(1, 2)

    def attend(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        scores = query @ keys.transpose(2, 3) / query.shape[-1] ** 0.5
        mixed = torch.softmax(scores, -1) @ values
        return mixed.transpose(1, 2).reshape(1, query.shape[2], -1)

    def forward(self, x: Tensor, caches: Tensor, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Compute a step: x is [1, 1, W]; caches and encoded [2, heads, T, W / heads], keys before
        values."""
        y = self.norms[0](x)
        new = torch.cat([self.split(self.key(y)), self.split(self.value(y))])
        caches = torch.cat([caches, new], 2)
        x = x + self.out(self.attend(self.split(self.query(y)), caches[:1], caches[1:]))
        query = self.split(self.cross_query(self.norms[1](x)))
        x = x + self.cross_out(self.attend(query, encoded[:1], encoded[1:]))
        return x + self.mlp(self.norms[2](x)), caches


class DecoderStep(nn.Module):
    """A step of a decoder of Whisper's size "tiny" (Radford et al., 2022), with its caches."""

    def __init__(
        self, width: int = 384, heads: int = 6, layers: int = 4, vocabulary: int = 51864
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.classify = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: Tensor, caches: Tensor, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Compute a step: x is [1, 1, W]; caches [layers, 2, heads, T, D], encoded [layers, 2,
        heads, 1500, D]."""
        grown: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            x, cache = layer(x, caches[index], encoded[index])
            grown.append(cache)
        return self.classify(self.norm(x)), torch.stack(grown)


class Experts(nn.Module):
    """A gated MLP of which each token takes some experts (as Qwen3-MoE has them)."""

    def __init__(
        self, width: int = 512, inner: int = 384, experts: int = 32, chosen: int = 4
    ) -> None:
        super().__init__()
        self.chosen = chosen
        self.norm = nn.LayerNorm(width)
        self.router = nn.Linear(width, experts, bias=False)
        scale = width**-0.5
        self.gate = nn.Parameter(scale * torch.randn(experts, width, inner))
        self.rise = nn.Parameter(scale * torch.randn(experts, width, inner))
        self.fall = nn.Parameter(inner**-0.5 * torch.randn(experts, inner, width))

    def forward(self, x: Tensor) -> Tensor:
        """Compute the layer: x is [tokens, width]."""
        y = self.norm(x)
        weights, index = torch.topk(torch.softmax(self.router(y), -1), self.chosen)
        weights = weights / weights.sum(-1, keepdim=True)
        total = x
        for k in range(self.chosen):
            of = index[:, k]
            row = y[:, None]
            inner = F.silu(row @ self.gate[of]) * (row @ self.rise[of])
            total = total + weights[:, k, None] * (inner @ self.fall[of])[:, 0]
        return total
