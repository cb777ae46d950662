"""Sums, maxima, means and places of maxima of any dims and types: no thread spills registers."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, bf16, f16, f32, i8, i32

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.base import TensorOp
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.fallback.emit_fallback import emit_fallback
from test.run.fallback.conftest import make_group
from test.run.gpu.conftest import spilled_bytes

u8 = IntegerType(8, Signedness.UNSIGNED)
KINDS = ("sum", "maximum", "mean or place")
QUICK = (
    ((33, 6), [0]),
    ((100, 35), [0]),
    ((16, 512), [0]),
    ((2, 14, 14, 64), [1, 2]),
    ((100, 4096), [1]),
    ((4096, 512), [0]),
)
SHAPES = (
    *QUICK,
    *[((rows, 35), [0]) for rows in (5, 16, 33, 300, 1000)],
    *[((rows, 512), [0]) for rows in (8, 64, 300)],
    *[((33, columns), [0]) for columns in (8, 64, 1000)],
    *[((100, columns), [1]) for columns in (3, 16, 33, 300, 1024)],
    *[((2, 7, 7, channels), [1, 2]) for channels in (35, 64)],
    ((2, 64, 7, 7), [2, 3]),
    ((4, 9, 16, 10), [1, 3]),
    ((6, 20, 33), [0, 1]),
    ((6, 20, 33), [1]),
    ((300, 8, 4), [0, 2]),
)


def reduction(element: Any, kind: str, shape: Sequence[int], dims: Sequence[int]) -> FusedOp:
    """Means are sums of f32, as models have them; of integers there are places of maxima."""

    def build(x: Any) -> list[TensorOp]:
        if kind == "maximum":
            return [ReduceOp.get(x, "maximum", dims)]
        if kind == "sum":
            return [ReduceOp.get(x, "add", dims, None if is_float(element) else i32)]
        if not is_float(element):
            return [ArgReduceOp.get(x, "max", dims[0])]
        wide = elementwise("cast", x, element_type=f32)
        total = ReduceOp.get(wide, "add", dims)
        share = ConstantOp.of(np.full([1] * len(shape), 1 / 7, np.float32))
        mean = elementwise("mul", total, share)
        return [
            wide,
            total,
            share,
            mean,
            elementwise("cast", mean.results[0], element_type=element),
        ]

    return make_group([TensorType(element, shape)], build, ())


def pool(element: Any, tag: str | None, window: int, stride: int) -> FusedOp:
    """Maxima of an image, channels first or last."""
    image = TensorType(element, (1, 64, 30, 30))
    image = image if tag is None else with_layout(image, Layout.parse(tag))
    options = {"pad_low": [0, 0], "pad_high": [0, 0], "dilations": [1, 1]}

    def build(x: Any) -> list[TensorOp]:
        return [PoolOp.get(x, "max", [window] * 2, strides=[stride] * 2, **options)]

    return make_group([image], build, [tag])


def _slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


def spilling(element: Any, architecture: str, shapes: Sequence[Any]) -> list[Any]:
    """Check reductions of shapes whose threads spill, also with unaligned buffers."""
    return [
        (kind, shape, dims)
        for kind, (shape, dims) in product(KINDS, shapes)
        if spilled_bytes(
            emit_fallback(reduction(element, kind, shape, dims), "tested"), architecture
        )
    ]


@pytest.mark.parametrize("architecture", ["sm_90a", "sm_120"])
@pytest.mark.parametrize("element", [i8, f16], ids=str)
def test_some_reductions_spill_nowhere(element: Any, architecture: str) -> None:
    assert not spilling(element, architecture, QUICK)


@pytest.mark.parametrize("architecture", ["sm_90a", _slow("sm_80"), _slow("sm_120")])
@pytest.mark.parametrize("element", [i8, _slow(f16), _slow(f32)], ids=str)
@pytest.mark.parametrize("tag", [None, "acdb"])
def test_pools_spill_nowhere(tag: str | None, element: Any, architecture: str) -> None:
    for window, stride in ((2, 2), (3, 1), (3, 2), (7, 1)):
        group = pool(element, tag, window, stride)
        assert spilled_bytes(emit_fallback(group, "tested"), architecture) == 0, window


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"])
@pytest.mark.parametrize("element", [i8, u8, f16, bf16, f32], ids=str)
def test_reductions_spill_nowhere(element: Any, architecture: str) -> None:
    assert not spilling(element, architecture, SHAPES)
