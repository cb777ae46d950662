"""Emit code that combines elements of windows, and choose the parts that several outputs share."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith

from braid.analysis.nests.windows import WindowNest, WindowOp
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.windows import Windows
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.lowering.emit.math.elementwise_table import emitter_of

MAX_UNROLLED_WINDOW = 16
"""Window columns that are unrolled, so that neighbouring outputs share loads."""

_MOST_COLUMNS = 20
"""Columns of windows that are kept in registers, a vector each."""

Combine = Callable[[Emitter, Value, Value, Value | None], Value]
"""New accumulator from the old one, the input, and the weight if there is one."""

_Body = Callable[[Index, Sequence[Value]], Sequence[Value]]
Carry = Callable[[Emitter, int, int, int, Sequence[Value], _Body, int], Sequence[Value]]
"""A loop that carries values, as `carry_sums`."""


@dataclass(frozen=True)
class Combination:
    """The code of one step, and of the loops around it: long sums are carried in parts."""

    combine: Combine
    carry: Carry

    @staticmethod
    def of(op: WindowOp) -> "Combination":
        """Return the combination of the elementwise operation of an op, or of multiply-adds."""
        carry = carry_sums if op.combine == "add" else _carry
        kind = op.accumulator or element_type_of(op.input)
        if op.weight is not None:
            combine = _multiply_add if op.accumulator is None else _multiply_add_integers
            return Combination(combine, carry)
        emit = emitter_of(op.combine, [kind] * 2, kind)
        assert emit is not None, f"no '{op.combine}' of {kind}"
        return Combination(lambda e, value, x, weight: emit(e, [value, x]), carry)


def _carry(
    e: Emitter, lower: int, upper: int, step: int, values: Sequence[Value], body: _Body, added: int
) -> Sequence[Value]:
    return e.carry(lower, upper, step, values, body)


def _multiply_add_integers(e: Emitter, sum: Value, x: Value, weight: Value | None) -> Value:
    assert weight is not None
    return e.insert(arith.AddiOp(sum, e.insert(arith.MuliOp(x, weight))))


def _multiply_add(e: Emitter, sum: Value, x: Value, weight: Value | None) -> Value:
    assert weight is not None
    return e.fma(x, weight, sum)


def is_short(nest: WindowNest) -> bool:
    """Return whether the innermost dim of windows is unrolled."""
    return nest.joined.size[-1] <= MAX_UNROLLED_WINDOW


def shared_pixels(nest: WindowNest, count: int) -> list[int] | None:
    """Return the pixels of a line that a number of outputs share; see `pixels_to_share`.

    It is None if rows are merged, or if pixels have weights that differ by output.
    """
    if nest.op.weight is not None or nest.joined.size != nest.windows.size:
        return None
    return pixels_to_share(nest.windows, count)


def pixels_to_share(windows: Windows, count: int) -> list[int] | None:
    """Return the pixels of a line that `count` outputs read, where combining columns pays.

    A combined column of one window serves all outputs whose windows contain it: the separable form
    of a maximum or a sum. None where as much is combined by each on its own, or the columns are
    more than registers.
    """
    width, step, dilation = windows.size[-1], windows.strides[-1], windows.dilations[-1]
    if width > _MOST_COLUMNS:
        return None
    pixels = sorted({o * step + x * dilation for o in range(count) for x in range(width)})
    alone = combinations(windows, count, None)
    pays = len(pixels) <= _MOST_COLUMNS and combinations(windows, count, pixels) < alone
    return pixels if pays else None


def combinations(windows: Windows, count: int, pixels: Sequence[int] | None) -> int:
    """Return how often `count` outputs combine two vectors, sharing columns at `pixels` or none."""
    *lines, width = windows.size
    height = math.prod(lines)
    if pixels is None:
        return count * width * height
    return len(pixels) * height + count * (width - 1)
