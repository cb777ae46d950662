"""Softmax, layer normalization and reductions with open dims, at any sizes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, f32, f64, i64
from xdsl.ir import Attribute

from braid.dialects.braid.base import integer
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.reduction import ReduceOp
from braid.lowering.cpu.kernels.normalization import NormalizationFamily
from braid.lowering.cpu.kernels.reduction import ReductionFamily
from braid.support.sizes.expression import symbol
from test.machines import HOST
from test.run.kernels.open_groups import SIZES, OpenKernel, maker

LONG = 3_000_017
REDUCTION = maker(ReductionFamily(HOST))
NORMALIZATION = maker(NormalizationFamily(HOST))
ROWS, COLUMNS, LENGTH = symbol("rows"), symbol("columns"), symbol("length")


def softmax(dim: int) -> Any:
    return lambda x: ([op := SoftmaxOp.get(x, dim)], [op.output])


def layer_norm(first_dim: int) -> Any:
    """Build one of open rows, which the op does not verify."""

    def build(x: Any, scale: Any, bias: Any) -> Any:
        attributes = {"first_dim": integer(first_dim), "epsilon": FloatAttr(1e-5, f64)}
        op = LayerNormOp.create(
            operands=[x, scale, bias], result_types=[x.type], attributes=attributes
        )
        return [op], [op.output]

    return build


@pytest.fixture(scope="module", params=[f32, f64], ids=["f32", "f64"])
def softmax_of_rows(request: pytest.FixtureRequest) -> OpenKernel:
    kind: Attribute = request.param
    return OpenKernel([(ROWS, LENGTH)], softmax(1), NORMALIZATION, types=[kind])


@pytest.mark.parametrize("length", [*SIZES, 300, 4099, 70001])
def test_softmax_of_any_rows(softmax_of_rows: OpenKernel, length: int) -> None:
    for rows in (0, 1, 5):
        softmax_of_rows.check(rows=rows, length=length)


def test_softmax_of_any_number_of_known_rows() -> None:
    kernel = OpenKernel([(ROWS, 37)], softmax(1), NORMALIZATION)
    for rows in SIZES:
        kernel.check(rows=rows)


@pytest.fixture(scope="module", params=[2, 5, 37, COLUMNS], ids=str)
def softmax_down(request: pytest.FixtureRequest) -> OpenKernel:
    return OpenKernel([(ROWS, LENGTH, request.param)], softmax(1), NORMALIZATION)


@pytest.mark.parametrize("length", [0, 1, 13, 97])
def test_softmax_down_any_columns(softmax_down: OpenKernel, length: int) -> None:
    for columns in SIZES:
        softmax_down.check(rows=3, length=length, columns=columns)


@pytest.fixture(scope="module", params=["elements", "sections", "one number", "rows"])
def layer_norm_of_rows(request: pytest.FixtureRequest) -> OpenKernel:
    scale: Any = {
        "elements": (1, COLUMNS, LENGTH),
        "sections": (1, COLUMNS, 1),
        "one number": (1, 1, 1),
        "rows": (ROWS, COLUMNS, 1),
    }[request.param]
    return OpenKernel([(ROWS, COLUMNS, LENGTH), scale, scale], layer_norm(1), NORMALIZATION)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize("length", [0, 1, 2, 17, 300])
@pytest.mark.parametrize("columns", [0, 1, 7])
def test_layer_norm_of_any_rows(layer_norm_of_rows: OpenKernel, columns: int, length: int) -> None:
    for rows in (0, 1, 3):
        layer_norm_of_rows.check(2e-5, rows=rows, columns=columns, length=length)


def test_sums_of_a_long_open_row_are_added_up_in_parts() -> None:
    kernel = OpenKernel([(ROWS, LENGTH), (1, 1), (1, 1)], layer_norm(1), NORMALIZATION)
    tenths, one, zero = (np.full(n, x, np.float32) for n, x in ((LONG, 0.1), (1, 1), (1, 0)))
    arrays = [tenths[None], one[None], zero[None]]
    kernel.check(1e-3, arrays, rows=1, length=LONG)


def reduced(kind: str, dims: Sequence[int]) -> Any:
    return lambda x: ([op := ReduceOp.get(x, kind, dims)], [op.output])


def with_neighbours(x: Any, y: Any, bias: Any) -> Any:
    """Build a maximum of differences, to which one number a row is added."""
    difference = elementwise("sub", x, y)
    largest = ReduceOp.get(difference.output, "maximum", (1,))
    result = elementwise("add", largest.output, bias)
    return [difference, largest, result], [result.output]


REDUCTIONS = {
    "rows": ((ROWS, LENGTH), (1,), "add", f32),
    "rows of integers": ((ROWS, LENGTH), (1,), "maximum", i64),
    "rows of doubles": ((ROWS, LENGTH), (1,), "add", f64),
    "rows of 40": ((ROWS, 40), (1,), "minimum", f32),
    "rows of 3": ((ROWS, 3), (1,), "add", f32),
    "columns": ((LENGTH, COLUMNS), (0,), "maximum", f32),
    "37 columns": ((LENGTH, 37), (0,), "add", f32),
    "columns of images": ((ROWS, LENGTH, COLUMNS), (1,), "add", f32),
    "channels": ((ROWS, COLUMNS, LENGTH), (0, 2), "add", f32),
    "all": ((ROWS, LENGTH), (0, 1), "add", f32),
}


@pytest.fixture(scope="module", params=REDUCTIONS)
def reduction_of(request: pytest.FixtureRequest) -> OpenKernel:
    shape, dims, kind, type = REDUCTIONS[request.param]
    result = [1 if dim in dims else extent for dim, extent in enumerate(shape)]
    return OpenKernel([shape], reduced(kind, dims), REDUCTION, results=[result], types=[type])


@pytest.mark.parametrize("length", [0, 1, 3, 16, 97, 300, 4099])
def test_reduction_of_any_sizes(reduction_of: OpenKernel, length: int) -> None:
    for rows in (0, 1, 4, 13):
        for columns in (0, 1, 37, 300):
            bound = 2e-6 * ((rows + 1) * (length + 1)) ** 0.5
            reduction_of.check(bound, rows=rows, length=length, columns=columns)


def test_reduction_with_ops_before_and_after_it() -> None:
    shapes = [(ROWS, LENGTH), (1, LENGTH), (ROWS, 1)]
    kernel = OpenKernel(shapes, with_neighbours, REDUCTION, results=[(ROWS, 1)])
    for length in (1, 5, 64, 97, 1000):
        for rows in (0, 1, 6):
            kernel.check(rows=rows, length=length)


def test_sums_down_long_open_columns_are_added_up_in_parts() -> None:
    kernel = OpenKernel(
        [(LENGTH, COLUMNS)], reduced("add", (0,)), REDUCTION, results=[(1, COLUMNS)]
    )
    tenths = np.full((LONG, 2), 0.1, np.float32)
    kernel.check(3e-5, [tenths], length=LONG, columns=2)
