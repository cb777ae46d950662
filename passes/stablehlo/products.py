"""Products and convolutions of StableHLO, which name their dims."""

import re
from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from braid.dialects.braid.base import shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.passes.stablehlo.node import StablehloNode, converter


@converter("dot_general")
def dot_general(t: StablehloNode) -> SSAValue:
    """The result has the batch dims, then the free ones of the left and of the right operand."""
    left = _matrices(t, 0, "lhs", contracted_last=True)
    right = _matrices(t, 1, "rhs", contracted_last=False)
    return t.reshape(t.emit(MatmulOp.on(left, right)), t.result_type.get_shape())


def _matrices(t: StablehloNode, index: int, side: str, *, contracted_last: bool) -> SSAValue:
    """An operand as `[batch, free, contracted]`, or with the last two dims exchanged."""
    value = t.cast(t.value(index), t.element_type)
    shape = shape_of(value)
    batch, contracted = (
        t.dims("dot_dimension_numbers", f"{side}_{kind}_dimensions")
        for kind in ("batching", "contracting")
    )
    free = [dim for dim in range(len(shape)) if dim not in batch and dim not in contracted]
    groups = [batch, free, contracted] if contracted_last else [batch, contracted, free]
    ordered = t.transpose(value, [dim for group in groups for dim in group])
    return t.reshape(ordered, [prod(shape[dim] for dim in group) for group in groups])


def _orders(t: StablehloNode) -> list[list[int]]:
    """Those of input, weight and result that braid wants: batch, channels, spatial dims."""
    text = t.text("dimension_numbers")
    match = re.fullmatch(r"\[(.*)\]x\[(.*)\]->\[(.*)\]", text)
    if match is None:
        t.fail(f"dimension_numbers is '{text}', expected '[b, 0, f]x[0, i, o]->[b, 0, f]'")
    parts = [[name.strip() for name in part.split(",")] for part in match.groups()]
    leading = (("b", "f"), ("o", "i"), ("b", "f"))
    return [
        [part.index(name) for name in (*first, *map(str, range(len(part) - 2)))]
        for part, first in zip(parts, leading, strict=True)
    ]


@converter("convolution")
def convolution(t: StablehloNode) -> SSAValue:
    """Any order of dims; dilated inputs get zeros between their elements."""
    if t.integer("batch_group_count") != 1:
        t.unsupported("its batch is in groups")
    input, weight, result = _orders(t)
    x = t.transpose(t.cast(t.value(0), t.element_type), input)
    w = t.transpose(t.cast(t.value(1), t.element_type), weight)
    spatial = len(shape_of(x)) - 2
    ones = [1] * spatial
    reversal = t.flags("window_reversal", spatial)
    w = t.reverse(w, [2 + dim for dim, is_reversed in enumerate(reversal) if is_reversed])
    x = t.spread(x, [1, 1, *t.integers("lhs_dilation", ones)])
    pads = t.integers("padding", [0] * 2 * spatial)
    low, high = pads[::2], pads[1::2]
    x = _cropped(t, x, low, high)
    y = t.emit(
        ConvOp.get(
            x,
            w,
            strides=t.integers("window_strides", ones),
            pad_low=[max(count, 0) for count in low],
            pad_high=[max(count, 0) for count in high],
            dilations=t.integers("rhs_dilation", ones),
            groups=t.integer("feature_group_count"),
        )
    )
    return t.transpose(y, [result.index(dim) for dim in range(len(result))])


def _cropped(t: StablehloNode, x: SSAValue, low: Sequence[int], high: Sequence[int]) -> SSAValue:
    """`x` without what negative padding takes away."""
    return t.pad(x, [0, 0, *(min(count, 0) for count in low)], [0, 0, *(min(c, 0) for c in high)])
