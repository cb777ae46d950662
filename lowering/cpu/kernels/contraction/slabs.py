"""Right operands that a gather takes from a table, slab by slab, such as weights of experts.

A product reads the slabs where they lie in the table, so that no copies of them are made.
"""

from dataclasses import dataclass

from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_unsigned
from braid.dialects.braid.indexing import GatherBase, GatherNdOp, slab_rank
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.lowering.emit.positions import position_of


@dataclass(frozen=True)
class SlabGather:
    """`op` takes matrices `table[indices[…]]` of a table [slabs, k, n], both block arguments."""

    op: GatherBase
    table: BlockArgument
    indices: BlockArgument

    def index_strides(self, choice: LayoutChoice) -> tuple[int, ...]:
        """Elements of the stored indices from one slab of the product to the next, by batch dim."""
        shape = shape_of(self.indices)
        strides = choice.operands[self.indices.index].storage_strides(shape)
        if isinstance(self.op, GatherNdOp):
            shape, strides = shape[:-1], strides[:-1]
        return tuple(0 if e == 1 else s for e, s in zip(shape, strides, strict=True))


def slab_gather(value: SSAValue) -> SlabGather | None:
    """How `value` is gathered from a table, if it is slabs of it and has one reader.

    None where the gather is along another dim, in batches, or by tuples of more than one index.
    """
    op = value.owner
    if not isinstance(op, GatherBase) or slab_rank(value) != 2 or not value.has_one_use():
        return None
    table, indices = op.data, op.indices
    if not isinstance(table, BlockArgument) or not isinstance(indices, BlockArgument):
        return None
    return SlabGather(op, table, indices) if len(shape_of(table)) == 3 else None


@dataclass(frozen=True)
class Slabs:
    """The stored table of a contraction: B is slab number `indices[position]` of it.

    `indices` is the number of a kernel's argument. The table has `count` slabs that are `stride`
    elements apart; `is_unsigned` says how indices are widened.
    """

    indices: int
    count: int
    stride: int
    is_unsigned: bool

    @staticmethod
    def of(gather: SlabGather, stride: int) -> "Slabs":
        """Those that `gather` takes."""
        count = shape_of(gather.table)[0]
        without_sign = is_unsigned(element_type_of(gather.indices))
        return Slabs(gather.indices.index, count, stride, without_sign)

    def begin(self, e: Emitter, indices: Buffer, position: Index) -> Index:
        """The first element of the slab that the index at `position` names."""
        index = indices.load_scalar(e, position)
        return e.mul(position_of(e, index, self.count, self.is_unsigned), self.stride)
