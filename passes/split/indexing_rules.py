"""Which parts of data, indices and updates a part of a gather or a scatter needs."""

from braid.dialects.braid.base import TensorOp, shape_of
from braid.dialects.braid.indexing import GatherElementsOp, GatherNdOp, GatherOp
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterNdOp
from braid.passes.split.tile import Part, Tile


def indexing_tile(op: TensorOp, part: Part) -> Tile | None:
    """The operands of a part of `op`; None where it would need others than those of the part."""
    match op:
        case GatherOp():
            return _gather(op, part)
        case GatherElementsOp():
            return Tile({1: part} if part.dim == op.dim.value.data else {0: part, 1: part})
        case GatherNdOp():
            return _gather_nd(op, part)
        case ScatterElementsOp():
            return _scatter_elements(op, part)
        case ScatterNdOp():
            return _scatter_nd(op, part)
        case _:
            return None


def _gather(op: GatherOp, part: Part) -> Tile:
    """Of the indices' dims a part of the indices, of others a part of the data."""
    dim, count = op.dim.value.data, len(shape_of(op.indices))
    if part.dim < dim:
        return Tile({0: part})
    if part.dim < dim + count:
        return Tile({1: Part(part.dim - dim, part.start, part.size)})
    return Tile({0: Part(part.dim - count + 1, part.start, part.size)})


def _gather_nd(op: GatherNdOp, part: Part) -> Tile:
    """Of batch dims a part of both, of others of the indices' a part of these, else of the data."""
    batch, shape = op.batch_dims.value.data, shape_of(op.indices)
    outer = len(shape) - 1
    if part.dim < batch:
        return Tile({0: part, 1: part})
    if part.dim < outer:
        return Tile({1: part})
    return Tile({0: Part(batch + shape[-1] + part.dim - outer, part.start, part.size)})


def _scatter_elements(op: ScatterElementsOp, part: Part) -> Tile | None:
    """A part of all operands, where elements are not moved and all are written."""
    dim = part.dim
    if dim == op.dim.value.data or shape_of(op.indices)[dim] != shape_of(op.data)[dim]:
        return None
    return Tile({0: part, 1: part, 2: part})


def _scatter_nd(op: ScatterNdOp, part: Part) -> Tile | None:
    """A part of what is in the slices that are written: of data and updates."""
    shape = shape_of(op.indices)
    if part.dim < shape[-1]:
        return None
    inside = part.dim - shape[-1] + len(shape) - 1
    return Tile({0: part, 2: Part(inside, part.start, part.size)})
