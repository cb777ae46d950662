"""Bytes as the words that the machine multiplies, made of both operands at run time.

A word holds the numbers of a step: four bytes, or two 16-bit numbers. Instructions multiply an
unsigned by a signed byte, in either order, so the signedness of B determines that of A. If A has
the other signedness, the first bit of its bytes is flipped, which adds ±128. That changes a
column's result by ±128 times its sum, which is known as soon as the column is packed in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, VectorType, f32, i32, i64

from braid.lowering.common.emitted_dialects import vector
from braid.lowering.cpu.kernels.contraction.arithmetic import (
    ByteArithmetic,
    LowPrecisionArithmetic,
    PairArithmetic,
    bitcast,
    i16,
)
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index, Value

_TURNED = 0x80


@dataclass(frozen=True)
class WordArithmetic(LowPrecisionArithmetic):
    """Words of A and B, which are f32 elements of scratch memory, multiplied as `inner` does.

    A lies there as well if `stages`, else in its own bytes. If it is `turned`, sums begin with the
    corrections that lie one block of columns before the first words of their columns.
    """

    inner: ByteArithmetic
    unsigned: tuple[bool, bool]
    stages: bool
    block: int

    group = 1

    @staticmethod
    def of(
        inner: ByteArithmetic, unsigned: tuple[bool, bool], depth: int, block: int
    ) -> "WordArithmetic":
        """Return the words for `terms` products that are added up; `unsigned` says which of A and B
        are.
        """
        plain = WordArithmetic(inner, unsigned, False, block)
        in_bytes = plain.is_quad and not plain.turned and depth % plain.step == 0
        return WordArithmetic(inner, unsigned, not in_bytes, block)

    @property
    def step(self) -> int:
        """Numbers of a word."""
        return self.inner.group

    @property
    def is_quad(self) -> bool:
        """Return whether words hold bytes, of which one operand's are unsigned."""
        return not isinstance(self.inner, PairArithmetic)

    @property
    def turned(self) -> bool:
        """Return whether A is moved by 128, as both operands hold bytes of one kind."""
        return self.is_quad and self.unsigned[0] == self.unsigned[1]

    def zero(self, e: Emitter, a: Buffer) -> Value:
        """See the base class."""
        return self.inner.zero(e, a)

    def initial(self, e: Emitter, a: Buffer, b: Buffer, base: Index, vector: int) -> Value:
        """See the base class."""
        if not self.turned:
            return self.zero(e, a)
        return self.column(e, b, e.add(e.sub(base, self.block), vector * e.lanes), None)

    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """Return a word of each column; these are whole vectors."""
        return bitcast(e, b.load(e, offset), i32)

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """Return a word in every lane."""
        if not self.stages:
            return self.inner.repeated(e, a, offset)
        return bitcast(e, a.splat(e, offset), i32)

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        swaps = self.is_quad and self.unsigned[1]
        factors = (column, a) if swaps else (a, column)
        return self.inner.multiply_add(e, *factors, sum)

    def without_turn(self, e: Emitter, column: Value, sum: Value) -> Value:
        """Return the sum and what turned numbers of A had too much of."""
        return self.multiply_add(e, e.constant(_TURNED * 0x01010101, column.type), column, sum)

    def of_row(self, e: Emitter, bytes_: Value) -> Value:
        """Return the words of neighbours in a row of A, as f32."""
        if self.turned:
            bytes_ = e.apply(arith.XOrIOp, bytes_, e.constant(_TURNED, bytes_.type))
        return bitcast(e, self._numbers(e, bytes_, self.unsigned[0]), f32)

    def of_column(self, e: Emitter, bytes_: Value) -> Value:
        """Return the words of neighbours in a column of B, as f32."""
        return bitcast(e, self._numbers(e, bytes_, self.unsigned[1]), f32)

    def of_rows(self, e: Emitter, rows: Sequence[Value]) -> Value:
        """Return a word of each column of B, as f32, for the rows of a step."""
        numbers = [self._numbers(e, row, self.unsigned[1]) for row in rows]
        while len(numbers) > 1:
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            numbers = [_interleaved(e, *pair) for pair in pairs]
        return bitcast(e, numbers[0], f32)

    def _numbers(self, e: Emitter, bytes_: Value, unsigned: bool) -> Value:
        """Return bytes in the form in which words hold them."""
        if self.is_quad:
            return bytes_
        widen = arith.ExtUIOp if unsigned else arith.ExtSIOp
        type = cast(VectorType[IntegerType], bytes_.type)
        return e.make(widen, [bytes_], VectorType(i16, type.get_shape()))


@dataclass(frozen=True)
class UnpackedArithmetic(LowPrecisionArithmetic):
    """Words of B that are packed as they are multiplied, from rows of `pitch` bytes: for few rows
    of A.

    Both operands lie in their own bytes; vectors of columns hold bytes, too.
    """

    words: WordArithmetic
    pitch: int

    group = 1

    def zero(self, e: Emitter, a: Buffer) -> Value:
        """See the base class."""
        return self.words.zero(e, a)

    def column(self, e: Emitter, b: Buffer, offset: Index, mask: Value | None) -> Value:
        """Return the words of the rows of a step."""
        places = [e.add(offset, row * self.pitch) for row in range(self.words.step)]
        return bitcast(e, self.words.of_rows(e, [b.load(e, at, mask) for at in places]), i32)

    def repeated(self, e: Emitter, a: Buffer, offset: Index) -> Value:
        """See the base class."""
        return self.words.repeated(e, a, offset)

    def multiply_add(self, e: Emitter, a: Value, column: Value, sum: Value) -> Value:
        """See the base class."""
        return self.words.multiply_add(e, a, column, sum)


def _interleaved(e: Emitter, low: Value, high: Value) -> Value:
    """Return numbers of twice the width, whose halves are those of two vectors."""
    type = cast(VectorType[IntegerType], low.type)
    count, width = type.get_shape()[0], type.element_type.width.data
    order = [number + half for number in range(count) for half in (0, count)]
    mask = DenseArrayBase.from_list(i64, order)
    result = VectorType(type.element_type, [2 * count])
    both = e.insert(vector.ShuffleOp(low, high, mask, result_type=result))
    return bitcast(e, both, IntegerType(2 * width))
