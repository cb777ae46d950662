"""Kernels with open dims: compiled once, and called at any sizes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import SSAValue

from braid.analysis.nests.pointwise import pointwise, pointwise_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.relayout import to_storage
from braid.lowering.cpu.call import CallableKernel
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.matmul import match_matmul, open_contraction
from braid.lowering.cpu.kernels.contraction.microkernel import Tile
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.pointwise.loops import PointwiseLoops
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.math.points import emittable
from braid.support.sizes.expression import Extent, symbol
from test.machines import HOST
from test.run.kernels.conftest import at_end_of_page, make_group

ROWS, COLUMNS = symbol("rows"), symbol("columns")
NUMBERS = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return NUMBERS.standard_normal(shape).astype(np.float32)


def open_type(extents: Sequence[Extent]) -> TensorType[Any]:
    shape = [extent if isinstance(extent, int) else DYNAMIC for extent in extents]
    return TensorType(f32, shape)


def unit() -> VectorUnit:
    return VectorUnit.of(HOST)


def pointwise_kernel(shapes: Sequence[Sequence[Extent]], build: Any) -> CallableKernel:
    """Return the kernel of a group whose results have the shape of its first operand."""
    group = make_group([open_type(shape) for shape in shapes], build)
    points = emittable(pointwise(group, is_open=True))
    assert points is not None
    extents = dict(zip(group.body.block.args, map(tuple, shapes), strict=True))

    def extents_of(value: SSAValue) -> tuple[Extent, ...]:
        return extents.get(value, tuple(shapes[0]))

    nest = pointwise_nest(points, row_major_choice(group), extents_of)
    assert nest is not None
    loops = PointwiseLoops(nest, unit(), 2)
    return compiled(group, loops)


def compiled(group: FusedOp, loops: PointwiseLoops) -> CallableKernel:
    body, in_place = loops.iteration, loops.nest.in_place
    return CallableKernel(grid_kernel(group, "kernel", unit(), loops.grid, body, in_place))


def sum_and_product(x: Any, bias: Any) -> Any:
    added = elementwise("add", x, bias)
    product = elementwise("mul", added.output, x)
    return [added, product], [added.output, product.output]


def total(x: Any, y: Any) -> Any:
    op = elementwise("add", x, y)
    return [op], [op.output]


@pytest.fixture(scope="module")
def biased() -> CallableKernel:
    return pointwise_kernel([(ROWS, COLUMNS), (1, COLUMNS)], sum_and_product)


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
@pytest.mark.parametrize("columns", [0, 1, 3, 16, 97, 4096, 4099, 8209])
def test_pointwise_at_any_sizes(biased: CallableKernel, rows: int, columns: int) -> None:
    x, bias = normal(rows, columns), normal(1, columns)
    results = [at_end_of_page(np.full_like(x, np.nan)) for _ in range(2)]
    symbols = {"rows": rows, "columns": columns}
    biased(at_end_of_page(x), at_end_of_page(bias), *results, symbols=symbols)
    np.testing.assert_array_equal(results[0], x + bias)
    np.testing.assert_array_equal(results[1], (x + bias) * x)


def test_pointwise_in_place(biased: CallableKernel) -> None:
    x, bias = normal(5, 33), normal(1, 33)
    total, product = x.copy(), np.empty_like(x)
    biased(total, bias, total, product, symbols={"rows": 5, "columns": 33})
    np.testing.assert_array_equal(total, x + bias)


def test_iterations_are_independent(biased: CallableKernel) -> None:
    """Check that threads may share the grid: chunks of 4096 elements, row by row."""
    x, bias = normal(3, 5000), normal(1, 5000)
    results = [np.full_like(x, np.nan) for _ in range(2)]
    for begin in (5, 0, 3, 4, 1, 2):
        symbols = {"rows": 3, "columns": 5000}
        biased(x, bias, *results, begin=begin, end=begin + 1, symbols=symbols)
    np.testing.assert_array_equal(results[0], x + bias)


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


def residual_product(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
    product = MatmulOp.on(x, weight)
    biased = elementwise("add", product.output, bias)
    result = elementwise("add", biased.output, residual)
    return [product, biased, result], [result.output]


@pytest.fixture(scope="module", params=["packed", "row-major"])
def product(request: pytest.FixtureRequest) -> tuple[CallableKernel, LayoutChoice]:
    """Return a product of any number of rows, with tiles of 6 rows and of two vectors."""
    lanes = unit().lanes
    shapes = [(ROWS, 20), (20, 37), (1, 37), (ROWS, 37)]
    weight = f"Ba{2 * lanes}b" if request.param == "packed" else "ab"
    tags = ["ab", weight, "ab", "ab"]
    choice = LayoutChoice(tuple(map(Layout.parse, tags)), (Layout.parse("ab"),))
    group = make_group([open_type(shape) for shape in shapes], residual_product, choice)
    found = match_matmul(group, is_open=True)
    assert found is not None
    extents = dict(zip(group.body.block.args, shapes, strict=True))
    problem = open_contraction(
        found, choice, 2 * lanes, lanes, 1, lambda value: extents.get(value, (ROWS, 37))
    )
    kernel = ContractionKernel(problem, Tile(6, 2, 3), lanes, columns_outside=False)
    body, in_place = kernel.iteration, problem.in_place
    made = grid_kernel(group, "kernel", unit(), kernel.grid, body, in_place)
    assert made.in_place == ((3, 0),)
    return CallableKernel(made), choice


@pytest.mark.parametrize("rows", [*range(14), 97])
def test_product_of_any_number_of_rows(
    product: tuple[CallableKernel, LayoutChoice], rows: int
) -> None:
    call, choice = product
    arrays = [normal(rows, 20), normal(20, 37), normal(1, 37), normal(rows, 37)]
    expected = arrays[0] @ arrays[1] + arrays[2] + arrays[3]
    stored = [
        at_end_of_page(to_storage(array, layout))
        for array, layout in zip(arrays, choice.operands, strict=True)
    ]
    call(*stored, stored[3], symbols={"rows": rows})
    np.testing.assert_allclose(stored[3], expected, rtol=1e-5, atol=1e-5)
