"""Folding of tensor ops whose operands are constants, by the ops' own semantics."""

import math
from typing import cast

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from braid.analysis.interpreter.machine import OPERAND_ERRORS
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import TensorOp, element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import (
    dense_from_numpy,
    dense_is_splat,
    is_stored_only,
    numpy_from_dense,
)
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import BroadcastOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.opaque import OpaqueOp
from braid.dialects.braid.placement import CopyingOp
from braid.dialects.braid.quantization import DequantizeOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_limits import MOST_NUMBERS
from braid.dialects.braid.sized_ops import SizedOp

MAX_ELEMENTS = 1024
"""Results with more elements than this stay expressions: modules hold no megabytes of numbers."""

_IDEMPOTENT = ("maximum", "minimum", "and", "or")
"""Kinds of reductions that give the number that all elements are."""

_KEPT = (CopyingOp, OpaqueOp, SizedOp)
"""Ops that say where a tensor is to be, or whose meaning is not known, or not yet."""


def can_be_constants(op: Operation) -> bool:
    """Return whether the results of `op` could be written as constants, whatever their
    values are.
    """
    return (
        isinstance(op, TensorOp)
        and not isinstance(op, _KEPT)
        and not is_quantized_weight(op)
        and not op.regions
        and not any(DYNAMIC in shape_of(result) for result in op.results)
        and not any(is_stored_only(element_type_of(result)) for result in op.results)
        and all(layout_of(result.type).is_row_major for result in op.results)
    )


def is_quantized_weight(op: Operation) -> bool:
    """Return whether `op` computes more than one real number from quantized ones.

    These stay quantized, since products use them.
    """
    return isinstance(op, DequantizeOp) and math.prod(shape_of(op.output)) > 1


def fold_constants(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace `op` by constants if its operands are constants and its results are small.

    A result computed from operands without elements is a splat of any extent.
    An op that has no result for its operands stays: running it is an error.
    """
    constants = [operand.owner for operand in op.operands]
    if not constants or not all(isinstance(constant, ConstantOp) for constant in constants):
        return
    if not can_be_constants(op):
        return
    elements = sum(math.prod(shape_of(result)) for result in op.results)
    is_large = elements > MAX_ELEMENTS
    if is_large and any(math.prod(shape_of(operand)) for operand in op.operands):
        return
    if elements > MOST_NUMBERS:
        return
    operands = [numpy_from_dense(c.value) for c in constants if isinstance(c, ConstantOp)]
    try:
        with np.errstate(all="ignore"):
            values = cast(TensorOp, op).evaluate(*operands)
    except OPERAND_ERRORS:
        return
    if not is_large:
        folded = [ConstantOp.on(value=dense_from_numpy(value)) for value in values]
        rewriter.replace(op, folded, [constant.output for constant in folded])
    elif len(values) == 1:
        number = ConstantOp.of(values[0].reshape(-1)[:1].reshape([1] * values[0].ndim))
        rewriter.replace(op, [number, BroadcastOp.get(number, values[0].shape)])


def repeated_number(value: SSAValue) -> Array | None:
    """Return the number that all elements of `value` are, as an array of one dim, None if not
    known.
    """
    source = value.owner
    while isinstance(source, BroadcastOp):
        source = source.input.owner
    if not isinstance(source, ConstantOp) or not dense_is_splat(source.value):
        return None
    return numpy_from_dense(source.value).reshape(-1)[:1]


def fold_repeated_numbers(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace the result of an op on splats by a splat, whatever its extent.

    So masks without effect are removed, and the ops that depend on them.
    """
    if not any(isinstance(operand.owner, BroadcastOp) for operand in op.operands):
        return
    if not can_be_constants(op) or any(0 in shape_of(v) for v in (*op.operands, *op.results)):
        return
    numbers = [repeated_number(operand) for operand in op.operands]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return
    match op:
        case ElementwiseOp():
            (number,) = op.evaluate(*known)
        case ReshapeOp() | TransposeOp() | SliceOp() | BroadcastOp():
            (number,) = known
        case ReduceOp() if op.kind.data in _IDEMPOTENT:
            (number,) = known
        case _:
            return
    shape = shape_of(op.results[0])
    if math.prod(shape) <= MAX_ELEMENTS:
        rewriter.replace(op, ConstantOp.of(np.full(shape, number)))
    else:
        one = ConstantOp.of(number.reshape([1] * len(shape)))
        rewriter.replace(op, [one, BroadcastOp.get(one, shape)])
