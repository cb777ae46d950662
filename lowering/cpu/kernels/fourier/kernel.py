"""Kernels of transforms: which signals an iteration has, and where they lie."""

import math
from collections.abc import Sequence

from xdsl.ir import Attribute

from braid.analysis.nests.fourier import FourierNest
from braid.lowering.cpu.kernels.fourier.complex_numbers import Arithmetic
from braid.lowering.cpu.kernels.fourier.places import Pairs, Places, Plane, Reals
from braid.lowering.cpu.kernels.fourier.rows import load_rows, store_rows
from braid.lowering.cpu.kernels.fourier.signal import SignalEmitter, SignalTables
from braid.lowering.cpu.kernels.fourier.steps import StepEmitter
from braid.lowering.cpu.kernels.fourier.tables import Tables
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.support.sizes.expression import Extent


class FourierKernel:
    """The transforms of all signals of a tensor: one row an iteration, or a vector of signals."""

    def __init__(
        self,
        nest: FourierNest,
        type: Attribute,
        lanes: int,
        radices: Sequence[int],
        *,
        is_row: bool,
    ) -> None:
        """Make the tables for steps of these radices on elements of `type`."""
        signal, lines = nest.signal, nest.lines
        self._signal, self._lines, self._type, self._lanes = signal, lines, type, lanes
        self._is_row, self.tables = is_row, Tables(type)
        self._shared = SignalTables.added(signal, radices, self.tables, is_row=is_row)
        # A vector may be written beyond the last position of a row, or the mirror image of the
        # first one.
        places = max(math.prod(radices), signal.read_extent, signal.written_extent) + (
            lanes if is_row else 1
        )
        self._part = -(-places // lanes) * lanes * (1 if is_row else lanes)

    @property
    def scratch_numbers(self) -> int:
        """Return the numbers of scratch memory: two planes of two parts each."""
        return 4 * self._part

    @property
    def grid(self) -> Extent:
        """Return the iterations."""
        outer, inner = self._lines.outer, self._lines.inner
        if self._is_row:
            return outer
        return -(-outer // self._lanes) if inner == 1 else outer * -(-inner // self._lanes)

    def iteration(self, e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
        """Emit one iteration."""
        source, target, scratch = buffers
        planes = [
            Plane(scratch, begin * self._part, (begin + 1) * self._part, self._is_row)
            for begin in (0, 2)
        ]
        ops = Arithmetic(e, self._type)
        steps = StepEmitter(e, ops, self.tables.buffer(e), self._is_row)
        signals = SignalEmitter(self._signal, self._shared, steps, planes)
        if self._is_row:
            signals.emit(self._row(e, source, index, is_read=True), self._row(e, target, index))
        elif self._lines.inner == 1:
            self._rows(e, signals, source, target, index)
        else:
            read, written = self._columns(e, (source, target), index)
            signals.emit(read, written)

    def _is_paired(self, *, is_read: bool) -> bool:
        """Return whether two neighbouring numbers are one complex one."""
        signal = self._signal
        is_real = signal.is_real if is_read else signal.kind == "irfft"
        return signal.is_halved or not is_real

    def _row(self, e: Emitter, buffer: Buffer, row: Index, *, is_read: bool = False) -> Places:
        signal = self._signal
        base = e.mul(row, signal.read_numbers if is_read else signal.written_numbers)
        return (Pairs if self._is_paired(is_read=is_read) else Reals)(buffer, base)

    def _rows(
        self, e: Emitter, signals: SignalEmitter, source: Buffer, target: Buffer, block: Index
    ) -> None:
        """Transform as many rows as lanes; the last row again for those that are not there."""
        outer, signal = self._lines.outer, self._signal
        first = e.mul(block, self._lanes)
        rows = [e.add(first, lane) for lane in range(self._lanes)]
        if outer % self._lanes != 0:
            rows = [e.minimum(row, e.sub(outer, 1)) for row in rows]
        begins = [e.mul(row, signal.read_numbers) for row in rows]
        plane = signals.planes[0]
        read = plane if self._is_paired(is_read=True) else plane.reals
        load_rows(e, source, begins, signal.read_numbers, read)
        result = signals.emit(read, None)
        begins = [e.mul(row, signal.written_numbers) for row in rows]
        is_paired = self._is_paired(is_read=False)
        store_rows(e, target, begins, signal.written_numbers, result, is_paired=is_paired)

    def _columns(
        self, e: Emitter, buffers: tuple[Buffer, Buffer], index: Index
    ) -> tuple[Places, Places]:
        """Return the reads and writes of an iteration: neighbours in the dims after the
        signal's."""
        inner, signal = self._lines.inner, self._signal
        place, block = e.divmod(index, -(-inner // self._lanes))
        lane = e.mul(block, self._lanes)
        count = None if inner % self._lanes == 0 else e.sub(inner, lane)
        found: list[Places] = []
        for buffer, is_read in zip(buffers, (True, False), strict=True):
            extent = signal.read_extent if is_read else signal.written_extent
            begin = e.add(e.mul(place, inner * extent), lane)
            if signal.is_real if is_read else signal.kind == "irfft":
                is_paired = self._is_paired(is_read=is_read)
                found.append(Reals(buffer, begin, inner, count, is_paired=is_paired))
            else:
                found.append(Pairs(buffer, e.mul(begin, 2), inner, count))
        return found[0], found[1]
