"""Layouts of groups without regard to kernel families: what the generic lowering can do.

Ops whose operands have the rank of their result and whose meaning does not depend on the order of
dims in memory run in any permutation, as long as all their tensors have the same one. Transposes
may also move nothing, and have another layout on one side.
"""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.attribute_names import STREAM
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.movement import BroadcastOp, ConcatOp, PadOp, SliceOp, TransposeOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp

_WEIGHTED = (ConvOp, ConvTransposeOp)
"""Ops whose operand 1 holds weights, whose layout is kept."""

_FLEXIBLE = (
    *_WEIGHTED,
    BroadcastOp,
    ConcatOp,
    ConstantOp,
    ElementwiseOp,
    PadOp,
    PoolOp,
    ReduceOp,
    ResizeOp,
    SliceOp,
)

_BLOCKS = (8, 16)
"""Channels in one vector of 256 and 512 bits."""

_FEATURE_MAPS = (3, 4, 5)
"""Ranks with one, two and three spatial dims."""


def as_typed(op: Operation) -> LayoutChoice:
    """Return the layouts in the types of `op`, which has only tensors."""
    return LayoutChoice(
        tuple(layout_of(value.type) for value in op.operands),
        tuple(layout_of(value.type) for value in op.results),
    )


def row_major_choice(group: FusedOp) -> LayoutChoice:
    """Return row-major layouts for all tensors."""
    return LayoutChoice(
        tuple(_row_major(value) for value in group.operands),
        tuple(_row_major(value) for value in group.results),
    )


def flexible_choices(group: FusedOp) -> list[LayoutChoice]:
    """Return row-major layouts, and for feature maps channels last and in blocks, if all ops allow
    it.

    Ops that only compute with, move or repeat whole channels run in blocks too, where these
    divide the channels of all tensors.
    """
    choices = [row_major_choice(group)]
    ranks = {len(shape_of(value)) for value in (*group.operands, *group.results)}
    inner = [op for op in group.body.block.ops if op is not group.terminator]
    if STREAM in group.attributes:
        return choices  # A chip has its own order of bytes, and hands on none.
    if len(inner) == 1 and isinstance(inner[0], TransposeOp):
        return [*choices, *_views(inner[0])]
    if len(ranks) != 1 or not all(isinstance(op, _FLEXIBLE) for op in inner):
        return choices
    rank = ranks.pop()
    if rank in _FEATURE_MAPS:
        choices.append(_choice_of(group, Layout.channels_last(rank)))
    if rank == 4 and not any(isinstance(op, _WEIGHTED) for op in inner):
        blocks = (block for block in _BLOCKS if _divides_channels(block, group, inner))
        choices += [_choice_of(group, Layout.channel_blocks(rank, block)) for block in blocks]
    return choices


def _views(op: TransposeOp) -> list[LayoutChoice]:
    """Return layouts with one side row-major, and the other such that nothing is moved."""
    permutation = op.permutation.get_values()
    plain = Layout.row_major(len(permutation))
    before = Layout.parse("".join(plain.tag[dim] for dim in permutation))
    after = Layout.parse("".join(plain.tag[permutation.index(n)] for n in range(len(permutation))))
    return [LayoutChoice((plain,), (after,)), LayoutChoice((before,), (plain,))]


def _choice_of(group: FusedOp, layout: Layout) -> LayoutChoice:
    """Return `layout` for everything but weights and tensors that extend along at most one dim."""
    operands = tuple(
        _row_major(operand) if _is_weight(argument) else _permuted(operand, layout)
        for operand, argument in zip(group.operands, group.body.block.args, strict=True)
    )
    return LayoutChoice(operands, tuple(_permuted(value, layout) for value in group.results))


def _divides_channels(block: int, group: FusedOp, inner: Sequence[Operation]) -> bool:
    """Return whether every tensor has whole blocks of channels and no op cuts one or adds it up."""
    values = [*group.operands, *group.results, *(r for op in inner for r in op.results)]
    channels = [shape_of(value)[1] for value in values]
    return all(count != DYNAMIC and count % block == 0 for count in channels)


def _is_weight(argument: SSAValue) -> bool:
    return all(isinstance(use.operation, _WEIGHTED) and use.index == 1 for use in argument.uses)


def _row_major(value: SSAValue) -> Layout:
    return Layout.row_major(len(shape_of(value)))


def _permuted(value: SSAValue, layout: Layout) -> Layout:
    """Return `layout`, spelled row-major where that is the same: for at most one dim larger
    than 1.
    """
    large = sum(extent != 1 for extent in shape_of(value))
    return _row_major(value) if large <= 1 else layout
