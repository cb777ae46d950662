"""Products of matrices with open dims, and convolutions of any number of images."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.convolution import ConvolutionLoops, convolution
from braid.analysis.nests.matmul import matrix_product, open_contraction
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import integers
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.kernel import ContractionKernel
from braid.lowering.cpu.kernels.contraction.microkernel import Tile
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.support.sizes.expression import Extent, symbol
from braid.targets.kernels.kernel_family import Kernel
from test.run.kernels.conftest import random_array
from test.run.kernels.open_groups import SIZES, OpenKernel, Shapes, open_group, open_type, unit

ROWS, COLUMNS, DEPTH, BATCH = map(symbol, ("rows", "columns", "depth", "batch"))
OTHERS = symbol("others")
LONG = 3_000_017


def choice_of(*tags: str) -> LayoutChoice:
    layouts = tuple(map(Layout.parse, tags))
    return LayoutChoice(layouts, (layouts[-1],))


def residual_product(x: Any, weight: Any, bias: Any, residual: Any) -> Any:
    product = MatmulOp.on(x, weight)
    biased = elementwise("add", product.output, bias)
    result = elementwise("add", biased.output, residual)
    return [product, biased, result], [result.output]


def product_nest(group: FusedOp, extents_of: ExtentsOf) -> Contraction[Extent] | None:
    """Return the contraction in blocks of two vectors."""
    found = matrix_product(group, is_open=True)
    assert found is not None
    lanes = unit().lanes
    return open_contraction(found, stored_choice(group), 2 * lanes, lanes, 1, extents_of)


def code(group: FusedOp, nest: Contraction[Extent] | None, rows: int) -> Kernel:
    """Return the code with tiles of `rows` rows, two vectors and three steps."""
    assert nest is not None
    kernel = ContractionKernel(nest, Tile(rows, 2, 3), unit().lanes, columns_outside=False)
    return grid_kernel(group, "kernel", unit(), kernel.grid, kernel.iteration, nest.in_place)


def product_code(group: FusedOp, extents_of: ExtentsOf) -> Kernel:
    return code(group, product_nest(group, extents_of), rows=6)


@pytest.mark.parametrize("weight", [f"Ba{2 * unit().lanes}b", "ab"])
def test_product_of_any_number_of_rows(weight: str) -> None:
    shapes = [(ROWS, 20), (20, 37), (1, 37), (ROWS, 37)]
    choice = choice_of("ab", weight, "ab", "ab")
    fixed: Any = (shapes, residual_product, product_code)
    kernel = OpenKernel(*fixed, results=[(ROWS, 37)], choice=choice)
    assert kernel.in_place == ((3, 0),)
    for rows in (*range(14), 97):
        kernel.check(1e-5, rows=rows)


@pytest.fixture(scope="module", params=[1, BATCH], ids=["one right operand", "one a batch"])
def open_product(request: pytest.FixtureRequest) -> OpenKernel:
    """Return a product of which all extents are open."""
    whole = (BATCH, ROWS, COLUMNS)
    shapes = [(BATCH, ROWS, DEPTH), (request.param, DEPTH, COLUMNS), (1, 1, COLUMNS), whole]
    return OpenKernel(shapes, residual_product, product_code, results=[whole])


@pytest.mark.parametrize("depth", [0, 1, 5, 97])
@pytest.mark.parametrize("columns", [0, 1, 7, 31, 32, 37, 131])
def test_product_of_any_sizes(open_product: OpenKernel, depth: int, columns: int) -> None:
    for batch, rows in itertools.product((0, 1, 2, 3), (0, 1, 5, 13)):
        open_product.check(2e-5, batch=batch, rows=rows, depth=depth, columns=columns)


def test_batches_that_share_the_right_operand_are_rows() -> None:
    shapes: Shapes = [(BATCH, ROWS, DEPTH), (1, DEPTH, 37), (1, 1, 37), (BATCH, ROWS, 37)]
    nest = product_nest(*open_group(shapes, residual_product, shapes[-1:]))
    assert nest is not None and not nest.outer and nest.row.extent == BATCH * ROWS


def test_a_long_sum_of_unknown_length_is_added_up_in_parts(open_product: OpenKernel) -> None:
    """Check it with equal numbers, for which a sum one by one is wrong by some percent."""
    left, right = np.full((1, 1, LONG), 0.1, np.float32), np.ones((1, LONG, 1), np.float32)
    result, zero = np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1), np.float32)
    symbols = {"batch": 1, "rows": 1, "depth": LONG, "columns": 1}
    open_product.call(left, right, zero, zero, result, symbols=symbols)
    np.testing.assert_allclose(result[0, 0, 0], LONG * np.float32(0.1), rtol=5e-5)


@pytest.mark.parametrize(
    "shapes",
    [
        [(ROWS, DEPTH), (OTHERS, 37), (1, 37), (ROWS, 37)],
        [(ROWS, DEPTH), (DEPTH, OTHERS), (1, COLUMNS), (ROWS, COLUMNS)],
        [(OTHERS, DEPTH), (DEPTH, 37), (1, 37), (ROWS, 37)],
        [(ROWS, DEPTH), (DEPTH, 37), (OTHERS, 37), (ROWS, 37)],
    ],
)
def test_operands_that_may_not_fit_are_no_contraction(shapes: list[Sequence[Extent]]) -> None:
    assert product_nest(*open_group(shapes, residual_product, shapes[-1:])) is None


def residual_convolution(groups: int, zeros: int = 0) -> Any:
    def build(x: Any, weight: Any, residual: Any) -> Any:
        unpadded = {"pad_low": [0, 0], "pad_high": [0, 0]}
        steps = {"strides": [1, 1], "dilations": [1, 1]}
        conv = ConvOp.get(x, weight, groups=groups, **unpadded, **steps)
        conv.zeros_low = conv.zeros_high = integers([zeros, zeros])
        result = elementwise("add", conv.output, residual)
        return [conv, result], [result.output]

    return build


@pytest.mark.parametrize("layout", ["acdb", "abcd"])
@pytest.mark.parametrize(("taps", "groups", "zeros"), [(1, 1, 0), (3, 1, 1), (3, 2, 1)])
def test_convolution_of_any_number_of_images(
    layout: str, taps: int, groups: int, zeros: int
) -> None:
    def make(group: FusedOp, extents_of: ExtentsOf) -> Kernel:
        found, lanes = convolution(group, is_open=True), unit().lanes
        assert found is not None
        framed = found.windows_with_zeros
        assert any(framed) == (zeros > 0)
        loops = ConvolutionLoops(found, stored_choice(group), lanes, 1, framed, extents_of)
        return code(group, loops.contraction(2 * lanes), rows=4)

    block = 2 * unit().lanes if groups == 1 else 37
    weight = "bcda" if layout == "abcd" else f"Acdb{block}a"
    after = (BATCH, 37 * groups, 8 - taps, 8 - taps)
    shapes = [(BATCH, 3 * groups, 7, 7), (37 * groups, 3, taps, taps), after]
    fixed: Any = (shapes, residual_convolution(groups, zeros), make)
    kernel = OpenKernel(*fixed, results=[after], choice=choice_of(layout, weight, layout))
    for batch in SIZES[:5]:
        x, *others = (
            random_array(open_type([batch if e is BATCH else e for e in shape]), seed)
            for seed, shape in enumerate(shapes)
        )
        if zeros:
            x[:, :, (0, -1)] = x[..., (0, -1)] = 0
        kernel.check(2e-5, [x, *others], batch=batch)
