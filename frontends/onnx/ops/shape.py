"""Constants, and computations on shapes."""

import math

import numpy as np
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of, tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import bytes_of, is_float, to_numpy
from braid.dialects.braid.size_evaluation import SIZES, as_array, fixed, is_sized, scalar_of
from braid.dialects.braid.size_limits import require_table
from braid.frontends.onnx.building.builder import FOLDED_ELEMENTS, Builder
from braid.frontends.onnx.building.decisions import decided, may_decide
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    reshape,
    scalar,
    size_scalar,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.support.sizes import scalars as size_scalars
from braid.support.sizes.operators import ceildiv, maximum, product_of


@importer("Constant")
def constant(b: Builder, node: Node) -> SSAValue:
    """Import a tensor, a number or a list of numbers."""
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
    """Import a tensor that is one number everywhere."""
    value = node.tensor("value") if node.has("value") else np.zeros(1, np.float32)
    shape = node.known_sizes(0) or ()
    return broadcast(b, b.constant(value.reshape([1] * len(shape))), shape)


@importer("Shape")
def shape_node(b: Builder, node: Node) -> SSAValue:
    """Import the extents, or those from `start` to `end`."""
    shape = extents_of(node.input(0))
    end = node.integer("end", len(shape))
    held = shape[node.integer("start", 0) : end]
    return b.sizes(as_array(held, [len(held)]))


@importer("Size")
def size(b: Builder, node: Node) -> SSAValue:
    """Import the number of elements."""
    return b.sizes(as_array([product_of(extents_of(node.input(0)))], []))


def _count(steps: int) -> int:
    """Return the number of elements of a tensor as a constant of the model."""
    require_table(steps, "its numbers are constants")
    return max(0, steps)


def _sized_range(b: Builder, node: Node) -> SSAValue:
    """Import integers between sizes, in steps that are known."""
    if is_float(element_type_of(node.input(0))):
        return _float_range(b, node)
    start, limit, delta = (next(iter(node.known_sizes(i) or (0,))) for i in range(3))
    step, kind = fixed(delta, "delta"), element_type_of(node.input(0))
    if step == 0:
        node.fail("delta is 0")
    distance = limit - start if step > 0 else start - limit
    count = SIZES.simplified(maximum(0, ceildiv(distance, abs(step))))
    positions = b.emit(IotaOp.of(0, tensor_type(kind, [count])))
    if step != 1:
        positions = apply(b, "mul", positions, scalar(b, step, positions))
    if start == 0:
        return positions
    return apply(b, "add", positions, size_scalar(b, start, positions))


def _float_range(b: Builder, node: Node) -> SSAValue:
    """Import floats between sizes; how many there are is computed in floats, as ONNX says."""
    kind, values = element_type_of(node.input(0)), [node.input(i) for i in range(3)]
    width = 8 * bytes_of(kind)
    known = [b.sizes_of(value) for value in values]
    if width not in (32, 64) or any(array is None or array.size != 1 for array in known):
        node.unsupported("start, limit and delta are no sizes in f32 or f64")
    scalars = [scalar_of(array.item(), width) for array in known if array is not None]
    distance = size_scalars.apply("sub", scalars[1], scalars[0])
    steps = size_scalars.apply("div", distance, scalars[2])
    count = SIZES.simplified(maximum(0, size_scalars.rounded("ceil", steps)))
    positions = b.emit(IotaOp.of(0, tensor_type(kind, [count])))
    start, delta = (reshape(b, values[i], [1]) for i in (0, 2))
    return apply(b, "add", start, apply(b, "mul", positions, delta))


def _is_decided(b: Builder, node: Node, index: int) -> bool:
    """Return whether data decide the value of an input on which the result's size depends."""
    value = node.input(index)
    return b.sizes_of(value) is None and may_decide(b, value)


def _decided_range(b: Builder, node: Node) -> SSAValue:
    """Import numbers of which data decide how many there are; counted in f64, as peers do."""
    kind = element_type_of(node.input(0))
    start, limit, delta = (reshape(b, node.input(i), [1]) for i in range(3))
    if not is_float(kind):  # a difference of integers may not fit their type
        start, limit = (cast(b, value, f64) for value in (start, limit))
    distance = cast(b, apply(b, "sub", limit, start), f64)
    steps = apply(b, "ceil", apply(b, "div", distance, cast(b, delta, f64)))
    count = cast(b, apply(b, "maximum", steps, scalar(b, 0, steps)), i64)
    extents = decided(b, count, node.proto.output[0]).reshape(-1).tolist()
    positions = b.emit(IotaOp.of(0, tensor_type(kind, extents)))
    start = reshape(b, node.input(0), [1])
    return apply(b, "add", start, apply(b, "mul", positions, delta))


@importer("Range")
def range_node(b: Builder, node: Node) -> SSAValue:
    """Import numbers from start to limit by delta, all known at import or sizes."""
    if any(_is_decided(b, node, i) for i in range(3)):
        return _decided_range(b, node)
    if any(is_sized(array) for i in range(3) if (array := b.sizes_of(node.input(i))) is not None):
        return _sized_range(b, node)
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
