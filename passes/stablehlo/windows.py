"""Reductions of windows of StableHLO."""

from collections.abc import Sequence

from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.dtypes import is_float
from braid.dialects.braid.pooling import PoolOp
from braid.dialects.braid.reduction import neutral_of
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.reduction import combination, is_neutral, with_initial
from braid.support.sizes.operators import product_of

_POOLS = {"add": "add", "maximum": "max", "minimum": "max"}


@converter("reduce_window")
def reduce_window(t: StablehloNode) -> SSAValue:
    """What is between and around the elements is neutral, and the initial value is combined last.

    That is the same for maxima and minima, where it does not matter how often a value is there.
    """
    kind = combination(t)
    if kind not in _POOLS:
        t.unsupported(f"it combines windows by '{kind}'", hint="use add, maximum or minimum")
    if kind == "add" and not is_neutral(t, kind):
        t.unsupported("it sums from another value than 0 on", hint="add that afterwards")
    x = t.cast(t.value(0), t.element_type)
    neutral = neutral_of(kind, t.element_type)
    rank = len(t.extents(x))
    x = t.spread(x, t.integers("base_dilations", [1] * rank), neutral)
    pads = t.integers("padding", [0] * 2 * rank)
    low, high = pads[::2], pads[1::2]
    if min(pads, default=0) < 0:
        x, low, high = t.pad(x, low, high, neutral), [0] * rank, [0] * rank
    return with_initial(t, kind, _windows(t, kind, x, low, high))


def _windows(
    t: StablehloNode, kind: str, x: SSAValue, low: Sequence[int], high: Sequence[int]
) -> SSAValue:
    """Dims with windows become the last ones, all others channels."""
    shape = t.extents(x)
    ones = [1] * len(shape)
    window, strides = t.integers("window_dimensions"), t.integers("window_strides", ones)
    dilations = t.integers("window_dilations", ones)
    fields = zip(window, strides, low, high, strict=True)
    windowed = [dim for dim, field in enumerate(fields) if field != (1, 1, 0, 0)]
    if not windowed:
        return x
    others = [dim for dim in range(len(shape)) if dim not in windowed]
    order = [*others, *windowed]
    extents = [1, product_of(shape[dim] for dim in others), *(shape[dim] for dim in windowed)]
    pool = PoolOp.get(
        _mirrored(t, kind, t.reshape(t.transpose(x, order), extents)),
        _POOLS[kind],
        [window[dim] for dim in windowed],
        strides=[strides[dim] for dim in windowed],
        pad_low=[low[dim] for dim in windowed],
        pad_high=[high[dim] for dim in windowed],
        dilations=[dilations[dim] for dim in windowed],
    )
    y = _mirrored(t, kind, t.emit(pool))
    shaped = t.reshape(y, [*(shape[dim] for dim in others), *extents_of(y)[2:]])
    return t.transpose(shaped, [order.index(dim) for dim in range(len(order))])


def _mirrored(t: StablehloNode, kind: str, x: SSAValue) -> SSAValue:
    """For a minimum, the numbers in the opposite order, of which it is the maximum.

    `-x` would be out of range for the least integer, and in no order for unsigned ones; `~x` is
    the same distance from the other end of the range.
    """
    if kind != "minimum":
        return x
    return t.apply("neg" if is_float(element_type_of(x)) else "not", x)
