"""Element types between braid, whose integers may be unsigned, and upstream's signless ones."""

from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IntegerType,
    TensorType,
    f32,
)
from xdsl.ir import Attribute

from braid.dialects.braid.base import AnyTensor


def signless(element_type: Attribute) -> Any:
    """The type upstream computes with: signedness goes over to the operations."""
    return (
        IntegerType(element_type.width) if isinstance(element_type, IntegerType) else element_type
    )


def signless_tensor(tensor: AnyTensor) -> AnyTensor:
    """The same tensor, encoding included, with upstream's element type."""
    return TensorType(signless(tensor.element_type), tensor.get_shape(), tensor.encoding)


def is_narrow_float(element_type: Attribute) -> bool:
    """Whether this is a 16-bit float, which is stored but not computed with."""
    return isinstance(element_type, Float16Type | BFloat16Type)


def compute_type(element_type: Attribute) -> Any:
    """The type upstream computes in: 16-bit floats become 32-bit ones."""
    return f32 if is_narrow_float(element_type) else signless(element_type)
