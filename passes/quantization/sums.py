"""Biases and averages of dequantized numbers."""

import math
from typing import TypeGuard

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import PadOp, ReshapeOp, TransposeOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.quantization import DequantizeOp, QuantizeOp
from braid.dialects.braid.reduction import ReduceOp
from braid.passes.quantization.emitter import Emitter, is_single, number_of
from braid.passes.quantization.integer_products import has_bytes
from braid.passes.quantization.known_numbers import KnownNumbers, bias_fits, largest_of

_LARGEST_BIAS = 2.0**30
"""The largest bias in steps of the sums of products, which have 30 bits, too."""

_MOST_ADDENDS = 1 << 22
"""Bytes that are added up in i32."""


def rewrite_sum(op: TensorOp, rewriter: PatternRewriter, known: KnownNumbers) -> SSAValue | None:
    """Add a known bias to the i32 sums themselves; add up quantized numbers and scale scales."""
    if isinstance(op, ELEMENTWISE["add"]):
        return _biased(op, rewriter, known)
    if isinstance(op, ELEMENTWISE["mul"]):
        return _scaled(op, rewriter, known)
    if isinstance(op, PoolOp | ReduceOp):
        return _added_up(op, rewriter)
    return None


def _biased(op: TensorOp, rewriter: PatternRewriter, known: KnownNumbers) -> SSAValue | None:
    for index in (0, 1):
        source, bias = op.operands[index].owner, op.operands[1 - index]
        if not _is_sum(source, op) or not known.is_known(bias):
            continue
        sums, scale, _ = source.operands
        if known.is_known(sums) or extents_of(sums) != extents_of(op.results[0]):
            continue
        if not bias_fits(known, bias, op.results[0], scale):
            continue  # The remainder of a step shows.
        sums, offset = _without_offset(sums, known)
        if not _fits_32_bits(known, sums, bias, offset, scale):
            continue
        emit = Emitter(op, rewriter)
        steps = emit.rounded(emit.apply("div", bias, scale), _LARGEST_BIAS)
        if offset is not None:
            # The contribution of zero points is known as the bias is: both are one term.
            steps = emit.apply("sub", steps, offset)
        total = emit.apply("add", sums, steps)
        return emit.insert(DequantizeOp.on(total, scale, emit.number(0, total)))
    return None


def _without_offset(sums: SSAValue, known: KnownNumbers) -> tuple[SSAValue, SSAValue | None]:
    """Return sums and the known terms to subtract, such as those of zero points."""
    op = sums.owner
    if isinstance(op, ELEMENTWISE["sub"]) and known.is_known(op.operands[1]):
        return op.operands[0], op.operands[1]
    return sums, None


def _fits_32_bits(
    known: KnownNumbers, sums: SSAValue, bias: SSAValue, offset: SSAValue | None, scale: SSAValue
) -> bool:
    """Return whether the sums of any inputs, with a bias in their steps, fit in 32 bits."""
    values, unit = known.array(bias), known.array(scale)
    if values is None or unit is None:
        return False
    steps = np.rint(values.astype(np.float64) / unit)
    taken = 0 if offset is None else known.array(offset)
    largest = float(np.abs(steps).max(initial=0))
    if largest > _LARGEST_BIAS:
        return False
    if taken is not None:
        largest = float(np.abs(steps - taken).max(initial=0))
    elif offset is not None:
        largest += largest_of(known, offset)
    return largest_of(known, sums) + largest < 2.0**31


def _is_sum(source: object, op: Operation) -> TypeGuard[DequantizeOp]:
    """Return whether an operand of `op` is i32 numbers of the zero point 0, dequantized."""
    if not isinstance(source, DequantizeOp) or not run_together(source, op):
        return False
    return element_type_of(source.operands[0]) == i32 and number_of(source.operands[2]) == 0


def _scaled(op: TensorOp, rewriter: PatternRewriter, known: KnownNumbers) -> SSAValue | None:
    """Replace a product with known factors by the same integers in another scale.

    The common factor must be positive: ops that take the largest of some numbers rely on that.
    Neither the factor nor the scale may be so small or large that their product loses digits.
    """
    for index in (0, 1):
        source, factor = op.operands[index].owner, op.operands[1 - index]
        if not isinstance(source, DequantizeOp) or not known.is_known(factor):
            continue
        fits = known.is_positive if is_single(factor) else known.is_factor
        numbers, scale, zero = source.operands
        if not fits(factor) or (known.is_known(scale) and not known.is_factor(scale)):
            continue
        if extents_of(numbers) != extents_of(op.results[0]) or not run_together(source, op):
            continue
        if not _is_requantized(op.results[0]):
            continue
        emit = Emitter(op, rewriter)
        scale = emit.apply("mul", scale, factor)
        return emit.insert(DequantizeOp.on(numbers, scale, zero))
    return None


def _added_up(op: PoolOp | ReduceOp, rewriter: PatternRewriter) -> SSAValue | None:
    """Return sums of bytes in i32, less the zero point as often as there were addends."""
    source = op.input.owner
    if op.kind.data != "add" or op.accumulator is not None or not _is_requantized(op.output):
        return None
    if not isinstance(source, DequantizeOp) or not run_together(source, op):
        return None
    numbers, scale, zero = source.operands
    if not has_bytes(numbers) or not (is_single(scale) and is_single(zero)):
        return None
    if isinstance(op, PoolOp):
        count = math.prod(op.windows.size)
        if op.windows.is_padded and number_of(zero) is None:
            return None
    else:
        extents = [shape_of(numbers)[dim] for dim in op.dims.get_values()]
        if DYNAMIC in extents:
            return None
        count = math.prod(extents)
    if count > _MOST_ADDENDS:
        return None
    emit = Emitter(op, rewriter)
    sums = _sums(emit, op, numbers, number_of(zero))
    if number_of(zero) != 0:
        offset = emit.apply("mul", emit.cast(zero, i32), emit.number(count, sums))
        sums = emit.apply("sub", sums, offset)
    return emit.insert(DequantizeOp.on(sums, scale, emit.number(0, sums)))


def _sums(emit: Emitter, op: PoolOp | ReduceOp, numbers: SSAValue, zero: float | None) -> SSAValue:
    if isinstance(op, ReduceOp):
        return emit.insert(ReduceOp.get(numbers, "add", op.dims.get_values(), i32))
    windows = op.windows
    low, high = windows.pad_low, windows.pad_high
    if windows.is_padded and zero:
        numbers = emit.insert(PadOp.get(numbers, (0, 0, *low), (0, 0, *high), zero))
        low = high = (0,) * len(low)
    pool = PoolOp.get(
        numbers,
        "add",
        windows.size,
        strides=windows.strides,
        pad_low=low,
        pad_high=high,
        dilations=windows.dilations,
        accumulator=i32,
    )
    return emit.insert(pool)


def _is_requantized(value: SSAValue) -> bool:
    """Return whether `value` is quantized before anything but scaling and moving happens to it."""
    passing = (ReshapeOp, TransposeOp, *(ELEMENTWISE[n] for n in ("mul", "maximum", "minimum")))
    while value.has_one_use():
        (use,) = value.uses
        if isinstance(use.operation, QuantizeOp):
            return True
        if not isinstance(use.operation, passing):
            return False
        value = use.operation.results[0]
    return bool(value.first_use) and all(isinstance(u.operation, QuantizeOp) for u in value.uses)
