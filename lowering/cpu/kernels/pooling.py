"""Pooling: vectors run over channels or along lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, BlockArgument

from braid.analysis.nests.convolution import RANKS
from braid.analysis.nests.pointwise import pointwise
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.quantization import is_byte
from braid.dialects.braid.reduction import ReduceOp, neutral_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.windows import Windows
from braid.lowering.cpu.kernels.groups.vector_family import VectorFamily
from braid.lowering.cpu.kernels.windows.family import WindowCandidate
from braid.lowering.cpu.kernels.windows.lines import WindowSchedule, line_schedules
from braid.lowering.cpu.kernels.windows.problem import (
    Combine,
    combinations,
    has_lines,
    pixels_to_share,
)
from braid.lowering.emit.math.elementwise_table import emitter_of
from braid.lowering.emit.math.points import has_code

_PART_OF_PEAK = 1 / 4
"""No step of a window is a multiply-add, and every one needs a load."""
_MOST_MAXIMA = 16
"""Vectors of a tile: more leave no registers for what windows share."""


_WIDE, _WIDE_COLUMNS = 5, 8
"""Columns of a window that is wide, and neighbouring outputs of a tile then."""

_LEAST_VECTORS = 4
"""Vectors of channels of a reduction that is taken as pooling: each channel has one sum at a time,
and few of them wait for each other."""


@dataclass(frozen=True)
class PoolFamily(VectorFamily):
    """`braid.pool` of f32, f64 or bytes in one to three dims, unpadded, with an epilogue.

    A `braid.reduce` of all spatial dims is one with a window as large as the image, where there are
    many channels.
    Layouts: channels last, in blocks of a vector, or first for strides of at most 2.
    """

    name: str = "pool"
    version: int = 10
    anchors: ClassVar = (PoolOp, ReduceOp)

    def match(self, group: FusedOp) -> "_Pool | None":
        """One pooling of a block argument, the rest elementwise on its result."""
        ops = [op for op in group.body.block.ops if isinstance(op, PoolOp | ReduceOp)]
        if len(ops) != 1 or not isinstance(x := ops[0].input, BlockArgument):
            return None
        op, kind = ops[0], element_type_of(x)
        if not (kind in (f32, f64) or is_byte(kind)) or len(shape_of(x)) not in RANKS:
            return None
        unit = self.unit_of(x)
        pooling = _pooling(op, unit.lanes)
        if pooling is None or pooling.windows.is_padded or min(shape_of(x)) == 0:
            return None
        points = pointwise(group, op)
        if points is None or not has_code(points) or (op.accumulator and x in points.leaves):
            return None
        combine = _combine(pooling.combine, op.accumulator or kind)
        return _Pool(
            group,
            unit,
            op.output,
            pooling.windows,
            x,
            None,
            points,
            pooling.neutral,
            combine,
            pooling.combine == "add",
            accumulator=op.accumulator,
        )


@dataclass(frozen=True)
class _Pooling:
    """Windows, the elementwise operation over each, and what it begins with."""

    windows: Windows
    combine: str
    neutral: float


def _pooling(op: PoolOp | ReduceOp, lanes: int) -> _Pooling | None:
    """None for a reduction of other dims than all but images and channels, or of few channels."""
    if isinstance(op, PoolOp):
        return _Pooling(op.windows, op.combine, op.padding_value)
    _, channels, *spatial = shape_of(op.input)
    if channels < _LEAST_VECTORS * lanes:
        return None
    if sorted(op.dims.get_values()) != list(range(2, 2 + len(spatial))):
        return None
    ones, zeros = (1,) * len(spatial), (0,) * len(spatial)
    windows = Windows(tuple(spatial), ones, ones, zeros, zeros)
    kind = op.kind.data
    return _Pooling(windows, kind, neutral_of(kind, op.result_type().element_type))


@dataclass(frozen=True, eq=False)
class _Pool(WindowCandidate):
    def space(self, level: int) -> Iterator[WindowSchedule]:
        """Neighbouring outputs and channel vectors of a tile.

        At first four outputs, which share the loads of overlapping windows, of two vectors where
        there are as many channels: eight maxima that do not wait for each other. Eight of wide
        windows, which share columns: 0.8 of the time of four for 9 × 9. Two outputs where the input
        comes from farther away, which then is read in longer pieces. Where there is one output,
        half of the registers hold sums: 0.5 to 0.9 of the time of two vectors.
        """
        channels, width = self.points.shape[1], self.points.shape[-1]
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
        return min(most, self.points.shape[-1])

    @property
    def _is_wide(self) -> bool:
        """Whether windows overlap so much that many outputs pay."""
        return self.windows.strides[-1] == 1 and self.windows.size[-1] >= _WIDE

    def arithmetic_seconds(self, choice: LayoutChoice) -> float:
        """A vector operation for every step, fewer where columns are shared."""
        seconds = self.steps / (self.unit.flops * _PART_OF_PEAK)
        columns, windows = self._columns, self.windows
        pixels = pixels_to_share(windows, columns)
        if pixels is None or has_lines(self.points.shape, choice.results[0]):
            return seconds
        alone, shared = (combinations(windows, columns, each) for each in (None, pixels))
        return seconds * shared / alone


def _combine(operation: str, element_type: Attribute) -> Combine:
    """The elementwise operation of this name on two vectors."""
    emit = emitter_of(operation, [element_type] * 2, element_type)
    assert emit is not None, f"no '{operation}' of {element_type}"
    return lambda e, value, x, weight: emit(e, [value, x])
