"""Ops of the dialect with operands: every structured and every decomposable one."""

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import from_numpy
from braid.dialects.braid.elementwise import TABLE, elementwise
from braid.dialects.braid.folding import FoldOp
from braid.dialects.braid.fourier import FftOp
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import BroadcastOp, PadOp, SliceOp, TransposeOp
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.quantization import DequantizeOp, QuantizeOp, RequantizeOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.resampling import Resampling
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp
from braid.dialects.braid.tree_ensemble import TreeEnsembleOp

Array = np.ndarray
Build = Callable[..., TensorOp]
RNG = np.random.default_rng(7)

FLOAT_ROWS = [row.name for row in TABLE if row.name not in {"and", "or", "xor", "not"}]
FLOAT_ROWS = [
    name for name in FLOAT_ROWS if not name.startswith(("shift", "select", "cast", "bitcast"))
]


def floats(*shape: int, dtype: type = np.float32) -> Array:
    return RNG.uniform(-2, 2, shape).astype(dtype)


def integers(*shape: int, low: int = 1, high: int = 9, dtype: type = np.int64) -> Array:
    return RNG.integers(low, high, shape).astype(dtype)


def with_nan(array: Array) -> Array:
    array.flat[array.size // 2] = np.nan
    return array


def row_arity(name: str) -> int:
    return next(row.arity for row in TABLE if row.name == name)


def row_sample(name: str) -> tuple[str, Build, list[Array]]:
    shapes = [(2, 1, 3), (2, 4, 1)][: row_arity(name)]
    return name, lambda *x: elementwise(name, *x), [np.abs(floats(*s)) + 1 for s in shapes]


NODES = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 2, 2], [3, 0, 4, 0], [0, 0, 1, 2]], np.int32)
"""Three leaves, and two nodes that ask whether a feature is at most 0."""


def conv(**options: object) -> Build:
    defaults = {"strides": [1, 1], "dilations": [1, 1], "pad_low": [0, 0], "pad_high": [0, 0]}
    return lambda x, w: ConvOp.get(x, w, **(defaults | options))


def conv_transpose(**options: object) -> Build:
    defaults = {"strides": [1, 1], "dilations": [1, 1], "pad_low": [0, 0], "pad_high": [0, 0]}
    return lambda x, w: ConvTransposeOp.get(x, w, **(defaults | options))


def pool(kind: str, window: Sequence[int], **options: object) -> Build:
    defaults = {"strides": [1], "dilations": [1], "pad_low": [0], "pad_high": [0]}
    lists = {k: v * len(window) for k, v in defaults.items()} | options
    return lambda x: PoolOp.get(x, kind, window, **lists)


def fold(block: Sequence[int], image: Sequence[int], **options: Sequence[int]) -> Build:
    defaults = {"dilations": [1] * len(block), "pad_low": [0] * len(block)}
    return lambda x: FoldOp.get(x, block, image, **(defaults | options))


def resize(sizes: Sequence[int], *options: object, scales: Sequence[float] = ()) -> Build:
    def build(x: SSAValue) -> ResizeOp:
        ratios = [s / n for s, n in zip(sizes, x.type.get_shape(), strict=True)]
        return ResizeOp.get(x, sizes, scales or ratios, Resampling(*options))

    return build


def sums(build: Build) -> Build:
    return lambda *x: build(*x, accumulator=i32)


BYTES = RNG.integers(200, 256, (2, 4)).astype(np.uint8)
SIGNED = RNG.integers(-128, 128, (1, 1, 2, 2)).astype(np.int8)

