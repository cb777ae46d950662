"""QR factors by Householder's reflections, as LAPACK stores and applies them."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.reduction import ReduceOp
from braid.passes.conversion.control_flow import counted_loop
from braid.passes.stablehlo.bits import is_negative
from braid.passes.stablehlo.matrices import compared, line, stacked, swapped, unstacked
from braid.passes.stablehlo.node import StablehloNode


def lapack_geqrf(t: StablehloNode) -> Sequence[SSAValue]:
    """Convert JAX's call of LAPACK: the upper factor over the reflections, and their factors.

    Golub and Van Loan, "Matrix Computations", 5.2.1.
    """
    matrices = stacked(t, t.value(0))
    count, rows, columns = shape_of(matrices)
    steps = min(rows, columns)

    def reflect(place: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Reflect a column to its first element, and the columns after it with it."""
        matrix, factors = carried
        column = line(t, matrix, place, 2)
        first = line(t, column, place, 1)
        is_below = compared(t, "gt", matrix, place, 1)
        below = t.apply("select", is_below, column, t.scalar(0, column))
        squares = t.emit(ReduceOp.get(t.apply("mul", below, below), "add", [1]))
        is_done = t.apply("eq", squares, t.scalar(0, squares))
        size = t.apply("sqrt", t.apply("add", t.apply("mul", first, first), squares))
        reflected = t.apply("select", is_negative(t, first), size, t.apply("neg", size))
        # A column that is reflected already stays as it is.
        one, zero = t.scalar(1, first), t.scalar(0, first)
        pivot = t.apply("select", is_done, first, reflected)
        divisor = t.apply("select", is_done, one, t.apply("sub", first, pivot))
        quotient = t.apply("div", t.apply("sub", pivot, first), reflected)
        factor = t.apply("select", is_done, zero, quotient)
        direction = _direction(t, t.apply("div", below, divisor), place)
        moved = _reflected(t, matrix, direction, factor)
        is_after = compared(t, "gt", matrix, place, 2)
        is_column = compared(t, "eq", matrix, place, 2)
        is_first = compared(t, "eq", matrix, place, 1)
        own = t.apply("select", is_first, pivot, t.apply("select", is_below, direction, column))
        matrix = t.apply("select", is_after, moved, t.apply("select", is_column, own, matrix))
        is_next = compared(t, "eq", factors, place, 1)
        return [matrix, t.apply("select", is_next, factor, factors)]

    zeros = t.broadcast(t.scalar(0, matrices), [count, steps, 1])
    matrix, factors = counted_loop(t, steps, [matrices, zeros], reflect)
    batch = t.numbers(t.value(0))[:-2]
    kind = t.op.results[1]
    return [
        unstacked(t, matrix, t.value(0)),
        t.cast(t.reshape(factors, [*batch, steps]), element_type_of(kind)),
    ]


def lapack_orgqr(t: StablehloNode) -> Sequence[SSAValue]:
    """Convert JAX's call of LAPACK: the orthogonal factor, as many columns as reflections have."""
    reflections = stacked(t, t.value(0))
    count, rows, columns = shape_of(reflections)
    steps = t.numbers(t.value(1))[-1]
    factors = t.cast(t.reshape(t.value(1), [count, steps, 1]), element_type_of(reflections))
    identity = t.constant(np.eye(rows, columns, dtype=np.float32)[None])
    start = t.broadcast(t.cast(identity, element_type_of(reflections)), [count, rows, columns])
    last = t.constant(np.array(steps - 1, np.int64))

    def apply(number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Apply the last reflection first."""
        place = t.apply("sub", last, number)
        column = line(t, reflections, place, 2)
        below = compared(t, "gt", reflections, place, 1)
        kept = t.apply("select", below, column, t.scalar(0, column))
        direction = _direction(t, kept, place)
        return [_reflected(t, carried[0], direction, line(t, factors, place, 1))]

    (found,) = counted_loop(t, steps, [start], apply)
    return [unstacked(t, found, t.value(0))]


def _direction(t: StablehloNode, below: SSAValue, place: SSAValue) -> SSAValue:
    """Return a column with 1 at `place`, over the elements below it."""
    is_first = compared(t, "eq", below, place, 1)
    return t.apply("select", is_first, t.scalar(1, below), below)


def _reflected(
    t: StablehloNode, matrix: SSAValue, direction: SSAValue, factor: SSAValue
) -> SSAValue:
    """Return `A - factor · v · (vᵀ · A)`."""
    along = t.emit(MatmulOp.on(swapped(t, direction), matrix))
    scaled = t.apply("mul", factor, direction)
    return t.apply("sub", matrix, t.apply("mul", scaled, along))
