"""Passes over one row of contiguous f32: sums, maxima, and element by element."""

from collections.abc import Callable, Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import Float32Type, VectorType
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Operation

from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index, Value

_CHAINS = 4
"""Independent accumulators: as many as an addition takes cycles."""

Step = Callable[[Index, Value | None, Value], Value]
"""The accumulator after the vector at a position, of which a mask may turn lanes off."""


def fold(
    e: Emitter,
    length: int,
    neutral: float,
    step: Step,
    join: Callable[[Value, Value], Operation],
    kind: CombiningKindFlag,
) -> Value:
    """A reduction over `length` elements, in every lane of the result.

    `step` adds a vector to an accumulator that began as `neutral`; `join` and `kind` combine
    accumulators, and the lanes of the last one.
    """
    values: Sequence[Value] = [e.constant(neutral, e.vector_type(Float32Type()))] * _CHAINS
    block = _CHAINS * e.lanes
    whole = length - length % block

    def body(position: Index, values: Sequence[Value]) -> Sequence[Value]:
        return [step(e.add(position, i * e.lanes), None, v) for i, v in enumerate(values)]

    if whole:
        values = e.carry(0, whole, block, values, body)
    rest = list(values)
    for chain, position in enumerate(range(whole, length, e.lanes)):
        rest[chain] = step(position, e.tail_mask(length - position), rest[chain])
    total = e.insert(join(e.insert(join(rest[0], rest[1])), e.insert(join(rest[2], rest[3]))))
    return e.broadcast(_across_lanes(e, total, kind))


def each(e: Emitter, length: int, body: Callable[[Index, Value | None], None]) -> None:
    """`body` for every vector of the row, the last one perhaps masked."""
    whole = length - length % e.lanes
    if whole:
        e.loop(0, whole, e.lanes, lambda position: body(position, None))
    if whole < length:
        body(whole, e.tail_mask(length - whole))


def _across_lanes(e: Emitter, value: Value, kind: CombiningKindFlag) -> Value:
    # xDSL's builder gives the result the type of the vector.
    assert isinstance(value.type, VectorType)
    return e.insert(
        vector.ReductionOp.create(
            operands=[value],
            result_types=[Float32Type()],
            properties={"kind": CombiningKindAttr(kind)},
        )
    )
