"""Element types between braid, whose integers may be unsigned, and upstream's signless ones."""

from typing import Any, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IntegerType,
    NoneAttr,
    TensorType,
    f32,
)
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import is_stored_only, is_unsigned


def width_of(element_type: Attribute) -> int:
    """Bits of an integer type."""
    return cast(IntegerType, element_type).width.data


def signless(element_type: Attribute) -> Any:
    """The type upstream computes with: signedness goes over to the operations.

    Types that are only stored become bytes.
    """
    if is_stored_only(element_type):
        return IntegerType(8)
    return IntegerType(width_of(element_type)) if is_unsigned(element_type) else element_type


def signless_tensor(tensor: AnyTensor) -> AnyTensor:
    """The same tensor, encoding included, with upstream's element type."""
    return TensorType(signless(tensor.element_type), tensor.get_shape(), tensor.encoding)


def is_narrow_float(element_type: Attribute) -> bool:
    """Whether this is a 16-bit float, which is stored but not computed with."""
    return isinstance(element_type, Float16Type | BFloat16Type)


def compute_type(element_type: Attribute) -> Any:
    """The type upstream computes in: 16-bit floats become 32-bit ones."""
    return f32 if is_narrow_float(element_type) else signless(element_type)


def tensor_type_of(value: SSAValue) -> AnyTensor:
    """The type of a value that is a tensor."""
    tensor_type = cast(AnyTensor, value.type)
    assert isinstance(tensor_type, TensorType)
    return tensor_type


def has_encoding(value: SSAValue) -> bool:
    """Whether the value is a tensor with a layout."""
    if not isinstance(value.type, TensorType):
        return False
    return tensor_type_of(value).encoding != NoneAttr()
