"""Products and convolutions of StableHLO, which name their dims."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from braid.dialects.braid.base import fits, shape_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.passes.stablehlo.node import StablehloNode, converter


@converter("dot_general")
def dot_general(t: StablehloNode) -> SSAValue:
    """The result has the batch dims, then the free ones of the left and of the right operand."""
    left, right = _DotDims.of(t, 0, "lhs"), _DotDims.of(t, 1, "rhs")
    if not fits(left.extents(), right.extents()):
        t.fail(f"its common dims have extents {left.extents()} and {right.extents()}")
    a = _matrices(t, left, [left.batch, left.free, left.contracted])
    b = _matrices(t, right, [right.batch, right.contracted, right.free])
    return t.reshape(t.emit(MatmulOp.on(a, b)), t.result_type.get_shape())


@dataclass(frozen=True)
class _DotDims:
    """The dims of an operand of `dot_general`."""

    operand: SSAValue
    batch: list[int]
    contracted: list[int]

    @staticmethod
    def of(t: StablehloNode, index: int, side: str) -> "_DotDims":
        field = "dot_dimension_numbers"
        batch = t.dims(field, f"{side}_batching_dimensions")
        return _DotDims(t.value(index), batch, t.dims(field, f"{side}_contracting_dimensions"))

    @property
    def free(self) -> list[int]:
        common = {*self.batch, *self.contracted}
        return [dim for dim in range(len(shape_of(self.operand))) if dim not in common]

    def extents(self) -> list[int]:
        """Those that both operands have."""
        return [shape_of(self.operand)[dim] for dim in (*self.batch, *self.contracted)]


def _matrices(t: StablehloNode, dims: _DotDims, groups: Sequence[list[int]]) -> SSAValue:
    """The operand in the type of the result, with one dim for each group."""
    value = t.cast(dims.operand, t.element_type)
    shape = shape_of(value)
    if any(len(group) > 1 for group in groups):
        shape = t.extents(value)
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
        t.unsupported("its batch is in groups", hint="slice the batch, and concatenate the results")
    input, weight, result = _orders(t)
    x = t.transpose(t.cast(t.value(0), t.element_type), input)
    w = t.transpose(t.cast(t.value(1), t.element_type), weight)
    spatial = len(shape_of(x)) - 2
    if not spatial:
        t.unsupported("it has no spatial dims", hint="write it as a dot_general")
    ones = [1] * spatial
    reversal = t.integers("window_reversal", [0] * spatial)
    w = t.reverse(w, [2 + dim for dim, is_reversed in enumerate(reversal) if is_reversed])
    x = t.spread(x, [1, 1, *t.integers("lhs_dilation", ones)])
    pads = t.integers("padding", [0] * 2 * spatial)
    low, high = [0, 0, *pads[::2]], [0, 0, *pads[1::2]]
    if min(pads, default=0) < 0:
        x, low, high = t.pad(x, low, high), [0] * len(low), [0] * len(high)
    y = t.emit(
        ConvOp.get(
            x,
            w,
            strides=t.integers("window_strides", ones),
            pad_low=low[2:],
            pad_high=high[2:],
            dilations=t.integers("rhs_dilation", ones),
            groups=t.integer("feature_group_count"),
        )
    )
    return t.transpose(y, [result.index(dim) for dim in range(len(result))])
