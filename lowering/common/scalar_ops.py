"""Rows of the elementwise table as `arith` and `math` on scalars.

Values are in the types upstream computes in: integers are signless, and 16-bit floats are held
in 32 bits. The functions take braid's element type, which says whether an integer is signed.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, UnregisteredOp
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.dtypes import i1, is_float, is_unsigned
from braid.lowering.common.element_types import constant, width_of
from braid.lowering.common.tensor_loops import for_loop
from braid.support.errors import UnsupportedError


def shift_left(builder: Builder, values: Sequence[SSAValue], element_type: Attribute) -> SSAValue:
    """Return the first value shifted left by the second; 0 from the width on."""
    value, distance = values
    inside = _is_below_width(builder, distance, element_type)
    shifted = builder.insert(arith.ShLIOp(value, _or_zero(builder, inside, distance))).result
    return _or_zero(builder, inside, shifted)


def shift_right(builder: Builder, values: Sequence[SSAValue], element_type: Attribute) -> SSAValue:
    """Return the first value shifted right by the second; from the width on 0, or -1 for
    negatives.
    """
    value, distance = values
    inside = _is_below_width(builder, distance, element_type)
    if is_unsigned(element_type) or element_type == i1:
        shifted = builder.insert(arith.ShRUIOp(value, _or_zero(builder, inside, distance))).result
        return _or_zero(builder, inside, shifted)
    most = constant(builder, width_of(element_type) - 1, distance.type)
    bounded = builder.insert(arith.SelectOp(inside, distance, most)).result
    return builder.insert(arith.ShRSIOp(value, bounded)).result


def _is_below_width(builder: Builder, distance: SSAValue, element_type: Attribute) -> SSAValue:
    width = constant(builder, width_of(element_type), distance.type)
    return builder.insert(arith.CmpiOp(distance, width, "ult")).result


def _or_zero(builder: Builder, condition: SSAValue, value: SSAValue) -> SSAValue:
    zero = constant(builder, 0, value.type)
    return builder.insert(arith.SelectOp(condition, value, zero)).result


def integer_power(
    builder: Builder, base: SSAValue, exponent: SSAValue, element_type: Attribute
) -> SSAValue:
    """Return base to the power of exponent, wrapped; the part before the point if that is negative.

    By squaring: Knuth, "The Art of Computer Programming", volume 2, section 4.6.3.
    """
    one, zero = constant(builder, 1, base.type), constant(builder, 0, base.type)
    if is_unsigned(element_type):
        return _whole_power(builder, base, exponent, one, zero)
    positive = builder.insert(arith.MaxSIOp(exponent, zero)).result
    whole = _whole_power(builder, base, positive, one, zero)
    is_negative = builder.insert(arith.CmpiOp(exponent, zero, "slt")).result
    fraction = _reciprocal_power(builder, base, exponent, one, zero)
    return builder.insert(arith.SelectOp(is_negative, fraction, whole)).result


def _whole_power(
    builder: Builder, base: SSAValue, exponent: SSAValue, one: SSAValue, zero: SSAValue
) -> SSAValue:
    """Emit a power by one step per bit of the exponent, which is not negative."""

    def step(b: Builder, _: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        power, square, rest = carried
        bit = b.insert(arith.AndIOp(rest, one)).result
        is_set = b.insert(arith.CmpiOp(bit, zero, "ne")).result
        product = b.insert(arith.MuliOp(power, square)).result
        return [
            b.insert(arith.SelectOp(is_set, product, power)).result,
            b.insert(arith.MuliOp(square, square)).result,
            b.insert(arith.ShRUIOp(rest, one)).result,
        ]

    return for_loop(builder, width_of(base.type), [one, base, exponent], step)[0]


def _reciprocal_power(
    builder: Builder, base: SSAValue, exponent: SSAValue, one: SSAValue, zero: SSAValue
) -> SSAValue:
    """Return 1 or -1 if the base is that, with the sign of an odd power; 0 otherwise."""
    insert = builder.insert
    bit = insert(arith.AndIOp(exponent, one)).result
    is_even = insert(arith.CmpiOp(bit, zero, "eq")).result
    signed_unit = insert(arith.SelectOp(is_even, one, base)).result
    magnitude = insert(math.AbsIOp(base)).result
    is_unit = insert(arith.CmpiOp(magnitude, one, "eq")).result
    return insert(arith.SelectOp(is_unit, signed_unit, zero)).result


Values = Sequence[SSAValue]
Rule = Callable[[Builder, Values, Attribute], SSAValue]

_FLOAT_OPS: dict[str, Any] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "pow": math.PowFOp,
    "maximum": arith.MaximumfOp,
    "minimum": arith.MinimumfOp,
    "neg": arith.NegfOp,
    "abs": math.AbsFOp,
    "ceil": math.CeilOp,
    "floor": math.FloorOp,
    "round": math.RoundEvenOp,
    "sqrt": math.SqrtOp,
    "exp": math.ExpOp,
    "log": math.LogOp,
    "erf": math.ErfOp,
    "tanh": math.TanhOp,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "tan": math.TanOp,
    "asin": math.AsinOp,
    "acos": math.AcosOp,
    "atan": math.AtanOp,
    "sinh": math.SinhOp,
    "cosh": math.CoshOp,
    "asinh": math.AsinhOp,
    "acosh": math.AcoshOp,
    "atanh": math.AtanhOp,
}
_INTEGER_OPS: dict[str, Any] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "maximum": arith.MaxSIOp,
    "minimum": arith.MinSIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
    "abs": math.AbsIOp,
}
_UNSIGNED_OPS: dict[str, Any] = {
    **_INTEGER_OPS,
    "maximum": arith.MaxUIOp,
    "minimum": arith.MinUIOp,
}
_UNCHANGED_INTEGERS = frozenset({"ceil", "floor", "round"})
_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_INTEGER_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}


def emit_operation(
    builder: Builder, name: str, values: Values, element_type: Attribute
) -> SSAValue:
    """Emit row `name` of the elementwise table, without `cast`, on operands of `element_type`.

    `element_type` is that of the last operand. Raises UnsupportedError for a row that has no
    meaning on this type.
    """
    if name == "select":
        return builder.insert(arith.SelectOp(*values)).result
    if (rule := _RULES.get(name)) is not None:
        return rule(builder, values, element_type)
    if name in _FLOAT_PREDICATES:
        return _compare(builder, name, values, element_type)
    if is_float(element_type):
        ops = _FLOAT_OPS
    elif name in _UNCHANGED_INTEGERS or (name == "abs" and _has_no_sign(element_type)):
        return values[0]
    else:
        ops = _UNSIGNED_OPS if _has_no_sign(element_type) else _INTEGER_OPS
    if name not in ops:
        raise UnsupportedError(f"'{name}' has no code for element type {element_type}")
    return cast(SSAValue, builder.insert(ops[name](*values)).results[0])


def _has_no_sign(element_type: Attribute) -> bool:
    """Return whether a type has no sign bit: unsigned integers and bools."""
    return is_unsigned(element_type) or element_type == i1


def _compare(builder: Builder, name: str, values: Values, element_type: Attribute) -> SSAValue:
    a, b = values
    if is_float(element_type):
        return builder.insert(arith.CmpfOp(a, b, _FLOAT_PREDICATES[name])).result
    table = _UNSIGNED_PREDICATES if _has_no_sign(element_type) else _INTEGER_PREDICATES
    return builder.insert(arith.CmpiOp(a, b, table[name])).result


def _not(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    ones = constant(builder, 1 if element_type == i1 else -1, values[0].type)
    return builder.insert(arith.XOrIOp(values[0], ones)).result


def _neg(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    if is_float(element_type):
        return builder.insert(arith.NegfOp(values[0])).result
    zero = constant(builder, 0, values[0].type)
    return builder.insert(arith.SubiOp(zero, values[0])).result


def _sign(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    """Emit the sign of a value; NaN and 0 are neither above nor below 0 and stay as they are."""
    (x,) = values
    zero, one = constant(builder, 0, x.type), constant(builder, 1, x.type)
    is_above = _compare(builder, "gt", [x, zero], element_type)
    if _has_no_sign(element_type):
        return builder.insert(arith.SelectOp(is_above, one, x)).result
    is_below = _compare(builder, "lt", [x, zero], element_type)
    below = builder.insert(arith.SelectOp(is_below, constant(builder, -1, x.type), x))
    return builder.insert(arith.SelectOp(is_above, one, below.result)).result


def _reciprocal(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    one = constant(builder, 1, values[0].type)
    return emit_operation(builder, "div", [one, values[0]], element_type)


def _rsqrt(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    root = emit_operation(builder, "sqrt", values, element_type)
    return _reciprocal(builder, [root], element_type)


def _div(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    """Emit an integer division that is not executed where CPUs trap: by 0, and of the least number
    by -1.
    """
    a, b = values
    if is_float(element_type):
        return builder.insert(arith.DivfOp(a, b)).result
    zero, divisor, is_zero, is_minus_one = _divisor(builder, b, element_type)
    if is_minus_one is None:
        quotient = builder.insert(arith.DivUIOp(a, divisor)).result
    else:
        quotient = builder.insert(arith.DivSIOp(a, divisor)).result
        negated = builder.insert(arith.SubiOp(zero, a)).result
        quotient = builder.insert(arith.SelectOp(is_minus_one, negated, quotient)).result
    return builder.insert(arith.SelectOp(is_zero, zero, quotient)).result


def _rem(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    a, b = values
    if is_float(element_type):
        remainder = UnregisteredOp.with_name("arith.remf")
        return builder.insert(remainder.create(operands=[a, b], result_types=[a.type])).results[0]
    _, divisor, _, is_minus_one = _divisor(builder, b, element_type)
    kind = arith.RemUIOp if is_minus_one is None else arith.RemSIOp
    return builder.insert(kind(a, divisor)).result


def _divisor(
    builder: Builder, b: SSAValue, element_type: Attribute
) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue | None]:
    """Return 0, b with 1 in place of 0 and -1, whether b is 0, and for signed types whether b is
    -1.
    """
    zero, one = constant(builder, 0, b.type), constant(builder, 1, b.type)
    is_zero = builder.insert(arith.CmpiOp(b, zero, "eq")).result
    divisor = builder.insert(arith.SelectOp(is_zero, one, b)).result
    if _has_no_sign(element_type):
        return zero, divisor, is_zero, None
    minus_one = constant(builder, -1, b.type)
    is_minus_one = builder.insert(arith.CmpiOp(b, minus_one, "eq")).result
    divisor = builder.insert(arith.SelectOp(is_minus_one, one, divisor)).result
    return zero, divisor, is_zero, is_minus_one


def _pow(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    base, exponent = values
    if is_float(element_type):
        return builder.insert(math.PowFOp(base, exponent)).result
    return integer_power(builder, base, exponent, element_type)


def _isnan(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    (x,) = values
    if not isinstance(x.type, AnyFloat):
        return constant(builder, 0, i1)
    return builder.insert(arith.CmpfOp(x, x, "uno")).result


def _isinf(builder: Builder, values: Values, element_type: Attribute) -> SSAValue:
    (x,) = values
    if not isinstance(x.type, AnyFloat):
        return constant(builder, 0, i1)
    magnitude = builder.insert(math.AbsFOp(x)).result
    infinity = constant(builder, float("inf"), x.type)
    return builder.insert(arith.CmpfOp(magnitude, infinity, "oeq")).result


_RULES: dict[str, Rule] = {
    "not": _not,
    "neg": _neg,
    "sign": _sign,
    "reciprocal": _reciprocal,
    "rsqrt": _rsqrt,
    "div": _div,
    "rem": _rem,
    "pow": _pow,
    "isnan": _isnan,
    "isinf": _isinf,
    "shift_left": shift_left,
    "shift_right": shift_right,
}
