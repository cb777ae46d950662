"""Pooling, the indices of maxima, and putting maxima back there."""

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from braid.dialects.braid.arg_reduction import ArgReduceOp
from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import i64, is_float, to_numpy
from braid.dialects.braid.indexing import GatherElementsOp, GatherOp
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import neutral_of
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scattering import ScatterElementsOp
from braid.dialects.braid.size_evaluation import fixed, fixed_shape
from braid.dialects.braid.size_limits import require_table
from braid.dialects.braid.windows import Windows
from braid.frontends.onnx.building.builder import Builder
from braid.frontends.onnx.building.expressions import (
    apply,
    broadcast,
    cast,
    mean,
    pad,
    reduce,
    reshape,
    scalar,
    widened,
)
from braid.frontends.onnx.building.node import Node
from braid.frontends.onnx.building.registry import importer
from braid.frontends.onnx.building.windows import (
    WindowAttributes,
    declared_windows,
    require_kernel_shape,
    window_attributes,
)
from braid.frontends.onnx.ops.reduction import p_norm, p_power, p_root
from braid.support.sizes.expression import Extent


def indices_of_maxima(
    b: Builder,
    x: SSAValue,
    window: WindowAttributes,
    kernel: Sequence[int],
    positions: Sequence[int],
    *,
    column_major: bool,
) -> SSAValue:
    """Return the position in all of `x` `[N, C, spatial…]` of each window's first maximum.

    Result: i64 `[N, C, positions…]`, an index into the flattened x; with `column_major` the
    spatial dims of each channel are flattened the other way round.
    """
    batch, channels, *spatial = fixed_shape(x)
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
    """Return per spatial dim the index of each element of each window, `[positions, elements]`."""
    rank = len(spatial)
    require_table(rank * math.prod(positions) * math.prod(windows.size), "elements of the windows")
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
    """Import zeros with each element of the input at its index.

    `output_shape` adds zeros at the ends.
    """
    x, indices = node.input(0), node.input(1)
    batch, channels, *spatial = fixed_shape(x)
    rank, kernel = len(spatial), node.integers("kernel_shape")
    require_kernel_shape(node, kernel, rank)
    strides, _, pads = declared_windows(node, rank)
    if extents_of(indices) != extents_of(x):
        node.fail(
            f"indices have shape {list(extents_of(indices))}, the input {list(extents_of(x))}"
        )
    shape = [
        batch,
        channels,
        *(
            (extent - 1) * strides[dim] - pads[dim] - pads[rank + dim] + kernel[dim]
            for dim, extent in enumerate(spatial)
        ),
    ]
    zero = b.constant(np.zeros([1], to_numpy(element_type_of(x))))
    count = math.prod(extents_of(x))
    target = broadcast(b, zero, [math.prod(shape)])
    flat = cast(b, reshape(b, indices, [count]), i64)
    filled = b.emit(ScatterElementsOp.get(target, flat, reshape(b, x, [count]), 0))
    wanted = node.known_integers(2) or shape
    high = [want - have for want, have in zip(wanted, shape, strict=True)]
    if min(high) < 0:
        node.fail(f"output_shape is {list(wanted)}, expected at least {shape}")
    return pad(b, reshape(b, filled, shape), [0] * len(shape), high, 0)


@importer("MaxPool")
def max_pool(b: Builder, node: Node) -> list[SSAValue]:
    """Import `braid.pool` of kind `max`.

    The indices of the maxima are computed only where they are asked for.
    """
    values, window, kernel = pooled(b, node, "max")
    if len(node.proto.output) == 1 or not node.proto.output[1]:
        return [values]
    indices = indices_of_maxima(
        b,
        node.input(0),
        window,
        kernel,
        fixed_shape(values)[2:],
        column_major=bool(node.integer("storage_order", 0)),
    )
    return [values, indices]


@importer("AveragePool")
def average_pool(b: Builder, node: Node) -> SSAValue:
    """Import a sum in at least f32, times the reciprocal of the number of elements.

    Averages of integers are rounded toward zero, as PyTorch's are.
    """
    total, window, kernel = pooled(b, node, "add")
    spatial = extents_of(node.input(0))[2:]
    include_pad = bool(node.integer("count_include_pad", 0))
    pads = _declared_padding(node, window) if include_pad else None
    if not _have_one_count(window, pads) and not all(isinstance(n, int) for n in spatial):
        average = _open_average(b, total, spatial, window, kernel, pads)
        return cast(b, average, element_type_of(node.input(0)))
    counts = _counts(spatial, extents_of(total)[2:], window, kernel, pads)
    dtype = to_numpy(element_type_of(total))
    if not is_float(element_type_of(total)):
        return apply(b, "div", total, b.constant(np.maximum(counts, 1).astype(dtype)[None, None]))
    # A window over padding alone has the average 0.
    share = np.divide(1, counts, out=np.zeros(counts.shape), where=counts > 0)
    share = share.astype(dtype)[None, None]
    if (share == share.reshape(-1)[0]).all():
        share = share.reshape(-1)[:1].reshape([1] * share.ndim)
    average = apply(b, "mul", total, b.constant(share))
    return cast(b, average, element_type_of(node.input(0)))


def _declared_padding(node: Node, window: WindowAttributes) -> WindowAttributes:
    """Return the padding that counts: `pads`, without the padding that `ceil_mode` adds."""
    rank = len(window.strides)
    if node.text("auto_pad", "NOTSET") not in ("NOTSET", ""):
        return window
    pads = node.integers("pads", (0,) * (2 * rank))
    return WindowAttributes(
        window.strides, window.dilations, tuple(pads[:rank]), tuple(pads[rank:])
    )


