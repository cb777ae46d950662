"""Layers of networks on rows of time, `[1, time, width]`, as PyTorch exports them."""

import numpy as np

from benchmarks.models.control_flow.builder import Body


def attention(main: Body, x: str, width: int, heads: int) -> str:
    """Return rows in which every row attends to all."""
    parts: list[str] = []
    for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        rows = main.reshape(main.linear(x, width, width), 0, 0, heads, width // heads)
        parts.append(main.op("Transpose", rows, perm=order))
    query, key, values = parts
    factor = main.constant((width // heads) ** -0.5, np.float32)
    scores = main.op("Mul", main.op("MatMul", query, key), factor)
    mixed = main.op("MatMul", main.op("Softmax", scores, axis=-1), values)
    joined = main.reshape(main.op("Transpose", mixed, perm=[0, 2, 1, 3]), 0, 0, width)
    return main.linear(joined, width, width)


def convolved(
    main: Body, x: str, inputs: int, outputs: int, size: int, *, stride: int = 1, groups: int = 1
) -> str:
    """Return rows of `outputs` elements after a convolution over time."""
    fan_in = inputs // groups * size
    weight = main.weight(outputs, inputs // groups, size, scale=fan_in**-0.5)
    bias, pads = main.weight(outputs, scale=0.05), [size // 2] * 2
    turned = main.op("Transpose", x, perm=[0, 2, 1])
    found = main.op("Conv", turned, weight, bias, pads=pads, strides=[stride], group=groups)
    return main.op("Transpose", found, perm=[0, 2, 1])


def normal(main: Body, x: str, width: int) -> str:
    """Return rows of mean 0 and variance 1, about."""
    scale, bias = main.constant(np.ones(width), np.float32), main.weight(width, scale=0.02)
    return main.op("LayerNormalization", x, scale, bias, axis=-1)


def swish(main: Body, x: str) -> str:
    """Return x · sigmoid(x)."""
    return main.op("Mul", x, main.op("Sigmoid", x))
