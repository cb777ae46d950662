"""Sizes that data decide: elements of tensors that are computed while the model runs."""

import math
from typing import NamedTuple

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import element_type_of, extents_of
from braid.dialects.braid.decided_sizes import DecideSizesOp
from braid.dialects.braid.elementwise import ElementwiseOp, elementwise
from braid.dialects.braid.movement import ConcatOp, ReshapeOp
from braid.dialects.braid.relayout import Array
from braid.dialects.braid.size_evaluation import as_array, fixed_shape
from braid.frontends.onnx.building.builder import MOST_SIZE_ELEMENTS, Builder
from braid.frontends.onnx.building.expressions import reshape, slice_dim
from braid.support.sizes.assumptions import Assumed
from braid.support.sizes.expression import Extent, Size, symbol


class Element(NamedTuple):
    """An element of a computed tensor, by its row-major number."""

    tensor: SSAValue
    number: int


def may_decide(b: Builder, value: SSAValue) -> bool:
    """Return whether the elements of a value can be sizes that data decide."""
    extents = extents_of(value)
    return (
        b.may_decide
        and not any(isinstance(extent, Size) for extent in extents)
        and math.prod(fixed_shape(value)) <= MOST_SIZE_ELEMENTS
    )


def elements_of(b: Builder, value: SSAValue) -> list[Extent | Element]:
    """Return the known facts about each element of an integer tensor of a fixed shape.

    Exporters concatenate known values, such as -1 and 0, with computed ones.
    """
    known = b.sizes_of(value)
    if known is not None:
        return known.reshape(-1).tolist()
    op = value.owner
    if isinstance(op, ConcatOp) and len(extents_of(value)) == 1:
        return [element for part in op.inputs for element in elements_of(b, part)]
    if isinstance(op, ReshapeOp) or (isinstance(op, ElementwiseOp) and _is_wider(op)):
        return elements_of(b, op.operands[0])
    return [Element(value, number) for number in range(math.prod(fixed_shape(value)))]


def element_value(b: Builder, element: Element) -> SSAValue:
    """Return an element as a tensor of shape `[1]`."""
    flat = reshape(b, element.tensor, [math.prod(fixed_shape(element.tensor))])
    return slice_dim(b, flat, 0, element.number, 1)


def _is_wider(op: ElementwiseOp) -> bool:
    """Return whether an op gives the integers that it takes, in at least as many bits."""
    kinds = (element_type_of(op.operands[0]), element_type_of(op.results[0]))
    return op.name == "braid.cast" and kinds in ((i32, i64), (i32, i32), (i64, i64))


def decided(b: Builder, value: SSAValue, name: str, *, most: int | None = None) -> Array:
    """Return the elements of a tensor as numbers and sizes, some of which data decide.

    These are no less than 0 in any valid run, and at most `most`. They are called `name`, with
    a number where another size has that name.
    """
    sizes = [
        _sizes_of(b, each.tensor, name, most)[each.number] if isinstance(each, Element) else each
        for each in elements_of(b, value)
    ]
    array = as_array(sizes, fixed_shape(value))
    b.treat_as(value, array)
    return array


def _sizes_of(b: Builder, tensor: SSAValue, name: str, most: int | None) -> list[Size]:
    """Return the sizes that data decide in a tensor about which nothing is known."""
    known = b.sizes_of(tensor)
    if known is not None:
        return known.reshape(-1).tolist()
    source = tensor
    if element_type_of(tensor) not in (i32, i64):
        source = b.emit(elementwise("cast", tensor, element_type=i64))
    count = math.prod(fixed_shape(tensor))
    names = [b.free_size_name(name, None if count == 1 else n) for n in range(count)]
    b.insert(DecideSizesOp.of(source, names))
    b.assumed |= dict.fromkeys(names, Assumed(maximum=most))
    sizes = [symbol(own) for own in names]
    b.treat_as(tensor, as_array(sizes, fixed_shape(tensor)))
    return sizes
