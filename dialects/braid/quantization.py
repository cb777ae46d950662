"""Elementwise ops between real numbers and the integers that stand for them.

The integer q of scale s and zero point z stands for (q - z) · s. Scales are positive numbers.
Operands have one rank; a dim of size 1 is repeated, so that scales, multipliers and zero points
may be of the whole tensor, of its channels, or of each element.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import StringAttr, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import attr_def, irdl_op_definition

from braid.dialects.braid import numpy_functions as fn
from braid.dialects.braid.base import element_type_of, require, require_one_of
from braid.dialects.braid.dtypes import bytes_of, is_computed_integer, to_numpy
from braid.dialects.braid.dtypes import f32 as float32
from braid.dialects.braid.elementwise import Elementwise, ElementwiseOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scalar import Apply, Argument, Literal, Scalar
from braid.dialects.braid.structure import Structure

ROUNDINGS = ("half_even", "half_up")
"""The roundings of a requantized number that is as far from two integers."""

MULTIPLIER_BITS, MOST_SHIFT = 24, 62
"""Fixed-point multipliers of f32 scales: a scale is its multiplier times 2 to the power of
-shift."""


class QuantizationOp(ElementwiseOp):
    """Base of the ops between quantized integers and the real numbers that they represent."""

    @abstractmethod
    def body(self) -> Scalar:
        """Return the expression of one element of the result."""

    def structure(self) -> Structure:
        """Return the stage of an elementwise op, with the op's own body."""
        (stage,) = super().structure().stages
        return Structure((replace(stage, body=self.body()),), (0,))

    def _require_type(self, index: int, what: str, expected: Attribute) -> None:
        found = element_type_of(self.operands[index])
        require(found == expected, "{} has element type {}, expected {}", what, found, expected)


def is_quantized(element_type: Attribute) -> bool:
    """Return whether quantized numbers may have this type."""
    return is_computed_integer(element_type) and bytes_of(element_type) <= 2


def is_byte(element_type: Attribute) -> bool:
    """Return whether this is an integer type of 8 bits."""
    return is_quantized(element_type) and bytes_of(element_type) == 1


def require_quantized(what: str, element_type: Attribute) -> None:
    """Raise VerifyException unless quantized numbers may have this type."""
    fits = is_quantized(element_type)
    message = "{} has element type {}, expected i8, ui8, i16 or ui16"
    require(fits, message, what, element_type)


def limits_of(element_type: Attribute) -> tuple[int, int]:
    """Return the least and the largest number of an integer type."""
    info = np.iinfo(to_numpy(element_type))
    return int(info.min), int(info.max)


def _clamped(value: Scalar, limits: tuple[float, float], type: Attribute) -> Scalar:
    least, largest = limits
    above = Apply("maximum", (value, Literal(least, type)), type)
    return Apply("minimum", (above, Literal(largest, type)), type)


def _cast(value: Scalar, type: Attribute) -> Scalar:
    return Apply("cast", (value,), type)


@irdl_op_definition
class QuantizeOp(QuantizationOp):
    """Elementwise: the integers that stand for real numbers, round(x / scale) + zero point.

    Operands: x and the scale, f32, and the zero point, whose type (i8, ui8, i16, ui16) is the
    result's. Halves are rounded to even, the sum is computed in f32 and kept in the range of the
    type; NaN becomes 0.
    Fails verification for other ranks, extents or element types.

    ```mlir
    %q = braid.quantize %x, %scale, %zero
        : (tensor<2x4xf32>, tensor<1x1xf32>, tensor<1x1xui8>) -> tensor<2x4xui8>
    ```
    """

    name = "braid.quantize"
    ROW: ClassVar[Elementwise] = Elementwise(
        "quantize", 3, fn.identity, "round(a / b) + c, in the type of c", flops=10
    )

    def _verify_element_types(self) -> None:
        self._require_type(0, "the operand", float32)
        self._require_type(1, "the scale", float32)
        require_quantized("the zero point", element_type_of(self.inputs[2]))

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """See the class."""
        x, scale, zero = operands
        limits = np.iinfo(zero.dtype)
        with np.errstate(all="ignore"):
            value = np.rint(x / scale) + zero.astype(np.float32)
            clamped = np.minimum(np.maximum(value, np.float32(limits.min)), np.float32(limits.max))
        return (fn.convert(clamped, zero.dtype),)

    def body(self) -> Scalar:
        """See the class."""
        kind = self.result_type().element_type
        ratio = Apply("div", (Argument(0), Argument(1)), float32)
        rounded = Apply("round", (ratio,), float32)
        value = Apply("add", (rounded, _cast(Argument(2), float32)), float32)
        return _cast(_cast(_clamped(value, limits_of(kind), float32), i32), kind)


