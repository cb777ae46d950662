"""Exchanges of numbers between the lanes of a warp."""

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, UnregisteredAttr, UnregisteredOp, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.element_types import constant


def _mode(name: str) -> Attribute:
    """Return the mode attribute of a shuffle, which xDSL does not have."""
    kind = UnregisteredAttr.with_name_and_type("gpu", False)
    return kind("gpu", False, False, f"shuffle_mode {name}")


XOR, UP = _mode("xor"), _mode("up")
"""Exchanges with the lane whose number differs by the distance, and from the lane that far
below."""
_SHUFFLED = 32
"""The bits that an exchange moves."""


def shuffled(
    builder: Builder, value: SSAValue, distance: int, lanes: int, mode: Attribute
) -> SSAValue:
    """Return the value, of any type, of the lane at `distance`; 32 bits of it are exchanged at a
    time.
    """
    type: Attribute = value.type
    bits = 8 * bytes_of(type)
    if bits == _SHUFFLED:
        return _exchanged(builder, value, distance, lanes, mode)
    whole = IntegerType(bits)
    number = value if type == whole else builder.insert(arith.BitcastOp(value, whole)).result
    if bits < _SHUFFLED:
        wide = builder.insert(arith.ExtUIOp(number, i32)).result
        other = _exchanged(builder, wide, distance, lanes, mode)
        number = builder.insert(arith.TruncIOp(other, whole)).result
    else:
        half = constant(builder, _SHUFFLED, i64)
        high = builder.insert(arith.ShRUIOp(number, half)).result
        parts: list[SSAValue] = []
        for part in (number, high):
            narrow = builder.insert(arith.TruncIOp(part, i32)).result
            other = _exchanged(builder, narrow, distance, lanes, mode)
            parts.append(builder.insert(arith.ExtUIOp(other, i64)).result)
        top = builder.insert(arith.ShLIOp(parts[1], half)).result
        number = builder.insert(arith.OrIOp(parts[0], top)).result
    return number if type == whole else builder.insert(arith.BitcastOp(number, type)).result


def _exchanged(
    builder: Builder, value: SSAValue, distance: int, lanes: int, mode: Attribute
) -> SSAValue:
    shuffle = UnregisteredOp.with_name("gpu.shuffle").create(
        operands=[value, constant(builder, distance, i32), constant(builder, lanes, i32)],
        result_types=[value.type, i1],
        attributes={"mode": mode},
    )
    return builder.insert(shuffle).results[0]
