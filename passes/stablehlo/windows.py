"""Reductions of windows of StableHLO."""

from math import prod

from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.pooling import PoolOp
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.reduction import combination, is_neutral

_POOLS = {"add": "add", "maximum": "max", "minimum": "max"}


@converter("reduce_window")
def reduce_window(t: StablehloNode) -> SSAValue:
    """Dims with windows become the last ones, all others channels; a minimum is that of -x."""
    kind = combination(t)
    if kind not in _POOLS or not is_neutral(t, kind):
        t.unsupported("it is no sum, maximum or minimum from a neutral initial value on")
    x = t.value(0)
    rank = len(shape_of(x))
    ones = [1] * rank
    if any(step != 1 for step in t.integers("base_dilations", ones)):
        t.unsupported("its operand is dilated")
    window = t.integers("window_dimensions")
    pads = t.integers("padding", [0] * 2 * rank)
    windowed = [
        dim
        for dim in range(rank)
        if window[dim] > 1 or pads[2 * dim : 2 * dim + 2] != [0, 0] or _stride(t, dim) > 1
    ]
    others = [dim for dim in range(rank) if dim not in windowed]
    order = [*others, *windowed]
    moved = t.transpose(x, order)
    extents = [shape_of(x)[dim] for dim in windowed]
    flat = t.reshape(moved, [1, prod(shape_of(x)[dim] for dim in others), *extents])
    if kind == "minimum":
        flat = t.apply("neg", flat)
    y = t.emit(
        PoolOp.get(
            flat,
            _POOLS[kind],
            [window[dim] for dim in windowed],
            strides=[_stride(t, dim) for dim in windowed],
            pad_low=[pads[2 * dim] for dim in windowed],
            pad_high=[pads[2 * dim + 1] for dim in windowed],
            dilations=[t.integers("window_dilations", ones)[dim] for dim in windowed],
        )
    )
    if kind == "minimum":
        y = t.apply("neg", y)
    shape = t.result_type.get_shape()
    shaped = t.reshape(y, [shape[dim] for dim in order])
    return t.transpose(shaped, [order.index(dim) for dim in range(rank)])


def _stride(t: StablehloNode, dim: int) -> int:
    return t.integers("window_strides", [1] * len(shape_of(t.value(0))))[dim]
