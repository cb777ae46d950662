"""Nests that add up many f32 numbers, as loops over parts that are added up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeGuard

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import Float32Type
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from braid.lowering.common.element_types import constant
from braid.lowering.common.long_sums import OF_PART, additions_of, is_long, part_steps
from braid.lowering.common.loop_nest import (
    Element,
    Loops,
    Nest,
    counting_loop,
    emit_point,
    index_at,
    loops_of,
)
from braid.lowering.common.tensor_loops import index_constant

_LANES = 8
"""The least lanes of the vectors that LLVM makes of the innermost loop: each lane is a separate
sum."""

_MOST_SUMS = 4096
"""Sums of a row that are kept at once: 16 KiB of a thread's stack, and of its first-level cache."""

_f32 = Float32Type()

_Bound = int | SSAValue
_Place = Callable[[Builder, SSAValue | None], Element]
"""Returns the element that holds the sum for an index of the row."""


def long_sums_as_loops(function: FuncOp) -> None:
    """Make loops of the nests in `function` that have long sums."""
    for nest in [op for op in function.walk() if isinstance(op, linalg.GenericOp)]:
        if has_long_sum(nest):
            emit_long_sum(Builder(InsertPoint.before(nest)), nest, {})
            nest.detach()
            nest.erase()


def has_long_sum(nest: Nest) -> TypeGuard[linalg.GenericOp]:
    """Return whether `nest` adds more f32 numbers to elements of its result than are added one by
    one.
    """
    if isinstance(nest, linalg.FillOp) or len(nest.outputs) != 1:
        return False
    block = nest.body.block
    last, sum = block.last_op, block.args[-1]
    assert isinstance(last, linalg.YieldOp)
    added = last.arguments[0].owner
    if not isinstance(added, arith.AddfOp) or sum.type != _f32 or not sum.has_one_use():
        return False
    loops = loops_of(nest)
    dims = (dim for dim, is_parallel in enumerate(loops.is_parallel) if not is_parallel)
    return sum in added.operands and is_long(prod(_steps(loops, dim) for dim in dims), 1)


def emit_long_sum(builder: Builder, nest: linalg.GenericOp, fixed: Mapping[int, SSAValue]) -> None:
    """Emit a nest as `emit_nest` does, with sums in parts.

    The reduction is inside of all loops over the result, except the innermost loop of the nest: if
    that is over the result, its sums are kept side by side.
    """
    loops, indices = loops_of(nest), dict(fixed)
    last = len(loops.extents) - 1
    row = last if loops.is_parallel[last] and last not in indices else None
    for dim, extent in enumerate(loops.extents):
        if loops.is_parallel[dim] and dim not in indices and dim != row:
            builder, indices[dim] = counting_loop(builder, 0, extent)
    reduced = [dim for dim in range(last + 1) if not loops.is_parallel[dim]]
    count = 1 if row is None else loops.extents[row]
    bounds: tuple[_Bound, _Bound] = (0, count)
    if count > _MOST_SUMS:
        builder, begin = counting_loop(builder, 0, count, _MOST_SUMS)
        bounds = (begin, _end_of_part(builder, begin, _MOST_SUMS, count))
    _LongSum(nest, loops, row, bounds, min(count, _MOST_SUMS)).emit(builder, reduced, indices)


