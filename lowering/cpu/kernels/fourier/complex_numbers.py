"""Complex numbers in vectors: real and imaginary parts apart, either of which may be known zeros.

Where a part is None, no op is emitted for it: real signals cost half as much in a first step.
"""

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation

from braid.lowering.emit.emitter import Emitter, Value

Part: TypeAlias = Value | None
"""A vector of real or imaginary parts; None where all are zero."""


@dataclass(frozen=True)
class Complex:
    """A complex number in each lane."""

    real: Part
    imaginary: Part

    @property
    def swapped(self) -> "Complex":
        """Return i times the conjugate: real and imaginary parts exchanged."""
        return Complex(self.imaginary, self.real)


@dataclass(frozen=True)
class Arithmetic:
    """Emits arithmetic on complex numbers whose parts are vectors of `element_type`."""

    e: Emitter
    element_type: Attribute

    def number(self, value: float) -> Value:
        """Return `value` in every lane."""
        return self.e.constant(value, self.e.vector_type(self.element_type))

    def add(self, a: Complex, b: Complex) -> Complex:
        """Return a + b."""
        return Complex(
            self._added(a.real, b.real, arith.AddfOp),
            self._added(a.imaginary, b.imaginary, arith.AddfOp),
        )

    def subtract(self, a: Complex, b: Complex) -> Complex:
        """Return a - b."""
        return Complex(
            self._added(a.real, b.real, arith.SubfOp),
            self._added(a.imaginary, b.imaginary, arith.SubfOp),
        )

    def conjugate(self, a: Complex) -> Complex:
        """Return the conjugate of a."""
        return Complex(a.real, self._negated(a.imaginary))

    def rotated(self, a: Complex) -> Complex:
        """Return -i · a."""
        return Complex(a.imaginary, self._negated(a.real))

    def scaled(self, a: Complex, factor: float) -> Complex:
        """Return a times a real number."""
        return Complex(*(self._times(part, factor) for part in (a.real, a.imaginary)))

    def plus_scaled(self, a: Complex, b: Complex, factor: float) -> Complex:
        """Return a + factor · b."""
        return Complex(
            self._fused(b.real, self.number(factor), a.real),
            self._fused(b.imaginary, self.number(factor), a.imaginary),
        )

    def turned(self, a: Complex, root: complex) -> Complex:
        """Return a times a number that is known."""
        if abs(root.imag) < 1e-12:
            return a if root.real > 0 else self._opposite(a)
        if abs(root.real) < 1e-12:
            turned = self.rotated(a)
            return turned if root.imag < 0 else self._opposite(turned)
        real, imaginary = self.number(root.real), self.number(root.imag)
        return Complex(
            self._fused(a.imaginary, self.number(-root.imag), self._scaled(a.real, real)),
            self._fused(a.imaginary, real, self._scaled(a.real, imaginary)),
        )

    def multiply(self, a: Complex, factor: Complex) -> Complex:
        """Return a times a number that is in memory, none of whose parts is known."""
        assert factor.real is not None
        assert factor.imaginary is not None
        negative = self._negated(a.imaginary)
        return Complex(
            self._fused(negative, factor.imaginary, self._scaled(a.real, factor.real)),
            self._fused(a.imaginary, factor.real, self._scaled(a.real, factor.imaginary)),
        )

    def _opposite(self, a: Complex) -> Complex:
        return Complex(self._negated(a.real), self._negated(a.imaginary))

    def _added(self, a: Part, b: Part, op: type[Operation]) -> Part:
        if b is None:
            return a
        if a is None:
            return b if op is arith.AddfOp else self._negated(b)
        return self.e.apply(op, a, b)

    def _negated(self, a: Part) -> Part:
        return None if a is None else self.e.apply(arith.NegfOp, a)

    def _times(self, a: Part, factor: float) -> Part:
        return self._scaled(a, self.number(factor))

    def _scaled(self, a: Part, factor: Value) -> Part:
        return None if a is None else self.e.apply(arith.MulfOp, a, factor)

    def _fused(self, a: Part, factor: Value, addend: Part) -> Part:
        """Return a · factor + addend."""
        if a is None:
            return addend
        return self._scaled(a, factor) if addend is None else self.e.fma(a, factor, addend)
