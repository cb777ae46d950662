"""Reductions of windows of StableHLO."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import neutral_of
from braid.dialects.braid.scan import ScanOp
from braid.passes.stablehlo.folding import combine
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.reduction import (
    called_combination,
    combinations,
    is_neutral,
    with_initial,
)
from braid.passes.stablehlo.regions import region_of
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import product_of

_POOLS = {"add": "add", "maximum": "max", "minimum": "max"}


@dataclass(frozen=True)
class _Windows:
    """The windows of each dim of an operand, and how many elements are added around it."""

    sizes: Sequence[int]
    strides: Sequence[int]
    steps: Sequence[int]
    dilations: Sequence[int]
    low: Sequence[Extent]
    high: Sequence[Extent]

    def scan(self, shape: Sequence[Extent]) -> tuple[int, bool] | None:
        """Return the dim in which each window is all elements up to one, and whether it is those
        from one on; None for windows of other elements.
        """
        ones = [1] * len(shape)
        if [*self.strides, *self.steps, *self.dilations] != ones * 3:
            return None
        fields = zip(self.sizes, self.low, self.high, strict=True)
        windowed = [dim for dim, field in enumerate(fields) if field != (1, 0, 0)]
        if len(windowed) != 1 or self.sizes[windowed[0]] != shape[windowed[0]]:
            return None
        (dim,) = windowed
        sides, rest = (self.low[dim], self.high[dim]), self.sizes[dim] - 1
        return (dim, sides == (0, rest)) if sides in ((rest, 0), (0, rest)) else None


@converter("reduce_window")
def reduce_window(t: StablehloNode) -> Sequence[SSAValue]:
    """Pool by sums, maxima and minima; combine the elements of windows by any other region."""
    rank = len(t.extents(t.value(0)))
    ones, pads = [1] * rank, t.integers("padding", [0] * 2 * rank)
    windows = _Windows(
        t.integers("window_dimensions"),
        t.integers("window_strides", ones),
        t.integers("base_dilations", ones),
        t.integers("window_dilations", ones),
        pads[::2],
        pads[1::2],
    )
    if min((*windows.sizes, *windows.strides, *windows.dilations), default=1) < 1:
        t.fail(f"its windows are {list(windows.sizes)}, expected positive sizes and distances")
    count = len(t.op.results)
    block = region_of(t, 2 * count)
    values = [
        t.cast(t.value(index), element_type_of(result)) for index, result in enumerate(t.op.results)
    ]
    initial = [t.value(count + index) for index in range(count)]
    if (scanned := _scanned(t, combinations(block), values, initial, windows)) is not None:
        return scanned
    kinds = [
        kind if kind in _POOLS and (kind != "add" or is_neutral(t, kind, value)) else None
        for kind, value in zip(combinations(block), initial, strict=True)
    ]
    if None in kinds:
        return _folded(t, block, values, windows)
    return [
        _reduced(t, kind, value, first, windows)
        for kind, value, first in zip(kinds, values, initial, strict=True)
        if kind is not None
    ]


def _scanned(
    t: StablehloNode,
    kinds: Sequence[str | None],
    values: Sequence[SSAValue],
    initial: Sequence[SSAValue],
    windows: _Windows,
) -> list[SSAValue] | None:
    """Return cumulative reductions from neutral values on, None if the windows have another
    form."""
    found = windows.scan(t.extents(values[0]))
    scans: list[SSAValue] = []
    for kind, value, first in zip(kinds, values, initial, strict=True):
        if found is None or kind is None or not is_neutral(t, kind, first):
            return None
        dim, is_reverse = found
        scans.append(t.emit(ScanOp.get(value, kind, dim, reverse=is_reverse)))
    return scans


def _folded(
    t: StablehloNode, block: Block, values: Sequence[SSAValue], windows: _Windows
) -> list[SSAValue]:
    """Return the reduction of each window by any region, from padding with the initial values on.

    Windows of two elements are combined from elements, those of four from windows of two, and so
    on.
    """
    initial = t.op.operands[len(values) :]
    empty = [t.empty(index) for index in range(len(values))]
    if None not in empty:
        return [value for value in empty if value is not None]
    rows = [
        t.pad_by(value, number, windows.low, windows.high, windows.steps)
        for value, number in zip(values, initial, strict=True)
    ]
    for dim in reversed(range(len(windows.sizes))):
        rows = _along(t, block, rows, dim, windows)
    first = [t.repeat(value, extents_of(rows[0])) for value in initial]
    return combine(t, block, first, rows)


def _along(
    t: StablehloNode, block: Block, rows: Sequence[SSAValue], dim: int, windows: _Windows
) -> list[SSAValue]:
    """Return the combined windows along one dim."""
    size, step = windows.sizes[dim], windows.dilations[dim]
    found, bits = list(rows), f"{size:b}"[1:]
    covered = 1
    for bit in bits:
        found = _joined(t, block, found, found, dim, covered * step)
        covered *= 2
        if bit == "1":
            found = _joined(t, block, found, rows, dim, covered * step)
            covered += 1
    return [_strided(t, value, dim, windows.strides[dim]) for value in found]


def _joined(
    t: StablehloNode,
    block: Block,
    left: Sequence[SSAValue],
    right: Sequence[SSAValue],
    dim: int,
    offset: int,
) -> list[SSAValue]:
    """Return each element on the left combined with that on the right which is `offset` on."""
    count = t.fixed(extents_of(right[0])[dim]) - offset
    return combine(
        t,
        block,
        [t.part(value, dim, 0, count) for value in left],
        [t.part(value, dim, offset, count) for value in right],
    )


def _strided(t: StablehloNode, value: SSAValue, dim: int, step: int) -> SSAValue:
    count = -(-t.fixed(extents_of(value)[dim]) // step)
    return value if step == 1 else t.part(value, dim, 0, count, step)


def dynamic_reduce_window(t: StablehloNode) -> SSAValue:
    """Convert JAX's call of a reduction in windows, whose padding may be sizes.

    Operands are the tensor, the initial value, and the attributes of `reduce_window`. A
    function of the module combines two elements.
    """
    sizes, strides, steps, dilations = (
        [t.fixed(extent) for extent in t.size_values(index)] for index in (2, 3, 4, 5)
    )
    pads = t.size_values(6)
    windows = _Windows(sizes, strides, steps, dilations, pads[::2], pads[1::2])
    kind, initial = called_combination(t), t.value(1)
    if kind not in _POOLS:
        t.unsupported(f"it combines windows by '{kind}'", hint="use add, maximum or minimum")
    if kind == "add" and not is_neutral(t, kind, initial):
        t.unsupported("it sums from another value than 0 on", hint="add that afterwards")
    return _reduced(t, kind, t.cast(t.value(0), t.element_type), initial, windows)


def _reduced(
    t: StablehloNode, kind: str, value: SSAValue, initial: SSAValue, windows: _Windows
) -> SSAValue:
    """Return the reduction of each window.

    Padding and dilation are neutral, and the initial value is combined last.
    That is the same for maxima and minima, where it does not matter how often a value is there.
    """
    neutral = neutral_of(kind, element_type_of(value))
    x = t.spread(value, windows.steps, neutral)
    x, low, high = t.padded(x, windows.low, windows.high, neutral)
    return with_initial(t, kind, _pooled(t, kind, x, windows, low, high), initial)


def _pooled(
    t: StablehloNode,
    kind: str,
    x: SSAValue,
    windows: _Windows,
    low: Sequence[int],
    high: Sequence[int],
) -> SSAValue:
    """Move the dims with windows to the end, all others to channels."""
    shape = t.extents(x)
    fields = zip(windows.sizes, windows.strides, low, high, strict=True)
    windowed = [dim for dim, field in enumerate(fields) if field != (1, 1, 0, 0)]
    if not windowed:
        return x
    others = [dim for dim in range(len(shape)) if dim not in windowed]
    order = [*others, *windowed]
    extents = [1, product_of(shape[dim] for dim in others), *(shape[dim] for dim in windowed)]
    pool = PoolOp.get(
        _mirrored(t, kind, t.reshape(t.transpose(x, order), extents)),
        _POOLS[kind],
        [windows.sizes[dim] for dim in windowed],
        strides=[windows.strides[dim] for dim in windowed],
        pad_low=[low[dim] for dim in windowed],
        pad_high=[high[dim] for dim in windowed],
        dilations=[windows.dilations[dim] for dim in windowed],
    )
    y = _mirrored(t, kind, t.emit(pool))
    shaped = t.reshape(y, [*(shape[dim] for dim in others), *extents_of(y)[2:]])
    return t.transpose(shaped, [order.index(dim) for dim in range(len(order))])


def _mirrored(t: StablehloNode, kind: str, x: SSAValue) -> SSAValue:
    """Return numbers in reverse order, so that a minimum becomes a maximum.

    `-x` would be out of range for the least integer, and in no order for unsigned ones; `~x` is
    the same distance from the other end of the range.
    """
    if kind != "minimum":
        return x
    return t.apply("neg" if is_float(element_type_of(x)) else "not", x)
