"""The loops of a reduction: accumulators in registers, with lanes along the innermost dim.

If that dim is kept, every lane is a separate result ("columns"). If it is reduced, every lane holds
a part of a result, and the lanes of several results are joined at the end: as many vectors become
one as a transpose has rows. Contiguous rows of two to four elements are deinterleaved as they are
read, so that every lane is a result again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Attribute, BlockArgument

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
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import maximum, product_of

_CHAINS = 8
"""Accumulators that do not wait for each other: two additions a cycle, of four cycles each."""

_WORD = 4
"""Bytes of the elements that fill vectors."""

_LONG_ROW = 64
"""Vectors of a row from which on its lanes are joined alone, and it has all accumulators …"""

_SHORT_ROW = 16
"""… and up to which as many rows as there are lanes go together; else four."""

_OPEN_ROWS = 4
"""Rows that are processed together if their length is unknown."""

Join = Callable[[Value, Value], Value]
"""The accumulator from a value and an accumulator."""


@dataclass(frozen=True)
class ReductionLoops:
    """Emits the loops: grid = outer kept dims × blocks of the innermost kept one.

    Blocks have one size: the last one ends with the dim, and recomputes results of the one before
    it. If that dim is open, the last block has the remainder: columns under masks, or rows one by
    one.
    """

    found: Reduction
    nest: ReductionNest
    unit: VectorUnit
    rows: int | None = None
    """The rows of a block, unless the length of rows decides it."""

    @property
    def grid(self) -> Extent:
        """Return iterations of the grid."""
        return product_of(self._grid_extents)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Emit one block of results."""
        *outer, number = e.coordinates(index, self._grid_extents)
        extent, size = self.nest.kept[-1].extent, self._block
        begin = e.mul(number, size)

        def results(first: Index, count: Extent) -> None:
            _Block(self, e, buffers, count).emit([*outer, first])

        def row(place: Index) -> None:
            one = replace(self, rows=1)
            _Block(one, e, buffers, 1).emit([*outer, e.add(begin, place)])

        def left() -> None:
            if self.has_results:
                results(begin, extent % size)
            else:
                e.loop(0, extent % size, 1, row)

        if isinstance(extent, int):
            results(e.minimum(begin, extent - size), size)
        else:
            e.branch(number, extent // size, lambda: results(begin, size), left)

    @property
    def has_results(self) -> bool:
        """Return whether each lane of an accumulator is a result."""
        return self.nest.has_columns or self.nest.is_interleaved

    @property
    def _grid_extents(self) -> tuple[Extent, ...]:
        *outer, extent = (dim.extent for dim in self.nest.kept)
        return (*outer, -(-extent // self._block))

    @cached_property
    def _block(self) -> int:
        """Return the results of each grid iteration: whole vectors, or one result for each row."""
        extent, lanes = self.nest.kept[-1].extent, self.unit.lanes
        most = self._registers * lanes if self.nest.has_columns else self._most_rows
        if self.nest.is_interleaved:
            most = lanes
        if not isinstance(extent, int):
            return most
        size = most if self.nest.is_interleaved else -(-extent // -(-extent // most))
        if self.nest.has_columns:
            size = -(-size // lanes) * lanes
        return min(size, extent)

    @property
    def _registers(self) -> int:
        """Return vectors of accumulators that half of the registers hold."""
        words = max(1, bytes_of(element_type_of(self.found.op.output)) // _WORD)
        return max(1, self.unit.registers // 2 // words)

    @property
    def _most_rows(self) -> int:
        """Return the most rows at a time, such that long ones fit the first cache."""
        rows = self.rows or _OPEN_ROWS
        steps = -(-self.nest.reduced[-1].extent // self.unit.lanes)
        if self.rows is None and isinstance(steps, int):
            rows = 1 if steps >= _LONG_ROW else 4 if steps > _SHORT_ROW else self.unit.lanes
        return min(rows, self._registers)

    @property
    def accumulators(self) -> int:
        """Return vectors that one step adds to."""
        if self.nest.is_interleaved:
            return 1
        return -(-self._block // self.unit.lanes) if self.nest.has_columns else self._block

    @property
    def width(self) -> int:
        """Return elements along the innermost reduced dim that a step adds to an accumulator."""
        length = self.nest.reduced[-1].extent
        if self.nest.is_interleaved and isinstance(length, int):
            return length
        return 1 if self.nest.has_columns else self.unit.lanes

    @cached_property
    def unroll(self) -> int:
        """Return steps along that dim that have accumulators of their own."""
        steps = -(-self.nest.reduced[-1].extent // self.width)
        most = min(_CHAINS, self._registers) // self.accumulators
        return max(1, min(steps, most) if isinstance(steps, int) else most)


@dataclass(frozen=True)
class _Block:
    """Computes and stores the first `count` results of a block."""

    loops: ReductionLoops
    e: Emitter
    buffers: Sequence[Buffer]
    count: Extent

    def emit(self, place: Sequence[Index]) -> None:
        """Emit the block at this place along all kept dims."""
        e, nest = self.e, self.loops.nest
        bases = [
            e.dot(place, [dim.strides[tensor] for dim in nest.kept])
            for tensor in range(len(nest.kept[-1].strides))
        ]
        totals = self._totals(bases[: nest.reads])
        for number, total in enumerate(totals):
            first = number * e.lanes
            self._store(bases[nest.reads :], first, total, e.tail_mask(self._left(first)))

    def _left(self, first: int, numbers: int = 1) -> Extent:
        """Return the results that come after the first `number`."""
        return maximum(0, self.count * numbers - first)

    def _totals(self, bases: Sequence[Index]) -> list[Value]:
        """Return the results of a block, in vectors."""
        e, loops = self.e, self.loops
        neutral = e.constant(self._neutral, e.vector_type(self._kind))
        count = loops.accumulators
        values = self._reduce(bases, [neutral] * (count * loops.unroll), 0)
        join = self._join
        chains = [values[start : start + count] for start in range(0, len(values), count)]
        joined = [_tree(join, list(own)) for own in zip(*chains, strict=True)]
        return joined if loops.has_results else [_joined_lanes(e, joined, join)]

    def _reduce(
        self, bases: Sequence[Index], values: Sequence[Value], depth: int
    ) -> Sequence[Value]:
        """Return the accumulators after all that the reduced dims from `depth` on reach."""
        e, loops, reduced = self.e, self.loops, self.loops.nest.reduced
        dim, inner = reduced[depth], reduced[depth + 1 :]
        carry = carry_sums if loops.found.op.kind.data == "add" else _carry
        size = loops.width * loops.unroll

        def at(position: Index) -> list[Index]:
            own = zip(bases, dim.strides, strict=False)
            return [e.add(base, e.mul(position, stride)) for base, stride in own]

        if inner:
            # Each step of the innermost loop adds one number to an accumulator.
            steps = -(-inner[-1].extent // size)
            added = additions_of([*(each.extent for each in inner[:-1]), steps])

            def outer(position: Index, values: Sequence[Value]) -> Sequence[Value]:
                return self._reduce(at(position), values, depth + 1)

            return carry(e, 0, dim.extent, 1, values, outer, added)

        def step(position: Index, values: Sequence[Value]) -> Sequence[Value]:
            return self._step(at(position), values, None)

        def last(position: Index, values: Sequence[Value]) -> Sequence[Value]:
            return self._step(at(position), values, e.sub(dim.extent, position))

        left = dim.extent % size
        whole = dim.extent - left
        if whole != 0:
            values = carry(e, 0, whole, size, values, step, 1)
        if isinstance(left, int):
            return last(whole, values) if left else values
        some = loops.accumulators
        return [*e.carry(whole, dim.extent, loops.width, values[:some], last), *values[some:]]

    def _step(
        self, bases: Sequence[Index], values: Sequence[Value], left: Index | None
    ) -> Sequence[Value]:
        """Add one vector more to each accumulator, as far as `left` elements of the dim go."""
        e, nest = self.e, self.loops.nest
        along, columns = nest.reduced[-1].strides, nest.kept[-1].strides
        if nest.is_interleaved:
            return [self._join(_tree(self._join, self._rows_apart(bases)), values[0])]
        results, count = list(values), self.loops.accumulators
        for number in range(len(values)):
            chain, place = divmod(number, count)
            first = chain * self.loops.width
            if isinstance(left, int) and first >= left:
                break
            if nest.has_columns:
                offset, lane_strides = place * e.lanes, columns
                lanes = self._left(offset)
            else:
                offset, lane_strides = place, along
                lanes = e.lanes if left is None else e.sub(left, first)
            offsets = [
                e.add(base, first * step + offset * across)
                for base, step, across in zip(bases, along, columns, strict=False)
            ]
            value = self._read(offsets, lane_strides, e.tail_mask(lanes))
            results[number] = self._join(value, results[number])
        return results

    def _rows_apart(self, bases: Sequence[Index]) -> list[Value]:
        """Return a vector for each element of a row, whose lanes are rows."""
        e, length = self.e, self.loops.width
        vectors: list[Value] = []
        for first in range(0, length * e.lanes, e.lanes):
            mask = e.tail_mask(self._left(first, length))
            offsets = [e.add(base, first) for base in bases]
            vectors.append(self._read(offsets, self.loops.nest.reduced[-1].strides, mask))
        return deinterleaved(e, vectors)

    def _read(
        self, offsets: Sequence[Index], lane_strides: Sequence[Extent], mask: Value | None
    ) -> Value:
        """Return a vector of the reduced elements, neutral where the mask is off."""
        e, reads = self.e, self.loops.found.reads
        place = {leaf: number for number, leaf in enumerate(reads.leaves)}

        def leaf(argument: BlockArgument) -> Value:
            buffer, offset = self.buffers[argument.index], offsets[place[argument]]
            if lane_strides[place[argument]] == 0:
                return buffer.splat(e, offset)
            return buffer.load(e, offset, mask)

        (value,) = evaluate(e, reads, leaf, {})
        cast = emitter_of("cast", [element_type_of(self.loops.found.op.input)], self._kind)
        assert cast is not None
        value = cast(e, [value])
        is_neutral = self.loops.nest.has_columns or (self._neutral == 0 and not reads.ops)
        if mask is None or is_neutral:
            return value
        return choose(e, mask, value, e.constant(self._neutral, value.type))

    def _store(self, bases: Sequence[Index], first: int, total: Value, mask: Value | None) -> None:
        """Compute and store the results that a vector of totals leads to."""
        e, found, nest = self.e, self.loops.found, self.loops.nest
        strides = nest.kept[-1].strides[nest.reads :]
        offsets = [e.add(base, first * stride) for base, stride in zip(bases, strides, strict=True)]
        place = {leaf: number for number, leaf in enumerate(found.points.leaves)}

        def leaf(argument: BlockArgument) -> Value:
            number, buffer = place[argument], self.buffers[argument.index]
            if strides[number] == 0:
                return buffer.splat(e, offsets[number])
            return buffer.load(e, offsets[number], mask)

        values = evaluate(e, found.points, leaf, {found.op.output: total})
        stored = zip(values, self.buffers[-len(values) :], offsets[len(place) :], strict=True)
        for value, buffer, offset in stored:
            buffer.store(e, value, offset, mask)

    @property
    def _kind(self) -> Attribute:
        """Return the type of accumulators."""
        return element_type_of(self.loops.found.op.output)

    @property
    def _neutral(self) -> float | int:
        return neutral_of(self.loops.found.op.kind.data, self._kind)

    def _join(self, value: Value, accumulator: Value) -> Value:
        emit = emitter_of(self.loops.found.op.kind.data, [self._kind] * 2, self._kind)
        assert emit is not None
        return emit(self.e, [value, accumulator])


def _carry(
    e: Emitter,
    lower: Index,
    upper: Index,
    step: int,
    initial: Sequence[Value],
    body: Callable[[Index, Sequence[Value]], Sequence[Value]],
    added: int,
) -> Sequence[Value]:
    """Carry sums as `carry_sums` does, for values without accumulating rounding errors."""
    return e.carry(lower, upper, step, initial, body)


def _tree(join: Join, values: Sequence[Value]) -> Value:
    """Return all values as one, neighbours first."""
    while len(values) > 1:
        pairs = [join(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, *values[len(pairs) * 2 :]]
    return values[0]


def _joined_lanes(e: Emitter, rows: Sequence[Value], join: Join) -> Value:
    """Return a vector whose lane r combines all lanes of row r, for up to `lanes` rows."""
    left: list[Value | None] = [*rows, *[None] * (e.lanes - len(rows))]
    distance = e.lanes // 2
    while distance:
        pairs = [exchanged(e, left[r], left[r + distance], distance) for r in range(distance)]
        left = [None if a is None or b is None else join(a, b) for a, b in pairs]
        distance //= 2
    (total,) = left
    assert total is not None
    return total
