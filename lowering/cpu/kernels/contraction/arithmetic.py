"""Emit the products of a contraction's kernel: one float per step, two bf16 numbers, or four
bytes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, VectorType, bf16, f16, f32, i1, i32
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.ir import Attribute, Operation

from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.dtypes import bytes_of, is_unsigned
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.quantization import is_byte
from braid.lowering.common.emitted_dialects import vector
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.targets.machines.machine import Machine

i8, i16 = IntegerType(8), IntegerType(16)
_HALVES = (f16, bf16)


class Arithmetic(ABC):
    """One step of a reduction: `group` elements of A and of every column of B."""

    group: int

    @abstractmethod
    def zero(self, e: Emitter, a: Buffer) -> Value:
        """Return a vector of sums without addends."""

    def initial(self, e: Emitter, a: Buffer, b: Buffer, base: Index, vector: int) -> Value:
        """Return the initial sums of a vector of columns, whose tile begins at `base` of B."""
        return self.zero(e, a)

    def mask(self, e: Emitter, columns: Index, lanes: Value | None) -> Value | None:
        """Return the mask of `column` if this many columns exist in these lanes; None if all do."""
        return lanes

    @abstractmethod
    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """Return the elements of a vector of columns for the step, from `offset` on."""

    @abstractmethod
    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """Return the elements of A for the step, in every lane."""

    @abstractmethod
    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """Return the sum and the products of the step."""


class FloatArithmetic(Arithmetic):
    """One f32 or f64 number per step; elements of B may be stored in 8 or 16 bits for sums in
    f32."""

    group = 1

    def zero(self, e: Emitter, a: Buffer) -> Value:
        """See the base class."""
        return e.constant(0.0, e.vector_type(a.element_type))

    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """See the base class."""
        column = b.load(e, offset, mask)
        if b.element_type in _HALVES:
            return e.convert(arith.ExtFOp, column, f32)
        return e.convert(arith.SIToFPOp, column, f32) if b.element_type == i8 else column

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """See the base class."""
        return a.splat(e, offset)

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        return e.fma(a, column, sum)


FLOATS = FloatArithmetic()


class LowPrecisionArithmetic(Arithmetic):
    """Numbers of less than 32 bits, whose products are added up in 32.

    Columns are padded where the machine has no masks for such numbers: see `has_masks`.
    """

    slowdown: float
    """The time of a step relative to an f32 step."""

    constants: int = 0
    """Vectors that it keeps in registers beside A, B and sums."""

    def mask(self, e: Emitter, columns: Index, lanes: Value | None) -> Value | None:
        """Return the mask of all elements of a step."""
        if lanes is None or self.group == 1:
            return lanes
        type = VectorType(i1, [self.group * e.lanes])
        return e.insert(vector.CreateMaskOp([e.index(e.mul(self.group, columns))], type))

    def numbers(
        self, e: Emitter, b: Buffer, offset: Index, type: Attribute, mask: Value | None
    ) -> Value:
        """Load the elements of B for a vector of columns in a step of K."""
        numbers = VectorType(type, [self.group * e.lanes])
        at = [e.index(offset)]
        if mask is None:
            return e.insert(vector.LoadOp(b.ref, at, numbers))
        zero = e.constant(0, numbers)
        return e.insert(vector.MaskedLoadOp(b.ref, at, mask, zero))


def has_masks(machine: Machine, lanes: int) -> bool:
    """Return whether loads of 8- and 16-bit elements have masks, in vectors with this many f32
    lanes.
    """
    features = set(machine.enabled_features)
    needed = {"avx512bw"} if lanes == 16 else {"avx512bw", "avx512vl"}
    return machine.architecture.startswith("x86") and needed <= features


_HALF_PRODUCTS = {4: "llvm.x86.avx512bf16.dpbf16ps.128", 8: "llvm.x86.avx512bf16.dpbf16ps.256"} | {
    16: "llvm.x86.avx512bf16.dpbf16ps.512"
}


@dataclass(frozen=True)
class HalfArithmetic(LowPrecisionArithmetic):
    """Two bf16 numbers of A and of every column, in f32, by `instruction`.

    A column's numbers of a step are neighbours. The instruction takes numbers below the normal
    ones as zeros. Its time differs: on Zen 5 that of a multiply-add, on Emerald Rapids of four.
    """

    instruction: str
    slowdown: float

    group = 2

    @staticmethod
    def on(machine: Machine, lanes: int) -> "HalfArithmetic | None":
        """Return the arithmetic for vectors of `lanes` f32, where the machine has such an
        instruction.
        """
        features = set(machine.enabled_features)
        if not machine.architecture.startswith("x86") or "avx512bf16" not in features:
            return None
        if lanes not in _HALF_PRODUCTS or (lanes < 16 and "avx512vl" not in features):
            return None
        return HalfArithmetic(_HALF_PRODUCTS[lanes], machine.fact("bf16_dot", 1.0))

    def zero(self, e: Emitter, a: Buffer) -> Value:
        """See the base class."""
        return e.constant(0.0, e.vector_type(f32))

    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """Return the pairs of the columns."""
        return self.numbers(e, b, offset, bf16, mask)

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """Return a pair in every lane."""
        pair = e.insert(vector.LoadOp(a.ref, [e.index(offset)], VectorType(bf16, [self.group])))
        word = e.insert(vector.BitcastOp(pair, VectorType(i32, [1])))
        words = e.insert(
            vector.BroadcastOp(e.insert(vector.ExtractOp(word, [0], i32)), e.vector_type(i32))
        )
        return e.insert(vector.BitcastOp(words, VectorType(bf16, [self.group * e.lanes])))

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        return e.insert(CallIntrinsicOp(self.instruction, [sum, a, column], [sum.type]))


_DOT_PRODUCTS = {4: "llvm.x86.avx512.vpdpbusd.128", 8: "llvm.x86.avx512.vpdpbusd.256"} | {
    16: "llvm.x86.avx512.vpdpbusd.512"
}
_PAIR_PRODUCTS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd"} | {
    16: "llvm.x86.avx512.pmaddw.d.512"
}
_BYTE_PAIR_PRODUCTS = {4: "llvm.x86.ssse3.pmadd.ub.sw.128", 8: "llvm.x86.avx2.pmadd.ub.sw"} | {
    16: "llvm.x86.avx512.pmaddubs.w.512"
}
_PAIR_FEATURES = {4: "sse2", 8: "avx2", 16: "avx512bw"}


class ByteArithmetic(LowPrecisionArithmetic):
    """Unsigned bytes of A times signed bytes of every column, in i32 and exact.

    A column's bytes of a step are neighbours.
    """

    @staticmethod
    def of(machine: Machine, lanes: int) -> "ByteArithmetic":
        """Return the fastest on this machine for vectors of this many lanes of i32."""
        if machine.architecture.startswith("x86"):
            features = set(machine.enabled_features)
            has_dot = "avx512vnni" in features and (lanes == 16 or "avx512vl" in features)
            has_dot = has_dot or ("avxvnni" in features and lanes < 16)
            if has_dot and lanes in _DOT_PRODUCTS:
                return DotArithmetic(_DOT_PRODUCTS[lanes])
            if _PAIR_FEATURES.get(lanes) in features:
                return PairArithmetic(_PAIR_PRODUCTS[lanes])
        return SingleArithmetic()

    def zero(self, e: Emitter, a: Buffer) -> Value:
        """See the base class."""
        return e.constant(0, e.vector_type(i32))


@dataclass(frozen=True)
class PairArithmetic(ByteArithmetic):
    """Two bytes, by `instruction`: sums of two products of 16 bits.

    A has pairs of 16-bit numbers in its elements, which are f32: see `widened`.
    """

    instruction: str

    group = 2
    slowdown = 1.25

    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """Return bytes as 16-bit numbers, in lanes of two."""
        bytes_ = self.numbers(e, b, offset, i8, mask)
        types = [VectorType(i16, [self.group * e.lanes])]
        wide = e.insert(arith.ExtSIOp.create(operands=[bytes_], result_types=types))
        return bitcast(e, wide, i32)

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """Return a pair in every lane."""
        return e.insert(vector.BitcastOp(a.splat(e, offset), e.vector_type(i32)))

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        operands = [bitcast(e, a, i16), bitcast(e, column, i16)]
        product = e.insert(CallIntrinsicOp(self.instruction, operands, [sum.type]))
        # LLVM would add up products first, and run out of registers.
        return e.fence(e.insert(arith.AddiOp(sum, product)))


class QuadArithmetic(ByteArithmetic):
    """Four bytes, in their order in memory."""

    group = 4

    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """Return all bytes of the columns, in lanes of four."""
        return bitcast(e, self.numbers(e, b, offset, i8, mask), i32)

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """Return four bytes in every lane."""
        bytes_ = e.insert(vector.LoadOp(a.ref, [e.index(offset)], VectorType(i8, [4])))
        word = e.insert(vector.BitcastOp(bytes_, VectorType(i32, [1])))
        return e.insert(
            vector.BroadcastOp(e.insert(vector.ExtractOp(word, [0], i32)), e.vector_type(i32))
        )


@dataclass(frozen=True)
class DotArithmetic(QuadArithmetic):
    """Sums of four int8 products, by `instruction`."""

    instruction: str

    slowdown = 1.0

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        operands = [sum, bitcast(e, a, i8), bitcast(e, column, i8)]
        return e.insert(CallIntrinsicOp(self.instruction, operands, [sum.type]))


@dataclass(frozen=True)
class BytePairArithmetic(QuadArithmetic):
    """Sums of two int8 products in 16 bits, which are added up in pairs, by `instruction`.

    That is exact for weights that are stored in pairs. A has the bytes of a step in its elements,
    which are f32: see `shuffled`.
    """

    instruction: str
    sum_instruction: str

    slowdown = 2.0
    constants = 2

    @staticmethod
    def on(machine: Machine, lanes: int) -> "BytePairArithmetic | None":
        """Return the arithmetic for vectors of `lanes` i32, where nothing is faster."""
        if not isinstance(ByteArithmetic.of(machine, lanes), PairArithmetic):
            return None
        if "ssse3" not in machine.enabled_features:
            return None
        return BytePairArithmetic(_BYTE_PAIR_PRODUCTS[lanes], _PAIR_PRODUCTS[lanes])

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """Return four bytes in every lane."""
        return e.insert(vector.BitcastOp(a.splat(e, offset), e.vector_type(i32)))

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        operands = [bitcast(e, a, i8), bitcast(e, column, i8)]
        short = VectorType(i16, [2 * e.lanes])
        pairs = e.insert(CallIntrinsicOp(self.instruction, operands, [short]))
        sums = [pairs, e.constant(1, short)]
        product = e.insert(CallIntrinsicOp(self.sum_instruction, sums, [sum.type]))
        # LLVM would add up products first, and run out of registers.
        return e.fence(e.insert(arith.AddiOp(sum, product)))


class SingleArithmetic(QuadArithmetic):
    """Products of 32 bits, where the machine has nothing else."""

    slowdown = 10.0

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        for number in range(self.group):
            factors = _byte(e, a, number, False), _byte(e, column, number, True)
            sum = e.insert(arith.AddiOp(sum, e.insert(arith.MuliOp(*factors))))
        return sum


def low_precision_arithmetic(
    op: ConvOp | MatmulOp, machine: Machine, lanes: int
) -> LowPrecisionArithmetic | None:
    """Return the instruction that multiplies elements of A and B, None without one; of bytes, A is
    unsigned.
    """
    if adds_halves(op):
        return HalfArithmetic.on(machine, lanes)
    is_unsigned_a, is_unsigned_b = (is_unsigned(element_type_of(value)) for value in op.operands)
    takes_signs = is_unsigned_a and not is_unsigned_b
    return ByteArithmetic.of(machine, lanes) if adds_bytes(op) and takes_signs else None


def adds_bytes(op: ConvOp | MatmulOp) -> bool:
    """Return whether the product is of bytes that are added up in i32."""
    return op.accumulator == i32 and all(is_byte(element_type_of(v)) for v in op.operands)


def adds_halves(op: ConvOp | MatmulOp) -> bool:
    """Return whether the product is of bf16 that is added up in f32."""
    return op.accumulator == f32 and all(element_type_of(v) == bf16 for v in op.operands)


def _byte(e: Emitter, words: Value, number: int, signed: bool) -> Value:
    """Return byte `number` of every lane, as i32."""
    up = e.insert(arith.ShLIOp(words, e.constant(24 - 8 * number, words.type)))
    down: type[Operation] = arith.ShRSIOp if signed else arith.ShRUIOp
    return e.insert(down(up, e.constant(24, words.type)))


def bitcast(e: Emitter, value: Value, element_type: Attribute) -> Value:
    """Return the bits of a vector as elements of another type."""
    type = cast(VectorType[IntegerType], value.type)
    bytes_ = type.get_shape()[0] * bytes_of(type.element_type)
    target = VectorType(element_type, [bytes_ // bytes_of(element_type)])
    return value if target == type else e.insert(vector.BitcastOp(value, target))
