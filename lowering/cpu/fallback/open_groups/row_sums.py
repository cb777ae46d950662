"""Reductions whose results are computed side by side: a row of them, as vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32

from braid.lowering.common.element_types import compute_type, constant
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.common.long_sums import LONGEST
from braid.lowering.cpu.fallback.open_groups.stages import StageNest
from braid.lowering.cpu.fallback.open_groups.tensors import Point, StoredTensor
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

_MOST = 512
"""Results of a row that are computed at once: a few KiB of the stack and of the nearest cache."""

_PART = 2048
"""Numbers that are added up on their own, where there are more than `LONGEST`."""


def row_sums(nest: StageNest) -> "RowSums | None":
    """Return the reduction in rows; None if a row has one element, or its reads are not contiguous.

    Reads along the row are contiguous, or all of the same element.
    """
    if nest.stage.combine is None or not nest.extents or nest.extents[-1] == 1:
        return None
    row = len(nest.extents) - 1
    return RowSums(nest) if all(read.is_along(row) for read in nest.reads) else None


@dataclass(frozen=True)
class RowSums:
    """The loops over the reduced dims, around a loop along the row."""

    nest: StageNest

    @property
    def most(self) -> int:
        """Return how many elements of a row are computed at once."""
        return _MOST

    def emit(
        self, e: Emitter, target: StoredTensor, point: Point, begin: Index, end: Index
    ) -> None:
        """Append the code that computes the elements from `begin` to `end` of the row at
        `point`."""
        type = compute_type(self.nest.stage.result_type)
        total = _Row(e.stack(type, _MOST), begin, end)
        total.fill(e, constant(e.builder, self.nest.neutral, type))
        self._reduce(e, list(point), [], self.nest.stage.reduction_dims, total)

        def write(index: Index) -> None:
            target.store(e, self.nest.rounded(e, total.load(e, index)), [*point, index])

        e.loop(begin, end, 1, write)

    def _reduce(
        self, e: Emitter, point: Point, known: Point, dims: Sequence[int], total: "_Row"
    ) -> None:
        """Append loops over `dims`, whose values are added to `total`; `known` are those around."""
        space = self.nest.space
        if not dims:
            total.add(e, self._combined(e, point, known))
            return
        dim, *inner = dims
        count = product_of(space[d] for d in inner)
        if not self._is_cut(count * space[dim]):
            e.loop(0, space[dim], 1, lambda i: self._reduce(e, point, [*known, i], inner, total))
            return
        length = max(1, _PART // max(1, count)) if isinstance(count, int) else 1
        own = _Row(e.stack(f32, _MOST), total.begin, total.end)

        def part(first: Index) -> None:
            own.fill(e, constant(e.builder, 0.0, f32))
            last = e.minimum(e.add(first, length), space[dim])
            e.loop(first, last, 1, lambda i: self._reduce(e, point, [*known, i], inner, own))
            total.add(e, lambda index, old: e.apply(arith.AddfOp, old, own.load(e, index)))

        e.loop(0, space[dim], length, part)

    def _combined(self, e: Emitter, point: Point, known: Point) -> Callable[[Index, Value], Value]:
        return lambda index, old: self.nest.combined(
            e, old, self.nest.body(e, [*point, index, *known], {})
        )

    def _is_cut(self, count: Extent) -> bool:
        """Return whether a sum of this many numbers is made of sums of parts."""
        stage = self.nest.stage
        is_rounded = stage.combine == "add" and compute_type(stage.result_type) == f32
        return is_rounded and not (isinstance(count, int) and count <= LONGEST)


@dataclass(frozen=True)
class _Row:
    """Numbers of a range of a row, in memory of the function's own."""

    ref: Value
    begin: Index
    end: Index

    def load(self, e: Emitter, index: Index) -> Value:
        """Return the number at an index of the row."""
        return e.insert(memref.LoadOp.get(self.ref, [e.index(e.sub(index, self.begin))]))

    def fill(self, e: Emitter, value: Value) -> None:
        """Append the code that makes all numbers equal."""
        self.add(e, lambda _index, _old: value)

    def add(self, e: Emitter, new: Callable[[Index, Value], Value]) -> None:
        """Append the code that replaces each number by `new` of its index and of itself."""

        def replace(index: Index) -> None:
            value = new(index, self.load(e, index))
            place = e.index(e.sub(index, self.begin))
            e.effect(memref.StoreOp.get(value, self.ref, [place]))

        e.loop(self.begin, self.end, 1, replace)
