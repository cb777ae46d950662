"""Element types of scalars of `arith`, their bits, and what comparisons say."""

from typing import Any, cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.elementwise import elementwise
from braid.passes.linalg.node import UpstreamNode


def computed_type(element_type: Attribute) -> Attribute:
    """Return the type in which braid computes `element_type`; `index` is computed as i64."""
    return i64 if isinstance(element_type, IndexType) else element_type


def result_element(value: SSAValue) -> Attribute:
    """Return the element type of an op's result, which is a tensor or a scalar."""
    type = value.type
    return computed_type(cast(Any, type).element_type if isinstance(type, TensorType) else type)


def unsigned_of(element_type: Attribute) -> IntegerType:
    """Return the unsigned type of the same width."""
    return IntegerType(cast(IntegerType, element_type).width.data, Signedness.UNSIGNED)


def as_unsigned(node: UpstreamNode, value: SSAValue) -> SSAValue:
    """Return a bitcast of `value` to the unsigned type of the same width."""
    return bits_as(node, value, unsigned_of(element_type_of(value)))


def bits_as(node: UpstreamNode, value: SSAValue, element_type: Attribute) -> SSAValue:
    """Return the bits of `value` as numbers of another type; itself if it has that."""
    if element_type_of(value) == element_type:
        return value
    return node.emit(elementwise("bitcast", value, element_type=element_type))


def predicate_of(node: UpstreamNode, op: Operation) -> int:
    """Return the number of the comparison that an op makes."""
    value = op.properties.get("predicate", op.attributes.get("predicate"))
    if not isinstance(value, IntegerAttr):
        node.leave()
    return cast(IntegerAttr[Any], value).value.data
