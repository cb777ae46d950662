"""Pooling: vectors run over channels or along lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.pooling import pooling
from braid.analysis.nests.windows import has_lines
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily
from braid.lowering.cpu.kernels.windows.combination import combinations, pixels_to_share
from braid.lowering.cpu.kernels.windows.family import WindowCandidate
from braid.lowering.cpu.kernels.windows.lines import WindowSchedule, line_schedules
from braid.lowering.emit.math.points import has_code

_PART_OF_PEAK = 1 / 4
"""No step of a window is a multiply-add, and every one needs a load."""
_MOST_MAXIMA = 16
"""Vectors of a tile: more leave no registers for what windows share."""


_WIDE, _WIDE_COLUMNS = 5, 8
"""Columns of a window that is wide, and neighbouring outputs of a tile then."""

_LEAST_VECTORS = 4
"""Vectors of channels of a reduction that is implemented as pooling: each channel has a single sum,
and few sums depend on each other."""


@dataclass(frozen=True)
class PoolFamily(SizedFamily):
    """`braid.pool` of f32, f64 or bytes in one to three dims, unpadded, with an epilogue.

    A `braid.reduce` of all spatial dims is one with a window as large as the image, where there are
    many channels.
    Layouts: channels last, in blocks of a vector, or first for strides of at most 2.
    """

    name: str = "pool"
    version: int = 10
    anchors: ClassVar = (PoolOp, ReduceOp)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "_Pool | None":
        """Match one pooling of a block argument, the rest elementwise on its result."""
        found = pooling(group, is_open=extents_of is not shape_of)
        if found is None or not has_code(found.points):
            return None
        unit = self.unit_of(found.input)
        is_reduction = isinstance(found.anchor.owner, ReduceOp)
        if is_reduction and found.channels < _LEAST_VECTORS * unit.lanes:
            return None
        return _Pool(group, unit, found, extents_of)


@dataclass(frozen=True, eq=False)
class _Pool(WindowCandidate):
    def space(self, level: int) -> Iterator[WindowSchedule]:
        """Return the neighbouring outputs and channel vectors of a tile.

        First four outputs, which share the loads of overlapping windows, with two vectors if there
        are enough channels: eight independent maxima. Eight of wide windows, which share columns:
        0.8 of the time of four for 9 × 9. Two outputs where the input comes from farther away,
        which then is read in longer pieces. With a single output, half of the registers hold sums:
        0.5 to 0.9 of the time of two vectors.
        """
        channels, width = self.op.channels, self.op.width
        if self.has_lines:
            yield from line_schedules(width, self.unit.lanes, level)
            return
        most = 2 if width > 1 else min(_MOST_MAXIMA, self.unit.registers // 2)
        default = WindowSchedule(self._columns, min(most, -(-channels // self.unit.lanes)))
        if level == 0:
            yield default
        for neighbours in {1: (1, 2, 4, 8), 2: (3, 6)}.get(level, ()):
            for count in (1, 2, 4, 8):
                schedule = WindowSchedule(neighbours, count)
                if neighbours * count <= _MOST_MAXIMA and schedule != default:
                    yield schedule

    @property
    def _columns(self) -> int:
        """Neighbouring outputs of a tile."""
        most = _WIDE_COLUMNS if self._is_wide else 4 if self.is_near else 2
        return min(most, self.op.width)

    @property
    def _is_wide(self) -> bool:
        """Return whether windows overlap so much that tiles of many outputs pay."""
        return self.op.windows.strides[-1] == 1 and self.op.windows.size[-1] >= _WIDE

    def arithmetic_seconds(self, choice: LayoutChoice) -> float:
        """Return a vector operation for every step, fewer where columns are shared."""
        seconds = self.op.steps / (self.unit.flops * _PART_OF_PEAK)
        columns, windows = self._columns, self.op.windows
        pixels = pixels_to_share(windows, columns)
        if pixels is None or has_lines(self.op.points.shape, choice.results[0]):
            return seconds
        alone, shared = (combinations(windows, columns, each) for each in (None, pixels))
        return seconds * shared / alone
