"""The kernels whose spaces `benchmarks.stopping` measures whole: small enough for all schedules.

Usual sizes, and sizes that are no multiple of a vector: libraries are ahead if tiles do not fit, or
if memory is the limit, so a stopping rule must be tested there.
"""

from collections.abc import Iterator
from dataclasses import dataclass

PRODUCTS = (
    *((1, 64, 64), (1, 256, 128), (4, 96, 96), (8, 64, 256), (16, 128, 64), (24, 40, 48)),
    *((32, 32, 32), (33, 65, 80), (48, 192, 64), (64, 64, 64), (128, 32, 96), (7, 48, 512)),
    *((256, 256, 256), (128, 768, 768), (384, 64, 384), (197, 96, 400)),
    *((1, 2048, 512), (512, 16, 8), (1000, 8, 10), (2, 4000, 17)),
    *((5, 4099, 97), (64, 1024, 97), (16, 2000, 33), (100, 300, 49), (3, 1111, 65)),
    *((784, 192, 33), (49, 512, 100), (320, 320, 320), (13, 512, 129), (2, 1024, 1024)),
)
"""Rows, depth, columns."""
CONVOLUTIONS = (
    *((16, 16, 8, 3, 1), (32, 32, 7, 3, 1), (16, 64, 14, 1, 1), (64, 16, 14, 1, 1)),
    *((8, 24, 12, 3, 1), (24, 24, 9, 3, 1), (48, 48, 7, 1, 1), (3, 16, 16, 3, 1)),
    *((16, 32, 6, 5, 1), (32, 16, 10, 1, 1), (64, 64, 30, 3, 1), (128, 128, 16, 3, 1)),
    *((256, 64, 28, 1, 1), (3, 32, 37, 7, 1), (1, 8, 40, 11, 1)),
    *((128, 128, 29, 3, 2), (256, 256, 15, 3, 2), (256, 512, 9, 3, 2), (3, 64, 62, 7, 2)),
    *((256, 512, 14, 1, 2), (512, 512, 7, 1, 1), (32, 64, 18, 5, 1), (3, 24, 65, 3, 2)),
    *((40, 72, 13, 3, 2), (512, 49, 7, 1, 1)),
)
"""Channels in and out, extent of the image, extent of the window, stride."""
DEPTHWISE = (
    *((32, 16, 3, 1), (64, 12, 5, 1), (24, 20, 7, 1), (20, 15, 3, 1)),
    *((32, 57, 3, 2), (96, 57, 3, 2), (144, 29, 3, 2), (192, 29, 5, 2), (576, 15, 3, 2)),
    *((960, 9, 3, 1), (144, 58, 3, 1), (72, 31, 5, 2), (17, 40, 3, 2)),
)
"""Channels, extent of the image, extent of the window, stride."""
POOLS = (
    *(("max", 64, 56, 3, 2), ("max", 192, 28, 3, 2), ("max", 480, 14, 3, 2), ("max", 16, 40, 2, 2)),
    *(("max", 256, 14, 3, 1), ("max", 24, 30, 5, 1), ("max", 512, 13, 3, 1), ("max", 96, 55, 3, 2)),
    *(("add", 64, 28, 2, 2), ("add", 128, 14, 3, 1), ("add", 32, 40, 3, 2)),
    *(("add", 832, 7, 7, 1), ("add", 48, 21, 5, 2), ("max", 1000, 8, 2, 2)),
    *(("max", 128, 30, 2, 2), ("max", 40, 33, 3, 1), ("max", 832, 9, 3, 1), ("max", 7, 50, 3, 2)),
)
"""Kind, channels, extent of the image, extent of the window, stride."""
SOFTMAXES = ((64, 128), (12, 1000), (512, 64), (1, 1000), (2048, 8), (128, 30), (3, 20000))
"""Rows, columns."""
NORMS = ((128, 768), (512, 32), (64, 1024), (1000, 17), (8, 4096), (197, 192), (1, 300))
"""Rows, columns."""


@dataclass(frozen=True)
class GivenKernel:
    """A kernel as a function of MLIR; feature maps are stored in `layout`."""

    name: str
    text: str
    layout: str


