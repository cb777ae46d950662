"""xDSL's parser with checks of constants that no later stage can compute with."""

import math
import re

from xdsl.dialects.builtin import (
    AnyDenseElement,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float80Type,
    Float128Type,
    FloatAttr,
    IntegerAttr,
    RankedStructure,
    TensorType,
)
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap, AffineSet
from xdsl.parser import AffineParser
from xdsl.utils.mlir_lexer import MLIRToken

from braid.dialects.float_literals import BitPatternParser

_LIST = re.compile(r"<\s*[\[\">]")
"""The beginning of elements that are not one number for all: a list, bytes, or none."""
_MOST_BYTES = 1 << 31
"""Counts the elements that a splat represents."""


class _CheckedAffineParser(AffineParser):
    """A parser of affine maps that rejects divisors which are not positive."""

    def _create_binop_expr(self, lhs: AffineExpr, rhs: AffineExpr, binop: MLIRToken) -> AffineExpr:
        is_division = binop.text in ("floordiv", "ceildiv", "mod")
        if is_division and isinstance(rhs, AffineConstantExpr) and rhs.value <= 0:
            # Whatever evaluates the map would divide by it.
            self.raise_error(f"'{binop.text} {rhs.value}', expected a positive divisor", binop.span)
        return super()._create_binop_expr(lhs, rhs, binop)


class CheckedParser(BitPatternParser):
    """A parser that rejects affine divisors below 1, and floats of more than 64 bits."""

    def parse_affine_map(self) -> AffineMap:
        """Parse an affine map, every divisor of which must be positive."""
        return _CheckedAffineParser(self._parser_state).parse_affine_map()

    def parse_affine_set(self) -> AffineSet:
        """Parse an affine set, every divisor of which must be positive."""
        return _CheckedAffineParser(self._parser_state).parse_affine_set()

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """Parse a number; reject float types that xDSL can neither print nor compute with."""
        position = self.pos
        number = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(number, FloatAttr) and isinstance(number.type, Float80Type | Float128Type):
            self.raise_error(f"numbers of {number.type} cannot be read", position, self.pos)
        return number

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """Parse the elements of a tensor; a splat is packed once.

        It is then repeated. xDSL makes a list of numbers first, which takes 100 bytes and as many
        ns of each.
        """
        start = self.pos
        if _LIST.match(self.lexer.input.content, start):
            return super().parse_dense_int_or_fp_elements_attr(type)
        self.parse_punctuation("<")
        self._parse_tensor_literal()
        self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()
        end, shape = self.pos, type.get_shape()
        self._resume_from(start)
        one = super().parse_dense_int_or_fp_elements_attr(TensorType(type.element_type, []))
        self._resume_from(end)
        if any(extent < 0 for extent in shape):
            self.raise_error(f"elements of type {type}, expected a static shape", start, end)
        size = len(one.data.data) * math.prod(shape)
        if size > _MOST_BYTES:
            self.raise_error(
                f"a number that is repeated takes {size} bytes, expected at most {_MOST_BYTES}",
                start,
                end,
            )
        return DenseIntOrFPElementsAttr(type, BytesAttr(one.data.data * math.prod(shape)))
