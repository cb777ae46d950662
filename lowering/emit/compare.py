"""Comparing and choosing, lane by lane or single numbers; xDSL's builders know scalars only."""

from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, VectorType, i1, i64
from xdsl.ir import Attribute

from braid.lowering.emit.emitter import Emitter, Value

_FLOATS = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
_INTEGERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_PREDICATES = {
    name: {"predicate": IntegerAttr(number, i64), "fastmath": FastMathFlagsAttr("none")}
    for number, name in enumerate(_FLOATS)
}
_INTEGER_PREDICATES = {
    name: {"predicate": IntegerAttr(number, i64)} for number, name in enumerate(_INTEGERS)
}


def compare(e: Emitter, predicate: str, a: Value, b: Value) -> Value:
    """Return `predicate` (as `arith.cmpf` and `arith.cmpi` name them) of a and b, an i1 for
    each.
    """
    result = e.vector_type(i1) if isinstance(a.type, VectorType) else i1
    if _is_float(a):
        return e.make(arith.CmpfOp, [a, b], result, _FLOAT_PREDICATES[predicate])
    return e.make(arith.CmpiOp, [a, b], result, _INTEGER_PREDICATES[predicate])


def choose(e: Emitter, condition: Value, a: Value, b: Value) -> Value:
    """Return a where the condition holds, else b."""
    return e.make(arith.SelectOp, [condition, a, b], a.type)


def at_least(e: Emitter, x: Value, bound: Value) -> Value:
    """Return the larger of x and `bound`, x where x is NaN: one `max` instruction on x86.

    `bound` is not NaN.
    """
    return choose(e, compare(e, "olt" if _is_float(x) else "slt", x, bound), bound, x)


def at_most(e: Emitter, x: Value, bound: Value) -> Value:
    """Return the smaller of x and `bound`, x where x is NaN; `bound` is not NaN."""
    return choose(e, compare(e, "ogt" if _is_float(x) else "sgt", x, bound), bound, x)


def clamp(e: Emitter, x: Value, low: float, high: float) -> Value:
    """Return x limited to [low, high], NaN where x is NaN."""
    lower = at_least(e, x, e.constant(low, x.type))
    return at_most(e, lower, e.constant(high, x.type))


def _is_float(value: Value) -> bool:
    type = value.type
    if isinstance(type, VectorType):
        return isinstance(cast(VectorType[Attribute], type).element_type, AnyFloat)
    return isinstance(type, AnyFloat)
