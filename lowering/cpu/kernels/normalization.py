"""Softmax and layer normalization along contiguous rows, each row by one grid iteration.

Softmax along another dim goes down columns, as many side by side as a few vectors have lanes.
Rows of a layer normalization are also a channel of an image (instance normalization), or several
(group normalization), whose scale is one number for each.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.tiles.tiles import is_splat
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.constants import ConstantOp, splat_value
from braid.dialects.braid.normalization import LayerNormOp, SoftmaxOp
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.lowering.common.emitted_dialects import math as math_ops
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.compare import choose
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.lowering.emit.math.double_functions import DoubleFunctions
from braid.lowering.emit.math.elementary_functions import Functions
from braid.lowering.emit.register_transpose import deinterleaved, interleaved
from braid.lowering.emit.rows import Join, across, added, each, fold, larger
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_MOST_VECTORS = 4
"""Of columns that a softmax goes down together: as many maxima, sums and powers as wait for none of
the others, while the coefficients of powers stay in registers."""

_FLOPS = {"braid.softmax": 16, "braid.layer_norm": 8}
"""Vector operations per element, to rank against other families."""

Carry = Callable[..., Sequence[Value]]
"""`Emitter.carry` or `carry_sums`."""

At = Callable[[Index, Value | None], Value]
"""A vector at a position, of which a mask may turn lanes off."""


@dataclass(frozen=True)
class NormalizationFamily(VectorFamily):
    """`braid.softmax` and `braid.layer_norm`, of f32 or f64, alone in their group.

    Scale and bias of a normalization have a number for every element of a row, for sections of it,
    or for rows. Layout: row-major.
    """

    name: str = "normalization"
    version: int = 9
    anchors: ClassVar = (SoftmaxOp, LayerNormOp)

    def match(self, group: FusedOp) -> "_Normalization | None":
        """One op along contiguous rows, or down columns."""
        op = _match(group)
        if op is None:
            return None
        if isinstance(op, SoftmaxOp) and (count := _columns(op)) > 1:
            return _Columns(group, self.unit_of(op.input), op, count)
        return _Rows(group, self.unit_of(op.input), op)


@dataclass(frozen=True, eq=False)
class _Normalization(VectorCandidate):
    op: SoftmaxOp | LayerNormOp

    def choices(self) -> Sequence[LayoutChoice]:
        """The one choice."""
        return [row_major_choice(self.group)]

    def seconds(self, choice: LayoutChoice) -> float:
        """The larger of arithmetic and memory traffic; passes after the first hit the cache."""
        elements = math.prod(shape_of(self.op.results[0]))
        arithmetic = elements * _FLOPS[self.op.name] / (self.unit.flops / 2)
        return max(arithmetic, self.moving_seconds(choice))


@dataclass(frozen=True, eq=False)
class _Rows(_Normalization):
    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """One row per grid iteration."""
        op, length = self.op, _row_length(self.op)
        input = cast(BlockArgument, op.input).index

        def iteration(e: Emitter, buffers: Sequence[Buffer], row: Index) -> None:
            x, y = buffers[input], buffers[-1]
            if isinstance(op, LayerNormOp):
                _layer_norm(e, x, y, row, _Scales(e, op, buffers, row))
            else:
                _softmax(e, x, y, e.mul(row, length), length)

        rows = math.prod(shape_of(op.results[0])) // length
        # Every element of the row is read for the last time right before it is written.
        return grid_kernel(self.group, symbol, self.unit, rows, iteration, ((input, 0),))


@dataclass(frozen=True, eq=False)
class _Columns(_Normalization):
    """A softmax down `count` columns that are neighbours."""

    count: int

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """A block of columns per grid iteration, the last one of what is left."""
        length, lanes = _row_length(self.op), self.unit.lanes
        input = cast(BlockArgument, self.op.input).index
        runs_on = self.count <= lanes // 2 and length >= lanes
        size = min(_MOST_VECTORS, -(-self.count // lanes)) * lanes
        whole, left = (1, 0) if runs_on else divmod(self.count, size)
        blocks = whole + (left > 0)

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            image, block = e.divmod(index, blocks)
            first = e.add(e.mul(image, length * self.count), e.mul(block, size))
            x, y = buffers[input], buffers[-1]

            def down(width: int) -> None:
                _Down(e, x, y, first, length, self.count, width).softmax()

            if runs_on:
                numbers, rest = self.count * lanes, length % lanes * self.count
                _Down(e, x, y, first, length // lanes, numbers, numbers, rest, True).softmax()
            elif left:
                e.branch(block, whole, lambda: down(size), lambda: down(left))
            else:
                down(size)

        images = math.prod(shape_of(self.op.output)) // (length * self.count)
        grid = images * blocks
        return grid_kernel(self.group, symbol, self.unit, grid, iteration, ((input, 0),))


def _match(group: FusedOp) -> SoftmaxOp | LayerNormOp | None:
    """The only op of the group beside constants, of f32 or f64 and not empty."""
    ops = [op for op in group.body.block.ops if not isinstance(op, ConstantOp | YieldOp)]
    if len(ops) != 1 or tuple(group.terminator.arguments) != tuple(ops[0].results):
        return None
    op = ops[0]
    if not isinstance(op, SoftmaxOp | LayerNormOp) or element_type_of(op.input) not in (f32, f64):
        return None
    shape = shape_of(op.input)
    if min(shape) < 1 or not isinstance(op.input, BlockArgument):
        return None
    return op if isinstance(op, SoftmaxOp) or _sections(op) is not None else None


def _row_length(op: SoftmaxOp | LayerNormOp) -> int:
    shape = shape_of(op.input)
    dims = op.dims if isinstance(op, LayerNormOp) else (op.dim.value.data,)
    return math.prod(shape[dim] for dim in dims)


def _columns(op: SoftmaxOp) -> int:
    """How many numbers lie between neighbours of a row: each is one of another row."""
    return math.prod(shape_of(op.input)[op.dim.value.data + 1 :])


def _sections(op: LayerNormOp) -> int | None:
    """Into how many parts a row is cut, in each of which scale and bias are one number, or rows.

    None where they are neither, and where they are in no memory and not one number.
    """
    counts: set[int] = set()
    for value in (op.scale, op.bias):
        count = _numbers_in_row(op, value)
        if count is None or not (isinstance(value, BlockArgument) or is_splat(value)):
            return None
        counts.add(count)
    between = counts - {1, _row_length(op)}
    return None if len(between) > 1 else max(between, default=1)


def _numbers_in_row(op: LayerNormOp, value: SSAValue) -> int | None:
    """How many numbers of `value` there are for a row, each for equally many neighbours."""
    first = op.first_dim.value.data
    row, extents = shape_of(op.input)[first:], shape_of(value)[first:]
    varying = max((dim + 1 for dim, extent in enumerate(extents) if extent > 1), default=0)
    return math.prod(extents) if extents[:varying] == row[:varying] else None


def _functions(e: Emitter, x: Buffer) -> Functions | DoubleFunctions:
    """Those of the elements of `x`."""
    return DoubleFunctions(e) if x.element_type == f64 else Functions(e)


def _softmax(e: Emitter, x: Buffer, y: Buffer, base: Index, length: int) -> None:
    """Maximum, then powers and their sum, then the quotients."""
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

    Few columns go `together`: a row is as many vectors as columns, which hold as many
    rows of the columns as a vector has lanes, and `rest` numbers are left behind the last one.
    """

    e: Emitter
    x: Buffer
    y: Buffer
    first: Index
    rows: int
    stride: int
    width: int
    rest: int = 0
    together: bool = False

    def softmax(self) -> None:
        """As `_softmax`, with vectors of maxima and sums."""
        e, functions = self.e, _functions(self.e, self.x)
        kind = e.vector_type(self.x.element_type)
        lowest, zero, one = (e.constant(number, kind) for number in (-math.inf, 0.0, 1.0))
        count = -(-self.width // e.lanes)

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
        """The values after `step` of each vector's number, place and mask, and the value before."""
        e = self.e

        def row(index: Index, values: Sequence[Value], width: int) -> Sequence[Value]:
            begin = e.add(self.first, e.mul(index, self.stride))
            return [
                step(number, e.add(begin, place), e.tail_mask(max(0, width - place)), value)
                for number, value in enumerate(values)
                for place in (number * e.lanes,)
            ]

        def whole(index: Index, values: Sequence[Value]) -> Sequence[Value]:
            return row(index, values, self.width)

        values = carry(e, 0, self.rows, 1, initial, whole)
        return row(self.rows, values, self.rest) if self.rest else values

    def _whole(self, values: Sequence[Value], join: Join) -> Sequence[Value]:
        """What the columns' lanes are together, where they belong."""
        if not self.together:
            return values
        columns = deinterleaved(self.e, values)
        return interleaved(self.e, [across(self.e, column, join) for column in columns])


class _Scales:
    """Scale and bias of the row that a grid iteration normalizes."""

    def __init__(self, e: Emitter, op: LayerNormOp, buffers: Sequence[Buffer], row: Index) -> None:
        sections = _sections(op)
        assert sections is not None
        self.op, self.sections, self.length = op, sections, _row_length(op)
        self._e, self._buffers, self._row = e, buffers, row

    def both(self, section: Index) -> tuple[At, At]:
        """Scale and bias at the positions of a section."""
        return self._in_section(self.op.scale, section), self._in_section(self.op.bias, section)

    def _in_section(self, value: SSAValue, section: Index) -> At:
        e = self._e
        if isinstance(value.owner, ConstantOp):
            number = splat_value(value.owner)
            assert number is not None
            kind = element_type_of(self.op.input)
            constant = e.constant(float(number), e.vector_type(kind))
            return lambda position, mask: constant
        buffer, first = self._buffers[cast(BlockArgument, value).index], self._first(value)
        numbers = _numbers_in_row(self.op, value)
        if numbers == self.length:
            begin = e.add(first, e.mul(section, self.length // self.sections))
            return lambda position, mask: buffer.load(e, e.add(begin, position), mask)
        repeated = buffer.splat(e, first if numbers == 1 else e.add(first, section))
        return lambda position, mask: repeated

    def _first(self, value: SSAValue) -> Index:
        """Where the numbers for the row begin."""
        outer, extents = self.op.first_dim.value.data, shape_of(value)
        steps = [math.prod(extents[dim + 1 :]) * (extents[dim] > 1) for dim in range(outer)]
        if not any(steps):
            return 0
        coordinates = self._e.coordinates(self._row, shape_of(self.op.input)[:outer])
        return self._e.dot(coordinates, steps)


def _layer_norm(e: Emitter, x: Buffer, y: Buffer, row: Index, scales: _Scales) -> None:
    """Mean, then the mean square of the differences, then the result."""
    length = scales.length
    base = e.mul(row, length)
    kind = x.element_type
    count = e.constant(1.0 / length, e.vector_type(kind))

    def add(position: Index, mask: Value | None, sum: Value) -> Value:
        return added(e, sum, x.load(e, e.add(base, position), mask))

    def average(total: Value) -> Value:
        return e.insert(arith.MulfOp(total, count))

    mean = average(fold(e, length, 0.0, add, added, kind))

    def add_square(position: Index, mask: Value | None, sum: Value) -> Value:
        value = x.load(e, e.add(base, position), mask)
        difference = e.insert(arith.SubfOp(value, mean))
        if mask is not None:
            difference = choose(e, mask, difference, e.constant(0.0, difference.type))
        return e.fma(difference, difference, sum)

    variance = average(fold(e, length, 0.0, add_square, added, kind))
    shifted = added(e, variance, e.constant(scales.op.epsilon.value.data, variance.type))
    root = e.insert(math_ops.SqrtOp(shifted))
    factor = e.insert(arith.DivfOp(e.constant(1.0, root.type), root))
    size = length // scales.sections

    def normalize(section: Index) -> None:
        begin, (scale, bias) = e.add(base, e.mul(section, size)), scales.both(section)

        def at(position: Index, mask: Value | None) -> None:
            offset = e.add(begin, position)
            difference = e.insert(arith.SubfOp(x.load(e, offset, mask), mean))
            product = e.insert(arith.MulfOp(scale(position, mask), factor))
            y.store(e, e.fma(difference, product, bias(position, mask)), offset, mask)

        each(e, size, at)

    e.loop(0, scales.sections, 1, normalize)
