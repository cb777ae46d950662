"""Matrix products and `Det`."""

import math

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.indexing import GatherElementsOp
from braid.dialects.braid.size_evaluation import fixed_shape
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    matmul,
    reshape,
    scalar,
    slice_dim,
    swap_last,
    widened,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer


@importer("MatMul")
def matrix_product(b: Builder, node: Node) -> SSAValue:
    """Import numpy's matmul.

    Batches of the left operand times one matrix are a single product of more rows.
    """
    lhs, rhs = node.input(0), node.input(1)
    left, right = extents_of(lhs), extents_of(rhs)
    if len(left) <= 2 or len(right) != 2:
        return matmul(b, lhs, rhs)
    rows = 1
    for extent in left[:-1]:
        rows *= extent
    product = matmul(b, reshape(b, lhs, [rows, left[-1]]), rhs)
    return reshape(b, product, [*left[:-1], right[-1]])


@importer("Gemm")
def gemm(b: Builder, node: Node) -> SSAValue:
    """Import `Gemm` as alpha · A' · B' + beta · C."""
    lhs, rhs, bias = node.input(0), node.input(1), node.optional(2)
    if len(extents_of(lhs)) != 2 or len(extents_of(rhs)) != 2:
        node.fail(f"A has rank {len(extents_of(lhs))}, B {len(extents_of(rhs))}, expected 2")
    lhs = swap_last(b, lhs) if node.integer("transA", 0) else lhs
    rhs = swap_last(b, rhs) if node.integer("transB", 0) else rhs
    product = matmul(b, lhs, rhs)
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if alpha == beta == 1:
        return product if bias is None else apply(b, "add", product, bias)
    total = _times(b, alpha, product)
    if bias is not None:
        total = apply(b, "add", total, _times(b, beta, bias))
    return cast(b, total, element_type_of(product))


def _times(b: Builder, factor: float, value: SSAValue) -> SSAValue:
    """Return factor · value.

    For 16-bit floats it is computed in f32, so that the factor need not be rounded.
    """
    wide = widened(b, value)
    return wide if factor == 1 else apply(b, "mul", wide, scalar(b, factor, wide))


MOST_ROWS = 32
"""A step of the elimination is about ten ops; larger matrices would make too many."""


@importer("Det")
def determinant(b: Builder, node: Node) -> SSAValue:
    """Import the product of the pivots of matrices `[…, n, n]`, with the sign of the row swaps."""
    x = node.input(0)
    *batch, rows, columns = fixed_shape(x)
    if rows != columns:
        node.fail(f"the matrices are {rows} by {columns}, expected square ones")
    if rows > MOST_ROWS:
        node.unsupported(f"the matrices have {rows} rows, expected at most {MOST_ROWS}")
    matrix = reshape(b, x, [math.prod(batch), rows, rows])
    result = scalar(b, 1, matrix)
    while True:
        matrix, factor = _eliminated(b, matrix)
        result = apply(b, "mul", result, factor)
        if 0 in extents_of(matrix):
            return reshape(b, result, batch)


def _eliminated(b: Builder, matrix: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Eliminate a column: return the matrices left, and the signed pivots.

    The remaining matrix has neither the first column nor the row of its pivot. The pivot is the
    largest element of the column (Golub and Van Loan, "Matrix Computations", partial pivoting); the
    first row takes the place of its row.
    """
    count, rows, _ = fixed_shape(matrix)
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
