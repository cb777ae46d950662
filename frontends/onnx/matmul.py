"""Matrix products."""

from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, matmul, reshape, scalar, swap_last
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer


@importer("MatMul")
def matrix_product(b: Builder, node: Node) -> SSAValue:
    """numpy's matmul.

    Batches of the left operand times one matrix are a single product of more rows.
    """
    lhs, rhs = node.input(0), node.input(1)
    left, right = shape_of(lhs), shape_of(rhs)
    if len(left) <= 2 or len(right) != 2:
        return matmul(b, lhs, rhs)
    rows = 1
    for extent in left[:-1]:
        rows *= extent
    product = matmul(b, reshape(b, lhs, [rows, left[-1]]), rhs)
    return reshape(b, product, [*left[:-1], right[-1]])


@importer("Gemm")
def gemm(b: Builder, node: Node) -> SSAValue:
    """alpha · A' · B' + beta · C."""
    lhs, rhs, bias = node.input(0), node.input(1), node.optional(2)
    if len(shape_of(lhs)) != 2 or len(shape_of(rhs)) != 2:
        node.fail(f"A has rank {len(shape_of(lhs))}, B {len(shape_of(rhs))}, expected 2")
    lhs = swap_last(b, lhs) if node.integer("transA", 0) else lhs
    rhs = swap_last(b, rhs) if node.integer("transB", 0) else rhs
    product = _times(b, node.number("alpha", 1.0), matmul(b, lhs, rhs))
    if bias is None:
        return product
    return apply(b, "add", product, _times(b, node.number("beta", 1.0), bias))


def _times(b: Builder, factor: float, value: SSAValue) -> SSAValue:
    return value if factor == 1 else apply(b, "mul", value, scalar(b, factor, value))
