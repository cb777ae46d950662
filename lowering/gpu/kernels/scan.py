"""Cumulative sums and the like: a block goes over its row, tile by tile.

The lanes of a warp scan by shuffles (Hillis and Steele, "Data parallel algorithms", 1986), warps by
their totals in shared memory, and tiles by the carried values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import cast

from xdsl.dialects import arith, llvm, memref
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of, is_unsigned
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.reduction import neutral_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.scan import ScanOp
from braid.lowering.common.element_types import (
    compute_type,
    constant,
    narrow,
    signless,
    widen,
)
from braid.lowering.common.scalar_ops import emit_operation
from braid.lowering.common.tensor_loops import delinearized
from braid.lowering.gpu.contraction.code import SHARED, Code, Value
from braid.lowering.gpu.kernels.contraction_candidate import ProductEntry, kernel_of_entries
from braid.lowering.gpu.kernels.plain_candidate import AlongDim
from braid.lowering.gpu.launch.aligned_entries import is_aligned
from braid.lowering.gpu.launch.launches import THREADS, dynamic_shared
from braid.lowering.gpu.nests.shuffles import UP, shuffled
from braid.lowering.gpu.nests.wide_access import (
    ACCESS_BYTES,
    element_of,
    load_vector,
    store_vector,
)
from braid.targets.kernels.kernel_family import Kernel, KernelFamily
from braid.targets.kernels.schedules import Schedule
from braid.targets.machines.machine import Machine

_WARP = 32
_WARPS = THREADS // _WARP
_MOST = 1 << 31
"""Elements: they are numbered in 32 bits."""


def _load(code: Code, buffer: SSAValue, place: Sequence[SSAValue], width: int) -> list[SSAValue]:
    if width == 1:
        return [code.insert(memref.LoadOp.get(buffer, place))]
    loaded = load_vector(code.builder, buffer, place, width)
    return [element_of(code.builder, loaded, number) for number in range(width)]


def _store(
    code: Code, elements: Sequence[SSAValue], buffer: SSAValue, place: Sequence[SSAValue]
) -> None:
    if len(elements) == 1:
        code.builder.insert(memref.StoreOp.get(elements[0], buffer, place))
    else:
        store_vector(code.builder, elements, buffer, place)


@dataclass(frozen=True)
class ScanFamily(KernelFamily):
    """A `braid.scan` alone, of any kind along any dim."""

    machine: Machine
    name: str = "gpu-scan"
    version: int = 2

    def match(self, group: FusedOp) -> "_Scan | None":
        """Match one op of static extents, not empty, on the operand of the group."""
        *members, end = group.body.block.ops
        if len(members) != 1 or not isinstance(op := members[0], ScanOp):
            return None
        shape = shape_of(op.input)
        if DYNAMIC in shape or 0 in shape or prod(shape) >= _MOST:
            return None
        if element_type_of(op.input) == i1 or list(end.operands) != [op.output]:
            return None
        return _Scan(group, self.machine, op)


@dataclass(frozen=True, eq=False)
class _Scan(AlongDim):
    op: ScanOp

    @property
    def _extent(self) -> int:
        return shape_of(self.op.input)[self.dim]

    @cached_property
    def _type(self) -> Attribute:
        """Type of elements in the dialect."""
        return element_type_of(self.op.input)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one entry with a block for each row."""
        buffers = self.buffers
        entry = ProductEntry(
            prod(self.outer),
            THREADS,
            _WARPS * bytes_of(compute_type(self._type)),
            (),
            lambda code, own, name, _: self._emit(code, [own[b] for b in buffers], name),
        )
        return kernel_of_entries([entry], buffers, symbol, self.group, self.machine)

    def _combined(self, code: Code, a: Value, b: Value) -> Value:
        return cast(Value, emit_operation(code.builder, self.op.kind.data, [a, b], self._type))

    def _neutral(self, code: Code) -> Value:
        number = neutral_of(self.op.kind.data, self._type)
        bits = 8 * bytes_of(self._type)
        if is_unsigned(self._type) and number >= 1 << (bits - 1):
            number -= 1 << bits  # as a signed one of the same bits
        type: Attribute = compute_type(signless(self._type))
        return cast(Value, constant(code.builder, number, type))

    @property
    def _width(self) -> int:
        """Elements of a row that a thread reads at once: 16 bytes of them, where rows allow."""
        width = ACCESS_BYTES // bytes_of(self._type)
        along_last = self.dim == len(self.outer)
        return width if along_last and self._extent % width == 0 else 1

    def _emit(self, code: Code, buffers: Sequence[SSAValue], entry: str) -> None:
        shared = code.insert(llvm.AddressOfOp(dynamic_shared(entry), SHARED))
        if self._width == 1:
            self._emit_row(code, buffers, shared, 1)
            return
        code.choose(
            cast(Value, is_aligned(code.builder)),
            lambda own: self._emit_row(own, buffers, shared, self._width),
            lambda own: self._emit_row(own, buffers, shared, 1),
        )

    def _emit_row(self, code: Code, buffers: Sequence[SSAValue], shared: Value, width: int) -> None:
        """Scan the row of a block by tiles, of which a thread has `width` elements."""
        thread, row = code.thread(), code.index(code.block())
        source, target = buffers
        point = delinearized(code.builder, row, self.outer)
        none = self._neutral(code)

        def place(at: Code, number: Value) -> list[SSAValue]:
            """Return the least of the indices of `width` elements from `number` on."""
            if self.op.reverse.value.data:
                number = at.insert(arith.SubiOp(at.number(self._extent - width), number))
            return [*point[: self.dim], at.index(number), *point[self.dim :]]

        def tile(at: Code, first: Value, carried: Sequence[Value]) -> Sequence[Value]:
            number = at.add(first, at.mul(thread, width))
            inside = at.below(number, self._extent)
            known = place(at, at.least(number, self._extent - width))
            loaded = self._in_order(_load(at, source, known, width))
            values = [
                at.select(inside, cast(Value, widen(at.builder, one)), none) for one in loaded
            ]
            sums = values[:1]
            for value in values[1:]:
                sums.append(self._combined(at, sums[-1], value))
            earlier, before, total = self._scanned(at, sums[-1], thread, shared, none)
            before = self._combined(at, self._combined(at, carried[0], earlier), before)
            sums = [self._combined(at, before, one) for one in sums]
            results = [before, *sums[:-1]] if self.op.exclusive.value.data else sums

            def write(inner: Code) -> None:
                made = [narrow(inner.builder, one, self._type) for one in results]
                _store(inner, self._in_order(made), target, place(inner, number))

            at.choose(inside, write)
            return [self._combined(at, carried[0], total)]

        begin, end, step = (code.number(n) for n in (0, self._extent, THREADS * width))
        code.loop(begin, end, step, [none], tile)

    def _in_order(self, elements: Sequence[SSAValue]) -> list[SSAValue]:
        """Return what is scanned in the order of memory, or the other way round."""
        return list(elements)[::-1] if self.op.reverse.value.data else list(elements)

    def _scanned(
        self, code: Code, value: Value, thread: Value, shared: Value, none: Value
    ) -> tuple[Value, Value, Value]:
        """Return what earlier warps have, what earlier lanes of the warp have, and all of
        the tile.
        """
        lane, warp = code.rem(thread, _WARP), code.div(thread, _WARP)

        def below(distance: int) -> Value:
            other = cast(Value, shuffled(code.builder, value, distance, _WARP, UP))
            return code.select(code.below(lane, distance), none, other)

        distance = 1
        while distance < _WARP:
            value = self._combined(code, below(distance), value)
            distance *= 2
        own = below(1)
        size = bytes_of(value.type)
        slot = code.at(shared, code.mul(warp, size))
        last = code.equal(lane, _WARP - 1)
        code.choose(last, lambda at: at.store(value, slot, size))
        code.barrier()
        before = total = none
        for number in range(_WARPS):
            part = code.load(code.at(shared, number * size), value.type, size)
            is_earlier = code.below(code.number(number), warp)
            before = code.select(is_earlier, self._combined(code, before, part), before)
            total = self._combined(code, total, part)
        code.barrier()
        return before, own, total
