"""Groups of one unpadded 2-d convolution with an elementwise epilogue."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import BlockArgument

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.pointwise import Pointwise, pointwise

CHANNELS_LAST = Layout.parse("acdb")


@dataclass(frozen=True)
class ConvMatch:
    """A convolution of block arguments and its epilogue."""

    op: ConvOp
    input: BlockArgument
    weight: BlockArgument
    points: Pointwise


def match_convolution(group: FusedOp) -> ConvMatch | None:
    """The convolution of the group: f32, static, two spatial dims, padded by its producer."""
    convolutions = [op for op in group.body.block.ops if isinstance(op, ConvOp)]
    if len(convolutions) != 1:
        return None
    op = convolutions[0]
    x, w = op.input, op.weight
    if not isinstance(x, BlockArgument) or not isinstance(w, BlockArgument) or x is w:
        return None
    if element_type_of(x) != Float32Type() or len(shape_of(x)) != 4 or op.windows.is_padded:
        return None
    points = pointwise(group, op)
    if points is None or w in points.leaves:
        return None
    return ConvMatch(op, x, w, points) if min(*shape_of(x), *shape_of(w)) > 0 else None


def leaf_layout(shape: Sequence[int], typed: Layout) -> Layout:
    """Layout in which an operand of an epilogue on NHWC results is taken.

    Operands that extend along one dim at most stay as they are typed: row-major.
    """
    return typed if is_vector(shape) and typed.is_row_major else CHANNELS_LAST


def is_vector(shape: Sequence[int]) -> bool:
    """Whether a shape extends along one dim at most."""
    return sum(extent != 1 for extent in shape) <= 1


def operand_layouts(
    group: FusedOp, input: BlockArgument, weight: BlockArgument | None, packed: Layout
) -> tuple[Layout, ...]:
    """Channels last but for the weight, and row-major for the epilogue's vectors."""

    def layout(index: int) -> Layout:
        if weight is not None and index == weight.index:
            return packed
        vector = is_vector(shape_of(group.inputs[index])) and index != input.index
        return Layout.row_major(4) if vector else CHANNELS_LAST

    return tuple(layout(index) for index in range(len(group.inputs)))
