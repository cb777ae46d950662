"""Systems of linear equations with triangular matrices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.matmul import MatmulOp
from braid.passes.conversion.control_flow import counted_loop
from braid.passes.stablehlo.matrices import compared, line, stacked, swapped, unstacked
from braid.passes.stablehlo.node import StablehloNode, converter


@dataclass(frozen=True)
class _System:
    """Which system `a` and `b` are: `op(a) · x = b`, or `x · op(a) = b` if not `is_left`."""

    is_left: bool
    is_lower: bool
    is_transposed: bool
    has_unit_diagonal: bool


@converter("triangular_solve")
def triangular_solve(t: StablehloNode) -> SSAValue:
    """Substitute row by row."""
    transpose = t.text("transpose_a", "NO_TRANSPOSE")
    system = _System(
        t.flag("left_side"), t.flag("lower"), transpose != "NO_TRANSPOSE", t.flag("unit_diagonal")
    )
    return _solved(t, system, t.value(0), t.value(1))


def lapack_trsm(t: StablehloNode) -> Sequence[SSAValue]:
    """Convert JAX's call of LAPACK, whose options are letters."""
    system = _System(
        t.letter("side", "LR") == "L",
        t.letter("uplo", "LU") == "L",
        t.letter("trans_x", "NTC") != "N",
        t.letter("diag", "NU") == "U",
    )
    return [_solved(t, system, t.value(0), t.value(1))]


def _solved(t: StablehloNode, system: _System, a: SSAValue, b: SSAValue) -> SSAValue:
    matrix, right = stacked(t, a), stacked(t, b)
    if system.is_transposed == system.is_left:
        matrix = swapped(t, matrix)
    if not system.is_left:
        right = swapped(t, right)
    is_lower = system.is_lower != (system.is_transposed == system.is_left)
    (count, rows, columns), known = shape_of(matrix), shape_of(right)
    if rows != columns or known[:2] != (count, rows):
        t.fail(f"its operands have types {a.type} and {b.type}, expected square matrices that fit")

    def substitute(number: SSAValue, solved: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Compute the next row from those before it; the matrix has the factors."""
        last = t.constant(np.array(rows - 1, np.int64))
        place = number if is_lower else t.apply("sub", last, number)
        factors = line(t, matrix, place, 1)
        is_solved = compared(t, "lt" if is_lower else "gt", matrix, place, 2)
        before = t.apply("select", is_solved, factors, t.scalar(0, factors))
        row = t.apply("sub", line(t, right, place, 1), t.emit(MatmulOp.on(before, solved[0])))
        if not system.has_unit_diagonal:
            row = t.apply("div", row, line(t, factors, place, 2))
        return [t.apply("select", compared(t, "eq", right, place, 1), row, solved[0])]

    zeros = t.broadcast(t.scalar(0, right), known)
    (solution,) = counted_loop(t, rows, [zeros], substitute)
    return unstacked(t, solution if system.is_left else swapped(t, solution), b)
