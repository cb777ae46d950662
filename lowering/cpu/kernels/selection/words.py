"""Arrays of i32 in the scratch memory of a kernel, which is one of f32."""

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, f32, i32

from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value


@dataclass(frozen=True)
class Words:
    """The words of `scratch` from `begin` on."""

    scratch: Buffer
    begin: int

    def load(self, e: Emitter, at: Index) -> Value:
        """One word."""
        return e.make(arith.BitcastOp, [self.scratch.load_scalar(e, e.add(at, self.begin))], i32)

    def load_index(self, e: Emitter, at: Index) -> Value:
        """One word as an index."""
        return e.make(arith.IndexCastOp, [self.load(e, at)], IndexType())

    def load_vector(self, e: Emitter, at: Index) -> Value:
        """A vector of them."""
        words = self.scratch.load(e, e.add(at, self.begin))
        return e.convert(arith.BitcastOp, words, i32)

    def store(self, e: Emitter, value: Value, at: Index) -> None:
        """Writes one word."""
        bits = e.make(arith.BitcastOp, [value], f32)
        e.effect(memref.StoreOp.get(bits, self.scratch.ref, [e.index(e.add(at, self.begin))]))

    def store_index(self, e: Emitter, value: Index, at: Index) -> None:
        """Writes an index as one word."""
        self.store(e, e.make(arith.IndexCastOp, [e.index(value)], i32), at)

    def store_vector(self, e: Emitter, value: Value, at: Index) -> None:
        """Writes a vector of them."""
        bits = e.convert(arith.BitcastOp, value, f32)
        self.scratch.store(e, bits, e.add(at, self.begin))
