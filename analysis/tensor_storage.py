"""What a tensor takes in memory, and which ops only give memory another shape."""

import math
from typing import cast

from xdsl.ir import Attribute, Operation

from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ReshapeOp


def is_view(op: Operation) -> bool:
    """Whether the result of `op` is its operand's memory: a reshape between row-major tensors."""
    return isinstance(op, ReshapeOp) and all(
        layout_of(value.type).is_row_major for value in (op.input, op.output)
    )


def storage_bytes(tensor: Attribute, layout: Layout | None = None) -> int:
    """Bytes of a tensor type in `layout`, by default its own, with the padding of whole blocks.

    The type must not have open dims.
    """
    shape = (layout or layout_of(tensor)).storage_shape(cast(AnyTensor, tensor).get_shape())
    return math.prod(shape) * bytes_of(cast(AnyTensor, tensor).element_type)


def logical_bytes(tensor: AnyTensor) -> int:
    """Bytes of a tensor type without padding; an open dim counts as one element."""
    elements = math.prod(max(extent, 1) for extent in tensor.get_shape())
    return elements * bytes_of(tensor.element_type)
