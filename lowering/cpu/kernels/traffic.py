"""What a group moves to and from memory, for estimates of its time."""

import math
from typing import Any, cast

from xdsl.dialects.builtin import FixedBitwidthType, TensorType
from xdsl.ir import Attribute

from braid.analysis.kernel_family import LayoutChoice
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp


def tensor_bytes(tensor: Attribute, layout: Layout) -> int:
    """Bytes of a tensor type stored in `layout`."""
    type = cast(TensorType[Any], tensor)
    element_type = type.element_type
    assert isinstance(element_type, FixedBitwidthType)
    return math.prod(layout.storage_shape(type.get_shape())) * max(1, element_type.size)


def stored_bytes(group: FusedOp, choice: LayoutChoice) -> int:
    """Bytes of all operands and results, each counted once."""
    values = (*group.inputs, *group.outputs)
    layouts = (*choice.operands, *choice.results)
    return sum(tensor_bytes(v.type, layout) for v, layout in zip(values, layouts, strict=True))
