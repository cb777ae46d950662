"""Products of quantized numbers in 32-bit integers, with zero points in constant terms.

Σ (x - a) · (w - b) = Σ x · w - a · Σ w - b · Σ x + K · a · b. Kernels multiply unsigned numbers on
the left with signed ones on the right, as x86's and ARM's instructions do; if the right ones are
known, numbers of the other kind are moved by 128, together with their zero points. If both operands
are computed at run time, kernels convert them to the types that they multiply.
"""

import math
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, i32
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.elementwise import ELEMENTWISE
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.quantization import is_byte, limits_of
from braid.dialects.braid.reduction import ReduceOp
from braid.passes.quantization.emitter import Emitter, constant_of, is_single, number_of

i8, ui8 = IntegerType(8), IntegerType(8, Signedness.UNSIGNED)

MOST_TERMS = 1 << 15
"""Products that are added up: these sums and a bias of as many bits fit 32 bits."""


@dataclass(frozen=True)
class Quantized:
    """8-bit numbers and their zero point, of the same type and rank; None for 0."""

    numbers: SSAValue
    zero: SSAValue | None


def has_bytes(value: SSAValue) -> bool:
    """Return whether the elements are 8-bit numbers."""
    return is_byte(element_type_of(value))


def terms_of(op: ConvOp | MatmulOp) -> int:
    """Return the products that are added up to one element."""
    weight = shape_of(op.operands[1])
    return math.prod(weight[1:]) if isinstance(op, ConvOp) else weight[-2]


def is_sum_of_bytes(op: ConvOp | MatmulOp, left: Quantized, right: Quantized) -> bool:
    """Return whether `integer_product` takes this product."""
    if not (has_bytes(left.numbers) and has_bytes(right.numbers)):
        return False
    if DYNAMIC in shape_of(op.operands[1]) or not 0 < terms_of(op) <= MOST_TERMS:
        return False
    if _needs_sums_at_edges(op, left) and DYNAMIC in shape_of(op.operands[0]):
        return False  # They are a constant of the extents of images.
    if left.zero is not None and not _is_per_row(op, left.zero):
        return False
    if right.zero is None:
        return True
    extents = shape_of(right.zero)
    if isinstance(op, MatmulOp):
        return extents[-2] == 1
    return all(extent == 1 for extent in extents[1:])


def _needs_sums_at_edges(op: ConvOp | MatmulOp, left: Quantized) -> bool:
    """Return whether windows reach beyond images and the zero point there is unknown."""
    has_unknown_zero = left.zero is not None and number_of(left.zero) is None
    return isinstance(op, ConvOp) and op.windows.is_padded and has_unknown_zero


def _is_per_row(op: ConvOp | MatmulOp, zero: SSAValue) -> bool:
    """Return whether a zero point of the left operand is one for all, or for all of a row."""
    if is_single(zero):
        return True
    return isinstance(op, MatmulOp) and shape_of(zero)[-1] == 1


def integer_product(
    emit: Emitter, op: ConvOp | MatmulOp, left: Quantized, right: Quantized, is_known: bool
) -> SSAValue:
    """Return the i32 sums of products of centered numbers, where `is_sum_of_bytes`.

    Both are of the kinds that kernels multiply if the right operand `is_known`, else as they are.
    """
    x, a = _moved(emit, left, ui8 if is_known else element_type_of(left.numbers))
    w, b = _moved(emit, right, i8 if is_known else element_type_of(right.numbers))
    if isinstance(op, ConvOp):
        product = _convolution(emit, op, x, a, w)
        return product if number_of(b) == 0 else _centered(emit, op, product, (x, a, b))
    product = emit.insert(MatmulOp.on(x, w, accumulator=i32))
    emit.name(product, op)
    if number_of(a) != 0:
        sums = emit.insert(ReduceOp.get(w, "add", [len(shape_of(w)) - 2], i32))
        product = emit.apply("sub", product, emit.apply("mul", sums, emit.cast(a, i32)))
    if number_of(b) != 0:
        # K · a · b is part of the sums of x, which depend on the input anyway.
        sums = emit.insert(ReduceOp.get(x, "add", [len(shape_of(x)) - 1], i32))
        offset = emit.apply("mul", emit.cast(a, i32), emit.number(terms_of(op), sums))
        sums = emit.apply("sub", sums, offset)
        product = emit.apply("sub", product, emit.apply("mul", sums, emit.cast(b, i32)))
    return product


