"""Stacked normal cells that DARTS found: irregular wiring with many orders.

The genotypes are those published with Liu et al., "DARTS: differentiable architecture search",
ICLR 2019: V1 by first-order, V2 by second-order search. Ahn et al. schedule such cells for memory
in "Ordering chaos" (MLSys 2020). Ops stand in the order in which the published code runs them.
"""

from functools import partial

from onnx import ModelProto, numpy_helper

from benchmarks.models.control_flow.builder import Body, Weights, finish
from benchmarks.models.hand_written import value

Genotype = tuple[tuple[tuple[str, int], tuple[str, int]], ...]
"""Of each node the two ops and the states that they read: two inputs, then earlier nodes."""

V1: Genotype = (
    (("sep_conv_3x3", 1), ("sep_conv_3x3", 0)),
    (("skip_connect", 0), ("sep_conv_3x3", 1)),
    (("skip_connect", 0), ("sep_conv_3x3", 1)),
    (("sep_conv_3x3", 0), ("skip_connect", 2)),
)
V2: Genotype = (
    (("sep_conv_3x3", 0), ("sep_conv_3x3", 1)),
    (("sep_conv_3x3", 0), ("sep_conv_3x3", 1)),
    (("sep_conv_3x3", 1), ("skip_connect", 0)),
    (("skip_connect", 0), ("dil_conv_3x3", 2)),
)


class Network:
    """A body and the blocks that DARTS cells are made of; convolutions have no bias."""

    def __init__(self, seed: int) -> None:
        self.body = Body(Weights(seed))

    def conv(
        self, x: str, inputs: int, outputs: int, size: int, stride: int = 1, dilation: int = 1
    ) -> str:
        """Return a convolution over all channels, or a depthwise one for one channel per group."""
        fan_in = inputs * size * size
        weight = self.body.weight(outputs, inputs, size, size, scale=(2 / fan_in) ** 0.5)
        return self.body.op(
            "Conv",
            x,
            weight,
            pads=[dilation * (size // 2)] * 4,
            strides=[stride, stride],
            dilations=[dilation, dilation],
            group=outputs if inputs == 1 else 1,
        )

    def normalized(self, x: str, channels: int) -> str:
        """Batch normalization with the statistics of a trained model."""
        weights = self.body.weights
        names: list[str] = []
        for low, high in ((0.9, 1.1), (-0.05, 0.05), (-0.1, 0.1), (0.8, 1.2)):
            values = weights.rng.uniform(low, high, channels).astype("float32")
            names.append(weights.name("statistic"))
            weights.tensors.append(numpy_helper.from_array(values, names[-1]))
        return self.body.op("BatchNormalization", x, *names)

    def fit(self, x: str, inputs: int, outputs: int) -> str:
        """Relu, 1x1 convolution, normalization: the cell's input at its own width."""
        return self.normalized(self.conv(self.body.op("Relu", x), inputs, outputs, 1), outputs)

    def separable(self, x: str, width: int, dilation: int = 1) -> str:
        """Relu, depthwise 3x3 and pointwise convolution, normalization."""
        wide = self.conv(self.body.op("Relu", x), 1, width, 3, dilation=dilation)
        return self.normalized(self.conv(wide, width, width, 1), width)

    def candidate(self, kind: str, x: str, width: int) -> str:
        """One op of a genotype."""
        if kind == "sep_conv_3x3":
            return self.separable(self.separable(x, width), width)
        return x if kind == "skip_connect" else self.separable(x, width, dilation=2)

    def cell(self, genotype: Genotype, states: list[str], width: int) -> str:
        """Return the concatenation of the four nodes: 4 · `width` channels."""
        states = list(states)
        for (first, i), (second, j) in genotype:
            left = self.candidate(first, states[i], width)
            right = self.candidate(second, states[j], width)
            states.append(self.body.op("Add", left, right))
        return self.body.op("Concat", *states[2:], axis=1)


def make_darts(
    genotype: Genotype, seed: int, *, cells: int = 4, width: int = 48, size: int = 224
) -> ModelProto:
    """Make a model of the ImageNet stem (three strided convolutions), normal cells at size / 8, and
    a classifier.

    Input: `[1, 3, size, size]`. Output: `[1, 1000]`.
    """
    network = Network(seed)
    body = network.body
    x = network.normalized(network.conv("image", 3, width // 2, 3, 2), width // 2)
    x = network.normalized(network.conv(body.op("Relu", x), width // 2, width, 3, 2), width)
    x = network.normalized(network.conv(body.op("Relu", x), width, width, 3, 2), width)
    logits = classified_cells(network, genotype, x, cells, width)
    outputs = [value("logits", [1, 1000])]
    graph = body.graph("darts", [value("image", [1, 3, size, size])], outputs, [logits])
    return finish(body, graph)


def make_darts_cells(
    genotype: Genotype, seed: int, *, cells: int = 4, width: int = 48, size: int = 28
) -> ModelProto:
    """Make the cells and the classifier only: the stem of an ImageNet model needs more memory.

    Input: `[1, width, size, size]`. Output: `[1, 1000]`.
    """
    network = Network(seed)
    logits = classified_cells(network, genotype, "features", cells, width)
    inputs = [value("features", [1, width, size, size])]
    graph = network.body.graph("darts_cells", inputs, [value("logits", [1, 1000])], [logits])
    return finish(network.body, graph)


def classified_cells(network: Network, genotype: Genotype, x: str, cells: int, width: int) -> str:
    """Return normal cells on `x` and a classifier; the first cell reads `x` twice, at one size."""
    body = network.body
    channels = width
    before = (x, channels)
    for _ in range(cells):
        inputs = [network.fit(*before, width), network.fit(x, channels, width)]
        before = (x, channels)
        x, channels = network.cell(genotype, inputs, width), 4 * width
    pooled = body.reshape(body.op("GlobalAveragePool", x), 1, channels)
    return body.linear(pooled, channels, 1000)


MODELS = {
    "darts_v1": partial(make_darts, V1, 11),
    "darts_v2": partial(make_darts, V2, 12),
    "darts_v1_cells": partial(make_darts_cells, V1, 11),
    "darts_v2_cells": partial(make_darts_cells, V2, 12),
}
"""Name to what makes the model."""
