"""The loops of a softmax: along contiguous rows, or down columns, as many as a few vectors have."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64

from braid.analysis.nests.normalization import SoftmaxNest
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.compare import choose
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.lowering.emit.math.double_functions import DoubleFunctions
from braid.lowering.emit.math.elementary_functions import Functions
from braid.lowering.emit.register_transpose import deinterleaved, interleaved
from braid.lowering.emit.rows import Join, across, added, each, fold, larger
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import maximum

_MOST_VECTORS = 4
"""The most vectors of columns that a softmax goes down together: as many maxima, sums and powers as
wait for none of the others, while the coefficients of powers stay in registers."""

Carry = Callable[..., Sequence[Value]]
"""`Emitter.carry` or `carry_sums`."""


@dataclass(frozen=True)
class SoftmaxLoops:
    """Emits the maximum, then powers and their sum, then the quotients."""

    nest: SoftmaxNest
    unit: VectorUnit

    @property
    def _columns(self) -> Extent:
        """Return neighbours that belong to different rows."""
        return self.nest.lines.inner

    @property
    def _are_together(self) -> bool:
        """Return whether columns are so few that a vector holds several elements of each."""
        length, few = self.nest.lines.extent, self.unit.lanes // 2
        is_long = not isinstance(length, int) or length >= self.unit.lanes
        return isinstance(self._columns, int) and self._columns <= few and is_long

    @property
    def _width(self) -> int:
        """Return columns of a block."""
        lanes, vectors = self.unit.lanes, _MOST_VECTORS
        if isinstance(self._columns, int):
            vectors = min(vectors, -(-self._columns // lanes))
        return vectors * lanes

    @property
    def _blocks(self) -> Extent:
        return 1 if self._are_together else -(-self._columns // self._width)

    @property
    def grid(self) -> Extent:
        """Return iterations of the grid: rows, or blocks of columns."""
        outer = self.nest.lines.outer
        return outer if self._columns == 1 else outer * self._blocks

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Emit one row, or a block of columns; the last block has the remainder."""
        x, y, length = buffers[self.nest.argument], buffers[-1], self.nest.lines.extent
        columns, size, lanes = self._columns, self._width, self.unit.lanes
        if columns == 1:
            _softmax(e, x, y, e.mul(index, length), length)
            return
        image, block = e.divmod(index, self._blocks)
        first = e.add(e.mul(image, length * columns), e.mul(block, size))

        def down(width: Extent) -> None:
            _Down(e, x, y, first, length, columns, width, size).softmax()

        if self._are_together and isinstance(columns, int):
            numbers, rest = columns * lanes, length % lanes * columns
            _Down(e, x, y, first, length // lanes, numbers, numbers, numbers, rest, True).softmax()
            return
        whole, left = columns // size, columns % size
        if left == 0:
            down(size)
        else:
            e.branch(block, whole, lambda: down(size), lambda: down(left))


def _functions(e: Emitter, x: Buffer) -> Functions | DoubleFunctions:
    """Return the functions of the elements of `x`."""
    return DoubleFunctions(e) if x.element_type == f64 else Functions(e)


def _softmax(e: Emitter, x: Buffer, y: Buffer, base: Index, length: Extent) -> None:
    """Emit the maximum, then powers and their sum, then the quotients."""
    kind = x.element_type
    lowest = e.constant(-math.inf, e.vector_type(kind))
    functions = _functions(e, x)

    def largest(position: Index, mask: Value | None, found: Value) -> Value:
        value = x.load(e, e.add(base, position), mask)
        if mask is not None:
            value = choose(e, mask, value, lowest)
        return larger(e, found, value)

    maximum = fold(e, length, -math.inf, largest, larger, kind)

    def power(position: Index, mask: Value | None, sum: Value) -> Value:
        offset = e.add(base, position)
        x.prefetch(e, e.add(offset, length))
        difference = e.insert(arith.SubfOp(x.load(e, offset, mask), maximum))
        value = functions.exp_of_differences(difference)
        if mask is not None:
            value = choose(e, mask, value, e.constant(0.0, value.type))
        y.store(e, value, offset, mask)
        return added(e, sum, value)

    total = fold(e, length, 0.0, power, added, kind)
    factor = e.insert(arith.DivfOp(e.constant(1.0, total.type), total))

    def scale(position: Index, mask: Value | None) -> None:
        offset = e.add(base, position)
        y.store(e, e.insert(arith.MulfOp(y.load(e, offset, mask), factor)), offset, mask)

    each(e, length, scale)


@dataclass(frozen=True)
class _Down:
    """A softmax down columns: `width` numbers in each of `rows`, which are `stride` apart.

    They are at most as many as `size`, for which there are vectors.

    A few columns are processed `together`: as many vectors as columns hold as many rows of them as
    a vector has lanes; `rest` numbers remain after the last one.
    """

    e: Emitter
    x: Buffer
    y: Buffer
    first: Index
    rows: Extent
    stride: Extent
    width: Extent
    size: int
    rest: Extent = 0
    together: bool = False

    def softmax(self) -> None:
        """Emit as `_softmax`, with vectors of maxima and sums."""
        e, functions = self.e, _functions(self.e, self.x)
        kind = e.vector_type(self.x.element_type)
        lowest, zero, one = (e.constant(number, kind) for number in (-math.inf, 0.0, 1.0))
        count = -(-(self.width if isinstance(self.width, int) else self.size) // e.lanes)

        def largest(number: int, offset: Index, mask: Value | None, found: Value) -> Value:
            value = self.x.load(e, offset, mask)
            return larger(e, found, value if mask is None else choose(e, mask, value, lowest))

        maxima = self._whole(self._pass([lowest] * count, largest), larger)

        def power(number: int, offset: Index, mask: Value | None, sum: Value) -> Value:
            difference = e.apply(arith.SubfOp, self.x.load(e, offset, mask), maxima[number])
            value = functions.exp_of_differences(difference)
            self.y.store(e, value, offset, mask)
            return added(e, sum, value if mask is None else choose(e, mask, value, zero))

        totals = self._whole(self._pass([zero] * count, power, carry_sums), added)

        def scale(number: int, offset: Index, mask: Value | None, factor: Value) -> Value:
            value = e.apply(arith.MulfOp, self.y.load(e, offset, mask), factor)
            self.y.store(e, value, offset, mask)
            return factor

        self._pass([e.apply(arith.DivfOp, one, total) for total in totals], scale)

    def _pass(
        self,
        initial: Sequence[Value],
        step: Callable[[int, Index, Value | None, Value], Value],
        carry: Carry = Emitter.carry,
    ) -> Sequence[Value]:
        """Return the values after `step`, which gets each vector's number, place and mask."""
        e = self.e

        def row(index: Index, values: Sequence[Value], width: Extent) -> Sequence[Value]:
            begin = e.add(self.first, e.mul(index, self.stride))
            return [
                step(number, e.add(begin, place), e.tail_mask(maximum(0, width - place)), value)
                for number, value in enumerate(values)
                for place in (number * e.lanes,)
            ]

        def whole(index: Index, values: Sequence[Value]) -> Sequence[Value]:
            return row(index, values, self.width)

        values = carry(e, 0, self.rows, 1, initial, whole)
        return row(self.rows, values, self.rest) if self.rest != 0 else values

    def _whole(self, values: Sequence[Value], join: Join) -> Sequence[Value]:
        """Return the combined lanes of the columns, each where it belongs."""
        if not self.together:
            return values
        columns = deinterleaved(self.e, values)
        return interleaved(self.e, [across(self.e, column, join) for column in columns])
