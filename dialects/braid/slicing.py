"""Checks that slices and paddings by numbers and by sizes have in common."""

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, require
from braid.dialects.braid.layout import DYNAMIC
from braid.dialects.braid.size_facts import may_be_at_most, total
from braid.support.sizes.expression import Extent, Size
from braid.support.sizes.operators import is_equal, select


def require_sliced(
    shape: Sequence[Extent],
    offsets: Sequence[Extent],
    sizes: Sequence[Extent],
    strides: Sequence[int],
) -> None:
    """Raise VerifyException unless a slice is of elements that a tensor of this shape has."""
    for values in (offsets, sizes, strides):
        require(len(values) == len(shape), f"{len(values)} entries for rank {len(shape)}")
    is_possible = all(may_be_at_most(0, size) for size in sizes) and DYNAMIC not in sizes
    require(is_possible, f"sizes are {tuple(sizes)}, expected no negatives")
    for dim, (extent, low, size, step) in enumerate(
        zip(shape, offsets, sizes, strides, strict=True)
    ):
        last = low + (size - 1) * step
        ends = [(0, low), (0, last), (low + 1, extent), (last + 1, extent)]
        if isinstance(size, Size):  # without elements, none is out of bounds
            ends = [(least, select(is_equal(size, 0), least, most)) for least, most in ends]
        inside = size == 0 or (low != DYNAMIC and all(may_be_at_most(a, b) for a, b in ends))
        require(inside, f"dim {dim}: elements {low} to {last} of {extent}")


def padded_extents(
    shape: Sequence[Extent], low: Sequence[Extent], high: Sequence[Extent]
) -> list[Extent]:
    """Return the extents with padding; raise VerifyException for lists that no padding has."""
    for values in (low, high):
        require(len(values) == len(shape), f"{len(values)} entries for rank {len(shape)}")
        is_possible = DYNAMIC not in values and all(may_be_at_most(0, v) for v in values)
        require(is_possible, f"padding is {tuple(values)}, expected no negatives")
    return [total(added) for added in zip(shape, low, high, strict=True)]


def require_padding_value(
    value: "FloatAttr[AnyFloat] | IntegerAttr[IntegerType]", input: SSAValue
) -> None:
    """Raise VerifyException unless padding has the type of the elements around which it is."""
    element_type = element_type_of(input)
    message = "the value has type {}, expected {}"
    require(value.type == element_type, message, value.type, element_type)
