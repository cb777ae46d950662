"""Scatters: the data, unless the result is in place, then the slices of updates in order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith

from braid.analysis.nests.dims import row_major_strides
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.scatter import ScatterNest, scatter_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scattering import ScatterOp
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.elementwise_table import Emit, emitter_of
from braid.lowering.emit.positions import position_of
from braid.lowering.emit.rows import each
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule


@dataclass(frozen=True)
class ScatterFamily(SizedFamily):
    """A scatter of numbers alone in its group, row-major.

    Several updates may address one element, so that they are in one grid iteration.
    """

    name: str = "scatter"
    version: int = 3
    anchors: ClassVar = (ScatterOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Scatter | None":
        """Match a scatter that is not empty, whose operands are the group's, with any extents."""
        nest = scatter_nest(group, extents_of)
        if nest is None:
            return None
        type = element_type_of(group.results[0])
        combine = emitter_of(nest.combine or "", [type, type], type)
        if combine is None and nest.combine is not None:
            return None
        return Scatter(group, self.unit, nest, combine)


@dataclass(frozen=True, eq=False)
class Scatter(VectorCandidate):
    """The slices of a group, and the op that combines them with the present elements."""

    nest: ScatterNest
    combine: Emit | None

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of its memory traffic, as if the data were copied."""
        return self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit all updates in one iteration."""

        nest, elements = self.nest, product_of(self.nest.shape)

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            _copy_elsewhere(e, buffers[nest.data], buffers[-1], elements)
            indices, updates = buffers[nest.indices], buffers[nest.updates]

            def put(number: Index) -> None:
                target, begin = _target(e, nest, indices, number), e.mul(number, nest.length)
                _put(e, updates, begin, buffers[-1], target, nest.length, self.combine)

            count = product_of(nest.slices)
            e.branch(0, elements, lambda: e.loop(0, count, 1, put), lambda: None)

        return grid_kernel(self.group, symbol, self.unit, 1, iteration, nest.in_place)


def _target(e: Emitter, nest: ScatterNest, indices: Buffer, number: Index) -> Index:
    """Return where in the result the slice `number` begins."""
    strides, first = row_major_strides(nest.shape), e.mul(number, nest.entries)

    def position(entry: int, dim: int) -> Index:
        index = indices.load_scalar(e, e.add(first, entry))
        return position_of(e, index, nest.shape[dim], nest.are_unsigned)

    if nest.along is None:
        found = [position(dim, dim) for dim in range(nest.entries)]
        return e.dot(found, strides[: nest.entries])
    point = e.coordinates(number, nest.slices)
    point[nest.along] = position(0, nest.along)
    return e.dot(point, strides)


def _copy_elsewhere(e: Emitter, source: Buffer, target: Buffer, length: Extent) -> None:
    """Copy elements that are not in place already."""
    here, there = (
        e.insert(memref.ExtractAlignedPointerAsIndexOp.get(b.ref)) for b in (source, target)
    )
    is_elsewhere = e.insert(arith.CmpiOp(here, there, "ne"))

    def vector(position: Index, mask: Value | None) -> None:
        target.store(e, source.load(e, position, mask), position, mask)

    e.when(is_elsewhere, lambda: each(e, length, vector))


def _put(
    e: Emitter,
    updates: Buffer,
    begin: Index,
    result: Buffer,
    target: Index,
    length: Extent,
    combine: Callable[[Emitter, Sequence[Value]], Value] | None,
) -> None:
    """Combine `length` updates into the result, by vectors where there are that many."""

    def combined(old: Callable[[], Value], new: Value) -> Value:
        return new if combine is None else combine(e, [old(), new])

    def vector(position: Index, mask: Value | None) -> None:
        new, at = updates.load(e, e.add(begin, position), mask), e.add(target, position)
        result.store(e, combined(lambda: result.load(e, at, mask), new), at, mask)

    if length != 1:
        each(e, length, vector)
        return
    value = combined(lambda: result.load_scalar(e, target), updates.load_scalar(e, begin))
    e.effect(memref.StoreOp.get(value, result.ref, [e.index(target)]))
