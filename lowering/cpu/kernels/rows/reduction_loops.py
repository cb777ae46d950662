"""The loops of a reduction: accumulators in registers, with lanes along the innermost dim.

Where that dim is kept, every lane is a result of its own ("columns"). Where it is reduced, every
lane holds a part of a result, and the lanes of several results are joined at the end, as many
vectors into one as a transpose has rows. Rows of two to four elements that lie one behind the other
are taken apart as they are read, so that every lane is a result again.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import BlockArgument

from braid.analysis.nests.dims import LoopDim
from braid.analysis.nests.rows import Reduction, ReductionNest
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.reduction import neutral_of
from braid.lowering.common.long_sums import additions_of
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.compare import choose
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.lowering.emit.math.elementwise_table import emitter_of
from braid.lowering.emit.math.points import evaluate
from braid.lowering.emit.register_transpose import deinterleaved, exchanged

_CHAINS = 8
"""Accumulators that do not wait for each other: two additions a cycle, of four cycles each."""

_WORD = 4
"""Bytes of the elements that fill vectors."""

_LONG_ROW = 64
"""Vectors of a row from which on its lanes are joined alone, and it has all accumulators …"""

_SHORT_ROW = 16
"""… and up to which as many rows as there are lanes go together; else four."""

Join = Callable[[Value, Value], Value]
"""The accumulator from a value and an accumulator."""


@dataclass(frozen=True)
class ReductionLoops:
    """Emits the loops: grid = outer kept dims × blocks of the innermost kept one.

    Blocks are of one size: the last one begins where it ends with the dim, and computes again what
    the one before it has computed.
    """

    found: Reduction
    nest: ReductionNest
    unit: VectorUnit

    @property
    def grid(self) -> int:
        """Iterations of the grid."""
        return math.prod(self._grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """One block of results."""
        *outer, block = e.coordinates(index, self._grid_extents)
        begin = e.minimum(e.mul(block, self._block), self._columns.extent - self._block)
        dims = (*self.nest.kept[:-1], self._columns)
        bases = [
            e.dot([*outer, begin], [dim.strides[tensor] for dim in dims])
            for tensor in range(len(self._columns.strides))
        ]
        totals = self._totals(e, buffers, bases[: self.nest.reads])
        for number, total in enumerate(totals):
            first = number * e.lanes
            mask = e.tail_mask(self._block - first)
            self._store(e, buffers, bases[self.nest.reads :], first, total, mask)

    @property
    def _columns(self) -> LoopDim:
        """The kept dim that results of a block are neighbours along."""
        return self.nest.kept[-1]

    @property
    def _grid_extents(self) -> tuple[int, ...]:
        blocks = -(-self._columns.extent // self._block)
        return (*(dim.extent for dim in self.nest.kept[:-1]), blocks)

    @cached_property
    def _block(self) -> int:
        """Results of a grid iteration, as equal as can be: whole vectors, or one for each row."""
        extent, lanes = self._columns.extent, self.unit.lanes
        if self.nest.is_interleaved:
            return min(lanes, extent)
        most = self._most_vectors * lanes if self.nest.has_columns else self._most_rows
        size = -(-extent // -(-extent // most))
        if self.nest.has_columns:
            size = -(-size // lanes) * lanes
        return min(size, extent)

    @property
    def _registers(self) -> int:
        """Vectors of accumulators that half of the registers hold."""
        words = max(1, bytes_of(element_type_of(self.found.op.output)) // _WORD)
        return max(1, self.unit.registers // 2 // words)

    @property
    def _most_vectors(self) -> int:
        return self._registers

    @property
    def _most_rows(self) -> int:
        """Fewer for long ones, of which many at a time would need too much of the first cache."""
        steps = -(-self.nest.reduced[-1].extent // self.unit.lanes)
        rows = 1 if steps >= _LONG_ROW else 4 if steps > _SHORT_ROW else self.unit.lanes
        return min(rows, self._registers)

    @property
    def _accumulators(self) -> int:
        """Vectors that one step adds to."""
        if self.nest.is_interleaved:
            return 1
        return -(-self._block // self.unit.lanes) if self.nest.has_columns else self._block

    @property
    def _width(self) -> int:
        """Elements along the innermost reduced dim that a step adds to an accumulator."""
        if self.nest.is_interleaved:
            return self.nest.reduced[-1].extent
        return 1 if self.nest.has_columns else self.unit.lanes

    @cached_property
    def _unroll(self) -> int:
        """Steps along that dim that have accumulators of their own."""
        steps = -(-self.nest.reduced[-1].extent // self._width)
        chains = min(_CHAINS, self._registers)
        return max(1, min(steps, chains // self._accumulators))

    def _totals(self, e: Emitter, buffers: Sequence[Buffer], bases: Sequence[Index]) -> list[Value]:
        """The results of a block, in vectors."""
        kind = element_type_of(self.found.op.output)
        neutral = e.constant(neutral_of(self.found.op.kind.data, kind), e.vector_type(kind))
        count = self._accumulators
        values = self._reduce(e, buffers, bases, [neutral] * (count * self._unroll), 0)
        join = self._join(e)
        chains = [values[start : start + count] for start in range(0, len(values), count)]
        joined = [_tree(join, list(own)) for own in zip(*chains, strict=True)]
        has_results = self.nest.has_columns or self.nest.is_interleaved
        return joined if has_results else [_joined_lanes(e, joined, join)]

    def _reduce(
        self,
        e: Emitter,
        buffers: Sequence[Buffer],
        bases: Sequence[Index],
        values: Sequence[Value],
        depth: int,
    ) -> Sequence[Value]:
        """The accumulators after all that the reduced dims from `depth` on reach."""
        dim, inner = self.nest.reduced[depth], self.nest.reduced[depth + 1 :]
        carry = carry_sums if self.found.op.kind.data == "add" else _carry

        def at(position: Index) -> list[Index]:
            own = zip(bases, dim.strides, strict=False)
            return [e.add(base, e.mul(position, stride)) for base, stride in own]

        if inner:
            # Each step of the innermost loop adds one number to an accumulator.
            steps = -(-inner[-1].extent // (self._width * self._unroll))
            added = additions_of([*(each.extent for each in inner[:-1]), steps])

            def outer(position: Index, values: Sequence[Value]) -> Sequence[Value]:
                return self._reduce(e, buffers, at(position), values, depth + 1)

            return carry(e, 0, dim.extent, 1, values, outer, added)

        def step(position: Index, values: Sequence[Value]) -> Sequence[Value]:
            return self._step(e, buffers, at(position), values, None)

        size = self._width * self._unroll
        whole = dim.extent - dim.extent % size
        if whole:
            values = carry(e, 0, whole, size, values, step, 1)
        if whole < dim.extent:
            values = self._step(e, buffers, at(whole), values, dim.extent - whole)
        return values

    def _step(
        self,
        e: Emitter,
        buffers: Sequence[Buffer],
        bases: Sequence[Index],
        values: Sequence[Value],
        left: int | None,
    ) -> Sequence[Value]:
        """One vector more in each accumulator, as far as `left` elements of the dim go."""
        along, columns = self.nest.reduced[-1].strides, self._columns.strides
        if self.nest.is_interleaved:
            parts = self._rows_apart(e, buffers, bases)
            return [self._join(e)(_tree(self._join(e), parts), values[0])]
        results, count, join = list(values), self._accumulators, self._join(e)
        for number in range(len(values)):
            chain, place = divmod(number, count)
            first = chain * self._width
            if left is not None and first >= left:
                break
            if self.nest.has_columns:
                offset, lanes = place * e.lanes, self._block - place * e.lanes
                lane_strides = columns
            else:
                offset, lanes = place, e.lanes if left is None else left - first
                lane_strides = along
            offsets = [
                e.add(base, first * step + offset * across)
                for base, step, across in zip(bases, along, columns, strict=False)
            ]
            mask = e.tail_mask(lanes)
            value = self._read(e, buffers, offsets, lane_strides, mask)
            results[number] = join(value, results[number])
        return results

    def _rows_apart(
        self, e: Emitter, buffers: Sequence[Buffer], bases: Sequence[Index]
    ) -> list[Value]:
        """A vector for each element of a row, whose lanes are rows."""
        length = self.nest.reduced[-1].extent
        vectors: list[Value] = []
        for first in range(0, length * e.lanes, e.lanes):
            mask = e.tail_mask(max(0, length * self._block - first))
            offsets = [e.add(base, first) for base in bases]
            vectors.append(self._read(e, buffers, offsets, self.nest.reduced[-1].strides, mask))
        return deinterleaved(e, vectors)

    def _read(
        self,
        e: Emitter,
        buffers: Sequence[Buffer],
        offsets: Sequence[Index],
        lane_strides: Sequence[int],
        mask: Value | None,
    ) -> Value:
        """A vector of what is reduced, neutral where the mask is off."""
        place = {leaf: number for number, leaf in enumerate(self.found.reads.leaves)}

        def leaf(argument: BlockArgument) -> Value:
            buffer, offset = buffers[argument.index], offsets[place[argument]]
            if lane_strides[place[argument]] == 0:
                return buffer.splat(e, offset)
            return buffer.load(e, offset, mask)

        (value,) = evaluate(e, self.found.reads, leaf, {})
        kind = element_type_of(self.found.op.output)
        cast = emitter_of("cast", [element_type_of(self.found.op.input)], kind)
        assert cast is not None
        value = cast(e, [value])
        neutral = neutral_of(self.found.op.kind.data, kind)
        if mask is None or self.nest.has_columns or (neutral == 0 and not self.found.reads.ops):
            return value
        return choose(e, mask, value, e.constant(neutral, value.type))

    def _store(
        self,
        e: Emitter,
        buffers: Sequence[Buffer],
        bases: Sequence[Index],
        first: int,
        total: Value,
        mask: Value | None,
    ) -> None:
        """Computes and stores the results that a vector of totals leads to."""
        strides = self._columns.strides[self.nest.reads :]
        offsets = [e.add(base, first * stride) for base, stride in zip(bases, strides, strict=True)]
        place = {leaf: number for number, leaf in enumerate(self.found.points.leaves)}

        def leaf(argument: BlockArgument) -> Value:
            number, buffer = place[argument], buffers[argument.index]
            if strides[number] == 0:
                return buffer.splat(e, offsets[number])
            return buffer.load(e, offsets[number], mask)

        values = evaluate(e, self.found.points, leaf, {self.found.op.output: total})
        stored = zip(values, buffers[-len(values) :], offsets[len(place) :], strict=True)
        for value, buffer, offset in stored:
            buffer.store(e, value, offset, mask)

    def _join(self, e: Emitter) -> Join:
        kind = element_type_of(self.found.op.output)
        emit = emitter_of(self.found.op.kind.data, [kind] * 2, kind)
        assert emit is not None
        return lambda value, accumulator: emit(e, [value, accumulator])


def _carry(
    e: Emitter,
    lower: int,
    upper: int,
    step: int,
    initial: Sequence[Value],
    body: Callable[[Index, Sequence[Value]], Sequence[Value]],
    added: int,
) -> Sequence[Value]:
    """As `carry_sums`, of what has no roundings that add up."""
    return e.carry(lower, upper, step, initial, body)


def _tree(join: Join, values: Sequence[Value]) -> Value:
    """All values as one, neighbours first."""
    while len(values) > 1:
        pairs = [join(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, *values[len(pairs) * 2 :]]
    return values[0]


def _joined_lanes(e: Emitter, rows: Sequence[Value], join: Join) -> Value:
    """A vector whose lane r is what all lanes of row r are together, for up to `lanes` rows."""
    left: list[Value | None] = [*rows, *[None] * (e.lanes - len(rows))]
    distance = e.lanes // 2
    while distance:
        pairs = [exchanged(e, left[r], left[r + distance], distance) for r in range(distance)]
        left = [None if a is None or b is None else join(a, b) for a, b in pairs]
        distance //= 2
    (total,) = left
    assert total is not None
    return total
