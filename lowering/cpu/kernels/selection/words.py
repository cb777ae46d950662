"""Arrays of i32 or i64 in the scratch memory of a kernel, which is one of floats as wide."""

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType

from braid.dialects.braid.dtypes import bytes_of
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class Words:
    """The words of `scratch` from `begin` on."""

    scratch: Buffer
    begin: Extent

    @property
    def word(self) -> IntegerType:
        """The integer type of a word, as wide as the elements of `scratch`."""
        return IntegerType(8 * bytes_of(self.scratch.element_type))

    def load(self, e: Emitter, at: Index) -> Value:
        """Return one word."""
        return e.make(
            arith.BitcastOp, [self.scratch.load_scalar(e, e.add(at, self.begin))], self.word
        )

    def load_index(self, e: Emitter, at: Index) -> Value:
        """Return one word as an index."""
        return e.make(arith.IndexCastOp, [self.load(e, at)], IndexType())

    def load_vector(self, e: Emitter, at: Index) -> Value:
        """Return a vector of words."""
        words = self.scratch.load(e, e.add(at, self.begin))
        return e.convert(arith.BitcastOp, words, self.word)

    def store(self, e: Emitter, value: Value, at: Index) -> None:
        """Write one word."""
        bits = e.make(arith.BitcastOp, [value], self.scratch.element_type)
        e.effect(memref.StoreOp.get(bits, self.scratch.ref, [e.index(e.add(at, self.begin))]))

    def store_index(self, e: Emitter, value: Index, at: Index) -> None:
        """Write an index as one word."""
        self.store(e, e.make(arith.IndexCastOp, [e.index(value)], self.word), at)

    def store_vector(self, e: Emitter, value: Value, at: Index) -> None:
        """Write a vector of words."""
        bits = e.convert(arith.BitcastOp, value, self.scratch.element_type)
        self.scratch.store(e, bits, e.add(at, self.begin))
