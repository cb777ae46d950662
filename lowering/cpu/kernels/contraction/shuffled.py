"""int8 products where the machine adds up two at a time in 16 bits (`pmaddubsw`).

Sums that do not fit saturate, so that weights are stored in orders in which none of them does
(see `byte_pairs`), and the bytes of A are shuffled in the same way, for a block of rows at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import VectorType, f32
from xdsl.dialects.llvm import CallIntrinsicOp

from braid.analysis.nests.contraction import Contraction
from braid.dialects.braid.byte_pairs import SHUFFLED, shuffle_bytes
from braid.lowering.common.emitted_dialects import vector
from braid.lowering.cpu.kernels.contraction.arithmetic import BytePairArithmetic, i8
from braid.lowering.cpu.kernels.contraction.staged import StagedContraction
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value

_STEP = BytePairArithmetic.group


@dataclass(frozen=True)
class Positions:
    """A has positions of `depth` bytes, `pitch` bytes apart, which B has orders of.

    There is one for every `chunk` of columns.
    """

    depth: int
    pitch: int
    chunk: int

    def fit(self, nest: Contraction, block: int) -> bool:
        """Return whether `nest` reads whole positions, and chunks are whole blocks of columns.

        Several positions may be one dim of the reduction where nothing lies between them.
        """

        def fits(stride: int, extent: int) -> bool:
            if extent == 1 or stride % self.pitch == 0:
                return True
            return stride == _STEP and (self.pitch == self.depth or extent * _STEP == self.depth)

        dims = (*nest.outer, nest.row, *nest.reduction)
        fit = self.depth >= SHUFFLED and self.chunk % block == 0
        return fit and all(fits(dim.strides[0], dim.extent) for dim in dims)


@dataclass(frozen=True)
class ShuffledContraction(StagedContraction):
    """A contraction of a `nest` whose `positions` fit, by `BytePairArithmetic`; weights are in
    pairs.
    """

    positions: Positions

    @property
    def parts(self) -> int:
        """Chunks of columns with an order of their own."""
        return -(-self.nest.columns // self.positions.chunk)

    @property
    def unit(self) -> int:
        """A position."""
        return self.positions.pitch

    @property
    def steps(self) -> int:
        """The steps of all positions, without the gaps between them."""
        return self._count * self.positions.depth // _STEP

    def staged(self, stride: int) -> int:
        """Return the steps within a position, or those of whole positions."""
        if stride % self.positions.pitch:
            return stride // _STEP
        return stride // self.positions.pitch * (self.positions.depth // _STEP)

    def columns(self, part: Index, e: Emitter) -> tuple[Index, Index]:
        """Return the first and the end of the column blocks of a chunk."""
        blocks = self.positions.chunk // (self.tile.vectors * self.lanes)
        begin = e.mul(part, blocks)
        return begin, e.minimum(e.add(begin, blocks), self.column_blocks)

    def stage(
        self, e: Emitter, tensors: Sequence[Buffer], scratch: Buffer, begin: Index, part: Index
    ) -> None:
        """Stage positions in the order of the chunk, 16 bytes at a time."""
        depth, pitch = self.positions.depth, self.positions.pitch
        source, weight = tensors[self.nest.a], tensors[self.nest.b]
        orders = self.nest.block_stride * self.column_blocks  # after the blocks
        order = e.add(orders, e.mul(part, shuffle_bytes(depth)))
        whole = depth - depth % SHUFFLED

        def shuffle(source_at: Index, target_at: Index, place: Index) -> None:
            operands = _load(e, source, source_at), _load(e, weight, e.add(order, place))
            shuffled = CallIntrinsicOp(_SHUFFLE, operands, [_BYTES])
            _store(e, e.insert(shuffled), scratch, target_at)

        def piece(first: Index, target: Index) -> None:
            def position(number: Index) -> None:
                own = e.add(first, e.mul(number, pitch))
                to = e.add(target, e.mul(number, depth // _STEP))

                def block(number: Index) -> None:
                    place = e.mul(number, SHUFFLED)
                    step = e.mul(number, SHUFFLED // _STEP)
                    shuffle(e.add(own, place), e.add(to, step), place)

                e.loop(0, whole // SHUFFLED, 1, block)
                if whole < depth:
                    # Elements that it stores after the position are overwritten later.
                    shuffle(e.add(own, depth - SHUFFLED), e.add(to, whole // _STEP), whole)

            e.loop(0, self._count, 1, position)

        self.each_piece(e, begin, piece)

    @property
    def _count(self) -> int:
        """Positions of a piece."""
        return (self.piece.span - self.positions.depth) // self.positions.pitch + 1


_BYTES = VectorType(i8, [SHUFFLED])
_SHUFFLE = "llvm.x86.ssse3.pshuf.b.128"


def _load(e: Emitter, source: Buffer, at: Index) -> Value:
    return e.insert(vector.LoadOp(source.ref, [e.index(at)], _BYTES))


def _store(e: Emitter, bytes_: Value, scratch: Buffer, step: Index) -> None:
    """Store vectors to steps of scratch memory."""
    floats = e.insert(vector.BitcastOp(bytes_, VectorType(f32, [SHUFFLED // _STEP])))
    e.effect(vector.StoreOp(floats, scratch.ref, [e.index(step)]))
