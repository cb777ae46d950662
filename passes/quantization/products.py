"""Convolutions and matrix products of dequantized operands."""

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.quantization import DequantizeOp
from braid.passes.quantization.emitter import Emitter, is_single
from braid.passes.quantization.integer_products import (
    Quantized,
    centered_operand,
    integer_product,
    is_sum_of_bytes,
)
from braid.passes.quantization.known_numbers import KnownNumbers


def rewrite_product(
    op: TensorOp, rewriter: PatternRewriter, known: KnownNumbers
) -> SSAValue | None:
    """Replace a product by an int8 product in i32, dequantized afterwards if it was of real
    numbers.

    For convolutions, and products with known weights, only the sum over the computed operand.
    """
    if not isinstance(op, ConvOp | MatmulOp) or op.accumulator is not None:
        return None
    left, right = op.operands
    is_known = known.is_known(right)
    if (is_known and known.is_known(left)) or (isinstance(op, ConvOp) and not is_known):
        return None
    if element_type_of(left) == i32:
        return _centered_product(op, rewriter, is_known)
    x, w = left.owner, right.owner
    if not isinstance(x, DequantizeOp) or not isinstance(w, DequantizeOp):
        return None
    numbers = [Quantized(value.operands[0], value.operands[2]) for value in (x, w)]
    scales = x.operands[1], w.operands[1]
    if not all(map(known.is_scale, scales)) or not known.have_product(*scales):
        return None
    if not run_together(x, op) or not _is_per_result(op, *scales):
        return None
    if not is_sum_of_bytes(op, numbers[0], numbers[1]):
        return None
    emit = Emitter(op, rewriter)
    product = integer_product(emit, op, numbers[0], numbers[1], is_known)
    scale = emit.apply("mul", scales[0], _per_column(emit, op, scales[1]))
    return emit.insert(DequantizeOp.on(product, scale, emit.number(0, product)))


def _centered_product(
    op: ConvOp | MatmulOp, rewriter: PatternRewriter, is_known: bool
) -> SSAValue | None:
    left, right = map(centered_operand, op.operands)
    if left is None or right is None or not is_sum_of_bytes(op, left, right):
        return None
    return integer_product(Emitter(op, rewriter), op, left, right, is_known)


def _is_per_result(op: ConvOp | MatmulOp, left: SSAValue, right: SSAValue) -> bool:
    """Return whether all products that are added up have one scale."""
    if isinstance(op, ConvOp):
        return is_single(left) and all(extent == 1 for extent in shape_of(right)[1:])
    return shape_of(left)[-1] == 1 and shape_of(right)[-2] == 1


def _per_column(emit: Emitter, op: ConvOp | MatmulOp, scale: SSAValue) -> SSAValue:
    """Return the scale of the weights in the shape of the result."""
    if isinstance(op, MatmulOp):
        return scale
    shape = shape_of(scale)
    return emit.reshape(scale, (1, shape[0], *(1 for _ in shape[2:])))