def _have_one_count(window: WindowAttributes, counted: WindowAttributes | None) -> bool:
    """Return whether every window has as many elements that count: none reaches beyond them."""
    return counted == window or not any(window.pad_low + window.pad_high)


def _open_average(
    b: Builder,
    total: SSAValue,
    spatial: Sequence[Extent],
    window: WindowAttributes,
    kernel: Sequence[int],
    counted: WindowAttributes | None,
) -> SSAValue:
    """Return averages over windows of open extents: sums divided by the same sums of ones."""
    ones = broadcast(b, scalar(b, 1, total), [1, 1, *spatial])
    low, high = [0] * len(spatial), [0] * len(spatial)
    if counted is not None:
        low, high = list(counted.pad_low), list(counted.pad_high)
        ones = pad(b, ones, [0, 0, *low], [0, 0, *high], 1)
    counts = b.emit(
        PoolOp.get(
            ones,
            "add",
            kernel,
            strides=window.strides,
            pad_low=[own - other for own, other in zip(window.pad_low, low, strict=True)],
            pad_high=[own - other for own, other in zip(window.pad_high, high, strict=True)],
            dilations=window.dilations,
        )
    )
    # A window over padding alone has the average 0.
    return apply(b, "div", total, apply(b, "maximum", counts, scalar(b, 1, counts)))


def _counts(
    spatial: Sequence[Extent],
    positions: Sequence[Extent],
    window: WindowAttributes,
    kernel: Sequence[int],
    counted: WindowAttributes | None,
) -> np.ndarray:
    """Return the number of elements of each window; those of the padding `counted` count too."""
    result = np.ones([1] * len(spatial))
    if _have_one_count(window, counted):
        return result * math.prod(kernel)
    spatial = [fixed(extent, "a spatial dim") for extent in spatial]
    positions = [fixed(extent, "a spatial dim") for extent in positions]
    require_table(math.prod(positions), "elements of the windows")
    for dim, extent in enumerate(spatial):
        low = counted.pad_low[dim] if counted else 0
        high = counted.pad_high[dim] if counted else 0
        start = np.arange(positions[dim]) * window.strides[dim] - window.pad_low[dim]
        first, last = (
            np.clip(-((start - end) // window.dilations[dim]), 0, kernel[dim])
            for end in (-low, extent + high)
        )
        shape = [1] * len(spatial)
        shape[dim] = positions[dim]
        result = result * np.maximum(last - first, 0).reshape(shape)
    return result


def pooled(b: Builder, node: Node, kind: str) -> tuple[SSAValue, WindowAttributes, tuple[int, ...]]:
    """Return input 0 reduced over windows, the windows, and the shape of one."""
    x, kernel = node.input(0), node.integers("kernel_shape")
    spatial = extents_of(x)[2:]
    window = window_attributes(node, spatial, kernel)
    if node.integer("ceil_mode", 0):
        window = _with_partial_windows(window, spatial, kernel)
    op = PoolOp.get(
        widened(b, x) if kind == "add" else x,
        kind,
        kernel,
        strides=window.strides,
        pad_low=window.pad_low,
        pad_high=window.pad_high,
        dilations=window.dilations,
    )
    return b.emit(op), window, kernel


def _with_partial_windows(
    window: WindowAttributes, spatial: Sequence[Extent], kernel: Sequence[int]
) -> WindowAttributes:
    """Return more padding at the end, so that the last window of `ceil_mode` is whole.

    A window that would begin in the padding at the end is left out.
    """
    high: list[int] = []
    for dim, own in enumerate(spatial):
        stride = window.strides[dim]
        reach = window.dilations[dim] * (kernel[dim] - 1) + 1
        if not isinstance(own, int) and window.pad_high[dim] + stride <= reach:
            # None begins in the padding, and less than a step is not read.
            high.append(window.pad_high[dim] + stride - 1)
            continue
        extent = fixed(own, "a spatial dim")
        padded = extent + window.pad_low[dim] + window.pad_high[dim]
        count = -(-(padded - reach) // stride) + 1
        if (count - 1) * stride >= extent + window.pad_low[dim]:
            count -= 1
        missing = (count - 1) * stride + reach - padded
        high.append(max(0, window.pad_high[dim] + missing))
    return WindowAttributes(window.strides, window.dilations, window.pad_low, tuple(high))


@importer("GlobalAveragePool", "GlobalMaxPool")
def global_pool(b: Builder, node: Node) -> SSAValue:
    """Import a reduction of all spatial dims."""
    x = node.input(0)
    dims = range(2, len(extents_of(x)))
    return (
        mean(b, x, dims) if node.op_type == "GlobalAveragePool" else reduce(b, "maximum", x, dims)
    )


@importer("GlobalLpPool")
def global_lp_pool(b: Builder, node: Node) -> SSAValue:
    """Import the p-norm over all spatial dims."""
    x, p = node.input(0), node.integer("p", 2)
    return p_norm(b, x, p, range(2, len(extents_of(x))))


@importer("LpPool")
def lp_pool(b: Builder, node: Node) -> SSAValue:
    """Import the p-norm over each window."""
    p, kernel = node.integer("p", 2), node.integers("kernel_shape")
    x = node.input(0)
    window = window_attributes(node, extents_of(x)[2:], kernel)
    if node.integer("ceil_mode", 0):
        window = _with_partial_windows(window, extents_of(x)[2:], kernel)
    total = b.emit(
        PoolOp.get(
            p_power(b, widened(b, x), p),
            "add",
            kernel,
            strides=window.strides,
            pad_low=window.pad_low,
            pad_high=window.pad_high,
            dilations=window.dilations,
        )
    )
    return cast(b, p_root(b, total, p), element_type_of(x))
