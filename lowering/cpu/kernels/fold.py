"""Folds: each element of an image gathers the values that blocks add to it, so that it is written
once.

The taps of a place depend on its phase, its remainder by the stride, and on how far the edges are.
The code for each phase adds vectors of neighbouring blocks; the vectors of all phases of the last
dim are interleaved to neighbouring positions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64, i1
from xdsl.ir import Attribute

from braid.analysis.nests.dims import row_major_strides
from braid.analysis.nests.folding import (
    FoldNest,
    Tap,
    fold_nest,
    places_of,
    runs_of,
    taps_of,
)
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.folding import FoldDim, FoldOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import interleaved, transposed
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_MOST_LOADS = 2048
"""Loads that a kernel may have: what blocks of many elements add takes long to compile."""

_MOST_STRIDE = 64
"""The phases of a dim, each with code of its own."""

_MOST_BLOCKS = 8
"""Vectors at the edges of a row, each with code of its own."""

_LOADED, _STORED = 1.5, 2.0
"""Cycles to load and add a vector, and to store one."""


@dataclass(frozen=True)
class FoldFamily(SizedFamily):
    """A fold of f32 or f64 alone in its group, row-major, of any number of images."""

    name: str = "fold"
    version: int = 1
    anchors: ClassVar = (FoldOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Fold | None":
        """Match one whose strides fit a vector and whose code is not too long."""
        nest = fold_nest(group, extents_of)
        type = element_type_of(group.inputs[0])
        if nest is None or type not in (f32, f64):
            return None
        unit, last = self.unit_of(group.inputs[0]), nest.dims[-1]
        strides = [dim.stride for dim in nest.dims]
        taps = math.prod(dim.size for dim in nest.dims)
        if max(strides) > _MOST_STRIDE or strides[-1] > unit.lanes or taps > _MOST_LOADS:
            return None
        before, _, after = _blocks(last, unit.lanes)
        edges = len(before) + len(after)
        loads = nest.rows * last.size * (1 + edges)
        is_short = edges <= _MOST_BLOCKS and loads <= _MOST_LOADS
        return Fold(group, unit, nest, type) if is_short else None


@dataclass(frozen=True, eq=False)
class Fold(VectorCandidate):
    """The images of a group."""

    nest: FoldNest
    type: Attribute

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of memory traffic and the cycles of all vectors."""
        nest, last = self.nest, self.nest.dims[-1]
        assert isinstance(nest.images, int)
        vectors = -(-last.count // self.unit.lanes)
        loads = nest.elements // last.count * vectors
        stores = nest.places // last.extent * -(-last.extent // self.unit.lanes)
        cycles = nest.images * (loads * _LOADED + stores * (_STORED + last.stride - 1))
        return max(cycles / self.unit.fma_rate, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one image in each iteration."""
        nest = self.nest

        def iteration(e: Emitter, buffers: Sequence[Buffer], image: Index) -> None:
            source, target = buffers
            begin = e.mul(image, nest.elements)
            places = _Places(e, nest.dims, source, target, self.type)
            places.outer([(begin, 0)], e.mul(image, nest.places), 0)

        return grid_kernel(self.group, symbol, self.unit, nest.images, iteration)


def _blocks(dim: FoldDim, lanes: int) -> tuple[range, range, range]:
    """Return where vectors of u begin: those before, with and after all taps and places of all
    lanes.
    """
    places = [places_of(dim, phase) for phase in range(dim.stride)]
    shifts = [tap.shift for phase in range(dim.stride) for tap in taps_of(dim, phase)]
    begin, end = min(low for low, _ in places), max(high for _, high in places)
    least = max(*shifts, -(-dim.low // dim.stride), begin)
    most = (dim.extent + dim.low) // dim.stride
    most = min(min(shifts) + dim.count, most) - lanes
    first = begin + -(-(least - begin) // lanes) * lanes
    after = max(first, begin + ((most - begin) // lanes + 1) * lanes)
    first, after = min(first, end), min(after, end)
    if first >= after:
        return range(begin, end, lanes), range(0), range(0)
    return range(begin, first, lanes), range(first, after, lanes), range(after, end, lanes)


@dataclass(frozen=True)
class _Places:
    """Emits the places of an image."""

    e: Emitter
    dims: Sequence[FoldDim]
    source: Buffer
    target: Buffer
    type: Attribute

    def outer(self, rows: Sequence[tuple[Index, int]], out: Index, number: int) -> None:
        """Emit the places of the dims from `number` on, which begin at `out` in the target.

        `rows` are the elements that taps along the dims before reach: where the blocks begin that
        these taps belong to, and the number of the tap among all of a block.
        """
        e, dim = self.e, self.dims[number]
        if number == len(self.dims) - 1:
            self._row(rows, out)
            return
        block = row_major_strides([d.size for d in self.dims])[number]
        count = row_major_strides([d.count for d in self.dims])[number]
        extent = row_major_strides([d.extent for d in self.dims])[number]

        def at(phase: int, taps: Sequence[Tap], u: Index) -> None:
            own = [
                (e.add(begin, e.mul(e.sub(u, tap.shift), count)), first + tap.number * block)
                for begin, first in rows
                for tap in taps
            ]
            place = e.sub(e.add(e.mul(u, dim.stride), phase), dim.low)
            self.outer(own, e.add(out, e.mul(place, extent)), number + 1)

        for phase in range(dim.stride):
            for run in runs_of(dim, phase):
                e.loop(run.begin, run.end, 1, lambda u, p=phase, run=run: at(p, run.taps, u))

    def _row(self, rows: Sequence[tuple[Index, int]], out: Index) -> None:
        """Emit a row of positions, which are the sums of the taps of all `rows`."""
        e, dim = self.e, self.dims[-1]
        taps = [taps_of(dim, phase) for phase in range(dim.stride)]

        def vectors(u: Index) -> None:
            sums = [self._sum(rows, own, u) for own in taps]
            first = e.sub(e.mul(u, dim.stride), dim.low)
            for number, value in enumerate(self._in_order(sums)):
                place = e.add(first, number * e.lanes)
                mask, is_there = self._mask(place, dim.extent)
                if is_there:
                    self.target.store(e, value, e.add(out, place), mask)

        before, inner, after = _blocks(dim, e.lanes)
        for u in before:
            vectors(u)
        if inner:
            e.loop(inner.start, inner.stop, e.lanes, vectors)
        for u in after:
            vectors(u)

    def _in_order(self, sums: Sequence[Value]) -> Sequence[Value]:
        """Return the positions of all phases, phase by phase."""
        if len(sums) == 1:
            return sums
        e = self.e
        return transposed(e, sums) if len(sums) == e.lanes else interleaved(e, sums)

    def _sum(self, rows: Sequence[tuple[Index, int]], taps: Sequence[Tap], u: Index) -> Value:
        """Return a vector of what these taps add at the places of a phase from u on."""
        e, dim = self.e, self.dims[-1]
        size = math.prod(each.count for each in self.dims)
        total: Value | None = None
        for begin, first in rows:
            for tap in taps:
                place = e.sub(u, tap.shift)
                mask, is_there = self._mask(place, dim.count)
                if not is_there:
                    continue
                at = e.add(e.add(begin, (first + tap.number) * size), place)
                value = self.source.load(e, at, mask)
                total = value if total is None else e.apply(arith.AddfOp, total, value)
        zero = e.constant(0.0, e.vector_type(self.type))
        return zero if total is None else total

    def _mask(self, place: Index, extent: int) -> tuple[Value | None, bool]:
        """Return which lanes from `place` on are in a row of `extent`, and whether any is.

        Loops go over vectors that are whole.
        """
        e = self.e
        if not isinstance(place, int):
            return None, True
        low, high = max(0, -place), min(e.lanes, extent - place)
        if low >= high:
            return None, False
        if (low, high) == (0, e.lanes):
            return None, True
        mask = e.mask(high)
        if low:
            others = e.apply(arith.XOrIOp, e.mask(low), e.constant(1, e.vector_type(i1)))
            mask = e.apply(arith.AndIOp, mask, others)
        return mask, True
