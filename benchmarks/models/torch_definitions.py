"""Networks that no package offers, in PyTorch: U-Net, NASNet-like, RandWire, control flow."""

from itertools import pairwise
from typing import Any

import networkx
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._higher_order_ops.while_loop import while_loop


def conv_block(inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    """3×3 convolution, batch normalization, relu."""
    conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    """Ronneberger et al., "U-Net", 2015, with padding, batch normalization and four levels."""

    def __init__(self, width: int = 32, depth: int = 4, classes: int = 2) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]

        def pair(inputs: int, outputs: int) -> nn.Module:
            return nn.Sequential(conv_block(inputs, outputs), conv_block(outputs, outputs))

        self.first = pair(3, width)
        self.down = nn.ModuleList(pair(a, b) for a, b in pairwise(widths))
        rising = list(pairwise(widths[::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in rising)
        self.merge = nn.ModuleList(pair(2 * b, b) for _, b in rising)
        self.last = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        levels = [self.first(x)]
        for block in self.down:
            levels.append(block(F.max_pool2d(levels[-1], 2)))
        y = levels.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            y = merge(torch.cat([levels.pop(), up(y)], 1))
        return self.last(y)


class SeparableConv(nn.Module):
    """Relu, depthwise and pointwise convolution, batch normalization."""

    def __init__(self, width: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(width, width, kernel, stride, kernel // 2, groups=width, bias=False),
            nn.Conv2d(width, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class NasNetCell(nn.Module):
    """The normal cell of NASNet-A (Zoph et al., 2018): irregular wiring, so that order matters."""

    def __init__(self, before: int, inputs: int, width: int) -> None:
        super().__init__()

        def fit(channels: int) -> nn.Module:
            conv = nn.Conv2d(channels, width, 1, bias=False)
            return nn.Sequential(nn.ReLU(), conv, nn.BatchNorm2d(width))

        self.fit_before, self.fit_input = fit(before), fit(inputs)
        self.separable = nn.ModuleList(SeparableConv(width, kernel) for kernel in (3, 5, 3, 5, 3))

    def forward(self, before: Tensor, x: Tensor) -> Tensor:
        def average(t: Tensor) -> Tensor:
            return F.avg_pool2d(t, 3, 1, 1, count_include_pad=False)

        before, x = self.fit_before(before), self.fit_input(x)
        a, b, c, d, e = self.separable
        sums = [
            a(x) + x,
            b(before) + c(x),
            average(x) + before,
            average(before) + average(before),
            d(before) + e(before),
        ]
        return torch.cat([before, *sums], 1)


class NasNetLike(nn.Module):
    """Stages of NASNet cells with strided separable convolutions in between."""

    def __init__(self, width: int = 32, cells: int = 3, stages: int = 3) -> None:
        super().__init__()
        stem = nn.Conv2d(3, width, 3, 2, 1, bias=False)
        self.stem = nn.Sequential(stem, nn.BatchNorm2d(width))
        self.stages, self.reductions = nn.ModuleList(), nn.ModuleList()
        before = inputs = width
        for _ in range(stages):
            stage = nn.ModuleList()
            for _ in range(cells):
                stage.append(NasNetCell(before, inputs, width))
                before, inputs = inputs, 6 * width
            self.stages.append(stage)
            self.reductions.append(SeparableConv(inputs, 3, stride=2))
            before, width = inputs, 2 * width
        self.classify = nn.Linear(inputs, 1000)

    def forward(self, x: Tensor) -> Tensor:
        before = current = self.stem(x)
        for stage, reduction in zip(self.stages, self.reductions, strict=True):
            for cell in stage:  # type: ignore[attr-defined]
                before, current = current, cell(before, current)
            before = current = reduction(current)
        return self.classify(F.adaptive_avg_pool2d(F.relu(current), 1).flatten(1))


class RandWire(nn.Module):
    """A random Watts–Strogatz graph of separable convolutions (Xie et al., 2019)."""

    def __init__(self, nodes: int = 24, width: int = 32, seed: int = 7) -> None:
        super().__init__()
        graph = networkx.connected_watts_strogatz_graph(nodes, 4, 0.75, seed=seed)
        edges = [(min(edge), max(edge)) for edge in graph.edges]
        self.sources = [sorted(u for u, v in edges if v == node) for node in range(nodes)]
        self.sinks = [node for node in range(nodes) if all(u != node for u, _ in edges)]
        self.stem = conv_block(3, width, stride=2)
        self.nodes = nn.ModuleList(
            SeparableConv(width, 3, 1 if sources else 2) for sources in self.sources
        )
        self.classify = nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        results: list[Tensor] = []
        for sources, module in zip(self.sources, self.nodes, strict=True):
            inputs = [results[source] for source in sources]
            results.append(module(sum(inputs[1:], inputs[0]) if inputs else x))
        total = sum((results[sink] for sink in self.sinks[1:]), results[self.sinks[0]])
        return self.classify(F.adaptive_avg_pool2d(F.relu(total), 1).flatten(1))


class Branch(nn.Module):
    """One of two layers, by the sign of the sum of the input."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.positive, self.negative = nn.Linear(width, width), nn.Linear(width, width)
        self.last = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        def positive(t: Tensor) -> Tensor:
            return torch.relu(self.positive(t))

        def negative(t: Tensor) -> Tensor:
            return torch.tanh(self.negative(t))

        return self.last(torch.cond(x.sum() > 0, positive, negative, (x,)))


class Repeat(nn.Module):
    """x ← tanh(W x + b), as often as the second input says."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x: Tensor, count: Tensor) -> Any:
        def goes_on(i: Tensor, n: Tensor, t: Tensor) -> Tensor:
            return i < n

        def step(i: Tensor, n: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return i + 1, n.clone(), torch.tanh(self.layer(t))

        return while_loop(goes_on, step, (torch.zeros((), dtype=torch.int64), count, x))[2]
