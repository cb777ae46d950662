"""Tensors without elements: nothing is computed for them, and nothing is read of them.

Kernels need not know them then. They occur in practice: what a language model has cached before
its first token has an extent of 0.
"""

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import ConcatOp
from braid.dialects.braid.scattering import ScatterOp
from braid.passes.canonicalize.constant_folding import can_be_constants
from braid.passes.canonicalize.replacement import forward


def drop_empty_tensors(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace ops whose results have no elements, and operands that have none, by constants."""
    if not any(map(_is_empty, (*op.operands, *op.results))):
        return
    if is_leaf(op) or not can_be_constants(op):
        return
    if op.results and all(map(_is_empty, op.results)):
        made = [_constant(result) for result in op.results]
        rewriter.replace(op, made, [constant.output for constant in made])
    elif isinstance(op, ConcatOp):
        _drop_operands(op, rewriter)
    elif isinstance(op, ScatterOp) and _is_empty(op.updates) and op.data.type == op.output.type:
        forward(op, op.data, rewriter)
    else:
        _replace_operands(op, rewriter)


def _is_empty(value: SSAValue) -> bool:
    shape = shape_of(value)
    return 0 in shape and DYNAMIC not in shape


def _constant(value: SSAValue) -> ConstantOp:
    """Return a constant of the shape and element type of `value`, which has no elements."""
    return ConstantOp.of(np.zeros(shape_of(value), to_numpy(element_type_of(value))))


def _drop_operands(op: ConcatOp, rewriter: PatternRewriter) -> None:
    """Join only what has elements."""
    kept = [value for value in op.inputs if not _is_empty(value)]
    if len(kept) == len(op.inputs):
        return
    if len(kept) > 1:
        rewriter.replace(op, ConcatOp.get(kept, op.dim.value.data))
    elif kept[0].type == op.output.type:
        forward(op, kept[0], rewriter)


def _replace_operands(op: Operation, rewriter: PatternRewriter) -> None:
    """Put constants in the place of operands that have no elements."""
    for index, operand in enumerate(op.operands):
        known = isinstance(operand.owner, Operation) and is_leaf(operand.owner)
        if _is_empty(operand) and not known and layout_of(operand.type).is_row_major:
            constant = _constant(operand)
            rewriter.insert(constant, InsertPoint.before(op))
            op.operands[index] = constant.output
            rewriter.notify_op_modified(op)
