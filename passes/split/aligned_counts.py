"""Parts of an op that are those in which its operands are made."""

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from braid.analysis.boxes import shared_dims
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.movement import ReshapeOp, SliceOp
from braid.passes.split.split_dim import SplitDim
from braid.passes.split.tile import Part

Chosen = dict[SSAValue, dict[int, int]]
"""The parts per dim of the results that are split; entries beyond the rank: reduced dims."""


def aligned_counts(
    op: Operation, dims: Sequence[SplitDim], chosen: Mapping[SSAValue, dict[int, int]]
) -> Iterator[dict[int, int]]:
    """The splits of the ops that make the operands, where they make the same parts here."""
    for index, operand in enumerate(op.operands):
        counts = _counts_of(operand, chosen)
        start: dict[int, int] = {}
        for dim in dims:
            tile = dim.tile(Part(dim.dim, 0, dim.unit)) if dim.combine is None else None
            needed = tile.operands.get(index) if tile is not None else None
            if needed is not None and needed.dim in counts:
                start[dim.dim] = counts[needed.dim]
        if counts and len(start) == len(counts):
            yield start


def _counts_of(value: SSAValue, chosen: Mapping[SSAValue, dict[int, int]]) -> dict[int, int]:
    """The parts per dim in which `value` is made, as itself, in another shape, or as a slice."""
    if isinstance(value.owner, ReshapeOp):
        counts = _counts_of(value.owner.input, chosen)
        return _reshaped_counts(counts, shape_of(value.owner.input), shape_of(value))
    if isinstance(value.owner, SliceOp):
        counts = _counts_of(value.owner.input, chosen)
        whole = shape_of(value.owner.input)
        return counts if all(shape_of(value)[dim] == whole[dim] for dim in counts) else {}
    return {d: n for d, n in chosen.get(value, {}).items() if d < len(shape_of(value))}


def _reshaped_counts(
    counts: Mapping[int, int], source: Sequence[int], target: Sequence[int]
) -> dict[int, int]:
    """`counts` of the dims of `target`; none where parts of `source` are no parts of it."""
    found: dict[int, int] = {}
    for own, others in shared_dims(source, target):
        cut = [dim for dim in own if counts.get(dim, 1) > 1]
        if not cut:
            continue
        outer = [
            next((d for d in dims if shape[d] > 1), -1)
            for dims, shape in ((own, source), (others, target))
        ]
        extents = source[outer[0]], target[outer[1]]
        count = counts[cut[0]]
        same = extents[0] == extents[1] or min(extents) % count == 0
        if cut != outer[:1] or not same:
            return {}
        found[outer[1]] = count
    return found
