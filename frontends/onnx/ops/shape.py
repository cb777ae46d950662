"""Constants, and what is computed about shapes."""

import math

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import to_numpy
from braid.dialects.braid.size_limits import require_table
from braid.frontends.onnx.building.builder import FOLDED_ELEMENTS, Builder
from braid.frontends.onnx.building.expressions import broadcast
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer


@importer("Constant")
def constant(b: Builder, node: Node) -> SSAValue:
    """A tensor, a number or a list of numbers."""
    if node.has("value"):
        array = node.tensor("value")
        return (
            b.constant(array)
            if array.size <= FOLDED_ELEMENTS
            else b.parameter(node.proto.output[0], array)
        )
    for name, read, dtype in (
        ("value_float", node.number, np.float32),
        ("value_floats", node.numbers, np.float32),
        ("value_int", node.integer, np.int64),
        ("value_ints", node.integers, np.int64),
    ):
        if node.has(name):
            return b.constant(np.array(read(name), dtype))
    node.unsupported("only tensors and numbers are supported, not strings or sparse tensors")


@importer("ConstantOfShape")
def constant_of_shape(b: Builder, node: Node) -> SSAValue:
    """One number everywhere."""
    value = node.tensor("value") if node.has("value") else np.zeros(1, np.float32)
    shape = node.known_integers(0) or ()
    return broadcast(b, b.constant(value.reshape([1] * len(shape))), shape)


@importer("Shape")
def shape_node(b: Builder, node: Node) -> SSAValue:
    """The extents, or those from `start` to `end`."""
    shape = shape_of(node.input(0))
    end = node.integer("end", len(shape))
    return b.constant(np.array(shape[node.integer("start", 0) : end], np.int64))


@importer("Size")
def size(b: Builder, node: Node) -> SSAValue:
    """The number of elements."""
    return b.constant(np.array(math.prod(shape_of(node.input(0))), np.int64))


def _count(steps: int) -> int:
    """Return the number of elements of a tensor as a constant of the model."""
    require_table(steps, "its numbers are constants")
    return max(0, steps)


@importer("Range")
def range_node(b: Builder, node: Node) -> SSAValue:
    """Numbers from start to limit by delta, all known at import."""
    start, limit, delta = (node.known(i) for i in range(3))
    dtype = to_numpy(element_type_of(node.input(0)))
    if start is None or limit is None or delta is None:
        node.fail("expected start, limit and delta")
    if not delta.item():
        node.fail("delta is 0")
    if dtype.kind in "iu":
        count = _count(-((start.item() - limit.item()) // delta.item()))
        with np.errstate(over="ignore"):  # steps may wrap around, their sums with the start fit
            return b.constant(start + np.arange(count).astype(dtype) * delta)
    steps = (limit.item() - start.item()) / delta.item()
    if not math.isfinite(steps):
        node.fail(f"start {start}, limit {limit} and delta {delta} are {steps} steps")
    count = _count(math.ceil(steps))
    return b.constant((start.item() + np.arange(count) * delta.item()).astype(dtype))
