"""Nests of selections: lines of which the first elements in some order are wanted."""

from dataclasses import dataclass

from braid.analysis.nests.dims import has_elements
from braid.analysis.nests.lines import Lines, lines_of, single_op
from braid.analysis.nests.pointwise import ExtentsOf
from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_number
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.sized_ops import SizedTopKOp
from braid.dialects.braid.sorting import TopKOp
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class ArgReduceNest:
    """The position of the largest or smallest element of each line; of equal ones, the last."""

    lines: Lines[Extent]
    is_max: bool
    is_last: bool


@dataclass(frozen=True)
class TopKNest:
    """The `k` largest or smallest elements of each line, in order.

    `are_values` says of each result whether it has the elements, or else their places.
    """

    lines: Lines[Extent]
    k: Extent
    is_max: bool
    are_values: tuple[bool, ...]


def arg_reduce_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> ArgReduceNest | None:
    """Return the arg-reduction of numbers that a group is; None if it has no elements."""
    op = single_op(group, ArgReduceOp)
    lines = None if op is None else lines_of(group, op, extents_of)
    if op is None or lines is None:
        return None
    return ArgReduceNest(lines, op.kind.data == "max", bool(op.select_last.value.data))


def top_k_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> TopKNest | None:
    """Return the selection of numbers that a group is; None if it selects nothing."""
    op = single_op(group, TopKOp) or single_op(group, SizedTopKOp)
    if op is None or not group.results or not is_number(element_type_of(op.input)):
        return None
    shape, k = extents_of(op.input), op.count
    if not has_elements((*shape, k)):
        return None
    lines = Lines[Extent].along(shape, op.dim.value.data)
    are_values = tuple(value is op.values for value in group.terminator.arguments)
    return TopKNest(lines, k, bool(op.largest.value.data), are_values)
