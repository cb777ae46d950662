"""Which parts of data and of indices a part of a gather needs."""

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.indexing import GatherElementsOp, GatherOp
from braid.passes.split.tile import Part, Tile


def gather_tile(op: GatherOp, part: Part) -> Tile:
    """Of the indices' dims a part of the indices, of others a part of the data."""
    dim, count = op.dim.value.data, len(shape_of(op.indices))
    if part.dim < dim:
        return Tile({0: part})
    if part.dim < dim + count:
        return Tile({1: Part(part.dim - dim, part.start, part.size)})
    return Tile({0: Part(part.dim - count + 1, part.start, part.size)})


def gather_elements_tile(op: GatherElementsOp, part: Part) -> Tile:
    """A part of the indices; of the data the same, but for the dim that indices point along."""
    return Tile({1: part} if part.dim == op.dim.value.data else {0: part, 1: part})
