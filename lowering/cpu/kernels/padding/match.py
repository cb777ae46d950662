"""Groups of one padding alone."""

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import is_number
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp


def match_padding(group: FusedOp) -> PadOp | None:
    """The only op of the group, if it is a padding of numbers."""
    op = group.body.block.first_op
    if not isinstance(op, PadOp) or op.next_op is not group.terminator or len(group.results) != 1:
        return None
    return op if is_number(element_type_of(op.output)) else None