STRUCTURED: list[tuple[str, Build, list[Array]]] = [
    *map(row_sample, FLOAT_ROWS),
    *[
        (
            f"{name} i32",
            lambda *x, name=name: elementwise(name, *x),
            [integers(2, 3, dtype=np.int32)] * 2,
        )
        for name in (
            "add",
            "div",
            "rem",
            "maximum",
            "and",
            "or",
            "xor",
            "shift_left",
            "shift_right",
            "lt",
        )
    ],
    ("not i1", lambda x: elementwise("not", x), [RNG.integers(0, 2, (2, 3)).astype(bool)]),
    (
        "select",
        lambda *x: elementwise("select", *x),
        [np.array([[True], [False]]), floats(1, 3), floats(2, 3)],
    ),
    ("cast", lambda x: elementwise("cast", x, element_type=from_numpy(np.int32)), [floats(2, 3)]),
    (
        "bitcast",
        lambda x: elementwise("bitcast", x, element_type=from_numpy(np.int32)),
        [floats(2, 3)],
    ),
    ("transpose", lambda x: TransposeOp.get(x, [2, 0, 1]), [floats(2, 3, 4)]),
    ("broadcast", lambda x: BroadcastOp.get(x, [2, 3, 4]), [floats(2, 1, 4)]),
    ("slice", lambda x: SliceOp.get(x, [1, 4], [2, 3], [2, -2]), [floats(5, 6)]),
    ("pad", lambda x: PadOp.get(x, [1, 0], [2, 1], -3.5), [floats(2, 3)]),
    ("pad i8", lambda x: PadOp.get(x, [1, 0], [2, 1], -3), [integers(2, 3, dtype=np.int8)]),
    ("iota", lambda: IotaOp.of(1, TensorType(from_numpy(np.int64), [2, 3])), []),
    ("matmul", MatmulOp.on, [floats(3, 4), floats(4, 5)]),
    ("matmul batch", MatmulOp.on, [floats(1, 3, 2, 4), floats(2, 1, 4, 3)]),
    ("conv", conv(pad_low=[1, 0], pad_high=[0, 2]), [floats(1, 3, 4, 5), floats(2, 3, 3, 2)]),
    (
        "conv groups",
        conv(strides=[2, 1], dilations=[1, 2], groups=2),
        [floats(2, 4, 5, 5), floats(4, 2, 2, 2)],
    ),
    (
        "quantize",
        QuantizeOp.on,
        [with_nan(floats(2, 5) * 300), np.full((1, 1), 1.5, np.float32), BYTES[:1, :1]],
    ),
    (
        "dequantize",
        DequantizeOp.on,
        [integers(2, 4, low=-99, dtype=np.int32), floats(1, 4), np.full((1, 1), 7, np.int32)],
    ),
    *[
        (
            f"requantize {rounding}",
            lambda *x, rounding=rounding: RequantizeOp.get(*x, rounding),
            [
                # Among them numbers between two integers.
                integers(3, 4, low=-40, high=40, dtype=np.int32),
                np.array([[1, 3, -5, 2**30]], np.int32),
                np.array([[1, 2, 3, 28]], np.int32),
                np.array([[-3]], np.int8),
            ],
        )
        for rounding in ("half_even", "half_up")
    ],
    ("matmul bytes", sums(MatmulOp.on), [BYTES, BYTES.T.astype(np.int8)]),
    ("conv bytes", conv(pad_low=[1, 0], accumulator=i32), [BYTES.reshape(1, 1, 2, 4), SIGNED]),
    ("sum pool bytes", pool("add", [2], pad_low=[1], accumulator=i32), [BYTES[None]]),
    ("reduce bytes", lambda x: ReduceOp.get(x, "add", [1], i32), [BYTES]),
    ("conv integer", conv(), [integers(1, 1, 3, 3), integers(1, 1, 2, 2)]),
    ("max pool", pool("max", [2, 3], pad_low=[1, 1], strides=[2, 2]), [floats(1, 2, 4, 5)]),
    ("max pool u8", pool("max", [2], pad_low=[1]), [integers(1, 2, 4, dtype=np.uint8)]),
    ("max pool nan", pool("max", [2]), [with_nan(floats(1, 2, 5))]),
    ("sum pool", pool("add", [2, 2], dilations=[2, 1], pad_high=[1, 0]), [floats(1, 2, 4, 5)]),
    *[
        (f"reduce {kind}", lambda x, kind=kind: ReduceOp.get(x, kind, [2, 0]), [floats(2, 3, 4)])
        for kind in ("add", "mul", "maximum", "minimum")
    ],
    *[
        (f"reduce {kind}", lambda x, kind=kind: ReduceOp.get(x, kind, [1]), [integers(2, 3)])
        for kind in ("and", "or", "minimum")
    ],
    ("reduce nothing", lambda x: ReduceOp.get(x, "maximum", [0]), [floats(0, 3)]),
    ("reduce no dims", lambda x: ReduceOp.get(x, "add", []), [floats(2, 3)]),
    ("reduce u8", lambda x: ReduceOp.get(x, "maximum", [0]), [integers(3, dtype=np.uint8)]),
    *[
        (
            f"arg {kind} {last}",
            lambda x, kind=kind, last=last: ArgReduceOp.get(x, kind, 1, select_last=last),
            [integers(3, 6, high=3, dtype=np.float32)],
        )
        for kind in ("max", "min")
        for last in (False, True)
    ],
    ("arg max nan", lambda x: ArgReduceOp.get(x, "max", 0), [with_nan(floats(6))]),
    ("arg min integer", lambda x: ArgReduceOp.get(x, "min", 0), [integers(6, 2, high=3)]),
    ("softmax", lambda x: SoftmaxOp.get(x, 1), [floats(2, 3, 4)]),
    (
        "layer norm",
        lambda *x: LayerNormOp.get(*x, first_dim=1, epsilon=1e-3),
        [floats(2, 3, 4), floats(1, 3, 4), floats(1, 1, 1)],
    ),
    ("gather", lambda *x: GatherOp.get(*x, 1), [floats(2, 5, 3), integers(2, 2, low=-5, high=5)]),
    ("gather scalar", lambda *x: GatherOp.get(*x, 0), [floats(4, 3), np.array(-1)]),
    (
        "gather elements",
        lambda *x: GatherElementsOp.get(*x, 1),
        [floats(3, 4), integers(2, 3, low=-4, high=4)],
    ),
    ("gather nd", GatherNdOp.get, [floats(3, 3, 2), integers(4, 2, low=-3, high=3)]),
    (
        "gather nd batch",
        lambda *x: GatherNdOp.get(*x, batch_dims=1),
        [floats(2, 3, 4), integers(2, 5, 1, low=-3, high=3)],
    ),
    (
        "tree ensemble",
        lambda *x: TreeEnsembleOp.get(*x, "add", depth=2, tracks_missing=True),
        [with_nan(floats(6, 2)), NODES, np.array([[3, 2], [4, 3]], np.int32), floats(3, 2)],
    ),
    (
        "tree ensemble minimum",
        lambda *x: TreeEnsembleOp.get(*x, "minimum", depth=1, tracks_missing=False),
        [floats(4, 2), NODES, np.array([[4, 2]], np.int32), floats(3, 1)],
    ),
]

