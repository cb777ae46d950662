"""The elementwise table as ops on vectors."""

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    VectorType,
    bf16,
    f16,
    i1,
)
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.dtypes import is_number
from braid.lowering.common.element_types import signless
from braid.lowering.common.emitted_dialects import math, vector
from braid.lowering.emit.compare import choose, compare
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math.angles import Angles
from braid.lowering.emit.math.double_functions import DoubleFunctions
from braid.lowering.emit.math.elementary_functions import Functions
from braid.lowering.emit.math.wide_functions import WideFunctions

Emit = Callable[[Emitter, Sequence[Value]], Value]


def _op(op: type[Operation]) -> Emit:
    """Return one upstream op with the same operands, whose result has their type."""
    return lambda e, a: e.apply(op, *a)


def _math(name: str) -> Emit:
    """Return one op of the dialect `math`, by its class."""
    return lambda e, a: e.insert(getattr(math, name)(*a))


def _by_lanes(name: str) -> Emit:
    """Return one op of the dialect `math` on each lane, which is a call of the C library."""

    def emit(e: Emitter, a: Sequence[Value]) -> Value:
        result, kind = a[0], Float64Type()
        for lane in range(e.lanes):
            numbers = [e.insert(vector.ExtractOp(x, [lane], kind)) for x in a]
            number = e.insert(getattr(math, name)(*numbers))
            result = e.insert(vector.InsertOp(number, result, [lane]))
        return result

    return emit


def _compare(predicate: str) -> Emit:
    return lambda e, a: compare(e, predicate, a[0], a[1])


def _minimum(e: Emitter, a: Sequence[Value]) -> Value:
    """Emit the minimum of IEEE 754-2019: -0.0 below 0.0, NaN if either operand is NaN.

    An instruction of x86 gives its second operand where both are zero or one is NaN. In both
    orders that gives both operands, whose bits together are a negative zero or NaN: three
    instructions, where `arith.minimumf` takes six.
    """
    first, second = _in_both_orders(e, "olt", a)
    return e.make(arith.BitcastOp, [e.apply(arith.OrIOp, first, second)], a[0].type)


def _maximum(e: Emitter, a: Sequence[Value]) -> Value:
    """Emit the maximum of IEEE 754-2019: 0.0 above -0.0, NaN if either operand is NaN.

    Like `_minimum`, but the result is negative only if both operands are. With AVX-512 this takes
    three instructions as well, since one combines three operands bit by bit.
    """
    first, second = _in_both_orders(e, "ogt", a)
    either, both = e.apply(arith.OrIOp, first, second), e.apply(arith.AndIOp, first, second)
    size = e.constant((1 << (_bits(a[0].type) - 1)) - 1, first.type)
    bits = e.apply(arith.OrIOp, both, e.apply(arith.AndIOp, either, size))
    return e.make(arith.BitcastOp, [bits], a[0].type)


def _in_both_orders(e: Emitter, predicate: str, a: Sequence[Value]) -> list[Value]:
    """Emit the bits of `x if predicate(x, y) else y` for both orders of two floats."""
    type = a[0].type
    integer = IntegerType(_bits(type))
    bits = VectorType(integer, type.get_shape()) if isinstance(type, VectorType) else integer
    chosen = (choose(e, compare(e, predicate, x, y), x, y) for x, y in (a, a[::-1]))
    return [e.make(arith.BitcastOp, [value], bits) for value in chosen]


def _bits(type: Attribute) -> int:
    """Return the bits of a number, or of each element of a vector."""
    element = (
        cast(VectorType[Attribute], type).element_type if isinstance(type, VectorType) else type
    )
    assert isinstance(element, AnyFloat | IntegerType)
    return element.bitwidth


_Library = Functions | Angles | WideFunctions | DoubleFunctions


def _functions(library: type[_Library], names: str) -> dict[str, Emit]:
    """Return the methods of a class of functions, by their names."""
    return {name: lambda e, a, name=name: getattr(library(e), name)(*a) for name in names.split()}


def _one(e: Emitter, like: Value) -> Value:
    return e.constant(1.0, like.type)


def _reciprocal(e: Emitter, a: Sequence[Value]) -> Value:
    return e.insert(arith.DivfOp(_one(e, a[0]), a[0]))


