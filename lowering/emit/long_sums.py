"""Loops that carry sums of many numbers, in parts that are added up."""

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, VectorType
from xdsl.ir import Attribute

from braid.lowering.common.long_sums import OF_PART, is_long, part_steps
from braid.lowering.emit.emitter import Emitter, Index, Value

_f32 = Float32Type()

_MOST_OPEN = 1 << 25
"""Steps along an open dim for which sums are as exact as those of a known length.

Every factor of 256 adds a loop around each sum, which slows down short ones.
"""


def carry_sums(
    e: Emitter,
    lower: Index,
    upper: Index,
    step: int,
    initial: Sequence[Value],
    body: Callable[[Index, Sequence[Value]], Sequence[Value]],
    added: int = 1,
    most: int | None = None,
) -> Sequence[Value]:
    """Emit a loop as `Emitter.carry` does, for sums to which each iteration adds `count` numbers
    one by one.

    `most` is the most that `upper - lower` may be where these are not known: sums of more numbers
    are right too, but less exact.
    """
    if most is None:
        most = _MOST_OPEN
        if isinstance(lower, int) and isinstance(upper, int):
            most = upper - lower
    iterations = -(-most // step)
    if not (is_long(iterations, added) and all(map(_is_rounded, initial))):
        return e.carry(lower, upper, step, initial, body)
    length = step * part_steps(iterations, added)
    zeros = [e.constant(0.0, value.type) for value in initial]

    def part(begin: Index, sums: Sequence[Value]) -> Sequence[Value]:
        end = e.minimum(e.add(begin, length), upper)
        own = body(begin, zeros) if length == step else e.carry(begin, end, step, zeros, body)
        return [e.apply(arith.AddfOp, a, b) for a, b in zip(sums, own, strict=True)]

    return carry_sums(e, lower, upper, length, initial, part, OF_PART, most)


def _is_rounded(value: Value) -> bool:
    """Return whether sums of its type are rounded: those of integers are exact."""
    type = value.type
    if isinstance(type, VectorType):
        type = cast(VectorType[Attribute], type).element_type
    return type == _f32
