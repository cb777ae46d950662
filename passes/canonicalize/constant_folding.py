"""Folding of tensor ops whose operands are constants, by the ops' own semantics."""

import math

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import dense_from_numpy, is_stored_only, numpy_from_dense
from braid.dialects.braid.layout import DYNAMIC

MAX_ELEMENTS = 1024
"""Results with more elements than this stay expressions: modules hold no megabytes of numbers."""


def splat_value(constant: ConstantOp) -> float | int | bool | None:
    """The number that all elements of `constant` are, None if they differ."""
    if not constant.value.is_splat():
        return None
    return numpy_from_dense(constant.value).flat[0].item() if _size(constant) else None


def _size(op: Operation) -> int:
    return sum(math.prod(shape_of(result)) for result in op.results)


def fold_constants(op: Operation, rewriter: PatternRewriter) -> None:
    """Replaces `op` by constants if its operands are constants and its results are small."""
    if not isinstance(op, TensorOp) or not op.operands or op.regions:
        return
    constants = [operand.owner for operand in op.operands]
    if not all(isinstance(constant, ConstantOp) for constant in constants):
        return
    shapes = [shape_of(result) for result in op.results]
    if any(DYNAMIC in shape for shape in shapes) or _size(op) > MAX_ELEMENTS:
        return
    if any(is_stored_only(element_type_of(result)) for result in op.results):
        return
    operands = [numpy_from_dense(c.value) for c in constants if isinstance(c, ConstantOp)]
    values = op.evaluate(*operands)
    rewriter.replace(op, [ConstantOp.on(value=dense_from_numpy(value)) for value in values])
