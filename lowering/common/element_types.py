"""Element types between braid and upstream, whose integers are signless, and conversions."""

from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    TensorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import i1, is_stored_only, is_unsigned


def width_of(element_type: Attribute) -> int:
    """Return the bits of an integer type."""
    return cast(IntegerType, element_type).width.data


def signless(element_type: Attribute) -> Any:
    """Return the type upstream computes with: signedness goes over to the operations.

    Types that are only stored become bytes.
    """
    if is_stored_only(element_type):
        return IntegerType(8)
    if not isinstance(element_type, IntegerType):
        return element_type
    return IntegerType(width_of(cast(Attribute, element_type)))


def signless_tensor(tensor: AnyTensor) -> AnyTensor:
    """Return the same tensor, encoding included, with upstream's element type."""
    return TensorType(signless(tensor.element_type), tensor.get_shape(), tensor.encoding)


def is_narrow_float(element_type: Attribute) -> bool:
    """Return whether this is a 16-bit float, which is stored but not computed with."""
    return isinstance(element_type, Float16Type | BFloat16Type)


def compute_type(element_type: Attribute) -> Any:
    """Return the type upstream computes in: 16-bit floats become 32-bit ones."""
    return f32 if is_narrow_float(element_type) else signless(element_type)


def tensor_type_of(value: SSAValue) -> AnyTensor:
    """Return the type of a value that is a tensor."""
    tensor_type = cast(AnyTensor, value.type)
    assert isinstance(tensor_type, TensorType)
    return tensor_type


def has_encoding(value: SSAValue) -> bool:
    """Return whether the value is a tensor with a layout."""
    if not isinstance(value.type, TensorType):
        return False
    return tensor_type_of(value).encoding != NoneAttr()


def constant(builder: Builder, value: float | int | bool, element_type: Attribute) -> SSAValue:
    """Return a number of a type that upstream computes in."""
    if isinstance(element_type, AnyFloat):
        return builder.insert(arith.ConstantOp(FloatAttr(float(value), element_type))).result
    integer_type = IntegerType(width_of(element_type))
    attribute = IntegerAttr(int(value), integer_type, truncate_bits=True)
    return builder.insert(arith.ConstantOp(attribute)).result


def widen(builder: Builder, value: SSAValue) -> SSAValue:
    """Return a stored value in the type upstream computes in."""
    if not is_narrow_float(value.type):
        return value
    return builder.insert(arith.ExtFOp(value, f32)).result


def narrow(builder: Builder, value: SSAValue, element_type: Attribute) -> SSAValue:
    """Return a computed value as it is stored in `element_type`."""
    if not is_narrow_float(element_type):
        return value
    assert isinstance(element_type, AnyFloat)
    return builder.insert(arith.TruncFOp(value, element_type)).result


def convert(builder: Builder, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """Return `value` of element type `source` as one of `target`, as `numpy_functions.convert` does
    it.

    Both are in the types upstream computes in.
    """
    if target == i1:
        return _is_nonzero(builder, value)
    if isinstance(source, AnyFloat) and isinstance(target, AnyFloat):
        return _between_floats(builder, value, target)
    if isinstance(target, AnyFloat):
        kind = arith.UIToFPOp if _is_nonnegative(source) else arith.SIToFPOp
        return builder.insert(kind(value, compute_type(target))).result
    if isinstance(source, AnyFloat):
        return _saturated(builder, value, target)
    return _between_integers(builder, value, source, target)


def _saturated(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    """Return a float as an integer. Upstream's conversions have no meaning outside of the type.

    The bounds are 0 and powers of two, which every float type has; comparisons with NaN fail.
    """
    held = i64 if width_of(target) > 32 else i32
    kind = arith.FPToUIOp if is_unsigned(target) else arith.FPToSIOp
    least, beyond = integer_bounds(target)
    low, high = (constant(builder, float(bound), value.type) for bound in (least, beyond))
    is_low = builder.insert(arith.CmpfOp(value, low, "olt")).result
    is_high = builder.insert(arith.CmpfOp(value, high, "oge")).result
    is_inside = builder.insert(
        arith.AndIOp(
            builder.insert(arith.CmpfOp(value, low, "oge")).result,
            builder.insert(arith.CmpfOp(value, high, "olt")).result,
        )
    ).result
    zero = constant(builder, 0, value.type)
    number = builder.insert(arith.SelectOp(is_inside, value, zero)).result
    inside = builder.insert(kind(number, held)).result
    for is_outside, bound in ((is_low, least), (is_high, beyond - 1)):
        outside = constant(builder, bound, held)
        inside = builder.insert(arith.SelectOp(is_outside, outside, inside)).result
    return _between_integers(builder, inside, held, target)


def integer_bounds(element_type: Attribute) -> tuple[int, int]:
    """Return the least number of an integer type, and the least one beyond it."""
    width = width_of(element_type)
    return (0, 1 << width) if is_unsigned(element_type) else (-1 << width - 1, 1 << width - 1)


def reinterpret(
    builder: Builder, value: SSAValue, source: Attribute, target: Attribute
) -> SSAValue:
    """Return the bits of `value` of element type `source` as a value of `target`, as wide as it.

    Both are in the types upstream computes in; a bool is a byte that is 0 or 1.
    """
    if i1 in (source, target):
        return convert(builder, value, source, target)
    stored = narrow(builder, value, source)
    if stored.type != signless(target):
        stored = builder.insert(arith.BitcastOp(stored, signless(target))).result
    return widen(builder, stored)


def _is_nonnegative(source: Attribute) -> bool:
    return is_unsigned(source) or source == i1


def _is_nonzero(builder: Builder, value: SSAValue) -> SSAValue:
    if value.type == i1:
        return value
    zero = constant(builder, 0, value.type)
    if isinstance(value.type, AnyFloat):
        return builder.insert(arith.CmpfOp(value, zero, "une")).result
    return builder.insert(arith.CmpiOp(value, zero, "ne")).result


def _between_floats(builder: Builder, value: SSAValue, target: AnyFloat) -> SSAValue:
    """Convert between floats; a conversion to 16 bits rounds, though the result is held in 32."""
    held = value.type
    assert isinstance(held, AnyFloat)
    if target.bitwidth > held.bitwidth:
        return builder.insert(arith.ExtFOp(value, target)).result
    if target.bitwidth < f32.bitwidth < held.bitwidth:
        # In two steps: the direct one is a call to a runtime library.
        value = builder.insert(arith.TruncFOp(value, f32)).result
    if target.bitwidth < held.bitwidth:
        value = builder.insert(arith.TruncFOp(value, target)).result
    return widen(builder, value)


def _between_integers(
    builder: Builder, value: SSAValue, source: Attribute, target: Attribute
) -> SSAValue:
    if width_of(target) < width_of(source):
        return builder.insert(arith.TruncIOp(value, signless(target))).result
    if width_of(target) == width_of(source):
        return value
    kind = arith.ExtUIOp if _is_nonnegative(source) else arith.ExtSIOp
    return builder.insert(kind(value, signless(target))).result
