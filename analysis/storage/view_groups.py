"""Groups that move nothing: one transpose, stored so that the result is the operand's memory."""

from xdsl.ir import Operation

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import is_transposed_view, is_view
from braid.dialects.braid.movement import TransposeOp
from braid.dialects.braid.regions import FusedOp


def only_op(group: FusedOp) -> Operation | None:
    """Return the op of a group that has one."""
    op = group.body.block.first_op
    return op if op is not None and op.next_op is group.terminator else None


def moves_nothing(group: FusedOp, choice: LayoutChoice) -> bool:
    """Return whether `group` would be a view in the layouts of `choice`."""
    op = only_op(group)
    if not isinstance(op, TransposeOp):
        return False
    return is_transposed_view(op, choice.operands[0], choice.results[0])


def is_view_group(group: FusedOp) -> bool:
    """Return whether `group` is a view in the layouts of its types."""
    op = only_op(group)
    return op is not None and is_view(op)