@dataclass(frozen=True)
class _LongSum:
    """The sums of a row of `nest`: those along dim `row` within `bounds`, or a single one."""

    nest: linalg.GenericOp
    loops: Loops
    row: int | None
    bounds: tuple[_Bound, _Bound]
    most: int

    def emit(
        self, builder: Builder, reduced: Sequence[int], indices: Mapping[int, SSAValue]
    ) -> None:
        """Add all numbers to the result; `indices` are those of the dims outside."""

        def result(builder: Builder, index: SSAValue | None) -> Element:
            zero = index_constant(builder, 0)
            known = self._indices({**indices, **dict.fromkeys(reduced, zero)}, index)
            point = [known[dim] for dim in range(len(known))]
            return self.nest.outputs[0], index_at(builder, self.loops.result, point)

        self._reduce(builder, reduced, indices, result)

    def _reduce(
        self,
        builder: Builder,
        reduced: Sequence[int],
        indices: Mapping[int, SSAValue],
        place: _Place,
    ) -> None:
        """Add the elements of the loops over `reduced` to the sums at `place`."""
        if reduced:
            dim, *inner = reduced

            def step(builder: Builder, index: SSAValue, place: _Place) -> None:
                self._reduce(builder, inner, {**indices, dim: index}, place)

            added = additions_of([_steps(self.loops, dim) for dim in inner])
            lanes = _lanes(self.loops, dim)
            self._loop(builder, self.loops.extents[dim], 1, lanes, added, step, place)
            return

        def add(builder: Builder, index: SSAValue | None) -> None:
            known = self._indices(indices, index)
            point = [known[dim] for dim in range(len(known))]
            emit_point(builder, self.nest, self.loops, point, place(builder, index))

        self._along_row(builder, add)

    def _loop(
        self,
        builder: Builder,
        extent: int,
        step: int,
        lanes: int,
        added: int,
        body: Callable[[Builder, SSAValue, _Place], None],
        place: _Place,
    ) -> None:
        """Emit a loop that adds `lanes` values in each iteration to partial sums."""
        iterations = -(-extent // (step * lanes))
        if not is_long(iterations, added):
            inside, index = counting_loop(builder, 0, extent, step)
            body(inside, index, place)
            return
        length = step * lanes * part_steps(iterations, added)
        own = self._sums_of_part()

        def part(builder: Builder, begin: SSAValue, place: _Place) -> None:
            zero = constant(builder, 0.0, _f32)
            self._along_row(builder, lambda b, i: _store(b, zero, own(b, i)))
            end = _end_of_part(builder, begin, length, extent)
            inside, index = counting_loop(builder, begin, end, step)
            body(inside, index, own)

            def add(builder: Builder, index: SSAValue | None) -> None:
                total, term = place(builder, index), own(builder, index)
                a, b = (builder.insert(memref.LoadOp.get(*each)).res for each in (total, term))
                _store(builder, builder.insert(arith.AddfOp(a, b)).result, total)

            self._along_row(builder, add)

        self._loop(builder, extent, length, 1, OF_PART, part, place)

    def _sums_of_part(self) -> _Place:
        """Return new memory for the sums of a row."""
        shape = [] if self.row is None else [self.most]
        function = self.nest.parent_op()
        while not isinstance(function, FuncOp):
            assert function is not None
            function = function.parent_op()
        # Memory of a stack is given back where the function ends.
        entry = Builder(InsertPoint.at_start(function.body.block))
        buffer = entry.insert(memref.AllocaOp.get(_f32, shape=shape)).memref

        def place(builder: Builder, index: SSAValue | None) -> Element:
            begin = self.bounds[0]
            if index is not None and isinstance(begin, SSAValue):
                index = builder.insert(arith.SubiOp(index, begin)).result
            return buffer, [] if index is None else [index]

        return place

    def _indices(
        self, known: Mapping[int, SSAValue], index: SSAValue | None
    ) -> Mapping[int, SSAValue]:
        """Return `known` and the index along the row."""
        return {**known} if self.row is None or index is None else {**known, self.row: index}

    def _along_row(
        self, builder: Builder, body: Callable[[Builder, SSAValue | None], None]
    ) -> None:
        """Emit `body` for each sum."""
        if self.row is None:
            body(builder, None)
        else:
            body(*counting_loop(builder, *self.bounds))


def _lanes(loops: Loops, dim: int) -> int:
    """Return separate sums among which LLVM distributes the additions of a long innermost loop."""
    is_last = dim == len(loops.extents) - 1
    return _LANES if is_last and is_long(loops.extents[dim], 1) else 1


def _steps(loops: Loops, dim: int) -> int:
    """Return the steps of a loop that add to the same sum."""
    return -(-loops.extents[dim] // _lanes(loops, dim))


def _end_of_part(builder: Builder, begin: SSAValue, length: int, extent: int) -> SSAValue:
    """Return where a part ends that begins there."""
    end = builder.insert(arith.AddiOp(begin, index_constant(builder, length))).result
    if extent % length == 0:
        return end
    return builder.insert(arith.MinUIOp(end, index_constant(builder, extent))).result


def _store(builder: Builder, value: SSAValue, place: Element) -> None:
    builder.insert(memref.StoreOp.get(value, *place))