DECOMPOSED: list[tuple[str, Build, list[Array]]] = [
    *[
        (
            f"scan {kind} {exclusive} {reverse}",
            lambda x, kind=kind, e=exclusive, r=reverse: ScanOp.get(
                x, kind, 1, exclusive=e, reverse=r
            ),
            [floats(2, 7)],
        )
        for kind in ("add", "mul", "maximum")
        for exclusive in (False, True)
        for reverse in (False, True)
    ],
    ("scan one", lambda x: ScanOp.get(x, "add", 0, exclusive=True), [floats(1, 3)]),
    (
        "conv_transpose disjoint",
        conv_transpose(strides=[2, 3], pad_low=[0, 1], groups=2),
        [floats(2, 4, 3, 2), floats(4, 3, 2, 3)],
    ),
    (
        "conv_transpose",
        conv_transpose(strides=[2, 1], pad_low=[1, 1], pad_high=[0, 2], output_padding=[1, 0]),
        [floats(1, 2, 3, 4), floats(2, 3, 3, 3)],
    ),
    (
        "conv_transpose sparse",
        conv_transpose(strides=[4, 3], dilations=[1, 2], groups=3, pad_high=[2, 0]),
        [floats(1, 3, 3, 2), floats(3, 1, 2, 2)],
    ),
    ("resize nearest", resize([1, 2, 7, 4], "nearest", "asymmetric"), [floats(1, 2, 3, 4)]),
    ("resize linear", resize([1, 5, 7], "linear"), [floats(1, 3, 4)]),
    ("resize cubic", resize([5, 3], "cubic", "align_corners"), [floats(3, 4)]),
    ("resize integer", resize([7], "linear"), [integers(4, high=90, dtype=np.int32)]),
    (
        "resize antialias",
        resize([3, 4], "cubic", "half_pixel", "floor", -0.5, True, True),
        [floats(7, 9)],
    ),
    *[
        (f"{kind} {shape} {dim}", lambda x, k=kind, d=dim: FftOp.get(x, k, d), [floats(*shape)])
        for kind, shape, dim in (
            ("fft", (2, 5, 2), 1),
            ("fft", (12, 3, 1), 0),
            ("ifft", (2, 128, 3, 2), 1),
            ("ifft", (3, 1, 1), 1),
            ("rfft", (131, 2, 1), 0),
            ("irfft", (2, 66, 2), 1),
        )
    ],
    ("fold", fold([3, 2], [4, 6], strides=[1, 2], pad_low=[1, 0]), [floats(2, 12, 4, 3)]),
    ("fold apart", fold([2], [9], strides=[4], dilations=[2]), [floats(1, 4, 2)]),
    ("irfft odd", lambda x: FftOp.get(x, "irfft", 1, 131), [floats(2, 66, 2)]),
]
