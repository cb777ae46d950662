"""Arithmetic on vectors of one float type, with which elementary functions are built."""

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, Operation

from braid.lowering.common.emitted_dialects import math
from braid.lowering.emit.compare import choose, compare
from braid.lowering.emit.emitter import Emitter, Value
from braid.lowering.emit.math.float_arithmetic import FloatArithmetic


class VectorMath(FloatArithmetic):
    """Vectors of `element_type`, f32 or f64, and their bits as integers of the same width."""

    def __init__(self, e: Emitter, element_type: AnyFloat) -> None:
        self.e = e
        self._floats = e.vector_type(element_type)
        self._integers = e.vector_type(IntegerType(element_type.bitwidth))

    def number(self, value: float) -> Value:
        """Return `value` in every lane."""
        return self.e.constant(value, self._floats)

    def integer(self, value: int) -> Value:
        """Return `value` in every lane, as wide as the floats are."""
        return self.e.constant(value, self._integers)

    def do(self, op: Operation) -> Value:
        """Return the result of an op."""
        return self.e.insert(op)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Return a · b + c."""
        return self.e.fma(a, b, c)

    def polynomial(self, coefficients: Sequence[float], x: Value) -> Value:
        """Evaluate a polynomial by Horner's rule; the coefficient of the highest power
        comes first.
        """
        value = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, self.number(coefficient))
        return value

    def odd(self, coefficients: Sequence[float], x: Value, square: Value) -> Value:
        """Return x + x³ times a polynomial in x²."""
        return self.fma(self.mul(x, square), self.polynomial(coefficients, square), x)

    def size(self, x: Value) -> Value:
        """Return |x|."""
        return self.do(math.AbsFOp(x))

    def root(self, x: Value) -> Value:
        """Return the square root."""
        return self.do(math.SqrtOp(x))

    def signed(self, size: Value, like: Value) -> Value:
        """Return `size` with the sign of `like`."""
        return self.do(math.CopySignOp(size, like))

    def rounded(self, x: Value) -> Value:
        """Round to the nearest whole number, halves to even."""
        return self.do(math.RoundEvenOp(x))

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """Return an i1 for each lane; predicates as `arith` names them."""
        return compare(self.e, predicate, a, b)

    def choose(self, condition: Value, a: Value, b: Value) -> Value:
        """Return a where the condition holds, else b."""
        return choose(self.e, condition, a, b)

    def both(self, a: Value, b: Value) -> Value:
        """Return where two conditions hold."""
        return self.integers(arith.AndIOp, a, b)

    def invert(self, condition: Value) -> Value:
        """Return where a condition does not hold."""
        return self.integers(arith.XOrIOp, condition, 1)

    def bits(self, x: Value) -> Value:
        """Return the bits of floats as integers."""
        return self.do(arith.BitcastOp(x, self._integers))

    def float_of(self, bits: Value) -> Value:
        """Return the floats by their bits."""
        return self.do(arith.BitcastOp(bits, self._floats))

    def integers(self, op: type[Operation], a: Value, b: Value | int) -> Value:
        """Return an op of `arith` on integers of any width."""
        if isinstance(b, int):
            b = self.e.constant(b, a.type)
        return self.e.apply(op, a, b)

    def converted(self, op: type[Operation], x: Value, element_type: Attribute) -> Value:
        """Return a conversion op of `arith`."""
        return self.e.convert(op, x, element_type)
