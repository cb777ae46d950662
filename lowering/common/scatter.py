"""Scatter ops as a loop that combines the updates in, one after the other."""

from collections.abc import Sequence
from math import prod

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.scattering import ScatterElementsOp, ScatterOp
from braid.lowering.common.element_types import narrow, widen
from braid.lowering.common.scalar_body import counted_position
from braid.lowering.common.scalar_ops import emit_operation
from braid.lowering.common.tensor_loops import (
    delinearized,
    element,
    for_loop,
    index_constant,
    with_element,
)


def scattered(
    builder: Builder, op: ScatterOp, operands: Sequence[SSAValue], types: Sequence[AnyTensor]
) -> SSAValue:
    """Return the result of a scatter on row-major tensors, which are `types` in braid.

    Several updates may address one element, so the loop over them is sequential.
    """
    data, indices, updates = operands
    shape, element_type = types[2].get_shape(), types[0].element_type

    def step(inside: Builder, number: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        point = delinearized(inside, number, shape)
        target = _target(inside, op, indices, types, point)
        value = element(inside, updates, point)
        if op.reduction.data != "none":
            wide = [
                widen(inside, element(inside, carried[0], target)),
                widen(inside, value),
            ]
            combined = emit_operation(inside, op.reduction.data, wide, element_type)
            value = narrow(inside, combined, element_type)
        return [with_element(inside, carried[0], target, value)]

    return for_loop(builder, prod(shape), [data], step)[0]


def _target(
    builder: Builder,
    op: ScatterOp,
    indices: SSAValue,
    types: Sequence[AnyTensor],
    point: Sequence[SSAValue],
) -> list[SSAValue]:
    """Return where in the data the update at `point` goes."""
    shape, index_type = types[0].get_shape(), types[1].element_type
    if isinstance(op, ScatterElementsOp):
        dim = op.dim.value.data
        index = element(builder, indices, point)
        target = list(point)
        target[dim] = counted_position(builder, index, index_type, shape[dim])
        return target
    *batch, length = types[1].get_shape()
    outer = point[: len(batch)]
    found: list[SSAValue] = []
    for entry in range(length):
        index = element(builder, indices, [*outer, index_constant(builder, entry)])
        found.append(counted_position(builder, index, index_type, shape[entry]))
    return [*found, *point[len(batch) :]]
