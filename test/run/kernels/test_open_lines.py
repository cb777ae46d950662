"""Scans, selections and scatters with open dims, at any sizes."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, f16, f32, i32, i64
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.scan import ScanOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.dialects.braid.sized_ops import top_k_of
from braid.dialects.braid.sorting import TopKOp
from braid.lowering.cpu.kernels.arg_reduce import ArgReduceFamily
from braid.lowering.cpu.kernels.scan import ScanFamily
from braid.lowering.cpu.kernels.scatter import ScatterFamily
from braid.lowering.cpu.kernels.top_k import TopKFamily
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, symbol
from test.machines import HOST
from test.run.kernels.open_groups import SIZES, OpenKernel, maker, open_group

ROWS, COLUMNS, LENGTH = symbol("rows"), symbol("columns"), symbol("length")


SCANS = {
    "rows": ((ROWS, LENGTH), 1, "add", f32),
    "rows of halves": ((ROWS, LENGTH), 1, "maximum", f16),
    "3 columns": ((ROWS, LENGTH, 3), 1, "add", i32),
    "40 columns": ((ROWS, LENGTH, 40), 1, "mul", f32),
    "columns": ((ROWS, LENGTH, COLUMNS), 1, "add", f32),
}


@pytest.fixture(scope="module", params=SCANS)
def scans(request: pytest.FixtureRequest) -> list[OpenKernel]:
    shape, dim, kind, type = SCANS[request.param]
    make = maker(ScanFamily(HOST))

    def build(exclusive: bool, reverse: bool) -> Any:
        options = {"exclusive": exclusive, "reverse": reverse}
        return lambda x: ([op := ScanOp.get(x, kind, dim, **options)], [op.output])

    ways = build(False, False), build(True, True)
    return [OpenKernel([shape], way, make, types=[type]) for way in ways]


@pytest.mark.parametrize("length", [0, 1, 2, 61])
def test_scan_of_any_lines(scans: list[OpenKernel], length: int) -> None:
    for scan in scans:
        for rows in (0, 1, 9, 17):
            for columns in (0, 1, 97, 300):
                scan.check(1e-4, rows=rows, length=length, columns=columns)


@pytest.mark.parametrize("extent", [1, 5, 300])
def test_arg_reduction_of_any_number_of_rows(extent: int) -> None:
    kernel = OpenKernel(
        [(ROWS, extent)],
        lambda x: ([op := ArgReduceOp.get(x, "max", 1)], [op.output]),
        maker(ArgReduceFamily(HOST)),
    )
    for rows in SIZES:
        kernel.check(rows=rows)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_selection_of_any_number_of_lines(k: int) -> None:
    kernel = OpenKernel(
        [(ROWS, 300, COLUMNS)],
        lambda x: ([op := TopKOp.get(x, k, 1)], [op.values, op.indices]),
        maker(TopKFamily(HOST)),
        results=[(ROWS, k, COLUMNS)] * 2,
    )
    for rows, columns in ((0, 3), (1, 1), (3, 7), (2, 0)):
        kernel.check(rows=rows, columns=columns)


ui8 = IntegerType(8, Signedness.UNSIGNED)

COUNTS = {"a number": 3, "a size": LENGTH // 2, "all": LENGTH}


def count_in(x: SSAValue, k: Extent) -> Extent:
    length = shape_of(x)[1]
    return k if length == DYNAMIC else evaluate(k, {"length": length})


@pytest.mark.parametrize("type", [f32, f16, i64, ui8], ids=str)
@pytest.mark.parametrize("k", COUNTS.values(), ids=COUNTS)
def test_selection_from_lines_of_any_length(k: Extent, type: Any) -> None:
    """Check blocks that are the whole line, and lines of which several blocks are sorted."""
    results = [(ROWS, k, COLUMNS)] * 2
    for largest in (True, False):
        kernel = OpenKernel(
            [(ROWS, LENGTH, COLUMNS)],
            lambda x, largest=largest: (
                [op := top_k_of(x, count_in(x, k), 1, largest=largest)],
                [op.values, op.indices],
            ),
            maker(TopKFamily(HOST)),
            types=[type],
            results=results,
        )
        for rows, length, columns in ((2, 3, 1), (3, 61, 5), (1, 2600, 2), (0, 9, 1), (2, 9, 0)):
            kernel.check(rows=rows, length=length, columns=columns)


def test_lines_in_descending_order() -> None:
    """Check that the candidates are sorted whenever there are as many as a block has."""
    kernel = OpenKernel(
        [(LENGTH,)],
        lambda x: ([op := top_k_of(x, 7, 0)], [op.values, op.indices]),
        maker(TopKFamily(HOST)),
        results=[(7,)] * 2,
    )
    for length in (1024, 1025, 5000):
        kernel.check(0, [np.arange(length, dtype=np.float32)], length=length)


def test_an_arg_reduction_of_open_lines_is_not_taken() -> None:
    """Check that places of 32 bits are not guessed."""
    group, extents_of = open_group(
        [(ROWS, LENGTH)],
        lambda x: ([o := ArgReduceOp.get(x, "max", 1)], [o.results[0]]),
        [],
    )
    assert ArgReduceFamily(HOST).match(group, extents_of) is None


def slices(reduction: str) -> Any:
    return lambda x, i, u: ([op := ScatterNdOp.get(x, i, u, reduction)], [op.output])


def elements(dim: int) -> Any:
    return lambda x, i, u: ([op := ScatterElementsOp.get(x, i, u, dim, "add")], [op.output])


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatter_of_any_slices(reduction: str) -> None:
    shapes = [(ROWS, COLUMNS), (LENGTH, 1), (LENGTH, COLUMNS)]
    kernel = OpenKernel(
        shapes, slices(reduction), maker(ScatterFamily(HOST)), types=[f32, i64, f32]
    )
    assert kernel.in_place == ((0, 0),)
    numbers = np.random.default_rng(0)
    for rows, length in ((1, 1), (97, 7), (7, 0), (0, 0)):
        for columns in SIZES:
            at = numbers.permutation(max(rows, 1))[:length, None]
            arrays = [random(rows, columns), at, random(length, columns)]
            kernel.check(1e-6, arrays, rows=rows, length=length, columns=columns)


def test_scatter_into_nothing_writes_nothing() -> None:
    shapes = [(ROWS,), (LENGTH, 1), (LENGTH,)]
    kernel = OpenKernel(shapes, slices("add"), maker(ScatterFamily(HOST)), types=[f32, i64, f32])
    sevens = np.full(4, 7, np.float32)
    arrays = [random(0), np.zeros((3, 1), np.int64), random(3)]
    kernel.call(*arrays, sevens, symbols={"rows": 0, "length": 3})
    assert np.all(sevens == 7)


@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_of_any_elements(dim: int) -> None:
    shapes = [(ROWS, COLUMNS), (LENGTH, 5), (LENGTH, 5)]
    kernel = OpenKernel(shapes, elements(dim), maker(ScatterFamily(HOST)), types=[f32, i64, f32])
    numbers = np.random.default_rng(0)
    for rows, columns, length in ((7, 5, 3), (61, 97, 7), (5, 5, 0)):
        at = numbers.integers(-5, 5, (length, 5))
        arrays = [random(rows, columns), at, random(length, 5)]
        kernel.check(1e-5, arrays, rows=rows, length=length, columns=columns)


def random(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)
