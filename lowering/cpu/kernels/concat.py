"""Concatenations of long pieces, as of caches of keys: copies that threads share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i64
from xdsl.dialects.llvm import CallIntrinsicOp

from braid.analysis.nests.concat import ConcatNest, concat_nest
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.movement import ConcatOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_CHUNK_BYTES = 64 << 10
"""The most bytes of one grid iteration: enough to hide the call, few enough to share."""

_PIECE_BYTES, _MOST_OPERANDS = 8 << 10, 8
"""The fewest bytes that operands have next to each other in the result, on average, and the most
operands. Other cases are left to loops that the compiler optimizes."""


@dataclass(frozen=True)
class ConcatFamily(SizedFamily):
    """`braid.concat` alone in its group, whose operands lie in the result in long pieces.

    Layout: row-major, with strides between pieces.
    """

    name: str = "concat"
    version: int = 2
    anchors: ClassVar = (ConcatOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Concat | None":
        """Match a concatenation that is not in place, with pieces that may be long."""
        nest = concat_nest(group, extents_of)
        if nest is None:
            return None
        count, pieces = len(nest.pieces), sum(nest.pieces)
        if isinstance(pieces, int) and pieces * _bytes(group) < _PIECE_BYTES * count:
            return None
        return None if count > _MOST_OPERANDS else Concat(group, self.unit, nest)


@dataclass(frozen=True, eq=False)
class Concat(VectorCandidate):
    """The pieces of a group."""

    nest: ConcatNest

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the one choice."""
        return [row_major_choice(self.group)]

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return where pieces stay whole."""
        return self.nest.has_whole_pieces(choice)

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of its memory traffic."""
        return self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Return a part of a piece per grid iteration."""
        chunk, pieces = _CHUNK_BYTES // _bytes(self.group), self.nest.pieces
        counts = [-(-piece // chunk) for piece in pieces]
        outer = self.nest.outer(stored_choice(self.group))
        extents = (*(dim.extent for dim in outer), sum(counts))

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            *places, number = e.coordinates(index, extents)
            bases = [
                e.dot(places, [dim.strides[tensor] for dim in outer])
                for tensor in range(len(pieces) + 1)
            ]

            def emit(operand: int, first: Extent) -> None:
                """Copy chunk `number` if it is one of this operand, whose chunks begin at `first`;
                else try the next operand.
                """
                last = first + counts[operand]

                def copy() -> None:
                    begin = e.mul(e.sub(number, first), chunk)
                    source = buffers[self.nest.arguments[operand]]
                    before = sum(pieces[:operand])
                    length = e.minimum(chunk, e.sub(pieces[operand], begin))
                    target = e.add(e.add(bases[-1], before), begin)
                    _copy(e, source, e.add(bases[operand], begin), buffers[-1], target, length)

                if operand + 1 == len(counts):
                    copy()
                else:
                    e.branch(number, last, copy, lambda: emit(operand + 1, last))

            emit(0, 0)

        # A caller that appends to what it has gives one buffer as the operand and as the result.
        is_appended = not outer and not isinstance(pieces[0], int)
        aliases = ((self.nest.arguments[0], 0),) if is_appended else ()
        grid = product_of(extents)
        return grid_kernel(self.group, symbol, self.unit, grid, iteration, aliases=aliases)


def _bytes(group: FusedOp) -> int:
    """Return the bytes of an element."""
    return bytes_of(element_type_of(group.outputs[0]))


def _copy(
    e: Emitter, source: Buffer, first: Index, target: Buffer, place: Index, count: Index
) -> None:
    """Copy `count` neighbours by the system's function, which knows the machine.

    Nothing is copied if both places are equal, which is allowed: they never overlap partially.
    """
    bytes = e.index(e.mul(count, bytes_of(source.element_type)))
    length = e.insert(arith.IndexCastOp(bytes, i64))
    operands = [target.pointer(e, place), source.pointer(e, first), length, e.constant(0, i1)]
    e.effect(CallIntrinsicOp("llvm.memcpy.p0.p0.i64", operands, []))
