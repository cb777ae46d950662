"""Scans: several lines are walked side by side, each with what it has combined in a register."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.scan import ScanNest, scan_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of, is_float
from braid.dialects.braid.reduction import neutral_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scan import ScanOp
from braid.lowering.common.element_types import signless
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.elementwise_table import (
    Emit,
    conversion,
    emitter_of,
)
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import maximum
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_LATENCY = 4
"""Cycles that an addition takes."""

_TOGETHER = 8
"""Lines of a block: they hide the latency, and of long rows they make long parts."""


@dataclass(frozen=True)
class ScanFamily(SizedFamily):
    """A scan of numbers alone in its group, row-major; elements are combined in their order."""

    name: str = "scan"
    version: int = 2
    anchors: ClassVar = (ScanOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Scan | None":
        """Match a scan that is not empty, with any extents."""
        nest = scan_nest(group, extents_of)
        if nest is None:
            return None
        type = element_type_of(group.inputs[0])
        held = f32 if is_float(type) and bytes_of(type) < bytes_of(f32) else type
        combine = emitter_of(nest.kind, [held, held], held)
        return None if combine is None else Scan(group, self.unit, nest, held, combine)


@dataclass(frozen=True, eq=False)
class Scan(VectorCandidate):
    """`held` is the type that elements are combined in."""

    nest: ScanNest
    held: Attribute
    combine: Emit

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of memory traffic and the steps of all blocks."""
        outer, extent, inner = self.nest.lines.known
        lines = outer * -(-inner // self.unit.lanes)
        together = min(lines, _TOGETHER)
        steps = extent * lines / together * max(together, _LATENCY)
        return max(steps / self.unit.fma_rate, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one block of lines in each iteration: parts of a row, or rows if those are short."""
        outer, extent, inner = self.nest.lines.outer, self.nest.lines.extent, self.nest.lines.inner
        is_short = isinstance(inner, int) and inner < self.unit.lanes
        count, size = (outer, _TOGETHER) if is_short else (inner, _TOGETHER * self.unit.lanes)
        whole, rest, blocks = count // size, count % size, -(-count // size)
        apart = extent * inner if is_short else 1

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            row, block = (0, index) if is_short else e.divmod(index, blocks)
            begin = e.add(e.mul(row, extent * inner), e.mul(block, size * apart))

            def walk(first: Index, count: Extent) -> None:
                lines = self._lines(e, first, count)
                _Walk(e, self, buffers[0], buffers[-1], lines).emit()

            def left() -> None:
                if is_short and not isinstance(rest, int):
                    e.loop(0, rest, 1, lambda row: walk(e.add(begin, e.mul(row, apart)), 1))
                else:
                    walk(begin, rest)

            has_both = whole != 0 and rest != 0
            e.branch(block if has_both else 0, whole, lambda: walk(begin, size), left)

        # Results of an exclusive scan are written after the elements that they include are read.
        in_place = () if self.nest.is_exclusive else ((0, 0),)
        grid = blocks if is_short else blocks * outer
        return grid_kernel(self.group, symbol, self.unit, grid, iteration, in_place)

    def _lines(self, e: Emitter, begin: Index, count: Extent) -> Sequence["_Line"]:
        """Return the vectors of a block: of `count` rows, or of `count` elements of one row."""
        extent, inner = self.nest.lines.extent, self.nest.lines.inner
        if isinstance(inner, int) and inner < e.lanes:
            assert isinstance(count, int)
            mask = e.tail_mask(inner)
            return [_Line(e.add(begin, i * extent * inner), mask) for i in range(count)]
        most = count if isinstance(count, int) else _TOGETHER * e.lanes
        return [
            _Line(e.add(begin, i), e.tail_mask(maximum(0, count - i)))
            for i in range(0, most, e.lanes)
        ]


@dataclass(frozen=True)
class _Line:
    """Elements that are walked together, by vectors with this mask, or one by one.

    The first of them is `begin` elements after the tensor's first element.
    """

    begin: Index
    mask: Value | None


@dataclass(frozen=True)
class _Walk:
    """The scan of some lines."""

    e: Emitter
    scan: Scan
    source: Buffer
    target: Buffer
    lines: Sequence[_Line]

    def emit(self) -> None:
        """Copy the first elements, then add each later one to the sum before it."""
        self.e.branch(0, self.scan.nest.lines.extent, self._whole, lambda: None)

    def _whole(self) -> None:
        """Return the scan of lines that have elements."""
        e, nest = self.e, self.scan.nest
        left_out = int(nest.is_exclusive)
        if left_out:
            number = neutral_of(nest.kind, element_type_of(self.scan.group.inputs[0]))
            neutral = e.constant(number, self._type(self.scan.held))
            self._store([neutral] * len(self.lines), 0)
        count = nest.lines.extent - left_out

        def step(place: Index, sums: Sequence[Value]) -> Sequence[Value]:
            pairs = zip(sums, self._load(place), strict=True)
            sums = [self.scan.combine(e, pair) for pair in pairs]
            self._store(sums, e.add(place, left_out))
            return sums

        def all_others() -> None:
            first = self._load(0)
            self._store(first, left_out)
            if count != 1:
                e.carry(1, count, 1, first, step)

        e.branch(0, count, all_others, lambda: None)

    @property
    def _is_single(self) -> bool:
        return self.scan.nest.lines.inner == 1

    def _type(self, element_type: Attribute) -> Attribute:
        """Return the type of a line's element at a position."""
        return signless(element_type) if self._is_single else self.e.vector_type(element_type)

    def _at(self, line: _Line, place: Index) -> Index:
        """Return where in memory a line has the element that comes at this place of the scan."""
        lines = self.scan.nest.lines
        if self.scan.nest.is_reverse:
            place = self.e.sub(lines.extent - 1, place)
        return self.e.add(line.begin, self.e.mul(place, lines.inner))

    def _load(self, place: Index) -> Sequence[Value]:
        """Load the vectors of all lines, in the type that they are combined in."""
        return [self._loaded(self._at(line, place), line.mask) for line in self.lines]

    def _loaded(self, at: Index, mask: Value | None) -> Value:
        e = self.e
        value = self.source.load_scalar(e, at) if self._is_single else self.source.load(e, at, mask)
        return self._converted(value, self.source.element_type, self.scan.held)

    def _store(self, values: Sequence[Value], place: Index) -> None:
        e, held = self.e, self.scan.held
        for line, value in zip(self.lines, values, strict=True):
            value = self._converted(value, held, self.target.element_type)
            at = self._at(line, place)
            if self._is_single:
                e.effect(memref.StoreOp.get(value, self.target.ref, [e.index(at)]))
            else:
                self.target.store(e, value, at, line.mask)

    def _converted(self, value: Value, source: Attribute, target: Attribute) -> Value:
        if signless(source) == signless(target):
            return value
        op = conversion(source, target)
        assert op is not None, f"no conversion of {source} to {target}"
        return self.e.make(op, [value], self._type(target))
