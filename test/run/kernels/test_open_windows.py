"""Convolutions by other families and pooling, with any number of images, as chosen."""

from typing import Any

import pytest

from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.support.sizes.expression import symbol
from test.machines import HOST
from test.run.kernels.chosen_kernels import ChosenKernel

BATCH = symbol("batch")
LANES = VectorUnit.of(HOST).lanes
UNPADDED = {"pad_low": [0, 0], "pad_high": [0, 0], "strides": [1, 1], "dilations": [1, 1]}


def convolved(groups: int) -> Any:
    def build(x: Any, weight: Any, residual: Any) -> Any:
        conv = ConvOp.get(x, weight, groups=groups, **UNPADDED)
        result = elementwise("add", conv.output, residual)
        return [conv, result], [result.output]

    return build


def pooled(x: Any) -> Any:
    op = PoolOp.get(x, "max", (3, 3), **UNPADDED)
    return [op], [op.output]


def averaged(x: Any) -> Any:
    op = ReduceOp.get(x, "add", (2, 3))
    return [op], [op.output]


LAST = "acdb"
CONVOLUTIONS: dict[str, Any] = {
    "depthwise": ("conv-depthwise", 37, 1, 37, (LAST, "bcda", LAST, LAST)),
    "depthwise in lines": ("conv-depthwise", 5, 1, 5, ("abcd",) * 4),
    "grouped": ("conv-grouped", 2 * LANES, 4, LANES // 2, (LAST, f"Acdb{LANES}a", LAST, LAST)),
    "winograd": ("conv-winograd", 37, 19, 1, ()),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(case: str) -> None:
    family, outputs, depth, groups, tags = CONVOLUTIONS[case]
    after = (BATCH, outputs, 9, 9)
    shapes = [(BATCH, depth * groups, 11, 11), (outputs, depth, 3, 3), after]
    likely = {"batch": 1}
    fixed: Any = {"family": family, "layouts": tags, "known": (-1, 0, 1, 2)}
    kernel = ChosenKernel(shapes, convolved(groups), likely, **fixed)
    for batch in (0, 1, 2, 5):
        kernel.check(2e-4, batch=batch)


@pytest.mark.parametrize("tag", [LAST, "abcd", f"aBcd{LANES}b"])
def test_pooling(tag: str) -> None:
    shapes = [(BATCH, 2 * LANES, 9, 21)]
    kernel = ChosenKernel(shapes, pooled, {"batch": 1}, family="pool", layouts=(tag, tag))
    for batch in (0, 1, 2, 5):
        kernel.check(batch=batch)


def test_average_of_whole_images() -> None:
    shapes, tags = [(BATCH, 8 * LANES, 7, 7)], (LAST, "abcd")
    kernel = ChosenKernel(shapes, averaged, {"batch": 1}, family="pool", layouts=tags)
    for batch in (0, 1, 2, 5):
        kernel.check(2e-5, batch=batch)


SIDES = symbol("height"), symbol("width")


@pytest.mark.parametrize("case", ["depthwise", "grouped", "winograd"])
def test_convolution_of_images_of_any_extents(case: str) -> None:
    family, outputs, depth, groups, tags = CONVOLUTIONS[case]
    after = (BATCH, outputs, *(side - 2 for side in SIDES))
    shapes = [(BATCH, depth * groups, *SIDES), (outputs, depth, 3, 3), after]
    likely = {"batch": 1, "height": 34, "width": 34}
    fixed: Any = {"family": family, "layouts": tags, "known": (-1, 0, 1, 2)}
    kernel = ChosenKernel(shapes, convolved(groups), likely, **fixed)
    for batch, height, width in ((1, 3, 3), (2, 7, 19), (1, 16, 61), (0, 5, 5), (3, 4, 13)):
        kernel.check(2e-4, batch=batch, height=height, width=width)


def test_pooling_of_images_of_any_extents() -> None:
    likely = {"batch": 1, "height": 34, "width": 34}
    shapes = [(BATCH, 5 * LANES + 3, *SIDES)]
    kernel = ChosenKernel(shapes, pooled, likely, family="pool", layouts=(LAST, LAST))
    for batch, height, width in ((1, 3, 3), (2, 7, 19), (1, 16, 61), (0, 5, 5), (3, 4, 13)):
        kernel.check(batch=batch, height=height, width=width)


def test_pooling_of_lines_of_any_length() -> None:
    def build(x: Any) -> Any:
        fixed = {"pad_low": [0], "pad_high": [0], "strides": [2], "dilations": [1]}
        op = PoolOp.get(x, "max", (3,), **fixed)
        return [op], [op.output]

    kernel = ChosenKernel(
        [(BATCH, 2 * LANES, SIDES[1])],
        build,
        {"batch": 1, "width": 64},
        family="pool",
        layouts=("acb", "acb"),
    )
    for batch, width in ((1, 3), (2, 8), (1, 61), (0, 5), (3, 130)):
        kernel.check(batch=batch, width=width)
