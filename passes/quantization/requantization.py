"""Requantize numbers in another scale, after an addition, a product, a limit, or a join."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from braid.dialects.braid.base import TensorOp, element_type_of, extents_of, shape_of
from braid.dialects.braid.clusters import run_together
from braid.dialects.braid.elementwise import ELEMENTWISE, ElementwiseOp
from braid.dialects.braid.movement import ConcatOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.quantization import (
    DequantizeOp,
    QuantizeOp,
    RequantizeOp,
    limits_of,
)
from braid.dialects.braid.relayout import Array
from braid.passes.quantization.emitter import (
    Emitter,
    equal,
    fixed_point,
    is_single,
    number_of,
)
from braid.passes.quantization.integer_products import as_type, has_bytes, i8, ui8, unsigned_of
from braid.passes.quantization.known_numbers import KnownNumbers, is_finite
from braid.passes.quantization.movement import dequantized_operands, repeated

_UNIT_BITS = 20
"""The larger of two scales that are added up is 2 to this many units: both fit 32 bits then."""

_MOST_STEPS = 2.0**10
"""The largest ratio of either scale of a sum to the result's: each multiplier is off by up to half
a unit, times 255, which is a quarter of a step."""


def rewrite_quantization(
    op: TensorOp, rewriter: PatternRewriter, known: KnownNumbers
) -> SSAValue | None:
    """Quantize dequantized values without floating point."""
    if isinstance(op, DequantizeOp):
        return _unsigned(op, rewriter)
    if not isinstance(op, QuantizeOp):
        return None
    x, scale, zero = op.operands
    source = x.owner
    if not isinstance(source, Operation) or not run_together(source, op):
        return None
    emit = Emitter(op, rewriter)
    if not known.is_scale(scale):
        return None
    if isinstance(source, DequantizeOp):
        own = source.operands[1]
        fits = not known.is_known(own) or known.is_factor(own)
        return _requantized(emit, source, scale, zero) if fits else None
    if not isinstance(source, TensorOp):
        return None
    result = None
    if isinstance(source, ConcatOp):
        result = _joined(emit, source, scale, zero)
    elif isinstance(source, ReshapeOp | SliceOp | TransposeOp):
        result = _moved(emit, source, scale, zero)
    elif isinstance(source, ELEMENTWISE["maximum"] | ELEMENTWISE["minimum"]):
        result = _limited(emit, source, scale, zero, known)
    elif isinstance(source, ELEMENTWISE["add"] | ELEMENTWISE["sub"] | ELEMENTWISE["mul"]):
        result = _combined(emit, source, scale, zero, known)
    return result if result is None or not x.has_one_use() else emit.name(result, source)


def _unsigned(op: DequantizeOp, rewriter: PatternRewriter) -> SSAValue | None:
    """Make activations ui8, which products need, if they are i8 only between two points."""
    numbers, scale, zero = op.operands
    source, emit = numbers.owner, Emitter(op, rewriter)
    if (bits := unsigned_of(numbers)) is not None:
        return emit.insert(DequantizeOp.on(bits, scale, as_type(emit, zero, ui8)))
    if element_type_of(numbers) != i8 or not isinstance(source, QuantizeOp | RequantizeOp):
        return None
    if not all(isinstance(use.operation, DequantizeOp) for use in numbers.uses):
        return None
    *own, own_zero = source.operands
    attributes = {k: v for k, v in source.attributes.items() if not k.startswith("braid.")}
    same = type(source).on(*own, as_type(emit, own_zero, ui8), **attributes)
    return emit.insert(DequantizeOp.on(emit.insert(same), scale, as_type(emit, zero, ui8)))


def _requantized(
    emit: Emitter, source: DequantizeOp, scale: SSAValue, zero: SSAValue
) -> SSAValue | None:
    numbers, own_scale, own_zero = source.operands
    if equal(own_scale, scale) and _are_one_point(own_zero, zero):
        return as_type(emit, numbers, cast(IntegerType, element_type_of(zero)))
    if element_type_of(numbers) != i32 and not has_bytes(numbers):
        return None
    ratio = emit.apply("div", own_scale, scale)
    return _in_fixed_point(emit, centered(emit, source), ratio, zero)


def _are_one_point(left: SSAValue, right: SSAValue) -> bool:
    """Return whether two zero points are the same, one maybe 128 further up in the unsigned
    type.
    """
    if equal(left, right):
        return True
    if not (has_bytes(left) and has_bytes(right)) or extents_of(left) != extents_of(right):
        return False
    a, b = (number_of(zero) for zero in (left, right))
    if a is None or b is None:
        return False
    least = [limits_of(element_type_of(zero))[0] for zero in (left, right)]
    return a - least[0] == b - least[1]


def centered(emit: Emitter, source: DequantizeOp) -> SSAValue:
    """Return the numbers of `source` less the zero point, in i32."""
    numbers, _, zero = source.operands
    wide = emit.cast(numbers, i32)
    return wide if number_of(zero) == 0 else emit.apply("sub", wide, emit.cast(zero, i32))


def _in_fixed_point(emit: Emitter, numbers: SSAValue, ratio: SSAValue, zero: SSAValue) -> SSAValue:
    return emit.insert(RequantizeOp.get(numbers, *fixed_point(emit, ratio), zero))


def _limited(
    emit: Emitter,
    source: ElementwiseOp,
    scale: SSAValue,
    zero: SSAValue,
    known: KnownNumbers,
) -> SSAValue | None:
    """Replace a limit before quantization by the quantized limit, since order is kept.

    Values that are clamped in this way must not be NaN, which is quantized to 0 first. It is not
    where all is made of quantized numbers, and a limit that is the type's own does nothing.
    """
    if not known.is_positive(scale):
        return None
    for index in (0, 1):
        value, limit = source.operands[index], source.operands[1 - index]
        if not known.is_known(limit) or isinstance(value.owner, Block):
            continue
        if not isinstance(value.owner, DequantizeOp) and not value.has_one_use():
            continue
        if extents_of(value) != extents_of(source.output):
            continue
        least, largest = limits_of(element_type_of(zero))
        bound = _quantized(known, limit, scale, zero)
        if bound is None:
            continue
        if (bound == (least if source.ROW.name == "maximum" else largest)).all():
            return emit.insert(QuantizeOp.on(value, scale, zero))
        if not is_finite(known, value):
            continue
        quantized = emit.insert(QuantizeOp.on(value, scale, zero))
        bound = emit.insert(QuantizeOp.on(limit, scale, zero))
        return emit.apply(source.ROW.name, quantized, bound)
    return None


def _quantized(
    known: KnownNumbers, limit: SSAValue, scale: SSAValue, zero: SSAValue
) -> Array | None:
    """Return a limit as `braid.quantize` rounds it, None if it is unknown or NaN."""
    numbers, step, point = (known.array(value) for value in (limit, scale, zero))
    if numbers is None or step is None or point is None or np.isnan(numbers).any():
        return None
    trial = QuantizeOp.on(limit, scale, zero)
    (result,) = trial.evaluate(numbers, step, point)
    trial.erase()  # It must not remain a user of its operands.
    return result


def _joined(emit: Emitter, source: ConcatOp, scale: SSAValue, zero: SSAValue) -> SSAValue | None:
    """Quantize parts of several scales before they are joined."""
    if dequantized_operands(source) is None or not (is_single(scale) and is_single(zero)):
        return None
    parts = [emit.insert(QuantizeOp.on(part, scale, zero)) for part in source.operands]
    return emit.insert(ConcatOp.get(parts, source.dim.value.data))


def _moved(emit: Emitter, source: TensorOp, scale: SSAValue, zero: SSAValue) -> SSAValue | None:
    """Return what is only moved before it is quantized may be moved afterwards."""
    result = source.results[0]
    if not (is_single(scale) and is_single(zero) and result.has_one_use()):
        return None
    ones = tuple(1 for _ in shape_of(source.operands[0]))
    parts = [emit.reshape(part, ones) for part in (scale, zero)]
    quantized = emit.insert(QuantizeOp.on(source.operands[0], *parts))
    return emit.insert(repeated(source, [quantized]))


def _combined(
    emit: Emitter, source: ElementwiseOp, scale: SSAValue, zero: SSAValue, known: KnownNumbers
) -> SSAValue | None:
    """Return sums in a unit of which both scales are near multiples; products in that of both."""
    operands = dequantized_operands(source)
    if operands is None or not all(has_bytes(operand.operands[0]) for operand in operands):
        return None
    scales = [operand.operands[1] for operand in operands]
    if not all(map(known.is_scale, scales)):
        return None
    is_product = source.ROW.name == "mul"
    if not (known.have_product(*scales) if is_product else _is_coarse(known, scales, scale)):
        return None
    left, right = (centered(emit, operand) for operand in operands)
    if is_product:
        unit = emit.apply("mul", *scales)
        total = emit.apply("mul", left, right)
    else:
        largest = emit.apply("maximum", *(emit.apply("abs", own) for own in scales))
        unit = emit.apply("mul", largest, emit.number(2.0**-_UNIT_BITS, largest))
        factors = [emit.rounded(emit.apply("div", own, unit), 2.0**_UNIT_BITS) for own in scales]
        terms = [
            emit.apply("mul", value, factor)
            for value, factor in zip((left, right), factors, strict=True)
        ]
        total = emit.apply(source.ROW.name, *terms)
    return _in_fixed_point(emit, total, emit.apply("div", unit, scale), zero)


def _is_coarse(known: KnownNumbers, scales: Sequence[SSAValue], step: SSAValue) -> bool:
    """Return whether the units of a sum are insignificant beside the steps of its result.

    Scales that nothing is known of may be as large as they like.
    """
    added, steps = [known.array(scale) for scale in scales], known.array(step)
    if steps is None or any(scale is None for scale in added):
        return False
    largest = max(float(scale.max(initial=0)) for scale in added if scale is not None)
    return largest <= _MOST_STEPS * float(steps.min(initial=np.inf))
