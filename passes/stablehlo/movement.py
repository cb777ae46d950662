"""Ops of StableHLO that move elements, and constants."""

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.base import require_dim, shape_of
from braid.dialects.braid.constants import ConstantOp, IotaOp
from braid.dialects.braid.dtypes import dense_is_splat, numpy_from_dense, to_numpy
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.movement import ConcatOp, SliceOp
from braid.passes.stablehlo.node import StablehloNode, converter


@converter("constant")
def constant(t: StablehloNode) -> SSAValue:
    """Constants stay in the IR; one number in all places is one number, repeated."""
    values = t.elements("value")
    shape = values.get_shape()
    if np.prod(shape) > 1 and dense_is_splat(values):
        number = numpy_from_dense(values).reshape(-1)[:1].reshape([1] * len(shape))
        return t.broadcast(t.constant(number), shape)
    return t.emit(ConstantOp.on(value=values))


@converter("iota")
def iota(t: StablehloNode) -> SSAValue:
    """Every element is its own index along a dim."""
    return t.emit(IotaOp.of(t.integer("iota_dimension"), t.result_type))


@converter("broadcast_in_dim")
def broadcast_in_dim(t: StablehloNode) -> SSAValue:
    """Dim i of the operand is dim `broadcast_dimensions[i]` of the result."""
    x, places = t.value(0), t.integers("broadcast_dimensions")
    order = sorted(range(len(places)), key=lambda dim: places[dim])
    shape = [1] * t.result_type.get_num_dims()
    for place in places:
        require_dim(place, len(shape))
    for dim in order:
        shape[places[dim]] = shape_of(x)[dim]
    return t.broadcast(t.reshape(t.transpose(x, order), shape), t.result_type.get_shape())


@converter("broadcast")
def broadcast(t: StablehloNode) -> SSAValue:
    """New dims stand in front."""
    x = t.value(0)
    sizes = t.integers("broadcast_sizes")
    return t.broadcast(
        t.reshape(x, [1] * len(sizes) + list(shape_of(x))), t.result_type.get_shape()
    )


@converter("reshape")
def reshape(t: StablehloNode) -> SSAValue:
    """The shape is that of the result's type."""
    return t.reshape(t.value(0), t.result_type.get_shape())


@converter("transpose")
def transpose(t: StablehloNode) -> SSAValue:
    """Dim i of the result is dim `permutation[i]`."""
    return t.transpose(t.value(0), t.integers("permutation"))


@converter("concatenate")
def concatenate(t: StablehloNode) -> SSAValue:
    """The operands one after the other."""
    return t.emit(ConcatOp.get(list(t.op.operands), t.integer("dimension")))


@converter("slice")
def slice_(t: StablehloNode) -> SSAValue:
    """Every `strides`-th element from `start_indices` on, before `limit_indices`."""
    starts, strides = t.integers("start_indices"), t.integers("strides")
    bounds = zip(starts, t.integers("limit_indices"), strides, strict=True)
    sizes = [len(range(start, limit, stride)) for start, limit, stride in bounds]
    return t.emit(SliceOp.get(t.value(0), starts, sizes, strides))


@converter("reverse")
def reverse(t: StablehloNode) -> SSAValue:
    """The elements of some dims, the last one first."""
    return t.reverse(t.value(0), t.integers("dimensions"))


@converter("pad")
def pad(t: StablehloNode) -> SSAValue:
    """Around and between elements; negative counts take elements away."""
    number = t.known_number(1)
    steps = [count + 1 for count in t.integers("interior_padding")]
    low, high = t.integers("edge_padding_low"), t.integers("edge_padding_high")
    return t.pad(t.spread(t.value(0), steps, number), low, high, number)


@converter("bitcast_convert")
def bitcast(t: StablehloNode) -> SSAValue:
    """Between types of one width."""
    if shape_of(t.value(0)) != t.result_type.get_shape():
        t.unsupported(
            "the width of its elements changes", hint="bitcast between types of one width"
        )
    return t.emit(elementwise("bitcast", t.value(0), element_type=t.element_type))


@converter("get_dimension_size")
def dimension_size(t: StablehloNode) -> SSAValue:
    """An extent, which is known."""
    shape, dim = t.extents(t.value(0)), t.integer("dimension")
    require_dim(dim, len(shape))
    return t.constant(np.array(shape[dim], to_numpy(t.element_type)))


_MARKS = {"Sharding", "annotate_device_placement", "SPMDFullToShardShape", "SPMDShardToFullShape"}
"""Calls that say something about their operand and give it back."""


@converter("custom_call")
def custom_call(t: StablehloNode) -> list[SSAValue]:
    """Only marks, which have no meaning on one device."""
    name = t.text("call_target_name")
    if name not in _MARKS:
        t.unsupported(
            f"calls '{name}', of which braid knows nothing",
            hint="export the model without it; StableHLO's own ops are converted",
        )
    return list(t.op.operands)
