"""Sums of parts of K of a product (split-K), in scratch memory: each block of a tile has a part.

Few tiles would leave most of a GPU idle; parts are added up in their order by another entry, so
that results do not depend on which block is the first (split-K; as CUTLASS's parallel reduction).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, VectorType, i32, i64
from xdsl.ir import Attribute, SSAValue

from braid.lowering.gpu.contraction.code import Code, Value

_VECTOR = 4
"""Sums that are read and written at once."""
_AT_ONCE = 8
"""The number of parts that are read before the first of them is added."""
Place = tuple[Value, Value, Value]
"""A batch, a row and a column."""


def sum_type(is_integer: bool) -> Attribute:
    """Return the type of sums of products."""
    return i32 if is_integer else Float32Type()


@dataclass(frozen=True)
class PartialSums:
    """`splits` arrays of batches, rows and columns; rows begin at multiples of 16 bytes."""

    splits: int
    batches: int
    rows: int
    columns: int
    is_integer: bool
    width: int = _VECTOR

    @property
    def pitch(self) -> int:
        """Elements from a row to the next."""
        return -(-self.columns // _VECTOR) * _VECTOR

    @property
    def bytes(self) -> int:
        """The bytes of all parts."""
        return self.splits * self._part

    @property
    def _part(self) -> int:
        return self.batches * self.rows * self.pitch * 4

    def _offset(self, code: Code, place: Place) -> Value:
        """Return the bytes into a part, in 64 bits."""
        batch, row, column = place
        line = code.add(code.mul(code.wide(batch), self.rows), code.wide(row))
        return code.mul(code.add(code.mul(line, self.pitch), code.wide(column)), 4)

    def store(
        self, code: Code, scratch: Value, split: Value, place: Place, sums: Sequence[SSAValue]
    ) -> None:
        """Store neighbours in a row; elements beyond the end of a row are never read."""
        start = code.at(scratch, code.mul(code.wide(split), self._part))
        pointer = code.at(start, self._offset(code, place))
        code.store(code.vector(sums), pointer, 4 * len(sums))

    def total(self, code: Code, scratch: Value, place: Place, width: int) -> list[SSAValue]:
        """Return the sums of all parts, of this many neighbours."""
        start = code.at(scratch, self._offset(code, place))
        type = sum_type(self.is_integer)

        sums: list[SSAValue] = [code.number(0, type)] * width
        for first in range(0, self.splits, _AT_ONCE):
            splits = range(first, min(first + _AT_ONCE, self.splits))
            parts = [
                neighbours(code, code.at(start, code.number(split * self._part, i64)), width, type)
                for split in splits
            ]
            for lanes in parts:
                sums = [self._add(code, *pair) for pair in zip(sums, lanes, strict=True)]
        return sums

    def _add(self, code: Code, left: SSAValue, right: SSAValue) -> SSAValue:
        return code.add(left, right) if self.is_integer else code.insert(arith.AddfOp(left, right))


def neighbours(code: Code, pointer: Value, width: int, type: Attribute) -> list[SSAValue]:
    """Load neighbouring sums, by vectors of four."""
    lanes: list[SSAValue] = []
    for first in range(0, width, _VECTOR):
        count = min(_VECTOR, width - first)
        if count == 1:
            lanes.append(code.load(pointer, type, 4))
            continue
        vector = code.load(code.at(pointer, 4 * first), VectorType(type, [count]), 4 * count)
        lanes += [code.element(vector, n, type) for n in range(count)]
    return lanes
