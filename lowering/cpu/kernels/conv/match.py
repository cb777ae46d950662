"""Groups of one unpadded convolution with an elementwise epilogue."""

from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import BlockArgument

from braid.analysis.nests.pointwise import Pointwise, pointwise
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.windows import Windows
from braid.lowering.cpu.kernels.contraction.matmul import has_types
from braid.lowering.emit.math.points import emittable

RANKS = (3, 4, 5)
"""Dims of lines, images and volumes of several channels."""


@dataclass(frozen=True)
class ConvMatch:
    """A convolution of block arguments and its epilogue."""

    op: ConvOp
    input: BlockArgument
    weight: BlockArgument
    points: Pointwise

    # Asked once for each of many layouts.
    @cached_property
    def windows(self) -> Windows:
        """The window of the convolution."""
        return self.op.windows

    @cached_property
    def groups(self) -> int:
        """Parts that the channels are divided into."""
        return self.op.groups.value.data

    @cached_property
    def rank(self) -> int:
        """Dims of the input: images, channels, and one to three spatial ones."""
        return len(shape_of(self.input))

    @cached_property
    def depth(self) -> int:
        """Input channels of one group."""
        return shape_of(self.weight)[1]

    @cached_property
    def columns(self) -> int:
        """Output channels of one group."""
        return shape_of(self.weight)[0] // self.groups

    @cached_property
    def is_depthwise(self) -> bool:
        """Whether every channel is convolved alone, into one."""
        return self.groups > 1 and self.depth == self.columns == 1


def match_convolution(group: FusedOp, narrow: bool = False) -> ConvMatch | None:
    """The convolution of the group: static, one to three spatial dims, padded by its producer.

    Of f32 or f64; if `narrow`, of numbers that are added up in a type of their own.
    """
    convolutions = [op for op in group.body.block.ops if isinstance(op, ConvOp)]
    if len(convolutions) != 1:
        return None
    op = convolutions[0]
    x, w = op.input, op.weight
    if not isinstance(x, BlockArgument) or not isinstance(w, BlockArgument) or x is w:
        return None
    if not has_types(op, narrow) or len(shape_of(x)) not in RANKS or op.windows.is_padded:
        return None
    points = emittable(pointwise(group, op))
    if points is None or w in points.leaves or (narrow and x in points.leaves):
        return None
    return ConvMatch(op, x, w, points) if min(*shape_of(x), *shape_of(w)) > 0 else None
