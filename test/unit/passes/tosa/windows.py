"""Products, convolutions and pooling of TOSA, with what they compute."""

from collections.abc import Callable

import numpy as np

from test.unit.passes.tosa.case import Array, Case

_WINDOW = "dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 2, 2>"
_POOL = "kernel = array<i64: 2, 2>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 2, 2>"
_POOLED = "(tensor<1x4x4x2xf32>) -> tensor<1x3x3x2xf32>"


def convolved(x: Array, w: Array, bias: Array, stride: int, pad: int) -> Array:
    """Return a convolution on `[N, H, W, C]` with weights `[O, KH, KW, I]`, by its definition."""
    x = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)])
    kernel = w.shape[1]
    extent = (x.shape[1] - kernel) // stride + 1
    y = np.empty((x.shape[0], extent, extent, w.shape[0]), x.dtype)
    for i in range(extent):
        for j in range(extent):
            window = x[:, i * stride : i * stride + kernel, j * stride : j * stride + kernel]
            y[:, i, j] = np.einsum("nhwc,ohwc->no", window, w)
    return y + bias


def depthwise(x: Array, w: Array, bias: Array) -> Array:
    """One filter of `[KH, KW, C, M]` after the other."""
    channels, multiplier = w.shape[2:]
    parts = [
        convolved(x[..., [c]], w[None, :, :, [c], m], np.zeros(1, x.dtype), 1, 0)
        for c in range(channels)
        for m in range(multiplier)
    ]
    return np.concatenate(parts, -1) + bias


def pooled(x: Array, reduce: Callable[..., Array], fill: float) -> Array:
    """Windows of 2×2 with stride 2 and padding 1; `fill` does not count."""
    x = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=fill)
    blocks = x.reshape(1, 3, 2, 3, 2, 2)
    return reduce(blocks, (2, 4))


CASES: dict[str, Case] = {
    "matmul": Case(
        "%y = tosa.matmul %a, %b, %z, %z : (tensor<2x3x4xf32>, tensor<2x4x5xf32>, tensor<1xf32>, "
        "tensor<1xf32>) -> tensor<2x3x5xf32>",
        "2x3x4xf32 2x4x5xf32",
        "2x3x5xf32",
        np.matmul,
    ),
    "matmul of integers": Case(
        "%y = tosa.matmul %a, %b, %three8, %z8 : (tensor<2x3x4xi8>, tensor<2x4x5xi8>, "
        "tensor<1xi8>, tensor<1xi8>) -> tensor<2x3x5xi32>",
        "2x3x4xi8 2x4x5xi8",
        "2x3x5xi32",
        lambda a, b: np.matmul(a.astype(np.int32) - 3, b.astype(np.int32)),
    ),
    "conv2d": Case(
        f"%y = tosa.conv2d %a, %b, %c, %z, %z {{acc_type = f32, {_WINDOW}}} : "
        "(tensor<2x7x7x3xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) "
        "-> tensor<2x4x4x4xf32>",
        "2x7x7x3xf32 4x3x3x3xf32 4xf32",
        "2x4x4x4xf32",
        lambda a, b, c: convolved(a, b, c, 2, 1),
    ),
    "conv2d of integers": Case(
        f"%y = tosa.conv2d %a, %b, %c, %three8, %z8 {{acc_type = i32, {_WINDOW}}} : "
        "(tensor<2x7x7x3xi8>, tensor<4x3x3x3xi8>, tensor<4xi32>, tensor<1xi8>, tensor<1xi8>) "
        "-> tensor<2x4x4x4xi32>",
        "2x7x7x3xi8 4x3x3x3xi8 4xi32",
        "2x4x4x4xi32",
        lambda a, b, c: convolved(a.astype(np.int32) - 3, b.astype(np.int32), c, 2, 1),
    ),
    "depthwise_conv2d": Case(
        "%y = tosa.depthwise_conv2d %a, %b, %c, %z, %z {acc_type = f32, dilation = array<i64: 1, "
        "1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x5x5x3xf32>, "
        "tensor<3x3x3x2xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x3x6xf32>",
        "1x5x5x3xf32 3x3x3x2xf32 6xf32",
        "1x3x3x6xf32",
        depthwise,
    ),
    "transpose_conv2d": Case(
        "%y = tosa.transpose_conv2d %a, %b, %c, %z, %z {acc_type = f32, out_pad = array<i64: 0, "
        "0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<1x3x3x2xf32>, tensor<4x2x2x2xf32>, "
        "tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x6x6x4xf32>",
        "1x3x3x2xf32 4x2x2x2xf32 4xf32",
        "1x6x6x4xf32",
        lambda a, b, c: np.einsum("nhwc,oijc->nhiwjo", a, b).reshape(1, 6, 6, 4) + c,
    ),
    "transpose_conv2d with other edges": Case(
        "%y = tosa.transpose_conv2d %a, %b, %c, %z, %z {acc_type = f32, out_pad = array<i64: 1, "
        "-1, 0, 2>, stride = array<i64: 2, 2>} : (tensor<1x3x3x2xf32>, tensor<4x2x2x2xf32>, "
        "tensor<4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x6x8x4xf32>",
        "1x3x3x2xf32 4x2x2x2xf32 4xf32",
        "1x6x8x4xf32",
        lambda a, b, c: (
            np.pad(
                np.einsum("nhwc,oijc->nhiwjo", a, b).reshape(1, 6, 6, 4)[:, :-1],
                [(0, 0), (1, 0), (0, 2), (0, 0)],
            )
            + c
        ),
    ),
    "max_pool2d": Case(
        f"%y = tosa.max_pool2d %a {{{_POOL}}} : {_POOLED}",
        "1x4x4x2xf32",
        "1x3x3x2xf32",
        lambda a: pooled(a, np.max, -np.inf),
    ),
    "avg_pool2d": Case(
        f"%y = tosa.avg_pool2d %a, %z, %z {{acc_type = f32, {_POOL}}} : "
        "(tensor<1x4x4x2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x3x3x2xf32>",
        "1x4x4x2xf32",
        "1x3x3x2xf32",
        lambda a: pooled(a, np.nanmean, np.nan),
    ),
}
