"""The indices of the maxima of a `MaxPool`, and `MaxUnpool`, which puts maxima back there."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import i64, to_numpy
from braid.dialects.braid.indexing import GatherElementsOp, GatherOp
from braid.dialects.braid.reduction import neutral_of
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scattering import ScatterElementsOp
from braid.dialects.braid.windows import Windows
from braid.frontends.onnx.builder import Builder
from braid.frontends.onnx.expressions import apply, broadcast, cast, pad, reshape, scalar
from braid.frontends.onnx.node import Node
from braid.frontends.onnx.registry import importer
from braid.frontends.onnx.windows import WindowAttributes


def indices_of_maxima(
    b: Builder,
    x: SSAValue,
    window: WindowAttributes,
    kernel: Sequence[int],
    positions: Sequence[int],
    *,
    column_major: bool,
) -> SSAValue:
    """Where in all of `x` `[N, C, spatial…]` the first maximum of each window stands.

    Result: i64 `[N, C, positions…]`, an index into the flattened x; with `column_major` the
    spatial dims of each channel are flattened the other way round.
    """
    batch, channels, *spatial = shape_of(x)
    whole = Windows(
        tuple(kernel), window.strides, window.dilations, window.pad_low, window.pad_high
    )
    places = _places(spatial, whole.clipped(spatial), positions)
    inside = np.all([(p >= 0) & (p < e) for p, e in zip(places, spatial, strict=True)], axis=0)
    clipped = tuple(np.clip(p, 0, e - 1) for p, e in zip(places, spatial, strict=True))
    read = np.ravel_multi_index(clipped, spatial)
    count = math.prod(spatial)
    flat = reshape(b, x, [batch, channels, count])
    values = b.emit(GatherOp.get(flat, b.constant(read), 2))
    least = scalar(b, neutral_of("maximum", element_type_of(x)), values)
    values = apply(b, "select", b.constant(inside[None, None]), values, least)
    first = b.emit(ArgReduceOp.get(values, "max", 3))
    told = np.ravel_multi_index(clipped, spatial, order="F" if column_major else "C")
    table = broadcast(b, b.constant(told[None, None]), [batch, channels, *told.shape])
    within = b.emit(GatherElementsOp.get(table, first, 3))
    starts = count * np.arange(batch * channels).reshape(batch, channels, 1, 1)
    return reshape(b, apply(b, "add", within, b.constant(starts)), [batch, channels, *positions])


def _places(spatial: Sequence[int], windows: Windows, positions: Sequence[int]) -> list[Array]:
    """Per spatial dim, the index of each element of each window, `[positions, elements]`."""
    rank = len(spatial)
    places: list[Array] = []
    for dim in range(rank):
        start = np.arange(positions[dim]) * windows.strides[dim] - windows.pad_low[dim]
        step = np.arange(windows.size[dim]) * windows.dilations[dim]
        shape = [1] * (2 * rank)
        shape[dim], shape[rank + dim] = positions[dim], windows.size[dim]
        index = (start[:, None] + step).reshape(shape)
        every = np.broadcast_to(index, [*positions, *windows.size])
        places.append(every.reshape(math.prod(positions), math.prod(windows.size)))
    return places


@importer("MaxUnpool")
def max_unpool(b: Builder, node: Node) -> SSAValue:
    """Zeros with each element of the input at its index; `output_shape` adds zeros at the ends."""
    x, indices = node.input(0), node.input(1)
    batch, channels, *spatial = shape_of(x)
    rank, kernel = len(spatial), node.integers("kernel_shape")
    strides = node.integers("strides", (1,) * rank)
    pads = node.integers("pads", (0,) * (2 * rank))
    shape = [
        batch,
        channels,
        *(
            (extent - 1) * strides[dim] - pads[dim] - pads[rank + dim] + kernel[dim]
            for dim, extent in enumerate(spatial)
        ),
    ]
    zero = b.constant(np.zeros([1], to_numpy(element_type_of(x))))
    count = math.prod(shape_of(x))
    target = broadcast(b, zero, [math.prod(shape)])
    flat = cast(b, reshape(b, indices, [count]), i64)
    filled = b.emit(ScatterElementsOp.get(target, flat, reshape(b, x, [count]), 0))
    wanted = node.known_integers(2) or shape
    high = [want - have for want, have in zip(wanted, shape, strict=True)]
    if min(high) < 0:
        node.fail(f"output_shape is {list(wanted)}, expected at least {shape}")
    return pad(b, reshape(b, filled, shape), [0] * len(shape), high, 0)
