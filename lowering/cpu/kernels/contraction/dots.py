"""Products of few rows whose right operand lies by columns: every result is a product of two rows.

Scores of an attention are such products, where the keys lie as they come. As many columns are
computed at once as a vector has lanes, each in a separate vector of sums. Exchanging lanes between
these, in log2(lanes) stages, adds up all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, cast

from xdsl.dialects import arith

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.dims import KnownOrOpen
from braid.lowering.cpu.kernels.contraction.arithmetic import FLOATS
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize, far_column_cycles
from braid.lowering.cpu.kernels.pointwise.epilogue import Epilogue, TileStore
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.lowering.emit.register_transpose import exchanged
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

_BLOCKS = 8
"""Vectors of columns of one grid iteration: enough to hide its coordinates, few enough to share."""

_MOST_UNROLLED = 8
"""Steps of the reduction that are written down without a loop; of longer ones, two are."""

_STEP_CYCLES, _SUM_CYCLES, _RESULT_CYCLES = 1.25, 3.5, 8.0
"""A vector of B that is loaded, converted or not, and multiplied; for each lane of a vector of
results, adding up its sum; the cost around such a vector. 4 to 16 rows of 64 numbers times 512
columns take 1.3 to 2.0 times as long as of packed B, on Zen 5 (predicted 1.8 to 2.0)."""

_FAR_FACTOR = 3.0
"""The factor by which rows of B from beyond the L1 cache take longer than packed B, whose columns
are one stream: 1 x 3072 times 3072 x 768 takes 1.14 times as long, in f16 1.40 times."""

_LONG_COLUMN, _LONG_COLUMN_FACTOR = 1024, 1.5
"""Bytes of a column from which on those that are read at once lie on pages of their own, and how
much slower B moves then."""


def moving_factor(size: ContractionSize, unit: VectorUnit) -> float:
    """Return how much slower B moves than one stream does."""
    column = size.depth * size.vector_bytes(unit) // unit.lanes
    return _LONG_COLUMN_FACTOR if column >= _LONG_COLUMN else 1.0


def dot_cycles(size: ContractionSize, unit: VectorUnit) -> float:
    """Return the cycles of the product, in units of a vector multiply-add; each loads a vector of
    B.
    """
    steps, blocks = -(-size.depth // unit.lanes), -(-size.columns // unit.lanes)
    row = unit.lanes * (steps * _STEP_CYCLES + _SUM_CYCLES) + _RESULT_CYCLES
    # The first row alone finds B outside of the first-level cache.
    far = _FAR_FACTOR * unit.lanes * steps * far_column_cycles(size, unit)
    return size.batches * blocks * (size.rows * row + far)


@dataclass(frozen=True)
class DotKernel(Generic[KnownOrOpen]):
    """Emits `nest`, whose B has the elements of a column next to each other.

    The depth is a number; rows, columns and outer dims may be open.
    """

    nest: Contraction[KnownOrOpen]
    lanes: int

    @property
    def grid_extents(self) -> tuple[Extent, ...]:
        """Outer dims, then runs of vectors of columns."""
        outer: list[Extent] = [dim.extent for dim in self.nest.outer]
        return (*outer, -(-self.nest.columns // (self.lanes * _BLOCKS)))

    @property
    def grid(self) -> KnownOrOpen:
        """Iterations of the grid."""
        return cast(KnownOrOpen, product_of(self.grid_extents))

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Compute a run of columns, vector by vector, each for all rows."""
        *outer, run = e.coordinates(index, self.grid_extents)
        nest = self.nest
        bases = [
            e.dot(outer, [dim.strides[tensor] for dim in nest.outer])
            for tensor in range(len(nest.row.strides))
        ]
        bases[0] = e.add(bases[0], nest.a_start)
        whole, rest = e.divmod(nest.columns, self.lanes)
        begin = e.mul(run, _BLOCKS)
        end = e.minimum(e.add(begin, _BLOCKS), whole)
        if whole != 0:
            e.loop(begin, end, 1, lambda block: self._rows(e, buffers, bases, block, self.lanes))
        if rest != 0:
            last, tail = self.grid_extents[-1] - 1, self._rows

            def write() -> None:
                e.branch(0, rest, lambda: tail(e, buffers, bases, whole, rest), lambda: None)

            e.branch(run, last, lambda: None, write)

    def _rows(
        self,
        e: Emitter,
        buffers: Sequence[Buffer],
        bases: Sequence[Index],
        block: Index,
        count: Index,
    ) -> None:
        """Compute `count` columns, from 1 to the lanes, from the first one of a block on, row by
        row.
        """
        nest = self.nest
        strides = nest.row.strides
        epilogue = Epilogue(nest.anchor, nest.points, strides[2:], nest.vector_steps)
        mask = e.tail_mask(count)
        first = e.add(bases[1], e.mul(block, nest.block_stride))

        def row(number: Index) -> None:
            own = [e.add(b, e.mul(number, s)) for b, s in zip(bases, strides, strict=True)]
            store = TileStore(epilogue, e, buffers, own[2:], block, [mask])
            a, b = buffers[nest.a], buffers[nest.b]
            store.store([[self._products(e, a, own[0], b, first, count)]])

        e.loop(0, nest.row.extent, 1, row)

    def _products(
        self, e: Emitter, a: Buffer, a_base: Index, b: Buffer, b_base: Index, count: Index
    ) -> Value:
        """Return a vector of the products of a row of A and `count` columns of B."""
        depth, lanes = cast(int, self.nest.depth), self.lanes
        columns = self._columns(e, count)
        steps, rest = divmod(depth, lanes)
        unrolled = steps if steps <= _MOST_UNROLLED else 2

        def step(at: Index, mask: Value | None, sums: Sequence[Value]) -> Sequence[Value]:
            row = FLOATS.column(e, a, e.add(a_base, at), mask)
            begin = e.add(b_base, at)
            loaded = (FLOATS.column(e, b, e.add(begin, column), mask) for column in columns)
            return [e.fma(row, column, sum) for column, sum in zip(loaded, sums, strict=True)]

        def several(at: Index, sums: Sequence[Value]) -> Sequence[Value]:
            for number in range(unrolled):
                sums = step(e.add(at, number * lanes), None, sums)
            return sums

        sums: Sequence[Value] = [FLOATS.zero(e, a)] * len(columns)
        looped = steps - steps % unrolled if unrolled else 0
        if looped:
            sums = carry_sums(e, 0, looped * lanes, unrolled * lanes, sums, several, unrolled)
        for number in range(looped, steps):
            sums = step(number * lanes, None, sums)
        if rest:
            sums = step(steps * lanes, e.tail_mask(rest), sums)
        return _added_up(e, sums)

    def _columns(self, e: Emitter, count: Index) -> list[Index]:
        """Return the elements of B before each of `count` columns; if the number is known only at
        run time, as many as there are lanes, and the last ones are equal.
        """
        stride: Index = self.nest.column_stride
        if isinstance(count, int):
            numbers: list[Index] = list(range(count))
        else:
            last = e.sub(count, 1)
            numbers = [e.minimum(number, last) for number in range(self.lanes)]
        # A single argument of the kernel, in place of one for each multiple of a size.
        stride = stride if isinstance(stride, int) else e.index(stride)
        return [e.mul(number, stride) for number in numbers]


def _added_up(e: Emitter, vectors: Sequence[Value]) -> Value:
    """Return a vector whose lane i is the sum of all lanes of vector i; missing vectors are
    undefined.
    """
    rows: list[Value | None] = [*vectors, *[None] * (e.lanes - len(vectors))]
    distance = e.lanes // 2
    while distance:
        pairs = zip(rows[:distance], rows[distance:], strict=True)
        rows = [_joined(e, a, b, distance) for a, b in pairs]
        distance //= 2
    (total,) = rows
    assert total is not None
    return total


def _joined(e: Emitter, a: Value | None, b: Value | None, distance: int) -> Value | None:
    """Return sums over pairs of lanes `distance` apart: of a where the lane lacks that bit, else of
    b.
    """
    low, high = exchanged(e, a, b, distance)
    if low is None or high is None:
        return None
    return e.insert(arith.AddfOp(low, high))