def _rsqrt(e: Emitter, a: Sequence[Value]) -> Value:
    return _reciprocal(e, [e.insert(math.SqrtOp(a[0]))])


def _sign(e: Emitter, a: Sequence[Value]) -> Value:
    """Return ±1 with the sign of a, but a itself where it is 0 or NaN."""
    unit = e.insert(math.CopySignOp(_one(e, a[0]), a[0]))
    return choose(e, compare(e, "one", a[0], e.constant(0.0, a[0].type)), unit, a[0])


def _not(e: Emitter, a: Sequence[Value]) -> Value:
    return e.insert(arith.XOrIOp(a[0], e.constant(-1, a[0].type)))


def _negate(e: Emitter, a: Sequence[Value]) -> Value:
    return e.insert(arith.SubiOp(e.constant(0, a[0].type), a[0]))


def _isnan(e: Emitter, a: Sequence[Value]) -> Value:
    return compare(e, "uno", a[0], a[0])


def _isinf(e: Emitter, a: Sequence[Value]) -> Value:
    size = e.insert(math.AbsFOp(a[0]))
    return compare(e, "oeq", size, e.constant(float("inf"), a[0].type))


def _shift_left(e: Emitter, a: Sequence[Value]) -> Value:
    """Emit a shift to the left that gives 0 from the width on."""
    return _shifted_or_zero(e, arith.ShLIOp, a)


def _shift_right(e: Emitter, a: Sequence[Value]) -> Value:
    """Emit a shift to the right that gives 0, or -1 for negatives, from the width on."""
    value, distance = a
    most = e.constant(_bits(value.type) - 1, value.type)
    is_inside = compare(e, "ult", distance, most)
    return e.apply(arith.ShRSIOp, value, choose(e, is_inside, distance, most))


def _shift_right_without_sign(e: Emitter, a: Sequence[Value]) -> Value:
    """Emit a shift to the right that gives 0 from the width on."""
    return _shifted_or_zero(e, arith.ShRUIOp, a)


def _shifted_or_zero(e: Emitter, op: type[Operation], a: Sequence[Value]) -> Value:
    value, distance = a
    zero = e.constant(0, value.type)
    is_inside = compare(e, "ult", distance, e.constant(_bits(value.type), value.type))
    shifted = e.apply(op, value, choose(e, is_inside, distance, zero))
    return choose(e, is_inside, shifted, zero)


_WIDTHS: dict[Attribute, int] = {IntegerType(bits): bits for bits in (1, 8, 16, 32, 64)}
_UNSIGNED: set[Attribute] = {IntegerType(bits, Signedness.UNSIGNED) for bits in (8, 16, 32, 64)}
_HALVES: set[Attribute] = {f16, bf16}

_BITS: dict[str, Emit] = {
    "and": _op(arith.AndIOp),
    "or": _op(arith.OrIOp),
    "xor": _op(arith.XOrIOp),
    "not": _not,
}
_FLOATS: dict[str, Emit] = {
    "add": _op(arith.AddfOp),
    "sub": _op(arith.SubfOp),
    "mul": _op(arith.MulfOp),
    "div": _op(arith.DivfOp),
    "maximum": _maximum,
    "minimum": _minimum,
    "eq": _compare("oeq"),
    "ne": _compare("une"),
    "lt": _compare("olt"),
    "le": _compare("ole"),
    "gt": _compare("ogt"),
    "ge": _compare("oge"),
    "neg": _op(arith.NegfOp),
    "abs": _math("AbsFOp"),
    "sign": _sign,
    "ceil": _math("CeilOp"),
    "floor": _math("FloorOp"),
    "round": _math("RoundEvenOp"),
    "sqrt": _math("SqrtOp"),
    "rsqrt": _rsqrt,
    "reciprocal": _reciprocal,
    "isnan": _isnan,
    "isinf": _isinf,
}
_F32_FUNCTIONS: dict[str, Emit] = {
    **_functions(Functions, "exp log tanh erf atan asin acos"),
    **_functions(Angles, "sin cos tan"),
    **_functions(WideFunctions, "sinh cosh asinh acosh atanh pow"),
}
_F64_FUNCTIONS: dict[str, Emit] = {
    **_functions(DoubleFunctions, "exp log tanh sin cos"),
    **{
        name: _by_lanes(op)
        for name, op in (
            ("tan", "TanOp"),
            ("asin", "AsinOp"),
            ("acos", "AcosOp"),
            ("atan", "AtanOp"),
            ("sinh", "SinhOp"),
            ("cosh", "CoshOp"),
            ("asinh", "AsinhOp"),
            ("acosh", "AcoshOp"),
            ("atanh", "AtanhOp"),
            ("erf", "ErfOp"),
            ("pow", "PowFOp"),
        )
    },
}
_INTEGERS: dict[str, Emit] = _BITS | {
    "add": _op(arith.AddiOp),
    "sub": _op(arith.SubiOp),
    "mul": _op(arith.MuliOp),
    "maximum": _op(arith.MaxSIOp),
    "minimum": _op(arith.MinSIOp),
    "eq": _compare("eq"),
    "ne": _compare("ne"),
    "lt": _compare("slt"),
    "le": _compare("sle"),
    "gt": _compare("sgt"),
    "ge": _compare("sge"),
    "neg": _negate,
    "abs": _math("AbsIOp"),
    "shift_left": _shift_left,
    "shift_right": _shift_right,
}
_WITHOUT_SIGN: dict[str, Emit] = {
    name: emit for name, emit in _INTEGERS.items() if name not in ("neg", "abs")
} | {
    "maximum": _op(arith.MaxUIOp),
    "minimum": _op(arith.MinUIOp),
    "lt": _compare("ult"),
    "le": _compare("ule"),
    "gt": _compare("ugt"),
    "ge": _compare("uge"),
    "shift_right": _shift_right_without_sign,
}


