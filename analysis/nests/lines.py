"""The lines of a tensor along one dim, which softmax, scans and selections process one by one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from xdsl.ir import Operation

from braid.analysis.nests.dims import KnownOrOpen, has_elements
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.strided_storage import boxes_of, overlap_of
from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import is_number
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scan import ScanOp
from braid.support.sizes.expression import Extent, ExtentT

OpT = TypeVar("OpT", bound=Operation)


@dataclass(frozen=True)
class Lines(Generic[KnownOrOpen]):
    """A row-major tensor: `outer` × `inner` lines of `extent` elements, which are `inner` apart."""

    outer: KnownOrOpen
    extent: KnownOrOpen
    inner: KnownOrOpen

    @staticmethod
    def along(shape: Sequence[ExtentT], dim: int) -> "Lines[ExtentT]":
        """Return the lines along `dim` of a tensor of this shape."""
        known = cast(Sequence[int], shape)  # or sizes: products of either
        outer, inner = math.prod(known[:dim]), math.prod(known[dim + 1 :])
        return Lines(cast(ExtentT, outer), shape[dim], cast(ExtentT, inner))

    @property
    def known(self) -> tuple[int, int, int]:
        """Return `outer`, `extent` and `inner`, which are numbers."""
        found = [each for each in (self.outer, self.extent, self.inner) if isinstance(each, int)]
        outer, extent, inner = found
        return outer, extent, inner


def single_op(group: FusedOp, kind: type[OpT]) -> OpT | None:
    """Return the only op of a group, if it is one of `kind` whose tensors have their own memory."""
    op = group.body.block.first_op
    if not isinstance(op, kind) or op.next_op is not group.terminator:
        return None
    return None if boxes_of(group) or overlap_of(group) is not None else op


def lines_of(
    group: FusedOp, op: "ScanOp | ArgReduceOp", extents_of: ExtentsOf
) -> "Lines[Extent] | None":
    """Return the lines along the dim of the only op of a group, with one result.

    The result is None if they are not numeric, or have no elements.
    """
    shape = extents_of(op.input)
    is_one = len(group.results) == 1 and is_number(element_type_of(op.input))
    return Lines[Extent].along(shape, op.dim.value.data) if is_one and has_elements(shape) else None
