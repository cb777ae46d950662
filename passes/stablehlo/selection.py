"""`select_and_scatter` of StableHLO: elements of the source go to what windows choose."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Block, SSAValue

from braid.dialects.braid.base import tensor_type
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i64
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.scattering import ScatterNdOp
from braid.passes.stablehlo.folding import combine
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.regions import sole_block
from braid.passes.stablehlo.scattering import refuse_update, update_kind

_MOST_PLACES = 1024
"""The most elements of a window: each is compared by ops of its own."""


@converter("select_and_scatter")
def select_and_scatter(t: StablehloNode) -> SSAValue:
    """Compare the elements of all windows one by one, and scatter to the chosen ones."""
    value, source, initial = (t.value(index) for index in range(3))
    shape = t.numbers(value)
    ones, pads = [1] * len(shape), t.integers("padding", [0] * 2 * len(shape))
    windows = _Windows(
        shape,
        t.integers("window_dimensions", ones),
        t.integers("window_strides", ones),
        pads[::2],
        t.numbers(source),
    )
    if min((*windows.sizes, *windows.strides), default=1) < 1:
        t.fail(f"its windows are {list(windows.sizes)}, expected positive sizes and distances")
    if math.prod(windows.sizes) > _MOST_PLACES:
        t.unsupported(
            f"its windows are {list(windows.sizes)}, expected at most {_MOST_PLACES} elements",
            hint="take smaller windows",
        )
    blocks = [sole_block(t, region, 2) for region in t.op.regions]
    kind = update_kind(t, blocks[1], 0)
    if kind not in ("add", "mul", "maximum", "minimum"):
        refuse_update(t, "combine by one of add, maximum, minimum and multiply")
    total, count = math.prod(shape), math.prod(windows.counts)
    target = t.repeat(initial, [total])
    if total == 0 or count == 0:
        return t.reshape(target, shape)
    places = _chosen(t, blocks[0], value, windows)
    target = t.pad(target, [0], [1])
    updates = t.reshape(source, [count])
    scattered = ScatterNdOp.get(target, t.reshape(places, [count, 1]), updates, kind)
    return t.reshape(t.part(t.emit(scattered), 0, 0, total), shape)


@dataclass(frozen=True)
class _Windows:
    """The windows in a tensor of `shape`: by dim, and how many there are."""

    shape: Sequence[int]
    sizes: Sequence[int]
    strides: Sequence[int]
    low: Sequence[int]
    counts: Sequence[int]

    def starts(self, dim: int) -> Array:
        """Return where windows start along a dim: before 0 in the padding."""
        return np.arange(self.counts[dim]) * self.strides[dim] - self.low[dim]

    def are_inside(self, place: Sequence[int]) -> list[Array]:
        """Return by dim of which windows this place is an element, and not padding."""
        starts = [self.starts(dim) + offset for dim, offset in enumerate(place)]
        return [(s >= 0) & (s < extent) for s, extent in zip(starts, self.shape, strict=True)]

    def pitch(self, dim: int) -> int:
        """Return how far elements along a dim are apart."""
        return math.prod(self.shape[dim + 1 :])


def _chosen(t: StablehloNode, block: Block, value: SSAValue, windows: _Windows) -> SSAValue:
    """Return the index of the chosen element of each window, one past the last if it has none."""
    dims = range(len(windows.shape))
    high = [
        (count - 1) * stride + size - low - extent
        for count, stride, size, low, extent in zip(
            windows.counts, windows.strides, windows.sizes, windows.low, windows.shape, strict=True
        )
    ]
    padded = t.pad(value, windows.low, high)
    best = chosen = is_found = None
    for place in itertools.product(*map(range, windows.sizes)):
        here = padded
        for dim in dims:
            here = t.part(here, dim, place[dim], windows.counts[dim], windows.strides[dim])
        offset = sum(n * windows.pitch(dim) for dim, n in enumerate(place))
        number = t.constant(np.full([1] * len(dims), offset, np.int64))
        is_inside = _mask(t, windows.are_inside(place))
        if best is None or chosen is None:
            best, chosen, is_found = here, t.broadcast(number, windows.counts), is_inside
            continue
        is_next = t.apply("not", combine(t, block, [best], [here])[0])
        if is_found is not None:
            is_next = t.apply("or", is_next, t.apply("not", is_found))
        if is_inside is not None:
            is_next = t.apply("and", is_next, is_inside)
            is_found = None if is_found is None else t.apply("or", is_found, is_inside)
        else:
            is_found = None
        best = t.apply("select", is_next, here, best)
        chosen = t.apply("select", is_next, number, chosen)
    assert chosen is not None, "a window has elements"
    for dim in dims:
        counted = t.emit(IotaOp.of(dim, tensor_type(i64, windows.counts)))
        pitch, low = windows.pitch(dim), windows.low[dim]
        scaled = t.apply("mul", counted, t.scalar(windows.strides[dim] * pitch, chosen))
        start = t.apply("sub", scaled, t.scalar(low * pitch, chosen))
        chosen = t.apply("add", chosen, start)
    if is_found is None:
        return chosen
    return t.apply("select", is_found, chosen, t.scalar(math.prod(windows.shape), chosen))


def _mask(t: StablehloNode, parts: Sequence[Array]) -> SSAValue | None:
    """Return where all masks along one dim each are true, None if that is everywhere."""
    mask: SSAValue | None = None
    for dim, part in enumerate(parts):
        if not part.all():
            along = t.constant(part.reshape([-1 if d == dim else 1 for d in range(len(parts))]))
            mask = along if mask is None else t.apply("and", mask, along)
    return mask