def emitter_of(operation: str, operands: Sequence[Attribute], result: Attribute) -> Emit | None:
    """Return how an operation of the table is written on vectors of these element types, or
    None.
    """
    if not all(type == i1 or is_number(type) for type in (*operands, result)):
        return None
    if operation == "select":
        return lambda e, a: choose(e, *a)
    if operation == "cast":
        return _cast(operands[0], result)
    if operation == "bitcast":
        return _bitcast(operands[0], result)
    element_type = operands[0]
    if element_type in _HALVES:
        return None
    if element_type == i1:
        return _BITS.get(operation)
    if not isinstance(element_type, AnyFloat):
        table = _WITHOUT_SIGN if element_type in _UNSIGNED else _INTEGERS
        return table.get(operation)
    if element_type == Float32Type() and operation in _F32_FUNCTIONS:
        return _F32_FUNCTIONS[operation]
    if element_type == Float64Type() and operation in _F64_FUNCTIONS:
        return _F64_FUNCTIONS[operation]
    return _FLOATS.get(operation)


def _cast(source: Attribute, target: Attribute) -> Emit | None:
    """Emit a conversion whose result is defined for every operand, as C's from float is not."""
    if signless(source) == signless(target):
        return lambda e, a: a[0]
    op = conversion(source, target)
    return None if op is None else lambda e, a: e.convert(op, a[0], target)


def _bitcast(source: Attribute, target: Attribute) -> Emit | None:
    """Return the bits as another type; integer vectors need no op."""
    if i1 in (source, target):
        return None
    if signless(source) == signless(target):
        return lambda e, a: a[0]
    return lambda e, a: e.convert(arith.BitcastOp, a[0], target)


def conversion(source: Attribute, target: Attribute) -> type[Operation] | None:
    """Return the op that converts between element types of numbers that are not the same bits.

    The result is None for conversions of floats to integers, for which no op has a result that is
    always defined, and for conversions of f16 and bf16 from and to types other than f32, which go
    through f32.
    """
    if source in _HALVES or target in _HALVES:
        if Float32Type() not in (source, target):
            return None
        return arith.ExtFOp if source in _HALVES else arith.TruncFOp
    if isinstance(source, AnyFloat):
        widths: dict[Attribute, int] = {Float32Type(): 32, Float64Type(): 64}
        if target not in widths:
            return None
        return arith.ExtFOp if widths[target] > widths[source] else arith.TruncFOp
    if target == i1:
        return None
    without_sign = source == i1 or source in _UNSIGNED
    if isinstance(target, AnyFloat):
        return arith.UIToFPOp if without_sign else arith.SIToFPOp
    if _WIDTHS[signless(target)] < _WIDTHS[signless(source)]:
        return arith.TruncIOp
    return arith.ExtUIOp if without_sign else arith.ExtSIOp
