"""`Det` by Gaussian elimination."""

import math

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.indexing import GatherElementsOp
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, broadcast, reshape, scalar, slice_dim
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer

MOST_ROWS = 32
"""A step of the elimination is about ten ops; larger matrices would make too many."""


@importer("Det")
def determinant(b: Builder, node: Node) -> SSAValue:
    """The product of the pivots of the matrices `[…, n, n]`, with the sign of the row swaps."""
    x = node.input(0)
    *batch, rows, columns = shape_of(x)
    if rows != columns:
        node.fail(f"the matrices are {rows} by {columns}, expected square ones")
    if rows > MOST_ROWS:
        node.unsupported(f"the matrices have {rows} rows, expected at most {MOST_ROWS}")
    matrix = reshape(b, x, [math.prod(batch), rows, rows])
    result = scalar(b, 1, matrix)
    while True:
        matrix, factor = _eliminated(b, matrix)
        result = apply(b, "mul", result, factor)
        if 0 in shape_of(matrix):
            return reshape(b, result, batch)


def _eliminated(b: Builder, matrix: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The matrices without their first column and the row of its pivot, and the signed pivots.

    The pivot is the largest element of the column (Golub and Van Loan, "Matrix Computations",
    partial pivoting); the first row takes the place of its row.
    """
    count, rows, _ = shape_of(matrix)
    column = slice_dim(b, matrix, 2, 0, 1)
    place = b.emit(ArgReduceOp.get(apply(b, "abs", column), "max", 1))
    pivot_row = b.emit(GatherElementsOp.get(matrix, broadcast(b, place, [count, 1, rows]), 1))
    is_pivot = apply(b, "eq", b.emit(IotaOp.of(1, TensorType(i64, [count, rows, 1]))), place)
    swapped = apply(b, "select", is_pivot, slice_dim(b, matrix, 1, 0, 1), matrix)
    rest = slice_dim(b, swapped, 1, 1, rows - 1)
    pivot = slice_dim(b, pivot_row, 2, 0, 1)
    stays = apply(b, "eq", place, b.constant(np.zeros([1, 1, 1], np.int64)))
    signed = apply(b, "select", stays, pivot, apply(b, "neg", pivot))
    is_zero = apply(b, "eq", pivot, scalar(b, 0, pivot))
    divisor = apply(b, "select", is_zero, scalar(b, 1, pivot), pivot)
    factors = apply(b, "div", slice_dim(b, rest, 2, 0, 1), divisor)
    taken = apply(b, "mul", factors, slice_dim(b, pivot_row, 2, 1, rows - 1))
    return apply(b, "sub", slice_dim(b, rest, 2, 1, rows - 1), taken), signed
