"""int8 products where the machine multiplies 16-bit numbers in pairs (`pmaddwd`).

Bytes of A are widened once for a block of rows, bytes of B as they are loaded. Sums of two products
fit 32 bits, so the result is exact for any weights. Sums of byte pairs, which are kept in 16 bits,
are not (see `shuffled`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType, f32, i32

from braid.analysis.nests.contraction import Contraction
from braid.lowering.common.emitted_dialects import memref, vector
from braid.lowering.cpu.kernels.contraction.arithmetic import PairArithmetic, i8, i16
from braid.lowering.cpu.kernels.contraction.staged import StagedContraction
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index

_PAIR = PairArithmetic.group

_ITERATIONS = 8
"""The least iterations of a grid, which threads share."""


def takes_pairs(nest: Contraction) -> bool:
    """Return whether all rows and steps of A begin at even bytes."""
    dims = (*nest.outer, nest.row, *nest.reduction)
    return all(dim.extent == 1 or dim.strides[0] % _PAIR == 0 for dim in dims)


@dataclass(frozen=True)
class WidenedContraction(StagedContraction):
    """A contraction of a `nest` that `takes_pairs`, by `PairArithmetic`."""

    @property
    def parts(self) -> int:
        """The parts of the columns: as many as the grid needs."""
        blocks = -(-self.nest.rows // (self.block.rows * self.block.lines))
        return min(self.column_blocks, -(-_ITERATIONS // blocks))

    @property
    def unit(self) -> int:
        """The bytes of A that a step has: a pair."""
        return _PAIR

    @property
    def steps(self) -> int:
        """The pairs of K in a row of A."""
        return self.staged(self.piece.span + _PAIR - 1)

    def staged(self, stride: int) -> int:
        """Return the steps in scratch memory for a stride in bytes of A."""
        return stride // _PAIR

    def columns(self, part: Index, e: Emitter) -> tuple[Index, Index]:
        """Return the first and the end of the column blocks of a part; parts are equal."""
        begin = e.divmod(e.mul(part, self.column_blocks), self.parts)[0]
        end = e.divmod(e.mul(e.add(part, 1), self.column_blocks), self.parts)[0]
        return begin, end

    def stage(
        self, e: Emitter, tensors: Sequence[Buffer], scratch: Buffer, begin: Index, part: Index
    ) -> None:
        """Stage bytes as 16-bit numbers, vector by vector of pairs; the last ones overlap."""
        source, pairs = tensors[self.nest.a], self.steps

        def widen(first: Index, target: Index) -> None:
            def vector(position: Index) -> None:
                _widen_vector(e, source, scratch, first, target, position)

            def pair(position: Index) -> None:
                _widen_pair(e, source, scratch, first, target, position)

            if pairs < self.lanes:
                e.loop(0, pairs, 1, pair)
                return
            e.loop(0, pairs - pairs % self.lanes, self.lanes, vector)
            if pairs % self.lanes:
                vector(pairs - self.lanes)

        self.each_piece(e, begin, widen)


def _widen_vector(
    e: Emitter, source: Buffer, scratch: Buffer, begin: Index, target: Index, at: Index
) -> None:
    place = e.add(begin, e.mul(at, _PAIR))
    count = _PAIR * e.lanes
    bytes_ = e.insert(vector.LoadOp(source.ref, [e.index(place)], VectorType(i8, [count])))
    types = [VectorType(i16, [count])]
    wide = e.insert(arith.ExtUIOp.create(operands=[bytes_], result_types=types))
    scratch.store(e, e.insert(vector.BitcastOp(wide, e.vector_type(f32))), e.add(target, at))


def _widen_pair(
    e: Emitter, source: Buffer, scratch: Buffer, begin: Index, target: Index, at: Index
) -> None:
    """Widen two bytes to the 16-bit halves of an f32."""
    place = e.add(begin, e.mul(at, _PAIR))
    low, high = (
        e.insert(arith.ExtUIOp(source.load_scalar(e, e.add(place, n)), i32)) for n in range(_PAIR)
    )
    word = e.insert(arith.OrIOp(low, e.insert(arith.ShLIOp(high, e.constant(16, i32)))))
    number = e.insert(arith.BitcastOp(word, f32))
    e.effect(memref.StoreOp.get(number, scratch.ref, [e.index(e.add(target, at))]))