def _centered(
    emit: Emitter, op: ConvOp, product: SSAValue, operands: tuple[SSAValue, SSAValue, SSAValue]
) -> SSAValue:
    """Subtract the zero points of weights times the sums of centered windows, one for each
    group.
    """
    x, a, b = operands
    made, *window = shape_of(op.operands[1])
    ones = np.ones((made if op.groups.value.data > 1 else 1, *window), np.int8)
    sums = _convolution(emit, op, x, a, emit.insert(ConstantOp.of(ones)))
    b = emit.reshape(b, (1, shape_of(b)[0], *(1 for _ in window[1:])))
    return emit.apply("sub", product, emit.apply("mul", sums, emit.cast(b, i32)))


def _moved(emit: Emitter, numbers: Quantized, kind: Attribute) -> tuple[SSAValue, SSAValue]:
    """Return numbers and zero point in the type `kind`, shifted by 128 where signedness differs."""
    zero = numbers.zero or emit.number(0, numbers.numbers)
    return as_type(emit, numbers.numbers, kind), as_type(emit, zero, kind)


def as_type(emit: Emitter, value: SSAValue, kind: Attribute) -> SSAValue:
    """Return 8-bit numbers of the other signedness, shifted by 128: the first bit is turned."""
    if element_type_of(value) == kind:
        return value
    bits = emit.bitcast(value, ui8)
    turned = emit.apply("xor", bits, emit.number(128, bits))
    return turned if kind == ui8 else emit.bitcast(turned, kind)


def unsigned_of(value: SSAValue) -> SSAValue | None:
    """Return the `ui8` numbers that `as_type` converted to the i8 `value`; None if it did not."""
    cast, turn = value.owner, None
    if isinstance(cast, ELEMENTWISE["bitcast"]) and element_type_of(value) == i8:
        turn = cast.operands[0].owner
    if not isinstance(turn, ELEMENTWISE["xor"]) or number_of(turn.operands[1]) != 128:
        return None
    return turn.operands[0] if element_type_of(turn.operands[0]) == ui8 else None


def _convolution(emit: Emitter, op: ConvOp, x: SSAValue, a: SSAValue, w: SSAValue) -> SSAValue:
    """Return a convolution padded with known zero points; else the missing padding is a term."""
    windows, zero = op.windows, number_of(a)
    low, high = windows.pad_low, windows.pad_high
    if zero not in (0, None) and windows.is_padded:
        x = emit.insert(PadOp.get(x, (0, 0, *low), (0, 0, *high), zero))
        low = high = (0,) * len(low)

    def convolved(input: SSAValue) -> SSAValue:
        conv = ConvOp.get(
            input,
            w,
            strides=windows.strides,
            pad_low=low,
            pad_high=high,
            dilations=windows.dilations,
            groups=op.groups.value.data,
            accumulator=i32,
        )
        return emit.insert(conv)

    product = convolved(x)
    emit.name(product, op)
    if zero == 0:
        return product
    if any((*low, *high)):
        ones = ConstantOp.of(np.ones((1, *shape_of(x)[1:]), np.uint8))
        sums = convolved(emit.insert(ones))
    else:
        dims = range(1, len(shape_of(w)))
        sums = emit.insert(ReduceOp.get(w, "add", list(dims), i32))
        sums = emit.reshape(sums, (1, shape_of(w)[0], *(1 for _ in dims[1:])))
    return emit.apply("sub", product, emit.apply("mul", sums, emit.cast(a, i32)))


def centered_operand(value: SSAValue) -> Quantized | None:
    """Return the 8-bit numbers that `value`, in i32, is after their zero point was taken off.

    New ops among them are not in a block yet.
    """
    array = constant_of(value)
    if array is not None:
        return None if (narrow := _narrow(value, i8)) is None else Quantized(narrow, None)
    if (numbers := _widened(value)) is not None:
        return Quantized(numbers, None)
    owner = value.owner
    if not isinstance(owner, ELEMENTWISE["sub"]):
        return None
    numbers, zero = _widened(owner.operands[0]), owner.operands[1]
    if numbers is None or extents_of(numbers) != extents_of(value):
        return None
    kind = element_type_of(numbers)
    narrow = _widened(zero)
    if narrow is None or element_type_of(narrow) != kind:
        narrow = _narrow(zero, kind)
    return None if narrow is None else Quantized(numbers, narrow)


def _widened(value: SSAValue) -> SSAValue | None:
    """Return the 8-bit numbers that were cast to i32."""
    owner = value.owner
    if not isinstance(owner, ELEMENTWISE["cast"]) or element_type_of(value) != i32:
        return None
    return owner.operands[0] if has_bytes(owner.operands[0]) else None


def _narrow(value: SSAValue, kind: Attribute) -> SSAValue | None:
    """Return a constant as one of 8 bits, None where it does not fit."""
    array, limits = constant_of(value), limits_of(kind)
    if array is None or array.size == 0 or array.min() < limits[0] or array.max() > limits[1]:
        return None
    return ConstantOp.of(array.astype(to_numpy(kind))).output
