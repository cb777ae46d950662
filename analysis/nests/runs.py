"""Gathers at known positions as runs: arithmetic progressions along each dim."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.analysis.nests.dims import has_elements
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.strided_storage import boxes_of, overlap_of
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp
from braid.dialects.braid.dtypes import is_number, numpy_from_dense
from braid.dialects.braid.indexing import GatherOp
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent

_MOST_RUNS = 8
"""The most runs along a dim: more are more code than they save time."""


@dataclass(frozen=True)
class Run:
    """`count` positions from `first` on by `step`, for indices of the result from `begin` on."""

    begin: int
    first: int
    step: int
    count: Extent


@dataclass(frozen=True)
class KnownGatherNest:
    """The runs along each dim by which a row-major tensor of `shape` is gathered."""

    shape: tuple[Extent, ...]
    runs: tuple[tuple[Run, ...], ...]

    @property
    def result(self) -> tuple[Extent, ...]:
        """Return the shape of the gathered tensor."""
        return tuple(sum(run.count for run in along) for along in self.runs)

    @property
    def row(self) -> int:
        """Return the dim after which all elements are copied, the innermost one if none is cut.

        If any dim has several runs, it is the last dim that is not read as a whole.
        """
        pairs = list(zip(self.runs, self.shape, strict=True))
        cut = [dim for dim, (own, n) in enumerate(pairs) if own != (Run(0, 0, 1, n),)]
        return cut[-1] if any(len(own) > 1 for own in self.runs) else len(self.shape) - 1


def known_gather_nest(group: FusedOp, extents_of: ExtentsOf = shape_of) -> KnownGatherNest | None:
    """Return the runs along each dim of a chain of gathers from the operand to the result.

    None where positions are computed, or along an open dim, or in more than a few runs.
    """
    if len(group.inputs) != 1 or len(group.outputs) != 1 or boxes_of(group):
        return None
    value = group.body.block.args[0]
    shape = extents_of(value)
    if overlap_of(group) is not None or not has_elements(shape):
        return None
    if not is_number(element_type_of(value)):
        return None
    positions: list[Sequence[int] | Run] = [
        range(e) if isinstance(e, int) else Run(0, 0, 1, e) for e in shape
    ]
    for op in group.body.block.ops:
        if isinstance(op, ConstantOp) or op is group.terminator:
            continue
        if not isinstance(op, GatherOp) or op.data is not value:
            return None
        dim = op.dim.value.data
        known, along = _positions(op), positions[dim]
        if known is None or isinstance(along, Run):
            return None
        value = op.output
        positions[dim] = [along[place] for place in known]
    if group.terminator.arguments[0] is not value:
        return None
    runs = tuple((along,) if isinstance(along, Run) else tuple(_runs(along)) for along in positions)
    if not all(0 < len(along) <= _MOST_RUNS for along in runs):
        return None
    return KnownGatherNest(shape, runs)


def _positions(op: GatherOp) -> list[int] | None:
    """Return the positions that a gather reads, if known and one for each index of the result."""
    owner, extent = op.indices.owner, shape_of(op.data)[op.dim.value.data]
    if not isinstance(owner, ConstantOp) or len(shape_of(op.indices)) != 1:
        return None
    # As in other kernels, indices that are out of bounds are clamped.
    found = numpy_from_dense(owner.value).tolist()
    return [min(max(p + extent if p < 0 else p, 0), extent - 1) for p in found]


def _runs(positions: Sequence[int]) -> list[Run]:
    """Return the runs of positions, each as long as possible from its begin on."""
    runs: list[Run] = []
    begin = 0
    while begin < len(positions) and len(runs) <= _MOST_RUNS:
        end = begin + 1
        step = positions[end] - positions[begin] if end < len(positions) else 1
        while end < len(positions) and positions[end] - positions[end - 1] == step:
            end += 1
        step = step if end - begin > 1 else 1
        runs.append(Run(begin, positions[begin], step, end - begin))
        begin = end
    return runs
