"""Nests of scans: lines along which each element is combined with all before it."""

from dataclasses import dataclass

from braid.analysis.nests.lines import Lines, lines_of, single_op
from braid.analysis.nests.pointwise import ExtentsOf
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scan import ScanOp
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class ScanNest:
    """A scan by the function `kind`; if it is `exclusive`, only over the elements before each
    element.

    One that goes in `reverse` begins at the end of a line.
    """

    lines: Lines[Extent]
    kind: str
    is_exclusive: bool
    is_reverse: bool


def scan_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> ScanNest | None:
    """Return the scan of numbers that a group is; None if the group is no scan or has
    no elements."""
    op = single_op(group, ScanOp)
    lines = None if op is None else lines_of(group, op, extents_of)
    if op is None or lines is None:
        return None
    return ScanNest(lines, op.kind.data, bool(op.exclusive.value.data), bool(op.reverse.value.data))
