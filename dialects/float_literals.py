"""A parser that reads hexadecimal float literals as MLIR means them: as bit patterns.

xDSL 0.74 prints infinities and NaNs in `dense<…>` as MLIR does (`0xFF800000`), but reads such an
element back as an integer, which would turn -inf into 4286578688.0.
"""

import math
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyDenseElement,
    AnyFloat,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    RankedStructure,
)
from xdsl.parser import AttrParser, Parser
from xdsl.utils.lexer import Span

from braid.dialects.braid.dtypes import bytes_of, to_numpy


class _Element(AttrParser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """An element of a dense literal, before its type is known."""

    def to_type(
        self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType
    ) -> float | int | tuple[float, float] | tuple[int, int]:
        if isinstance(type, ComplexType):
            return self._to_parts(parser, cast("ComplexType[AnyFloat]", type).element_type)
        if not isinstance(type, AnyFloat) or not self.span.text.lower().startswith("0x"):
            return super().to_type(parser, type)
        size = bytes_of(type)
        try:
            bits = self.to_int(parser).to_bytes(size, "little")
        except OverflowError:
            parser.raise_error(f"bit pattern does not fit {type}", at_position=self.span)
        number = float(np.frombuffer(bits, to_numpy(type))[0])
        if math.isnan(number) and isinstance(parser, BitPatternParser):
            parser.nans.append(bits)
        return number

    def _to_parts(self, parser: AttrParser, type: AnyFloat) -> tuple[float, float]:
        """Return the real and the imaginary part, which `_parse_optional_complex` has kept."""
        if not isinstance(self.value, tuple):
            parser.raise_error("expected a complex number, '(1.0, 0.0)'", at_position=self.span)
        real, imaginary = (
            cast(float, part.to_type(parser, type))
            for part in cast(tuple[_Element, _Element], self.value)
        )
        return real, imaginary


class BitPatternParser(Parser):
    """xDSL's parser, in which hexadecimal elements of float tensors are bit patterns."""

    _TensorLiteralElement = _Element

    def _parse_optional_complex(self) -> Any:
        """Parse two parts as separate elements, since one may be a bit pattern."""
        start = self.parse_optional_punctuation("(")
        if start is None:
            return None
        position = self.pos - 1
        real = self._part()
        self.parse_punctuation(",")
        imaginary = self._part()
        self.parse_punctuation(")")
        return (real, imaginary), Span(position, self.pos, self.lexer.input)

    def _part(self) -> _Element:
        value, span = self._parse_bool_int_or_float()
        return _Element(value < 0, value, span)

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """Parse as xDSL does, but keep the bits of every NaN, which Python's floats lose."""
        self.nans: list[bytes] = []
        dense = super().parse_dense_int_or_fp_elements_attr(type)
        if not self.nans:
            return dense
        element_type = dense.get_element_type()
        if isinstance(element_type, ComplexType):
            element_type = element_type.element_type
        values = np.frombuffer(dense.data.data, to_numpy(element_type)).copy()
        values[np.isnan(values)] = np.frombuffer(b"".join(self.nans), values.dtype)
        return DenseIntOrFPElementsAttr(dense.type, BytesAttr(values.tobytes()))
