"""Groups of one unpadded 2-d convolution with an elementwise epilogue."""

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
    epilogue: Pointwise


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
    epilogue = pointwise(group, op)
    if epilogue is None or w in epilogue.leaves:
        return None
    return ConvMatch(op, x, w, epilogue) if min(*shape_of(x), *shape_of(w)) > 0 else None


def operand_layouts(group: FusedOp, match: ConvMatch, weight: Layout) -> tuple[Layout, ...]:
    """Channels last but for the weight, and row-major for operands along one dim at most."""

    def layout(index: int) -> Layout:
        if index == match.weight.index:
            return weight
        extents = shape_of(group.inputs[index])
        plain = sum(extent != 1 for extent in extents) <= 1 and index != match.input.index
        return Layout.row_major(4) if plain else CHANNELS_LAST

    return tuple(layout(index) for index in range(len(group.inputs)))
