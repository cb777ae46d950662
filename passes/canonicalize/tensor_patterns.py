"""Canonical forms of braid's tensor ops: identities are removed, repeated ops are merged.

They stand here and not on the ops, since the dialect knows no rewriting; `canonicalize` applies
them beside the patterns that ops of other dialects bring along.
"""

import math
from collections.abc import Callable
from typing import cast

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from braid.dialects.braid.attribute_names import NAME
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import TensorOp, element_type_of, extents_of, integers, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.constants import ConstantOp, splat_value
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import ElementwiseOp, elementwise, repeated_shape
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import BroadcastOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.names import union_names
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.sized_ops import (
    SizedOp,
    SizedPadOp,
    SizedSliceOp,
    SizedTopKOp,
    SizeValuesOp,
    slice_of,
)
from braid.passes.canonicalize.constant_folding import (
    fold_constants,
    fold_repeated_numbers,
    repeated_number,
)
from braid.passes.canonicalize.empty_tensors import drop_empty_tensors
from braid.passes.canonicalize.replacement import forward, merge

_Pattern = Callable[[Operation, PatternRewriter], None]

_NEUTRAL: dict[str, tuple[float, tuple[int, ...]]] = {
    "add": (-0.0, (0, 1)),
    "sub": (0.0, (1,)),
    "mul": (1, (0, 1)),
    "div": (1, (1,)),
    "pow": (1, (1,)),
}
"""Elementwise op -> its neutral number and at which operands it is neutral.

The other zero is not neutral for floats: -0 + 0 is 0.
"""


