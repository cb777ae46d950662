"""Ops of StableHLO that move elements, and constants."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import extents_of, require_dim, tensor_type
from braid.dialects.braid.constants import ConstantOp, IotaOp
from braid.dialects.braid.dtypes import dense_is_splat, numpy_from_dense
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.movement import ConcatOp, SliceOp
from braid.dialects.braid.size_evaluation import as_array
from braid.dialects.braid.sized_ops import slice_of
from braid.passes.stablehlo.indexing import slice_at
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.sorting import first_sorted
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import ceildiv


@converter("constant")
def constant(t: StablehloNode) -> SSAValue:
    """Keep constants in the IR; equal elements are one number, repeated."""
    values = t.elements("value")
    shape = values.get_shape()
    if np.prod(shape) > 1 and dense_is_splat(values):
        number = numpy_from_dense(values).reshape(-1)[:1].reshape([1] * len(shape))
        return t.broadcast(t.constant(number), shape)
    return t.emit(ConstantOp.on(value=values))


@converter("iota")
def iota(t: StablehloNode) -> SSAValue:
    """Fill each element with its own index along a dim."""
    extents = t.declared_extents(0, [None] * t.result_type.get_num_dims())
    return t.emit(IotaOp.of(t.integer("iota_dimension"), tensor_type(t.element_type, extents)))


@converter("dynamic_iota")
def dynamic_iota(t: StablehloNode) -> SSAValue:
    """Convert an `iota` of the shape in operand 0."""
    type = tensor_type(t.element_type, t.size_values(0))
    return t.emit(IotaOp.of(t.integer("iota_dimension"), type))


@converter("broadcast_in_dim")
def broadcast_in_dim(t: StablehloNode) -> SSAValue:
    """Broadcast: dim i of the operand is dim `broadcast_dimensions[i]` of the result."""
    x, places = t.value(0), t.integers("broadcast_dimensions")
    known: list[Extent | None] = [None] * t.result_type.get_num_dims()
    for dim, place in enumerate(places):
        require_dim(place, len(known))
        extent = t.extents(x)[dim]
        known[place] = None if extent == 1 else extent
    return _in_dims(t, x, places, t.declared_extents(0, known))


@converter("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(t: StablehloNode) -> SSAValue:
    """Convert a `broadcast_in_dim` to the shape in operand 1."""
    return _in_dims(t, t.value(0), t.integers("broadcast_dimensions"), t.size_values(1))


def _in_dims(
    t: StablehloNode, x: SSAValue, places: Sequence[int], wanted: Sequence[Extent]
) -> SSAValue:
    """Return `x` with dim i as dim `places[i]` of the shape `wanted`, repeated in all others."""
    order = sorted(range(len(places)), key=lambda dim: places[dim])
    shape: list[Extent] = [1] * len(wanted)
    for dim in order:
        require_dim(places[dim], len(shape))
        shape[places[dim]] = t.extents(x)[dim]
    return t.broadcast(t.reshape(t.transpose(x, order), shape), wanted)


@converter("broadcast")
def broadcast(t: StablehloNode) -> SSAValue:
    """Convert a broadcast, whose new dims come first."""
    x = t.value(0)
    sizes = t.integers("broadcast_sizes")
    extents = t.extents(x)
    return t.broadcast(t.reshape(x, [1] * len(sizes) + list(extents)), [*sizes, *extents])


@converter("reshape")
def reshape(t: StablehloNode) -> SSAValue:
    """Convert a reshape, whose shape is that of the result's type."""
    return t.reshape_as_declared(t.value(0))


@converter("dynamic_reshape")
def dynamic_reshape(t: StablehloNode) -> SSAValue:
    """Convert a reshape to the shape in operand 1."""
    return t.reshape(t.value(0), t.size_values(1))


@converter("set_dimension_size")
def set_dimension_size(t: StablehloNode) -> SSAValue:
    """Cut a dim to its first elements; the size must be an operand that does not depend on data."""
    sizes, dim = t.size_values(1), t.integer("dimension")
    if len(sizes) != 1:
        t.fail(f"operand 1 has {len(sizes)} elements, expected one")
    extents = list(t.extents(t.value(0)))
    require_dim(dim, len(extents))
    extents[dim] = sizes[0]
    return t.emit(slice_of(t.value(0), [0] * len(extents), extents))


