"""Reductions of windows of StableHLO."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import neutral_of
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.reduction import (
    called_combination,
    combination,
    is_neutral,
    with_initial,
)
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


@converter("reduce_window")
def reduce_window(t: StablehloNode) -> SSAValue:
    """Convert windows that are known."""
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
    return _reduced(t, combination(t), windows)


def dynamic_reduce_window(t: StablehloNode) -> SSAValue:
    """Convert JAX's call of a reduction in windows, whose padding may be sizes.

    Operands are the tensor, the initial value, and what `reduce_window` has as attributes. A
    function of the module combines two elements.
    """
    sizes, strides, steps, dilations = (
        [t.fixed(extent) for extent in t.size_values(index)] for index in (2, 3, 4, 5)
    )
    pads = t.size_values(6)
    windows = _Windows(sizes, strides, steps, dilations, pads[::2], pads[1::2])
    return _reduced(t, called_combination(t), windows)


def _reduced(t: StablehloNode, kind: str, windows: _Windows) -> SSAValue:
    """Return the reduction of each window, in the type of the result.

    What is between and around the elements is neutral, and the initial value is combined last.
    That is the same for maxima and minima, where it does not matter how often a value is there.
    """
    if kind not in _POOLS:
        t.unsupported(f"it combines windows by '{kind}'", hint="use add, maximum or minimum")
    if kind == "add" and not is_neutral(t, kind):
        t.unsupported("it sums from another value than 0 on", hint="add that afterwards")
    neutral = neutral_of(kind, t.element_type)
    x = t.spread(t.cast(t.value(0), t.element_type), windows.steps, neutral)
    x, low, high = t.padded(x, windows.low, windows.high, neutral)
    return with_initial(t, kind, _pooled(t, kind, x, windows, low, high))


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
    """Return numbers in the opposite order for a minimum, of which it is the maximum.

    `-x` would be out of range for the least integer, and in no order for unsigned ones; `~x` is
    the same distance from the other end of the range.
    """
    if kind != "minimum":
        return x
    return t.apply("neg" if is_float(element_type_of(x)) else "not", x)
