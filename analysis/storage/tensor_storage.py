"""Compute the bytes of tensors in memory, and find ops that only give memory another shape."""

import math
from collections.abc import Sequence
from typing import cast

from xdsl.ir import Attribute, Operation

from braid.analysis.structure.parameter_expressions import is_leaf
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import ConcatOp, ReshapeOp, SliceOp, TransposeOp
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.sizes import extents_of_type
from braid.support.sizes.expression import Extent


def stored_alike(shape: Sequence[int], first: Layout, second: Layout) -> bool:
    """Return whether a tensor of `shape` lies in memory in the same way in both layouts.

    This also holds if they differ only in the positions of dims of extent 1.
    """
    if first == second:
        return True
    if first.is_abstract or second.is_abstract or first.is_buffer != second.is_buffer:
        return False
    if first.is_transformed or second.is_transformed:
        return False
    return _large_dims(shape, first) == _large_dims(shape, second)


def _large_dims(shape: Sequence[int], layout: Layout) -> list[tuple[int, int, int]]:
    stored = zip(layout.dims, layout.storage_shape(shape), strict=True)
    return [(dim.dim, dim.step, extent) for dim, extent in stored if extent != 1]


def is_view(op: Operation) -> bool:
    """Return whether the result of `op` is its operand's memory.

    This holds for reshapes between row-major tensors, reorders that move nothing, and transposes
    whose result has the layout that describes the operand's memory.
    """
    if isinstance(op, TransposeOp):
        return is_transposed_view(op, layout_of(op.input.type), layout_of(op.output.type))
    if isinstance(op, ReorderOp):
        source, target = op.input.type, op.output.type
        shape = cast(AnyTensor, source).get_shape()
        return stored_alike(shape, layout_of(source), layout_of(target))
    return isinstance(op, ReshapeOp) and all(
        layout_of(value.type).is_row_major for value in (op.input, op.output)
    )


def is_transposed_view(op: TransposeOp, source: Layout, target: Layout) -> bool:
    """Return whether the result of `op` in `target` is the memory of its operand in `source`."""
    layouts = (source, target)
    if all(layout.is_row_major for layout in layouts):
        return False
    if any(layout.is_abstract or not layout.is_permutation for layout in layouts):
        return False
    permutation = op.permutation.get_values()
    return [dim.dim for dim in source.dims] == [permutation[dim.dim] for dim in target.dims]


def storage_bytes(tensor: Attribute, layout: Layout | None = None) -> int:
    """Return the bytes of a tensor type in `layout`, by default its own, with the padding of whole
    blocks.

    The type must not have open dims.
    """
    shape = (layout or layout_of(tensor)).storage_shape(cast(AnyTensor, tensor).get_shape())
    return math.prod(shape) * bytes_of(cast(AnyTensor, tensor).element_type)


def open_storage_bytes(tensor: Attribute) -> Extent:
    """Return the result of `storage_bytes`, a size if the type has open dims with sizes."""
    type = cast(AnyTensor, tensor)
    total: Extent = bytes_of(type.element_type)
    for extent in layout_of(tensor).storage_shape(extents_of_type(type)):
        total = extent * total
    return total


def logical_bytes(tensor: AnyTensor) -> int:
    """Return the bytes of a tensor type without padding; an open dim counts as one element."""
    elements = math.prod(max(extent, 1) for extent in tensor.get_shape())
    return elements * bytes_of(tensor.element_type)


def is_addressing(op: Operation) -> bool:
    """Return whether `op` takes no instruction: its readers address its operands instead.

    A transfer has strides, so slices and concatenations are where data is loaded from or stored
    to.
    """
    return is_leaf(op) or is_view(op) or isinstance(op, SliceOp | ConcatOp)
