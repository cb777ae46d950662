"""Writes straight-line functions as LLVM IR text."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

INFINITY = float("inf")
_INTRINSIC_SUFFIX = {"float": "f32", "double": "f64"}


@dataclass(frozen=True)
class Value:
    """An operand as text, and LLVM's name of its type."""

    text: str
    type: str


class FunctionWriter:
    """An internal function on `count` values of one type, which is always inlined.

    `called` are its callees, `intrinsics` declarations of those that it uses.
    """

    def __init__(self, name: str, type: str, count: int) -> None:
        self._name, self._type = name, type
        self.arguments = [Value(f"%a{n}", type) for n in range(count)]
        self._lines: list[str] = []
        self.called: set[str] = set()
        self.intrinsics: set[str] = set()

    def text(self) -> str:
        """Return the definition."""
        arguments = ", ".join(f"{a.type} {a.text}" for a in self.arguments)
        head = f"define internal {self._type} @{self._name}({arguments}) alwaysinline nounwind {{"
        return "\n".join([head, *self._lines, "}\n"])

    def finish(self, value: Value) -> None:
        """Return `value`."""
        self._lines.append(f"  ret {value.type} {value.text}")

    def number(self, value: float) -> Value:
        """Return a constant of the function's type."""
        if self._type == "float":
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        return Value(f"0x{bits:016X}", self._type)

    def integer(self, value: int, type: str) -> Value:
        """Return an integer constant."""
        return Value(str(value), type)

    def binary(self, operation: str, a: Value, b: Value) -> Value:
        """Return an instruction on two values of one type."""
        return self._emit(f"{operation} {a.type} {a.text}, {b.text}", a.type)

    def add(self, a: Value, b: Value) -> Value:
        """Return the sum of two floats."""
        return self.binary("fadd", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        """Return the difference of two floats."""
        return self.binary("fsub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """Return the product of two floats."""
        return self.binary("fmul", a, b)

    def div(self, a: Value, b: Value) -> Value:
        """Return the quotient of two floats."""
        return self.binary("fdiv", a, b)

    def negate(self, a: Value) -> Value:
        """Return the float with the other sign."""
        return self._emit(f"fneg {a.type} {a.text}", a.type)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Return a · b + c, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def polynomial(self, coefficients: Sequence[float], x: Value) -> Value:
        """Evaluate a polynomial by Horner's rule; the coefficient of the highest power
        comes first.
        """
        value = self.number(coefficients[0])
        for coefficient in coefficients[1:]:
            value = self.fma(value, x, self.number(coefficient))
        return value

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """Return a comparison of floats."""
        return self._emit(f"fcmp {predicate} {a.type} {a.text}, {b.text}", "i1")

    def compare_integers(self, predicate: str, a: Value, b: Value) -> Value:
        """Return a comparison of integers."""
        return self._emit(f"icmp {predicate} {a.type} {a.text}, {b.text}", "i1")

    def both(self, a: Value, b: Value) -> Value:
        """Return whether two conditions hold."""
        return self.binary("and", a, b)

    def invert(self, a: Value) -> Value:
        """Return whether a condition does not hold."""
        return self._emit(f"xor i1 {a.text}, true", "i1")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Return `a` where the condition holds, else `b`."""
        text = f"select i1 {condition.text}, {a.type} {a.text}, {b.type} {b.text}"
        return self._emit(text, a.type)

    def cast(self, operation: str, value: Value, type: str) -> Value:
        """Return a conversion."""
        return self._emit(f"{operation} {value.type} {value.text} to {type}", type)

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """Return x limited to two bounds; NaN stays NaN."""
        least, most = self.number(low), self.number(high)
        inside = self.select(self.compare("olt", x, least), least, x)
        return self.select(self.compare("ogt", inside, most), most, inside)

    def kept_between(self, x: Value, low: float, high: float) -> Value:
        """Return x limited to two bounds by two instructions of f32; NaN stays NaN."""
        above = self.intrinsic("maximum", x, self.number(low))
        return self.intrinsic("minimum", above, self.number(high))

    def intrinsic(self, name: str, *values: Value) -> Value:
        """Call an intrinsic of LLVM, overloaded by the type of its operands."""
        type = values[0].type
        symbol = f"llvm.{name}.{_INTRINSIC_SUFFIX[type]}"
        self.intrinsics.add(f"declare {type} @{symbol}({', '.join([type] * len(values))})")
        return self._call(symbol, type, values)

    def instruction(self, name: str, *values: Value) -> Value:
        """Return an instruction of NVIDIA's GPUs on f32, by the name of its intrinsic, such as
        `fma.rm.f`.

        Approximate instructions are as exact as the PTX ISA says ("Floating Point Instructions").
        """
        symbol = f"llvm.nvvm.{name}"
        self.intrinsics.add(f"declare float @{symbol}({', '.join(['float'] * len(values))})")
        return self._call(symbol, "float", values)

    def call(self, symbol: str, type: str, *values: Value) -> Value:
        """Emit a call of another of these functions."""
        self.called.add(symbol)
        return self._call(symbol, type, values)

    def _call(self, symbol: str, type: str, values: Sequence[Value]) -> Value:
        arguments = ", ".join(f"{value.type} {value.text}" for value in values)
        return self._emit(f"call {type} @{symbol}({arguments})", type)

    def _emit(self, text: str, type: str) -> Value:
        name = f"%v{len(self._lines)}"
        self._lines.append(f"  {name} = {text}")
        return Value(name, type)


@dataclass(frozen=True)
class Bits:
    """The bits of a type of floats: LLVM's integer of that width, bits of the mantissa, and the
    bias.
    """

    type: str
    mantissa: int
    bias: int


def split(w: FunctionWriter, x: Value, bits: Bits) -> tuple[Value, Value]:
    """Return m in [√½, √2) and a whole n, both floats, with x = m · 2^n, for a finite x > 0.

    Numbers below the smallest normal one are scaled before.
    """
    scale, type = bits.mantissa + 1, bits.type
    tiny = w.compare("olt", x, w.number(2.0 ** (1 - bits.bias)))
    scaled = w.select(tiny, w.mul(x, w.number(2.0**scale)), x)
    whole = w.cast("bitcast", scaled, type)
    biased = w.binary("lshr", whole, w.integer(bits.mantissa, type))
    half = bits.bias - 1
    exponent = w.cast("sitofp", w.binary("sub", biased, w.integer(half, type)), x.type)
    exponent = w.select(tiny, w.sub(exponent, w.number(float(scale))), exponent)
    fraction = w.binary("and", whole, w.integer((1 << bits.mantissa) - 1, type))
    mantissa = w.binary("or", fraction, w.integer(half << bits.mantissa, type))
    mantissa = w.cast("bitcast", mantissa, x.type)
    low = w.compare("olt", mantissa, w.number(0.5**0.5))
    exponent = w.select(low, w.sub(exponent, w.number(1.0)), exponent)
    return w.select(low, w.add(mantissa, mantissa), mantissa), exponent


def log_edges(w: FunctionWriter, x: Value, value: Value) -> Value:
    """Return `value` if x has a logarithm, else the result of IEEE 754."""
    zero = w.number(0.0)
    value = w.select(w.compare("oeq", x, w.number(INFINITY)), x, value)
    value = w.select(w.compare("oeq", x, zero), w.number(-INFINITY), value)
    value = w.select(w.compare("olt", x, zero), w.number(float("nan")), value)
    return w.select(w.compare("uno", x, x), x, value)
