"""Transposes, paddings, concatenations and known gathers with open dims, at any sizes."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f16, f32, f64, i8, i64

from braid.analysis.nests.concat import concat_nest
from braid.analysis.nests.permutation import movement, movement_nest
from braid.analysis.nests.runs import known_gather_nest
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.movement import ConcatOp, PadOp, ReshapeOp, TransposeOp
from braid.lowering.cpu.kernels.concat import ConcatFamily
from braid.lowering.cpu.kernels.known_gather import KnownGatherFamily
from braid.lowering.cpu.kernels.movement import MovementFamily
from braid.lowering.cpu.kernels.pad import PadFamily
from braid.support.sizes.expression import symbol
from test.machines import HOST
from test.run.kernels.open_groups import SIZES, OpenKernel, maker, open_group

ROWS, COLUMNS, LENGTH = symbol("rows"), symbol("columns"), symbol("length")


PADDINGS = {
    "rows": ((ROWS, COLUMNS), (1, 0), (2, 0), f32),
    "both": ((ROWS, COLUMNS), (1, 2), (0, 3), f32),
    "columns": ((ROWS, COLUMNS), (0, 5), (0, 0), i8),
    "images": ((2, ROWS, COLUMNS, 3), (0, 1, 1, 0), (0, 1, 1, 0), f16),
}


@pytest.fixture(scope="module", params=PADDINGS)
def padding(request: pytest.FixtureRequest) -> OpenKernel:
    shape, low, high, type = PADDINGS[request.param]
    result = [n + before + after for n, before, after in zip(shape, low, high, strict=True)]
    return OpenKernel(
        [shape],
        lambda x: ([op := PadOp.get(x, low, high, 3.0)], [op.output]),
        maker(PadFamily(HOST)),
        results=[result],
        types=[type],
    )


@pytest.mark.parametrize("rows", [0, 1, 5, 17])
def test_padding_of_any_sizes(padding: OpenKernel, rows: int) -> None:
    for columns in SIZES:
        padding.check(rows=rows, columns=columns)


CONCATENATIONS = {
    "rows": ([(ROWS, COLUMNS), (LENGTH, COLUMNS)], 0),
    "columns": ([(ROWS, COLUMNS), (ROWS, 3000), (ROWS, LENGTH)], 1),
    "inner": ([(ROWS, 2, COLUMNS, 5), (ROWS, 2, LENGTH, 5)], 2),
}


@pytest.fixture(scope="module", params=CONCATENATIONS)
def concatenation(request: pytest.FixtureRequest) -> OpenKernel:
    shapes, dim = CONCATENATIONS[request.param]
    result = [*shapes[0]]
    result[dim] = sum(shape[dim] for shape in shapes)
    return OpenKernel(
        shapes,
        lambda *values: ([op := ConcatOp.get(values, dim)], [op.results[0]]),
        maker(ConcatFamily(HOST)),
        results=[result],
    )


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_concatenation_of_any_sizes(concatenation: OpenKernel, rows: int) -> None:
    """Check pieces of none, few and many elements, which are copied in chunks of 16384."""
    for columns in (0, 1, 97):
        for length in (0, 1, 131, 40009):
            if columns == 97 and length > 40000 and rows < 2:
                length = 409
            concatenation.check(rows=rows, columns=columns, length=length)


def test_operands_of_other_lengths_are_not_concatenated() -> None:
    """Check that dims of different names are not taken for equal."""
    group, extents_of = open_group(
        [(ROWS, COLUMNS), (LENGTH, COLUMNS)],
        lambda x, y: ([op := ConcatOp.get([x, y], 1)], [op.results[0]]),
        [(ROWS, 2 * COLUMNS)],
    )
    assert concat_nest(group, extents_of) is None


def gathered(*steps: tuple[int, Any]) -> Any:
    def build(x: Any) -> Any:
        ops: list[Any] = []
        for dim, positions in steps:
            constant = ConstantOp.of(np.array(positions, np.int64))
            gather = GatherOp.get(x, constant.output, dim)
            ops += [constant, gather]
            x = gather.output
        return ops, [x]

    return build


GATHERS = {
    "mirrored": ((ROWS, 5, COLUMNS), [(1, [1, 0, 1, 2, 3, 4, 3])], (ROWS, 7, COLUMNS)),
    "one": ((ROWS, 5, COLUMNS), [(1, [3])], (ROWS, 1, COLUMNS)),
    "two dims": ((3, COLUMNS, 4), [(0, [0, 2, 1]), (2, [1, 2])], (3, COLUMNS, 2)),
    "innermost": ((ROWS, COLUMNS, 4), [(2, [3, 2, 1, 0, 0])], (ROWS, COLUMNS, 5)),
}


@pytest.fixture(scope="module", params=GATHERS)
def gather(request: pytest.FixtureRequest) -> OpenKernel:
    shape, steps, result = GATHERS[request.param]
    make = maker(KnownGatherFamily(HOST))
    return OpenKernel([shape], gathered(*steps), make, results=[result], types=[f64])


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_known_gather_among_open_dims(gather: OpenKernel, rows: int) -> None:
    for columns in SIZES:
        gather.check(rows=rows, columns=columns)


def test_positions_along_an_open_dim_are_not_known() -> None:
    """Check that a gather is not taken along a dim whose length decides what is inside."""
    group, extents_of = open_group([(ROWS, COLUMNS)], gathered((0, [0, -1])), [(2, COLUMNS)])
    assert known_gather_nest(group, extents_of) is None


def moved(*steps: Any) -> Any:
    """Build a chain of transposes (tuples), and of reshapes (functions of the shape)."""

    def build(x: Any) -> Any:
        ops: list[Any] = []
        for step in steps:
            if isinstance(step, tuple):
                op = TransposeOp.get(x, step)
            else:
                type = TensorType(x.type.element_type, step(list(x.type.get_shape())))
                op = ReshapeOp.create(operands=[x], result_types=[type])
            ops.append(op)
            x = op.results[0]
        return ops, [x]

    return build


def shuffled() -> Any:
    """Build a shuffle of channels: 6 of them, in 2 groups."""
    apart = lambda shape: [shape[0], 2, 3, *shape[2:]]  # noqa: E731
    together = lambda shape: [shape[0], 6, *shape[3:]]  # noqa: E731
    return moved(apart, (0, 2, 1, 3, 4), together)


MOVEMENTS: dict[str, Any] = {
    "transpose": ([(ROWS, COLUMNS)], moved((1, 0)), (COLUMNS, ROWS)),
    "halves": ([(ROWS, COLUMNS)], moved((1, 0)), (COLUMNS, ROWS), f16),
    "few lines": ([(3, COLUMNS)], moved((1, 0)), (COLUMNS, 3)),
    "few columns": ([(COLUMNS, 5)], moved((1, 0)), (5, COLUMNS)),
    "40 columns": ([(ROWS, COLUMNS, 40)], moved((0, 2, 1)), (ROWS, 40, COLUMNS)),
    "heads": ([(ROWS, COLUMNS, 4, 8)], moved((0, 2, 1, 3)), (ROWS, 4, COLUMNS, 8)),
    "keys": ([(ROWS, COLUMNS, 4, 8)], moved((0, 2, 3, 1)), (ROWS, 4, 8, COLUMNS)),
    "plain": ([(ROWS, 1, COLUMNS)], moved((1, 0, 2)), (1, ROWS, COLUMNS), i64),
    "shuffle": ([(1, 6, ROWS, COLUMNS)], shuffled(), (1, 6, ROWS, COLUMNS)),
}


@pytest.fixture(scope="module", params=MOVEMENTS)
def movement_of(request: pytest.FixtureRequest) -> OpenKernel:
    shapes, build, result, *types = MOVEMENTS[request.param]
    inside = [(1, 2, 3, ROWS, COLUMNS), (1, 3, 2, ROWS, COLUMNS)]
    return OpenKernel(
        shapes,
        build,
        maker(MovementFamily(HOST)),
        results=[result],
        types=types or None,
        inside=inside,
    )


@pytest.mark.parametrize("rows", [0, 1, 7, 64, 97])
def test_movement_of_any_sizes(movement_of: OpenKernel, rows: int) -> None:
    for columns in SIZES:
        movement_of.check(0, rows=rows, columns=columns)


def test_an_unknown_split_is_no_movement() -> None:
    """Check that a dim is not treated as a product of others if it may differ."""
    group, extents_of = open_group(
        [(ROWS, COLUMNS)],
        moved(lambda _: [DYNAMIC], (0,)),
        [(LENGTH,)],
    )
    assert movement(group, extents_of) is None


def test_open_dims_that_are_joined_are_known() -> None:
    group, extents_of = open_group(
        [(ROWS, COLUMNS, 3)],
        moved(lambda _: [DYNAMIC, 3], (1, 0)),
        [(3, ROWS * COLUMNS)],
        inside=[(ROWS * COLUMNS, 3)],
    )
    found = movement(group, extents_of)
    assert found is not None
    nest = movement_nest(found, Layout.row_major(3), Layout.row_major(2))
    assert nest is not None
    assert [dim.extent for dim in nest] == [3, ROWS * COLUMNS]
