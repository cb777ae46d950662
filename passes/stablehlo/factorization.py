"""Factors of matrices: Cholesky's, and LU with partial pivoting."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.indexing import GatherElementsOp
from braid.dialects.braid.matmul import MatmulOp
from braid.passes.conversion.control_flow import counted_loop
from braid.passes.stablehlo.matrices import (
    compared,
    counted,
    line,
    stacked,
    swapped,
    unstacked,
)
from braid.passes.stablehlo.node import StablehloNode, converter

_INFO = IntegerType(32)


@converter("cholesky")
def cholesky(t: StablehloNode) -> SSAValue:
    """Return the triangular factor, with zeros in the other triangle."""
    matrices = stacked(t, t.value(0))
    factor, _ = _cholesky(t, matrices, lower=t.flag("lower"))
    return unstacked(t, factor, t.value(0))


def lapack_potrf(t: StablehloNode) -> Sequence[SSAValue]:
    """Convert JAX's call of LAPACK: the factor over a triangle of the operand, and which leading
    minor is the first that is not positive, 0 if all are.
    """
    matrices, lower = stacked(t, t.value(0)), t.letter("uplo", "LU") == "L"
    factor, info = _cholesky(t, matrices, lower=lower)
    rows = shape_of(matrices)[1]
    direction = "ge" if lower else "le"
    is_in_it = t.apply(direction, counted(t, rows, 1), counted(t, rows, 2))
    kept = t.apply("select", is_in_it, factor, matrices)
    batch = t.numbers(t.value(0))[:-2]
    return [unstacked(t, kept, t.value(0)), t.reshape(t.cast(info, _INFO), batch)]


def _cholesky(t: StablehloNode, matrices: SSAValue, *, lower: bool) -> tuple[SSAValue, SSAValue]:
    """Return the factors, row by row of the upper one, and the first minor that was not positive.

    The rows above give the terms subtracted from a row (Golub and Van Loan, "Matrix Computations",
    4.2.5).
    """
    count, rows, columns = shape_of(matrices)
    if rows != columns:
        t.fail(f"its matrices are {rows} by {columns}, expected square ones")
    upper = swapped(t, matrices) if lower else matrices

    def next_row(place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        factor, info = carried
        above = swapped(t, line(t, factor, place, 2))
        rest = t.apply("sub", line(t, upper, place, 1), t.emit(MatmulOp.on(above, factor)))
        pivot = line(t, rest, place, 2)
        row = t.apply("div", rest, t.apply("sqrt", pivot))
        right = compared(t, "ge", factor, place, 2)
        row = t.apply("select", right, row, t.scalar(0, row))
        factor = t.apply("select", compared(t, "eq", factor, place, 1), row, factor)
        return [factor, _first_failure(t, info, place, t.apply("gt", pivot, t.scalar(0, pivot)))]

    zeros = t.broadcast(t.scalar(0, upper), [count, rows, rows])
    none = t.broadcast(t.constant(np.zeros([1, 1, 1], np.int64)), [count, 1, 1])
    factor, info = counted_loop(t, rows, [zeros, none], next_row)
    return (swapped(t, factor) if lower else factor), info


def _first_failure(
    t: StablehloNode, info: SSAValue, place: SSAValue, is_right: SSAValue
) -> SSAValue:
    """Return `info`, or the number of this step from 1 on if it is the first that is not right."""
    zero, one = t.scalar(0, info), t.scalar(1, info)
    number = t.apply("add", t.reshape(place, [1, 1, 1]), one)
    is_first = t.apply("and", t.apply("eq", info, zero), t.apply("not", is_right))
    return t.apply("select", is_first, number, info)


def lapack_getrf(t: StablehloNode) -> Sequence[SSAValue]:
    """Convert JAX's call of LAPACK: both factors in one matrix, the row that each was swapped with
    from 1 on, and the first pivot that is 0.
    """
    matrices = stacked(t, t.value(0))
    count, rows, columns = shape_of(matrices)
    steps = min(rows, columns)

    def eliminate(place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Swap the largest pivot up, and take its row from those below."""
        matrix, pivots, info = carried
        column = t.apply("abs", line(t, matrix, place, 2))
        is_left = compared(t, "ge", matrix, place, 1)
        candidates = t.apply("select", is_left, column, t.scalar(-1, column))
        best = t.emit(ArgReduceOp.get(candidates, "max", 1))
        matrix = _swapped_rows(t, matrix, place, best)
        row, column = line(t, matrix, place, 1), line(t, matrix, place, 2)
        pivot = line(t, row, place, 2)
        is_zero = t.apply("eq", pivot, t.scalar(0, pivot))
        divisor = t.apply("select", is_zero, t.scalar(1, pivot), pivot)
        factors = t.apply("div", column, divisor)
        is_below = compared(t, "gt", matrix, place, 1)
        is_right = compared(t, "gt", matrix, place, 2)
        reduced = t.apply("sub", matrix, t.apply("mul", factors, row))
        inner = t.apply("select", is_right, reduced, matrix)
        is_column = compared(t, "eq", matrix, place, 2)
        inner = t.apply("select", is_column, factors, inner)
        matrix = t.apply("select", is_below, inner, matrix)
        number = t.apply("add", best, t.scalar(1, best))
        pivots = t.apply("select", compared(t, "eq", pivots, place, 1), number, pivots)
        return [matrix, pivots, _first_failure(t, info, place, t.apply("not", is_zero))]

    zero = t.constant(np.zeros([1, 1, 1], np.int64))
    starts = [t.broadcast(zero, [count, n, 1]) for n in (steps, 1)]
    matrix, pivots, info = counted_loop(t, steps, [matrices, *starts], eliminate)
    batch = t.numbers(t.value(0))[:-2]
    return [
        unstacked(t, matrix, t.value(0)),
        t.reshape(t.cast(pivots, _INFO), [*batch, steps]),
        t.reshape(t.cast(info, _INFO), batch),
    ]


def _swapped_rows(t: StablehloNode, matrix: SSAValue, place: SSAValue, other: SSAValue) -> SSAValue:
    """Return matrices with two rows swapped; one of these is the same row in all matrices."""
    shape = shape_of(matrix)
    here, rows = t.reshape(place, [1, 1, 1]), counted(t, shape[1], 1)
    at_other = t.apply("select", t.apply("eq", rows, other), here, rows)
    order = t.apply("select", t.apply("eq", rows, here), other, at_other)
    return t.emit(GatherElementsOp.get(matrix, t.broadcast(order, shape), 1))
