"""Passes over one row of contiguous floats: sums, maxima, and element by element."""

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute

from braid.lowering.emit.compare import choose, compare
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.long_sums import carry_sums
from braid.lowering.emit.register_transpose import shuffled
from braid.support.sizes.expression import Extent

_f32 = Float32Type()

_CHAINS = 4
"""Independent accumulators: as many as an addition takes cycles."""

Step = Callable[[Index, Value | None, Value], Value]
"""The accumulator after the vector at a position; a mask may disable lanes."""

Join = Callable[[Emitter, Value, Value], Value]
"""One accumulator of two."""


def added(e: Emitter, a: Value, b: Value) -> Value:
    """Return a + b."""
    return e.apply(arith.AddfOp, a, b)


def larger(e: Emitter, a: Value, b: Value) -> Value:
    """Return the larger one, a where b is NaN: one instruction, unlike a maximum that NaN goes
    through.
    """
    return choose(e, compare(e, "ogt", b, a), b, a)


def fold(
    e: Emitter,
    length: Extent,
    neutral: float,
    step: Step,
    join: Join,
    element_type: Attribute = _f32,
) -> Value:
    """Return a reduction over `length` elements of `element_type`, in every lane of the result.

    `step` adds a vector to an accumulator that began as `neutral`; `join` combines accumulators,
    and the halves of the last one's lanes.
    """
    start = e.constant(neutral, e.vector_type(element_type))
    values: Sequence[Value] = [start] * _CHAINS
    block = _CHAINS * e.lanes
    whole = length - length % block

    def body(position: Index, values: Sequence[Value]) -> Sequence[Value]:
        return [step(e.add(position, i * e.lanes), None, v) for i, v in enumerate(values)]

    if whole != 0:
        carry = carry_sums if join is added else Emitter.carry
        values = carry(e, 0, whole, block, values, body)
    rest = list(values)
    if isinstance(length, int):
        for chain, position in enumerate(range(length - length % block, length, e.lanes)):
            rest[chain] = step(position, e.tail_mask(length - position), rest[chain])
    else:
        rest[:1] = e.carry(
            whole,
            length,
            e.lanes,
            rest[:1],
            lambda at, found: [step(at, e.tail_mask(e.sub(length, at)), found[0])],
        )
    return across(e, join(e, join(e, rest[0], rest[1]), join(e, rest[2], rest[3])), join)


def across(e: Emitter, value: Value, join: Join) -> Value:
    """Return the combination of all lanes, in every lane."""
    distance = e.lanes // 2
    while distance:
        turned = shuffled(e, value, value, [lane ^ distance for lane in range(e.lanes)])
        value = join(e, value, turned)
        distance //= 2
    return value


def each(e: Emitter, length: Extent, body: Callable[[Index, Value | None], None]) -> None:
    """Emit `body` for every vector of the row, the last one perhaps masked."""
    rest = length % e.lanes
    whole = length - rest
    if whole != 0:
        e.loop(0, whole, e.lanes, lambda position: body(position, None))
    if rest != 0:
        e.loop(whole, length, e.lanes, lambda at: body(at, e.tail_mask(e.sub(length, at))))
