"""xDSL's parser with checks of constants that no later stage can compute with."""

from xdsl.dialects.builtin import Float80Type, Float128Type, FloatAttr, IntegerAttr
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap, AffineSet
from xdsl.parser import AffineParser
from xdsl.utils.mlir_lexer import MLIRToken

from braid.dialects.float_literals import BitPatternParser


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
