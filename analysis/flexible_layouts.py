"""Layouts of groups that no kernel family takes: what the generic lowering can do.

Ops whose operands have the rank of their result and whose meaning does not depend on the order
of dims in memory run in any permutation, as long as all their tensors have the same one.
"""

from xdsl.ir import SSAValue

from braid.analysis.kernel_family import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.movement import BroadcastOp, ConcatOp, PadOp, SliceOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.resize import ResizeOp
from braid.dialects.braid.transposed_convolution import ConvTransposeOp

_WEIGHTED = (ConvOp, ConvTransposeOp)
"""Ops whose operand 1 holds weights, which stay as they are."""

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

_CHANNELS_LAST = {3: "acb", 4: "acdb", 5: "acdeb"}


def row_major_choice(group: FusedOp) -> LayoutChoice:
    """Everything without a layout."""
    return LayoutChoice(
        tuple(_row_major(value) for value in group.operands),
        tuple(_row_major(value) for value in group.results),
    )


def flexible_choices(group: FusedOp) -> list[LayoutChoice]:
    """Row-major, and for feature maps channels last, if every op of the group allows it."""
    choices = [row_major_choice(group)]
    values = (*group.operands, *group.results)
    ranks = {len(shape_of(value)) for value in values}
    inner = [op for op in group.body.block.ops if op is not group.terminator]
    if len(ranks) == 1 and all(isinstance(op, _FLEXIBLE) for op in inner):
        tag = _CHANNELS_LAST.get(ranks.pop())
        if tag is not None:
            layout = Layout.parse(tag)
            choices.append(
                LayoutChoice(
                    tuple(
                        _row_major(operand) if _is_weight(argument) else _permuted(operand, layout)
                        for operand, argument in zip(
                            group.operands, group.body.block.args, strict=True
                        )
                    ),
                    tuple(_permuted(value, layout) for value in group.results),
                )
            )
    return choices


def _is_weight(argument: SSAValue) -> bool:
    return all(isinstance(use.operation, _WEIGHTED) and use.index == 1 for use in argument.uses)


def _row_major(value: SSAValue) -> Layout:
    return Layout.row_major(len(shape_of(value)))


def _permuted(value: SSAValue, layout: Layout) -> Layout:
    """`layout`, spelled row-major where that is the same: for at most one dim larger than 1."""
    large = sum(extent != 1 for extent in shape_of(value))
    return _row_major(value) if large <= 1 else layout
