"""Transposes of small matrices that are held in vector registers.

The square transpose exchanges blocks of halving size (J. O. Eklundh, "A Fast Computer Method for
Matrix Transposing", 1972): log2 n stages of two-operand shuffles.
"""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, VectorType, f32, i32, i64
from xdsl.dialects.llvm import CallIntrinsicOp

from braid.lowering.common.emitted_dialects import vector
from braid.lowering.emit.emitter import Emitter, Value


def transposed(e: Emitter, rows: Sequence[Value]) -> list[Value]:
    """Return `lanes` vectors: lane r of vector c is lane c of row r, anything for missing rows."""
    n = e.lanes
    matrix: list[Value | None] = [*rows, *[None] * (n - len(rows))]
    distance = n // 2
    while distance:
        for first in (r for r in range(n) if not r & distance):
            a, b = matrix[first], matrix[first + distance]
            matrix[first], matrix[first + distance] = exchanged(e, a, b, distance)
        distance //= 2
    result = [vector for vector in matrix if vector is not None]
    assert len(result) == n
    return result


def exchanged(
    e: Emitter, a: Value | None, b: Value | None, distance: int
) -> tuple[Value | None, Value | None]:
    """Swap the blocks of a whose lanes have the bit `distance` set with those of b that have
    not."""
    if a is None:
        a = b
    if a is None:
        return None, None
    b = a if b is None else b
    low = [lane - distance + e.lanes if lane & distance else lane for lane in range(e.lanes)]
    high = [lane + e.lanes if lane & distance else lane + distance for lane in range(e.lanes)]
    return shuffled(e, a, b, low), shuffled(e, a, b, high)


def interleaved(e: Emitter, rows: Sequence[Value]) -> list[Value]:
    """Return the elements of all rows, interleaved by lanes: r0[0], r1[0], …, r0[1], r1[1] and so
    on.

    As many vectors as rows.
    """
    count = len(rows)
    flat = [divmod(position, count) for position in range(count * e.lanes)]
    wanted = [(row, lane) for lane, row in flat]
    return _gathered(e, rows, wanted)


def deinterleaved(e: Emitter, vectors: Sequence[Value]) -> list[Value]:
    """Return the inverse of `interleaved`."""
    count = len(vectors)
    wanted = [
        divmod(lane * count + row, e.lanes) for row in range(count) for lane in range(e.lanes)
    ]
    return _gathered(e, vectors, wanted)


def _gathered(
    e: Emitter, sources: Sequence[Value], wanted: Sequence[tuple[int, int]]
) -> list[Value]:
    """Return the vectors of the (source, lane) in `wanted`, each by one shuffle per source after
    the first.
    """
    result: list[Value] = []
    for start in range(0, len(wanted), e.lanes):
        lanes = wanted[start : start + e.lanes]
        value = sources[0]
        mask = [lane if source == 0 else 0 for source, lane in lanes]
        for number, other in list(enumerate(sources))[1:]:
            mask = [
                lane + e.lanes if source == number else kept
                for (source, lane), kept in zip(lanes, mask, strict=True)
            ]
            value = shuffled(e, value, other, mask)
            mask = list(range(e.lanes))
        result.append(value)
    return result


def shuffled(e: Emitter, a: Value, b: Value, lanes: Sequence[int]) -> Value:
    """Return a vector of the named lanes of a and b, which are numbered consecutively."""
    mask = DenseArrayBase.from_list(i64, list(lanes))
    return e.insert(vector.ShuffleOp(a, b, mask, result_type=cast(VectorType[Any], a.type)))


def low_words(e: Emitter, numbers: Value) -> Value:
    """Return the low 32 bits of a vector of 64-bit numbers, as i32, by one shuffle of two
    registers.

    The fence hides the truncation from LLVM, for which it needs five instructions with AVX-512.
    """
    words = e.insert(vector.BitcastOp(numbers, VectorType(f32, [2 * e.lanes])))
    name = f"llvm.arithmetic.fence.v{2 * e.lanes}f32"
    fenced = e.insert(CallIntrinsicOp(name, [words], [words.type]))
    mask = DenseArrayBase.from_list(i64, list(range(0, 2 * e.lanes, 2)))
    even = e.insert(vector.ShuffleOp(fenced, fenced, mask, result_type=e.vector_type(f32)))
    return e.insert(vector.BitcastOp(even, e.vector_type(i32)))
