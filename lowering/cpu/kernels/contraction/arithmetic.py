"""How the inner kernel of a contraction multiplies: floats one by one, bytes in fours."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, VectorType, i32
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.dialects.vector import BitcastOp, BroadcastOp, ExtractOp, LoadOp
from xdsl.ir import Attribute, Operation, SSAValue

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.dtypes import bytes_of, is_unsigned
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value
from braid.targets.machines.machine import Machine

i8, i16 = IntegerType(8), IntegerType(16)


class Arithmetic(ABC):
    """One step of a reduction: `group` elements of A and of every column of B."""

    group: int

    @abstractmethod
    def zero(self, e: Emitter, a: Buffer) -> Value:
        """A vector of sums without addends."""

    @abstractmethod
    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """What a vector of columns holds for the step, from `offset` on."""

    @abstractmethod
    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """What A holds for the step, in every lane."""

    @abstractmethod
    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """The sum and the products of the step."""


class FloatArithmetic(Arithmetic):
    """One f32 number a step."""

    group = 1

    def zero(self, e: Emitter, a: Buffer) -> Value:
        """See the base class."""
        return e.constant(0.0, e.vector_type(a.element_type))

    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """See the base class."""
        return b.load(e, offset, mask)

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """See the base class."""
        return a.splat(e, offset)

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        return e.fma(a, column, sum)


FLOATS = FloatArithmetic()

_DOT_PRODUCTS = {4: "llvm.x86.avx512.vpdpbusd.128", 8: "llvm.x86.avx512.vpdpbusd.256"} | {
    16: "llvm.x86.avx512.vpdpbusd.512"
}
_PAIR_PRODUCTS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd"} | {
    16: "llvm.x86.avx512.pmaddw.d.512"
}
_PAIR_FEATURES = {4: "sse2", 8: "avx2", 16: "avx512bw"}


@dataclass(frozen=True)
class ByteArithmetic(Arithmetic):
    """Four unsigned bytes of A times four signed bytes of every column, in i32 and exact.

    A column's four bytes are neighbours. `dot` and `pairs` name the instructions of the machine:
    of sums of four products, and of sums of two products of 16 bits, None where it has none.
    """

    dot: str | None
    pairs: str | None

    group = 4

    @staticmethod
    def of(machine: Machine, lanes: int) -> "ByteArithmetic":
        """The instructions of this machine for vectors of so many lanes of i32."""
        if not machine.architecture.startswith("x86"):
            return ByteArithmetic(None, None)
        features = set(machine.enabled_features)
        has_dot = "avx512vnni" in features and (lanes == 16 or "avx512vl" in features)
        has_dot = has_dot or ("avxvnni" in features and lanes < 16)
        has_pairs = _PAIR_FEATURES.get(lanes) in features
        return ByteArithmetic(
            _DOT_PRODUCTS.get(lanes) if has_dot else None,
            _PAIR_PRODUCTS.get(lanes) if has_pairs else None,
        )

    @property
    def slowdown(self) -> float:
        """Times of a step in those of one by an instruction of its own."""
        if self.dot is not None:
            return 1.0
        return 4.0 if self.pairs is not None else 10.0

    def zero(self, e: Emitter, a: Buffer) -> Value:
        """See the base class."""
        return e.constant(0, e.vector_type(i32))

    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """All bytes of the columns, in lanes of four; there is no mask: columns are padded."""
        assert mask is None, "bytes are in whole blocks of columns"
        bytes_ = e.insert(LoadOp(b.ref, [e.index(offset)], VectorType(i8, [4 * e.lanes])))
        return _bitcast(e, bytes_, i32)

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """Four bytes in every lane."""
        bytes_ = e.insert(LoadOp(a.ref, [e.index(offset)], VectorType(i8, [4])))
        word = e.insert(BitcastOp(bytes_, VectorType(i32, [1])))
        return e.insert(BroadcastOp(e.insert(ExtractOp(word, [0], i32)), e.vector_type(i32)))

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """By one instruction, or by products of even and of odd bytes."""
        if self.dot is not None:
            operands = [sum, _bitcast(e, a, i8), _bitcast(e, column, i8)]
            return e.insert(CallIntrinsicOp(self.dot, operands, [sum.type]))
        for product in self._products(e, a, column):
            sum = e.insert(arith.AddiOp(sum, product))
        return sum

    def _products(self, e: Emitter, a: Value, column: Value) -> list[Value]:
        if self.pairs is None:
            lanes = [(_byte(e, a, n, False), _byte(e, column, n, True)) for n in range(4)]
            return [e.insert(arith.MuliOp(*pair)) for pair in lanes]
        words, weights = _bitcast(e, a, i16), _bitcast(e, column, i16)
        eight = e.constant(8, words.type)
        even = e.insert(arith.AndIOp(words, e.constant(255, words.type)))
        odd = e.insert(arith.ShRUIOp(words, eight))
        low = e.insert(arith.ShRSIOp(e.insert(arith.ShLIOp(weights, eight)), eight))
        high = e.insert(arith.ShRSIOp(weights, eight))
        type = e.vector_type(i32)
        return [
            e.insert(CallIntrinsicOp(self.pairs, pair, [type]))
            for pair in ([even, low], [odd, high])
        ]


def takes_signs(a: SSAValue, b: SSAValue) -> bool:
    """Whether A is unsigned and B signed."""
    return is_unsigned(element_type_of(a)) and not is_unsigned(element_type_of(b))


def _byte(e: Emitter, words: Value, number: int, signed: bool) -> Value:
    """Byte `number` of every lane, as i32."""
    up = e.insert(arith.ShLIOp(words, e.constant(24 - 8 * number, words.type)))
    down: type[Operation] = arith.ShRSIOp if signed else arith.ShRUIOp
    return e.insert(down(up, e.constant(24, words.type)))


def _bitcast(e: Emitter, value: Value, element_type: Attribute) -> Value:
    """The bits of a vector as elements of another integer type."""
    type = cast(VectorType[IntegerType], value.type)
    bytes_ = type.get_shape()[0] * bytes_of(type.element_type)
    target = VectorType(element_type, [bytes_ // bytes_of(element_type)])
    return value if target == type else e.insert(BitcastOp(value, target))