def drop_identity(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace `f(x)` with the type of `x` by `x`, for ops that only reshape, repeat or convert."""
    if op.operands[0].type == op.results[0].type:
        forward(op, op.operands[0], rewriter)


def drop_zero_padding(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace a padding by nothing by its operand."""
    assert isinstance(op, PadOp)
    if not any((*op.low.get_values(), *op.high.get_values())):
        drop_identity(op, rewriter)


def drop_whole_slice(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace a slice of everything, in order, by its operand."""
    assert isinstance(op, SliceOp | SizedSliceOp)
    in_order = {*op.offsets.get_values()} <= {0} and {*op.strides.get_values()} <= {1}
    if in_order and op.input.type == op.output.type:
        forward(op, op.input, rewriter)


def merge_slices(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace slice(slice(x)) by one slice."""
    assert isinstance(op, SliceOp | SizedSliceOp)
    inner = op.input.owner
    if not isinstance(inner, SliceOp | SizedSliceOp):
        return
    steps, inner_steps = op.strides.get_values(), inner.strides.get_values()
    starts = zip(inner.offsets.get_values(), inner_steps, op.offsets.get_values(), strict=True)
    offsets = [start + step * further for start, step, further in starts]
    strides = [outer * step for outer, step in zip(steps, inner_steps, strict=True)]
    merge(op, inner, slice_of(inner.input, offsets, op.sizes.get_values(), strides), rewriter)


def drop_sizes(op: Operation, rewriter: PatternRewriter) -> None:
    """Make the plain op of one whose sizes are numbers."""
    assert isinstance(op, SizedOp)
    if (plain := op.bound()) is not None:
        union_names(plain, op)
        rewriter.replace(op, plain)


def merge_transposes(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace transpose(transpose(x)) by one transpose; the identity permutation is `x`."""
    assert isinstance(op, TransposeOp)
    outer = op.permutation.get_values()
    if list(outer) == list(range(len(outer))):
        drop_identity(op, rewriter)
    elif isinstance(inner := op.input.owner, TransposeOp):
        first = inner.permutation.get_values()
        merged = TransposeOp.create(
            operands=[inner.input],
            attributes={"permutation": integers([first[p] for p in outer])},
            result_types=[op.output.type],
        )
        merge(op, inner, merged, rewriter)


def merge_reshapes(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace reshape(reshape(x)) by one reshape."""
    assert isinstance(op, ReshapeOp)
    if isinstance(inner := op.input.owner, ReshapeOp):
        merge(op, inner, ReshapeOp.get(inner.input, extents_of(op.output)), rewriter)


def merge_reorders(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace reorder(reorder(x)) by one reorder."""
    assert isinstance(op, ReorderOp)
    if isinstance(inner := op.input.owner, ReorderOp):
        merged = ReorderOp.create(operands=[inner.input], result_types=[op.output.type])
        merge(op, inner, merged, rewriter)


def clip_windows(op: Operation, rewriter: PatternRewriter) -> None:
    """Leave out elements of a pool's window that only ever read padding."""
    assert isinstance(op, PoolOp)
    windows = op.windows
    clipped = windows.clipped(shape_of(op.input)[2:])
    if clipped != windows:
        pool = PoolOp.get(
            op.input,
            op.kind.data,
            clipped.size,
            strides=clipped.strides,
            pad_low=clipped.pad_low,
            pad_high=clipped.pad_high,
            dilations=clipped.dilations,
            accumulator=op.accumulator,
        )
        rewriter.replace(op, pool)


def drop_neutral_operand(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace `x + -0`, `x - 0`, `x · 1`, `x / 1` and `x ^ 1` by `x`, and `x + 0` for integers."""
    assert isinstance(op, ElementwiseOp)
    neutral, positions = _NEUTRAL[op.ROW.name]
    for position in positions:
        other = op.operands[1 - position]
        constant = op.operands[position].owner
        if (
            isinstance(constant, ConstantOp)
            and other.type == op.output.type
            and _is_number(splat_value(constant), neutral)
        ):
            forward(op, other, rewriter)
            return


def _is_number(value: float | int | bool | None, number: float) -> bool:
    """Return whether `value` is `number`; of a float zero the sign counts too."""
    if isinstance(value, float) and value == 0.0:
        return number == 0 and math.copysign(1, value) == math.copysign(1, number)
    return value == number


def repeat_implicitly(op: Operation, rewriter: PatternRewriter) -> None:
    """Drop a broadcast that feeds an elementwise op, which repeats dims itself."""
    assert isinstance(op, ElementwiseOp)
    for index, operand in enumerate(op.operands):
        inner = operand.owner
        if not isinstance(inner, BroadcastOp) or DYNAMIC in shape_of(operand):
            continue
        candidate = [*op.operands[:index], inner.input, *op.operands[index + 1 :]]
        if repeated_shape([shape_of(value) for value in candidate]) == shape_of(op.output):
            merged = type(op).create(
                operands=candidate,
                result_types=[op.output.type],
                attributes={k: v for k, v in op.attributes.items() if k != NAME},
            )
            merge(op, inner, merged, rewriter)
            if rewriter.has_done_action:
                return


def pick_branch(op: Operation, rewriter: PatternRewriter) -> None:
    """Replace a select whose condition is the same known value everywhere by the chosen operand."""
    assert isinstance(op, ElementwiseOp)
    condition, chosen, other = op.operands
    known = repeated_number(condition)
    if known is not None and (value := chosen if known[0] else other).type == op.output.type:
        forward(op, value, rewriter)


def clear_rows_after_product(op: Operation, rewriter: PatternRewriter) -> None:
    """Move zero rows of a product's left operand to its result.

    So the attention of ONNX ends: rows of weights whose keys are all masked are cleared. Then only
    the product reads the weights, and fewer elements are selected.
    """
    assert isinstance(op, MatmulOp)
    select = op.lhs.owner
    if not isinstance(select, ElementwiseOp) or select.ROW.name != "select":
        return
    if not op.lhs.has_one_use() or not run_together(op, select):
        return
    condition, *choices = select.operands
    kept = [value for value in choices if not _is_zero(value)]
    if shape_of(condition)[-1] != 1 or len(kept) != 1 or kept[0].type != op.lhs.type:
        return
    product = MatmulOp.create(
        operands=[kept[0], op.rhs], result_types=[op.output.type], attributes=dict(op.attributes)
    )
    product.attributes.pop(NAME, None)
    one = [1] * len(shape_of(op.output))
    dtype = to_numpy(element_type_of(op.output))
    zero = ConstantOp.of(np.zeros(one, dtype))
    rewriter.insert([product, zero], InsertPoint.before(op))
    branches = [product.output if value is kept[0] else zero.output for value in choices]
    merge(op, select, elementwise("select", condition, *branches), rewriter)


def _is_zero(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and _is_number(splat_value(value.owner), 0)


_PATTERNS: dict[type[TensorOp], tuple[_Pattern, ...]] = {
    BroadcastOp: (drop_identity,),
    MatmulOp: (clear_rows_after_product,),
    PadOp: (drop_zero_padding,),
    PoolOp: (clip_windows,),
    ReorderOp: (drop_identity, merge_reorders),
    ReshapeOp: (drop_identity, merge_reshapes),
    SizedPadOp: (drop_sizes,),
    SizedSliceOp: (drop_sizes, drop_whole_slice, merge_slices),
    SizedTopKOp: (drop_sizes,),
    SizeValuesOp: (drop_sizes,),
    SliceOp: (drop_whole_slice, merge_slices),
    TransposeOp: (merge_transposes,),
}


def _patterns_for(op: Operation) -> tuple[_Pattern, ...]:
    if not isinstance(op, ElementwiseOp):
        return _PATTERNS.get(cast(type[TensorOp], type(op)), ())
    if op.ROW.name == "cast":
        return (drop_identity,)
    if op.ROW.name == "select":
        return (pick_branch, repeat_implicitly)
    if op.ROW.name in _NEUTRAL:
        return (drop_neutral_operand, repeat_implicitly)
    return (repeat_implicitly,) if op.ROW.arity > 1 else ()


def _is_logical(op: Operation) -> bool:
    """Return whether no layout was decided for the results; patterns would lose it (reorders keep
    it).
    """
    return isinstance(op, ReorderOp) or all(layout_of(r.type).is_row_major for r in op.results)


class TensorPatterns(RewritePattern):
    """Folding, the rule for tensors without elements, then the patterns of the op's class, until
    one applies."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Rewrite `op` if a pattern applies."""
        if not isinstance(op, TensorOp) or not _is_logical(op):
            return
        for pattern in (
            fold_constants,
            fold_repeated_numbers,
            drop_empty_tensors,
            *_patterns_for(op),
        ):
            pattern(op, rewriter)
            if rewriter.has_done_action:
                return
