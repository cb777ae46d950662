"""Conversions to f32 of values that are stored in fewer bits."""

from xdsl.dialects.builtin import IntegerType, bf16, f16, f32
from xdsl.ir import Operation, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.elementwise import ELEMENTWISE

NARROW = (f16, bf16, IntegerType(8))
"""Element types that kernels of products convert to f32 as they load them."""

_CAST = ELEMENTWISE["cast"]


def narrow_source(op: Operation) -> SSAValue | None:
    """Return the operand of a conversion to f32 from one of the types `NARROW`, else None."""
    if not isinstance(op, _CAST) or element_type_of(op.results[0]) != f32:
        return None
    return op.operands[0] if element_type_of(op.operands[0]) in NARROW else None
