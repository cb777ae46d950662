"""Let ops that only move numbers, or take the largest of some, work on quantized ones instead."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.dtypes import number_attribute
from braid.dialects.braid.movement import (
    BroadcastOp,
    ConcatOp,
    DeclaredShapeOp,
    PadOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.quantization import DequantizeOp, is_quantized
from braid.dialects.braid.reduction import ReduceOp
from braid.passes.quantization.emitter import Emitter, constant_of, equal, is_single, number_of
from braid.passes.quantization.integer_products import centered_operand
from braid.passes.quantization.known_numbers import KnownNumbers

_MOVING = (BroadcastOp, ConcatOp, PadOp, ReshapeOp, SliceOp, TransposeOp)


def rewrite_movement(
    op: TensorOp, rewriter: PatternRewriter, known: KnownNumbers
) -> SSAValue | None:
    """Move the numbers of dequantized or centered operands, and their quantization with them."""
    if not isinstance(op, _MOVING) and not _takes_extreme(op):
        return None
    sources = dequantized_operands(op)
    if sources is None:
        return _centered(op, rewriter)
    emit, parts = Emitter(op, rewriter), sources[0].operands
    if _takes_extreme(op) and not known.is_positive(parts[1]):
        return None
    if isinstance(op, ReshapeOp) and _keeps_columns(op, parts[1:]):
        # Rows of a product, whose columns have scales of their own.
        shape = extents_of(op.output)
        own = [(*(1 for _ in shape[1:]), extents_of(part)[-1]) for part in parts[1:]]
        rows = [emit.reshape(part, to) for part, to in zip(parts, (shape, *own), strict=True)]
        return emit.insert(DequantizeOp.on(*rows))
    if not is_quantized(element_type_of(parts[0])):
        return None
    if is_single(parts[1]) and is_single(parts[2]):
        if not all(_are_alike(sources[0], other) for other in sources[1:]):
            return None
        zero = number_of(parts[2])
        if isinstance(op, PadOp) and (op.value.value.data != 0 or zero is None):
            return None
        moved = emit.insert(repeated(op, [source.operands[0] for source in sources], zero))
        ones = tuple(1 for _ in extents_of(moved))
        scale, zero_point = (emit.reshape(part, ones) for part in parts[1:])
        return emit.insert(DequantizeOp.on(moved, scale, zero_point))
    if isinstance(op, TransposeOp):
        parts = [emit.insert(repeated(op, [part])) for part in parts]
        return emit.insert(DequantizeOp.on(*parts))
    if isinstance(op, ReshapeOp) and len(extents_of(parts[0])) == 1:
        # A vector with a scale for each element.
        shape = extents_of(op.output)
        ones = tuple(1 for _ in shape)
        parts = [emit.reshape(p, ones if is_single(p) else shape) for p in parts]
        return emit.insert(DequantizeOp.on(*parts))
    return None


def _centered(op: TensorOp, rewriter: PatternRewriter) -> SSAValue | None:
    """Move bytes instead of the i32 numbers that they are without their zero point."""
    if not isinstance(op, ReshapeOp | TransposeOp) or element_type_of(op.input) != i32:
        return None
    found = centered_operand(op.input)
    if found is None or constant_of(op.input) is not None:
        return None
    zero = None if found.zero is None else _moved_zero(op, found.zero)
    if found.zero is not None and zero is None:
        return None
    emit = Emitter(op, rewriter)
    wide = emit.cast(emit.insert(repeated(op, [found.numbers])), i32)
    return wide if zero is None else emit.apply("sub", wide, emit.cast(emit.insert(zero), i32))


def _moved_zero(op: ReshapeOp | TransposeOp, zero: SSAValue) -> TensorOp | None:
    """Return the zero points of the value that `op` moves, None unless they map to its result dim
    by dim.
    """
    target = extents_of(op.output)
    if is_single(zero):
        return ReshapeOp.get(zero, tuple(1 for _ in target))
    if isinstance(op, TransposeOp):
        return repeated(op, [zero])
    dims = [(e, z) for e, z in zip(extents_of(op.input), extents_of(zero), strict=True) if e != 1]
    if [extent for extent in target if extent != 1] != [extent for extent, _ in dims]:
        return None
    own = iter(dims)
    return ReshapeOp.get(zero, tuple(1 if extent == 1 else next(own)[1] for extent in target))


def dequantized_operands(op: TensorOp) -> list[DequantizeOp] | None:
    """Return the ops that dequantize each operand, unless an operand is made otherwise or
    elsewhere.
    """
    owners = [operand.owner for operand in op.operands]
    found = [owner for owner in owners if isinstance(owner, DequantizeOp)]
    if not found or len(found) < len(owners) or not all(run_together(o, op) for o in found):
        return None
    return found


def repeated(op: TensorOp, operands: Sequence[SSAValue], zero: float | None = None) -> TensorOp:
    """Return `op` on other operands; what a pad adds is then `zero`."""
    if isinstance(op, DeclaredShapeOp):
        return type(op).get(operands[0], extents_of(op.output))
    own: dict[str, Any] = {k: v for k, v in op.attributes.items() if not k.startswith("braid.")}
    if isinstance(op, PadOp):
        own["value"] = number_attribute(zero or 0, element_type_of(operands[0]))
    return type(op).on(*operands, **own)


def _keeps_columns(op: ReshapeOp, parts: Sequence[SSAValue]) -> bool:
    """Return whether the last dim stays, the only one that `parts` may extend along."""
    before, after = extents_of(op.input), extents_of(op.output)
    if not before or not after or before[-1] != after[-1]:
        return False
    return all(extent == 1 for part in parts for extent in extents_of(part)[:-1])


def _takes_extreme(op: TensorOp) -> bool:
    """Return whether the result is the largest or smallest of some elements, at least one."""
    if isinstance(op, PoolOp):
        return op.kind.data == "max"
    if not isinstance(op, ReduceOp) or op.kind.data not in ("maximum", "minimum"):
        return False
    extents = [extents_of(op.input)[dim] for dim in op.dims.get_values()]
    return all(isinstance(extent, int) and extent > 0 for extent in extents)


def _are_alike(left: DequantizeOp, right: DequantizeOp) -> bool:
    """Return whether two operands have one scale and zero point."""
    return all(map(equal, left.operands[1:], right.operands[1:]))
