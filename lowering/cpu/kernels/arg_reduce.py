"""The places of the largest or smallest elements of rows: each lane keeps its best and where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.selection import ArgReduceNest, arg_reduce_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.regions import FusedOp
from braid.lowering.common.emitted_dialects import memref, vector
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.kernels.selection.keys import key_of, largest_of, word_of
from braid.lowering.cpu.kernels.selection.sorting import iota
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.compare import choose, compare
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.register_transpose import shuffled
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_CHAINS = 4
"""Vectors that are looked at side by side."""

_CYCLES = 4.0
"""The cycles for each element."""

_ROW_CYCLES = 40.0
"""The cycles for the best of all lanes of a row."""


@dataclass(frozen=True)
class ArgReduceFamily(SizedFamily):
    """An arg-reduction along the innermost dim, alone, row-major."""

    name: str = "arg-reduce"
    version: int = 1
    anchors: ClassVar = (ArgReduceOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "ArgReduce | None":
        """Match a group that is not empty, with any number of lines; indices have to fit i32."""
        nest = arg_reduce_nest(group, extents_of)
        if nest is None or nest.lines.inner != 1:
            return None
        extent = nest.lines.extent
        if not isinstance(extent, int) or extent > largest_of(i32):
            return None
        return ArgReduce(group, self.unit_of(group.inputs[0]), nest, extent)


Best = tuple[Value, Value]
"""Keys, and the places of their elements in the row."""


@dataclass(frozen=True, eq=False)
class ArgReduce(VectorCandidate):
    """The lines of a group, each of `extent` neighbours."""

    nest: ArgReduceNest
    extent: int

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of memory traffic and the cycles of all vectors."""
        rows, extent, _ = self.nest.lines.known
        cycles = rows * (-(-extent // self.unit.lanes) * _CYCLES + _ROW_CYCLES)
        clock = self.unit.fma_rate / self.unit.multiply_adds
        return max(cycles / clock, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one row in each iteration."""

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            keys, places = self._best_of_lanes(e, buffers[0], e.mul(index, self.extent))
            distance = e.lanes // 2
            while distance:
                order = [lane ^ distance for lane in range(e.lanes)]
                turned = (shuffled(e, keys, keys, order), shuffled(e, places, places, order))
                keys, places = self._better(e, (keys, places), turned)
                distance //= 2
            value = e.insert(vector.ExtractOp(places, [0], self._word))
            if self._word != i64:
                value = e.make(arith.ExtSIOp, [value], i64)
            e.effect(memref.StoreOp.get(value, buffers[-1].ref, [e.index(index)]))

        return grid_kernel(self.group, symbol, self.unit, self.nest.lines.outer, iteration)

    @property
    def _type(self) -> Attribute:
        """Return the type of the elements."""
        return element_type_of(self.group.inputs[0])

    @property
    def _word(self) -> IntegerType:
        return word_of(self._type)

    def _best_of_lanes(self, e: Emitter, source: Buffer, begin: Index) -> Best:
        """Return in each lane the best of its elements, over all chains."""
        size = _CHAINS * e.lanes
        whole = self.extent - self.extent % size
        word, largest = e.vector_type(self._word), largest_of(self._word)
        nothing = e.constant(largest, word)
        nowhere = e.constant(-1 if self.nest.is_last else largest, word)

        def elements(at: Index, mask: Value | None = None) -> Best:
            value = source.load(e, e.add(begin, at), mask)
            key = key_of(e, value, self._type, largest=self.nest.is_max, nan_first=True)
            first = e.broadcast(e.make(arith.IndexCastOp, [e.index(at)], self._word))
            place = e.apply(arith.AddiOp, first, iota(e, self._word))
            if mask is None:
                return key, place
            return choose(e, mask, key, nothing), choose(e, mask, place, nowhere)

        def step(at: Index, values: Sequence[Value]) -> Sequence[Value]:
            found: list[Value] = []
            for chain in range(_CHAINS):
                key, place = elements(e.add(at, chain * e.lanes))
                best, where = values[2 * chain : 2 * chain + 2]
                # Places ascend.
                is_better = compare(e, "sle" if self.nest.is_last else "slt", key, best)
                found += [choose(e, is_better, key, best), choose(e, is_better, place, where)]
            return found

        pairs = [(nothing, nowhere)] * _CHAINS
        if whole:
            pairs = [elements(chain * e.lanes) for chain in range(_CHAINS)]
        if whole > size:
            values = e.carry(size, whole, size, [x for pair in pairs for x in pair], step)
            pairs = [(values[2 * chain], values[2 * chain + 1]) for chain in range(_CHAINS)]
        for chain, at in enumerate(range(whole, self.extent, e.lanes)):
            last = elements(at, e.tail_mask(self.extent - at))
            pairs[chain] = self._better(e, pairs[chain], last)
        best = pairs[0]
        for other in pairs[1:]:
            best = self._better(e, best, other)
        return best

    def _better(self, e: Emitter, a: Best, b: Best) -> Best:
        """Return the better of two in each lane, for equal ones the first or the last."""
        is_before = compare(e, "sgt" if self.nest.is_last else "slt", b[1], a[1])
        is_equal = e.apply(arith.AndIOp, compare(e, "eq", b[0], a[0]), is_before)
        is_better = e.apply(arith.OrIOp, compare(e, "slt", b[0], a[0]), is_equal)
        return choose(e, is_better, b[0], a[0]), choose(e, is_better, b[1], a[1])