def given_kernels() -> Iterator[GivenKernel]:
    """All kernels, under unique names."""
    for rows, depth, columns in PRODUCTS:
        yield _product(rows, depth, columns)
    for rows, columns in SOFTMAXES:
        yield _softmax(rows, columns)
    for rows, columns in NORMS:
        yield _norm(rows, columns)
    for inputs, outputs, size, window, stride in CONVOLUTIONS:
        yield _convolution(inputs, outputs, size, window, stride, 1)
    for channels, size, window, stride in DEPTHWISE:
        yield _convolution(channels, channels, size, window, stride, channels)
    for kind, channels, size, window, stride in POOLS:
        yield _pool(kind, channels, size, window, stride)


def _product(rows: int, depth: int, columns: int) -> GivenKernel:
    x, w, y = _matrix(rows, depth), _matrix(depth, columns), _matrix(rows, columns)
    text = _function(
        f"%x: {x}",
        y,
        f'%w = braid.parameter {{key = "w"}} : {w}',
        f"%y = braid.matmul %x, %w : ({x}, {w}) -> {y}",
    )
    return GivenKernel(f"product {rows}x{depth}x{columns}", text, "ab")


def _softmax(rows: int, columns: int) -> GivenKernel:
    x = _matrix(rows, columns)
    text = _function(f"%x: {x}", x, f"%y = braid.softmax %x {{dim = 1 : i64}} : ({x}) -> {x}")
    return GivenKernel(f"softmax {rows}x{columns}", text, "ab")


def _norm(rows: int, columns: int) -> GivenKernel:
    x, row = _matrix(rows, columns), _matrix(1, columns)
    text = _function(
        f"%x: {x}",
        x,
        f'%s = braid.parameter {{key = "s"}} : {row}',
        f'%b = braid.parameter {{key = "b"}} : {row}',
        "%y = braid.layer_norm %x, %s, %b {first_dim = 1 : i64, epsilon = 1.0e-5 : f64} : "
        f"({x}, {row}, {row}) -> {x}",
    )
    return GivenKernel(f"layer norm {rows}x{columns}", text, "ab")


def _convolution(
    inputs: int, outputs: int, size: int, window: int, stride: int, groups: int
) -> GivenKernel:
    x, y = _maps(inputs, size), _maps(outputs, (size - window) // stride + 1)
    w = f"tensor<{outputs}x{inputs // groups}x{window}x{window}xf32>"
    text = _function(
        f"%x: {x}",
        y,
        f'%w = braid.parameter {{key = "w"}} : {w}',
        f"%y = braid.conv %x, %w {{{_windows(stride)}, groups = {groups} : i64}} : "
        f"({x}, {w}) -> {y}",
    )
    kind = "conv" if groups == 1 else "depthwise"
    name = f"{kind} {inputs} to {outputs}, image {size}, window {window}, stride {stride}"
    return GivenKernel(name, text, "acdb")


def _pool(kind: str, channels: int, size: int, window: int, stride: int) -> GivenKernel:
    x, y = _maps(channels, size), _maps(channels, (size - window) // stride + 1)
    text = _function(
        f"%x: {x}",
        y,
        f'%y = braid.pool %x {{kind = "{kind}", window = array<i64: {window}, {window}>, '
        f"{_windows(stride)}}} : ({x}) -> {y}",
    )
    name = f"{kind} pool {channels}, image {size}, window {window}, stride {stride}"
    return GivenKernel(name, text, "acdb")


def _windows(stride: int) -> str:
    zeros = "array<i64: 0, 0>"
    return (
        f"strides = array<i64: {stride}, {stride}>, dilations = array<i64: 1, 1>, "
        f"pad_low = {zeros}, pad_high = {zeros}"
    )


def _matrix(rows: int, columns: int) -> str:
    return f"tensor<{rows}x{columns}xf32>"


def _maps(channels: int, size: int) -> str:
    return f"tensor<1x{channels}x{size}x{size}xf32>"


def _function(argument: str, result: str, *ops: str) -> str:
    """Return a module whose `@main` returns `%y`."""
    body = "\n  ".join((*ops, f"func.return %y : {result}"))
    return f"func.func @main({argument}) -> {result} {{\n  {body}\n}}\n"