@converter("transpose")
def transpose(t: StablehloNode) -> SSAValue:
    """Transpose: dim i of the result is dim `permutation[i]`."""
    return t.transpose(t.value(0), t.integers("permutation"))


@converter("concatenate")
def concatenate(t: StablehloNode) -> SSAValue:
    """Return the operands one after the other."""
    return t.emit(ConcatOp.get(list(t.op.operands), t.integer("dimension")))


@converter("slice")
def slice_(t: StablehloNode) -> SSAValue:
    """Return every `strides`-th element from `start_indices` on, before `limit_indices`."""
    starts, strides = t.integers("start_indices"), t.integers("strides")
    if any(stride < 1 for stride in strides):
        t.fail(f"its strides are {strides}, expected at least 1")
    bounds = zip(starts, t.integers("limit_indices"), strides, strict=True)
    sizes = [len(range(start, limit, stride)) for start, limit, stride in bounds]
    extents = zip(sizes, extents_of(t.value(0)), strict=True)
    cut = [dim for dim, (size, extent) in enumerate(extents) if size != extent]
    if len(cut) == 1 and {*starts} == {0} and {*strides} == {1}:
        first = first_sorted(t, t.value(0), cut[0], sizes[cut[0]])
        if first is not None:
            return first
    return t.emit(SliceOp.get(t.value(0), starts, sizes, strides))


@converter("real_dynamic_slice")
def real_dynamic_slice(t: StablehloNode) -> SSAValue:
    """Convert a slice whose starts, limits and strides are operands.

    Starts may be data where the limits are these starts and numbers or sizes.
    """
    strides = [t.fixed(stride) for stride in t.size_values(3)]
    if any(stride < 1 for stride in strides):
        t.fail(f"its strides are {strides}, expected at least 1")
    distances = _distances(t)
    if distances is not None and all(stride == 1 for stride in strides):
        rank = len(strides)
        starts = [t.emit(SliceOp.get(t.value(1), [dim], [1])) for dim in range(rank)]
        return slice_at(t, t.value(0), range(rank), starts, distances)
    starts, limits = t.size_values(1), t.size_values(2)
    bounds = zip(starts, limits, strides, strict=True)
    sizes = [ceildiv(limit - start, stride) for start, limit, stride in bounds]
    return t.emit(slice_of(t.value(0), starts, sizes, strides))


def _distances(t: StablehloNode) -> list[Extent] | None:
    """Return limits less starts, where the starts are data and the limits a sum with them."""
    starts, total = t.value(1), t.value(2).owner
    if t.known_values(starts) is not None or not isinstance(total, ElementwiseOp):
        return None
    if total.ROW.name != "add" or starts not in total.operands:
        return None
    other = total.operands[1 if total.operands[0] == starts else 0]
    array = t.known_values(other)
    if array is None or array.ndim != 1:
        return None
    return [e if isinstance(e, Size) else int(e) for e in array.tolist()]


@converter("reverse")
def reverse(t: StablehloNode) -> SSAValue:
    """Return the elements of some dims, the last one first."""
    return t.reverse(t.value(0), t.integers("dimensions"))


@converter("pad")
def pad(t: StablehloNode) -> SSAValue:
    """Pad around and between elements; negative counts remove elements."""
    steps = [count + 1 for count in t.integers("interior_padding")]
    low, high = t.integers("edge_padding_low"), t.integers("edge_padding_high")
    return t.pad_by(t.value(0), t.value(1), low, high, steps)


@converter("dynamic_pad")
def dynamic_pad(t: StablehloNode) -> SSAValue:
    """Convert a pad whose counts are operands; those that are sizes remove nothing."""
    low, high, interior = (t.size_values(index) for index in (2, 3, 4))
    steps = [t.fixed(count) + 1 for count in interior]
    return t.pad_by(t.value(0), t.value(1), low, high, steps)


@converter("get_dimension_size")
def dimension_size(t: StablehloNode) -> SSAValue:
    """Convert to an extent: a number, or a size."""
    shape, dim = t.extents(t.value(0)), t.integer("dimension")
    require_dim(dim, len(shape))
    return t.sizes(as_array([shape[dim]], []), t.element_type)