@irdl_op_definition
class DequantizeOp(QuantizationOp):
    """Elementwise: the real numbers that integers stand for, (q - zero point) · scale.

    Operands: q (i8, ui8, i16, ui16 or i32), the scale in f32, and the zero point in the type of q.
    The difference is computed in i32, the product in f32.
    Fails verification for other ranks, extents or element types.

    ```mlir
    %x = braid.dequantize %q, %scale, %zero
        : (tensor<2x4xui8>, tensor<1x1xf32>, tensor<1x1xui8>) -> tensor<2x4xf32>
    ```
    """

    name = "braid.dequantize"
    ROW: ClassVar[Elementwise] = Elementwise(
        "dequantize", 3, fn.identity, "(a - c) · b", "float", flops=3
    )

    def _verify_element_types(self) -> None:
        kind = element_type_of(self.inputs[0])
        if kind != i32:
            require_quantized("the operand", kind)
        self._require_type(1, "the scale", float32)
        self._require_type(2, "the zero point", kind)

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """See the class."""
        q, scale, zero = operands
        centered = q.astype(np.int32) - zero.astype(np.int32)
        return (centered.astype(np.float32) * scale,)

    def body(self) -> Scalar:
        """See the class."""
        centered = Apply("sub", (_cast(Argument(0), i32), _cast(Argument(2), i32)), i32)
        return Apply("mul", (_cast(centered, float32), Argument(1)), float32)


@irdl_op_definition
class RequantizeOp(QuantizationOp):
    """Elementwise: converts integers from one scale to another, without floating point.

    Operands: x, the multiplier m and the shift s, i32, and the zero point, whose type (i8, ui8,
    i16, ui16) is the result's. The result is x · m / 2^s, rounded to an integer, plus the zero
    point, kept in the range of the type; all of it exact. s is 1 to 62: others have no meaning.
    `rounding` says where halves go: `half_even`, as `braid.quantize`, or `half_up`, as TOSA.
    Fails verification for other ranks, extents or element types, or another `rounding`.

    ```mlir
    %q = braid.requantize %x, %multiplier, %shift, %zero {rounding = "half_even"}
        : (tensor<2x4xi32>, tensor<1x4xi32>, tensor<1x4xi32>, tensor<1x1xi8>) -> tensor<2x4xi8>
    ```
    """

    name = "braid.requantize"
    ROW: ClassVar[Elementwise] = Elementwise(
        "requantize", 4, fn.identity, "a · b / 2^c + d, in the type of d", flops=10
    )

    rounding = attr_def(StringAttr)

    @staticmethod
    def get(
        x: SSAValue,
        multiplier: SSAValue,
        shift: SSAValue,
        zero: SSAValue,
        rounding: str = "half_even",
    ) -> "RequantizeOp":
        """Build the op from a plain name."""
        return RequantizeOp.on(x, multiplier, shift, zero, rounding=StringAttr(rounding))

    def _verify_element_types(self) -> None:
        require_one_of("rounding", self.rounding.data, ROUNDINGS)
        for index, what in enumerate(("the operand", "the multiplier", "the shift")):
            self._require_type(index, what, i32)
        require_quantized("the zero point", element_type_of(self.inputs[3]))

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Return the rounded quotient of the exact product; see the class."""
        x, multiplier, shift, zero = (operand.astype(np.int64) for operand in operands)
        with np.errstate(all="ignore"):
            unit = np.left_shift(np.int64(1), np.clip(shift, 1, MOST_SHIFT))
            quotient, rest = np.divmod(x * multiplier, unit)
            half = unit // 2
            is_up = rest > half
            on_half = rest == half
        up_on_half = on_half if self.rounding.data == "half_up" else on_half & (quotient % 2 == 1)
        value = quotient + (is_up | up_on_half) + zero
        limits = np.iinfo(operands[3].dtype)
        return (np.clip(value, limits.min, limits.max).astype(operands[3].dtype),)

    def body(self) -> Scalar:
        """Return an expression with shifts.

        Half a unit is added first, less the last bit of the quotient where it is rounded to even.
        """

        def number(value: int) -> Scalar:
            return Literal(value, i64)

        def apply(name: str, *arguments: Scalar) -> Scalar:
            return Apply(name, arguments, i64)

        x, multiplier, shift, zero = (_cast(Argument(index), i64) for index in range(4))
        product = apply("mul", x, multiplier)
        half = apply("shift_left", number(1), apply("sub", shift, number(1)))
        if self.rounding.data == "half_even":
            odd = apply("and", apply("shift_right", product, shift), number(1))
            half = apply("sub", apply("add", half, odd), number(1))
        rounded = apply("shift_right", apply("add", product, half), shift)
        kind = self.result_type().element_type
        return _cast(_clamped(apply("add", rounded, zero), limits_of(kind), i64), kind)


QUANTIZATION = (QuantizeOp, DequantizeOp, RequantizeOp)
"""The ops of this file."""
