"""The common base of linear algebra ops: stacks of matrices, whose rows a loop visits."""

import math

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, shape_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import bytes_of, f32, i64, is_float
from braid.dialects.braid.indexing import GatherOp
from braid.passes.stablehlo.node import StablehloNode


def stacked(t: StablehloNode, value: SSAValue) -> SSAValue:
    """Return matrices `[…, rows, columns]` as `[count, rows, columns]`, of f32 or f64."""
    if len(shape_of(value)) < 2 or not is_float(element_type_of(value)):
        t.fail(f"an operand has type {value.type}, expected matrices of floats")
    *batch, rows, columns = t.numbers(value)
    matrices = t.reshape(value, [math.prod(batch), rows, columns])
    return t.cast(matrices, f32) if bytes_of(element_type_of(value)) < bytes_of(f32) else matrices


def unstacked(t: StablehloNode, matrices: SSAValue, like: SSAValue) -> SSAValue:
    """Return matrices of `stacked` in the batch dims and the element type of `like`."""
    shape = [*t.numbers(like)[:-2], *shape_of(matrices)[1:]]
    return t.cast(t.reshape(matrices, shape), element_type_of(like))


def swapped(t: StablehloNode, matrices: SSAValue) -> SSAValue:
    """Return stacked matrices transposed."""
    return t.transpose(matrices, [0, 2, 1])


def line(t: StablehloNode, matrices: SSAValue, place: SSAValue, dim: int) -> SSAValue:
    """Return the row (dim 1) or the column (dim 2) at `place`, an i64 of rank 0."""
    return t.emit(GatherOp.get(matrices, t.reshape(place, [1]), dim))


def counted(t: StablehloNode, count: int, dim: int) -> SSAValue:
    """Return the numbers below `count` along a dim of stacked matrices."""
    extents = [1, 1, 1]
    extents[dim] = count
    return t.emit(IotaOp.of(dim, tensor_type(i64, extents)))


def compared(
    t: StablehloNode, direction: str, matrices: SSAValue, place: SSAValue, dim: int
) -> SSAValue:
    """Return which rows (dim 1) or columns (dim 2) are at, before or after `place`."""
    places = counted(t, t.fixed(extents_of(matrices)[dim]), dim)
    return t.apply(direction, places, t.reshape(place, [1, 1, 1]))
