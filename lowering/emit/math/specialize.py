"""Elementwise ops with a constant operand that are cheaper, or possible, because it is known."""

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from braid.analysis.nests.pointwise import splat
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import is_unsigned
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.lowering.common.emitted_dialects import math as math_ops
from braid.lowering.emit.compare import at_least, at_most, choose, compare
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math.elementary_functions import Functions
from braid.lowering.emit.math.elementwise_table import Emit

_LIMITS: dict[str, Callable[[Emitter, Value, Value], Value]] = {
    "maximum": at_least,
    "minimum": at_most,
}
_PRODUCT_EXPONENTS = (2, 3, 4)
"""Powers that are written as products."""


def specialized(op: ElementwiseOp) -> Emit | None:
    """Return an emitter specialized for the constant operand of `op`, None for the general one.

    A maximum or minimum with a number is one instruction, where NaN in both operands takes three:
    activations end in it, once per element of a product. A power of f32 is written for constant
    exponents only: small ones as products, fractions by roots or by exp and log, which are NaN for
    negative numbers, as the power is. The power of minus infinity is that of infinity.
    """
    if op.ROW.name in _LIMITS and not is_unsigned(op.result_type().element_type):
        return _limit(op)
    if op.ROW.name == "pow" and element_type_of(op.operands[0]) == Float32Type():
        exponent = _known(op.operands[1])
        return None if exponent is None else _power(exponent)
    return None


def _limit(op: ElementwiseOp) -> Emit | None:
    limit = _LIMITS[op.ROW.name]
    for x, bound in ((0, 1), (1, 0)):
        number = _known(op.operands[bound])
        if number is None or math.isnan(number):
            continue
        # For two zeros the clamp keeps the sign of x.
        is_zero = isinstance(number, float) and not number
        if is_zero and math.copysign(1, number) < 0 and op.ROW.name == "minimum":
            continue
        if is_zero and math.copysign(1, number) > 0 and op.ROW.name == "maximum":
            return lambda e, a, x=x, bound=bound: _not_negative(e, a[x], a[bound])
        return lambda e, a, x=x, bound=bound: limit(e, a[x], a[bound])
    return None


def _not_negative(e: Emitter, x: Value, zero: Value) -> Value:
    """Emit the larger of x and `zero`; adding `zero` turns -0.0 into 0.0."""
    return e.apply(arith.AddfOp, at_least(e, x, zero), zero)


def _known(value: SSAValue) -> float | int | None:
    return splat(value.owner) if isinstance(value.owner, ConstantOp) else None


def _power(exponent: float) -> Emit | None:
    if exponent == 0.5:
        return _root
    if exponent in _PRODUCT_EXPONENTS:
        return lambda e, a: _product(e, a[0], int(exponent))
    if not math.isfinite(exponent) or exponent == int(exponent):
        return None
    return _exponential


def _product(e: Emitter, x: Value, exponent: int) -> Value:
    square = e.insert(arith.MulfOp(x, x))
    if exponent == 2:
        return square
    return e.insert(arith.MulfOp(square, x if exponent == 3 else square))


def _root(e: Emitter, a: Sequence[Value]) -> Value:
    """Emit the square root with 0.0 for -0.0, as the power has it."""
    x = _without_minus_infinity(e, a[0])
    return e.insert(math_ops.SqrtOp(e.apply(arith.AddfOp, x, e.constant(0.0, x.type))))


def _exponential(e: Emitter, a: Sequence[Value]) -> Value:
    functions = Functions(e)
    logarithm = functions.log(_without_minus_infinity(e, a[0]))
    return functions.exp(e.insert(arith.MulfOp(logarithm, a[1])))


def _without_minus_infinity(e: Emitter, x: Value) -> Value:
    """Emit x with infinity for minus infinity: a fractional power is the same for both."""
    is_lowest = compare(e, "oeq", x, e.constant(-math.inf, x.type))
    return choose(e, is_lowest, e.constant(math.inf, x.type), x)
