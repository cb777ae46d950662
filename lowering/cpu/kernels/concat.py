"""Concatenations of long pieces, as of caches of keys: copies that threads share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i64
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.ir import BlockArgument

from braid.analysis.nests.dims import LoopDim, merged, row_major_strides
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of, stored_choice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of, is_number
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.movement import ConcatOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_CHUNK_BYTES = 64 << 10
"""Of one grid iteration, at most: enough to hide the call, few enough to share."""

_PIECE_BYTES, _MOST_OPERANDS = 8 << 10, 8
"""What all operands have next to each other in the result, on average, and how many there are.
Others are left to loops that the compiler sees through."""


@dataclass(frozen=True)
class ConcatFamily(VectorFamily):
    """`braid.concat` alone in its group, whose operands lie in the result in long pieces.

    Layout: row-major, with strides between pieces.
    """

    name: str = "concat"
    version: int = 2
    anchors: ClassVar = (ConcatOp,)

    def match(self, group: FusedOp) -> "_Pieces | None":
        """One concatenation of numbers with static shapes, not written where it lies."""
        op = group.body.block.first_op
        if not isinstance(op, ConcatOp) or op.next_op is not group.terminator:
            return None
        if boxes_of(group) or overlap_of(group) is not None or len(group.outputs) != 1:
            return None
        values = (*op.operands, op.results[0])
        if not is_number(element_type_of(op.results[0])) or len(values) > _MOST_OPERANDS + 1:
            return None
        if any(DYNAMIC in shape_of(value) or 0 in shape_of(value) for value in values):
            return None
        if not all(isinstance(value, BlockArgument) for value in op.operands):
            return None
        found = _Pieces(group, self.unit, op)
        return (
            found if sum(found.pieces) * found.bytes >= _PIECE_BYTES * len(found.pieces) else None
        )


@dataclass(frozen=True, eq=False)
class _Pieces(VectorCandidate):
    op: ConcatOp

    @property
    def bytes(self) -> int:
        """Of an element."""
        return bytes_of(element_type_of(self.op.results[0]))

    @cached_property
    def pieces(self) -> tuple[int, ...]:
        """Neighbouring elements of each operand."""
        dim = self.op.dim.value.data
        return tuple(math.prod(shape_of(value)[dim:]) for value in self.op.operands)

    def choices(self) -> Sequence[LayoutChoice]:
        """The one choice."""
        return [row_major_choice(self.group)]

    def takes_strides(self, choice: LayoutChoice) -> bool:
        """Where pieces stay whole."""
        dim = self.op.dim.value.data
        values = (*self.group.inputs, *self.group.outputs)
        layouts = (*choice.operands, *choice.results)
        for value, layout in zip(values, layouts, strict=True):
            shape = shape_of(value)
            dense, own = row_major_strides(shape), layout.storage_strides(shape)
            if any(shape[d] > 1 and own[d] != dense[d] for d in range(dim, len(shape))):
                return False
        return True

    def seconds(self, choice: LayoutChoice) -> float:
        """Memory traffic."""
        return self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """A part of a piece per grid iteration."""
        chunk = _CHUNK_BYTES // self.bytes
        counts = [-(-piece // chunk) for piece in self.pieces]
        outer = self._outer(stored_choice(self.group))
        extents = (*(dim.extent for dim in outer), sum(counts))

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            *places, number = e.coordinates(index, extents)
            bases = [
                e.dot(places, [dim.strides[tensor] for dim in outer])
                for tensor in range(len(self.pieces) + 1)
            ]

            def emit(operand: int, first: int) -> None:
                """A chunk of this operand, whose first one has this number, or of one behind it."""
                last = first + counts[operand]

                def copy() -> None:
                    begin = e.mul(e.sub(number, first), chunk)
                    source = buffers[self._argument(operand)]
                    before = sum(self.pieces[:operand])
                    length = e.minimum(chunk, e.sub(self.pieces[operand], begin))
                    target = e.add(e.add(bases[-1], before), begin)
                    _copy(e, source, e.add(bases[operand], begin), buffers[-1], target, length)

                if operand + 1 == len(counts):
                    copy()
                else:
                    e.branch(number, last, copy, lambda: emit(operand + 1, last))

            emit(0, 0)

        return grid_kernel(self.group, symbol, self.unit, math.prod(extents), iteration)

    def _argument(self, operand: int) -> int:
        """The kernel's argument that an operand is; one may be several."""
        value = self.op.operands[operand]
        assert isinstance(value, BlockArgument)
        return value.index

    def _outer(self, choice: LayoutChoice) -> tuple[LoopDim, ...]:
        """The dims around pieces, with strides of all operands and the result."""
        dim = self.op.dim.value.data
        layouts = [choice.operands[self._argument(i)] for i in range(len(self.pieces))]
        values = (*self.op.operands, self.op.results[0])
        strides = [
            layout.storage_strides(shape_of(value))
            for value, layout in zip(values, (*layouts, choice.results[0]), strict=True)
        ]
        shape = shape_of(self.op.results[0])[:dim]
        return merged([LoopDim(n, tuple(s[d] for s in strides)) for d, n in enumerate(shape)])


def _copy(
    e: Emitter, source: Buffer, first: Index, target: Buffer, place: Index, count: Index
) -> None:
    """Copies `count` neighbours by the system's function, which knows the machine."""
    bytes = e.index(e.mul(count, bytes_of(source.element_type)))
    length = e.insert(arith.IndexCastOp(bytes, i64))
    operands = [target.pointer(e, place), source.pointer(e, first), length, e.constant(0, i1)]
    e.effect(CallIntrinsicOp("llvm.memcpy.p0.p0.i64", operands, []))
