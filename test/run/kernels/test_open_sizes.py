"""Kernels with open dims: compiled once, and called at any sizes."""

from typing import Any

import numpy as np
import pytest
from xdsl.ir import SSAValue

from braid.analysis.nests.pointwise import pointwise, pointwise_nest
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import SliceOp
from braid.lowering.cpu.kernels.elementwise import ElementwiseFamily
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.support.sizes.expression import Extent, symbol
from test.machines import HOST
from test.run.kernels.conftest import make_group
from test.run.kernels.open_groups import OpenKernel, maker, open_group, open_type

ROWS, COLUMNS = symbol("rows"), symbol("columns")
ELEMENTWISE = maker(ElementwiseFamily(HOST))
NUMBERS = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def sum_and_product(x: Any, bias: Any) -> Any:
    added = elementwise("add", x, bias)
    product = elementwise("mul", added.output, x)
    return [added, product], [added.output, product.output]


def total(x: Any, y: Any) -> Any:
    op = elementwise("add", x, y)
    return [op], [op.output]


@pytest.fixture(scope="module")
def biased() -> OpenKernel:
    shape = (ROWS, COLUMNS)
    kernel = OpenKernel([shape, (1, COLUMNS)], sum_and_product, ELEMENTWISE, results=[shape, shape])
    assert kernel.in_place == ((0, 0), (0, 1))
    return kernel


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
@pytest.mark.parametrize("columns", [0, 1, 3, 16, 97, 4096, 4099, 8209])
def test_pointwise_at_any_sizes(biased: OpenKernel, rows: int, columns: int) -> None:
    biased.check(0, rows=rows, columns=columns)


def test_slices_of_open_tensors() -> None:
    """Check that slices are read where they lie, however long the rows around them are."""

    def build(x: Any, y: Any) -> Any:
        parts = [SliceOp.get(x, low, (3, 2), (2, 1)) for low in ((0, 1), (1, 0))]
        sums = elementwise("add", parts[0].output, parts[1].output)
        result = elementwise("mul", sums.output, y)
        return [*parts, sums, result], [result.output]

    kernel = OpenKernel([(ROWS, COLUMNS), (3, 2)], build, ELEMENTWISE, results=[(3, 2)])
    for rows, columns in ((6, 3), (7, 97)):
        kernel.check(0, rows=rows, columns=columns)


def test_dims_that_are_contiguous_at_every_size_are_one_loop() -> None:
    shape = (ROWS, COLUMNS, 8)
    group = make_group(
        [open_type(shape)] * 2, lambda x, y: ([op := elementwise("add", x, y)], [op.output])
    )
    points = pointwise(group, is_open=True)
    assert points is not None
    nest = pointwise_nest(points, row_major_choice(group), lambda _: shape)
    assert nest is not None
    (dim,) = nest.dims
    assert dim.extent == 8 * ROWS * COLUMNS and dim.strides == (1, 1, 1)


def test_an_operand_of_another_size_is_no_pointwise_nest() -> None:
    """Check that a tensor is neither repeated nor read as long as the result on a guess."""
    shapes = {0: (ROWS, COLUMNS), 1: (ROWS, symbol("others"))}
    group = make_group([open_type((ROWS, COLUMNS))] * 2, total)
    points = pointwise(group, is_open=True)
    assert points is not None
    choice = row_major_choice(group)
    arguments = list(group.body.block.args)

    def extents_of(value: SSAValue) -> tuple[Extent, ...]:
        return shapes[arguments.index(value)] if value in arguments else shapes[0]

    assert pointwise_nest(points, choice, extents_of) is None


def test_results_of_other_sizes_are_no_pointwise_nest() -> None:
    """Check that not all results are taken to be as long as the first one."""

    def build(x: Any, y: Any) -> Any:
        ops = [elementwise("neg", x), elementwise("neg", y)]
        return ops, [op.output for op in ops]

    shapes = [(ROWS,), (COLUMNS,)]
    group, extents_of = open_group(shapes, build, shapes)
    assert ElementwiseFamily(HOST).match(group, extents_of) is None
