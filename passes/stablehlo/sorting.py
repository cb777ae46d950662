"""Sorts of StableHLO, whose order a region says, and the largest elements."""

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, SSAValue

from braid.dialects.braid.base import (
    element_type_of,
    extents_of,
    require_dim,
    shape_of,
    tensor_type,
)
from braid.dialects.braid.constants import IotaOp
from braid.dialects.braid.dtypes import i1, is_float
from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.braid.indexing import GatherElementsOp
from braid.dialects.braid.reduction import ReduceOp
from braid.dialects.braid.sorting import TopKOp
from braid.passes.stablehlo.bits import in_total_order
from braid.passes.stablehlo.comparators import Comparator, Key
from braid.passes.stablehlo.node import StablehloNode, converter
from braid.passes.stablehlo.regions import Elements, region_of, returned_by

_MOST_COMPARED = 1 << 24
"""The most pairs of elements that are compared to sort in an order of no keys."""

_BYTE = IntegerType(8)


@converter("sort")
def sort(t: StablehloNode) -> list[SSAValue]:
    """Sort by keys, the last one first and each time stably; by any other order through ranks."""
    operands, dim = list(t.op.operands), t.integer("dimension")
    if not operands:
        t.fail("expected at least one operand")
    block, shape = region_of(t, 2 * len(operands)), extents_of(operands[0])
    require_dim(dim, len(shape))
    if any(extents_of(operand) != shape for operand in operands):
        t.fail("its operands have different shapes")
    (is_before,) = returned_by(block)
    if t.fixed(shape[dim]) < 2 or 0 in shape:
        return operands
    keys = Comparator(t).keys(is_before)
    order = _ranked(t, block, dim) if keys is None else _by_keys(t, block, keys, dim)
    return [_in_order(t, operand, order, dim) for operand in operands]


def _in_order(t: StablehloNode, value: SSAValue, order: SSAValue, dim: int) -> SSAValue:
    owner = value.owner
    if isinstance(owner, IotaOp) and owner.dim.value.data == dim:
        return t.cast(order, element_type_of(value))
    return t.emit(GatherElementsOp.get(value, order, dim))


def _by_keys(t: StablehloNode, block: Block, keys: Sequence[Key], dim: int) -> SSAValue:
    """Return the places of the elements in order, as i64."""
    known: dict[SSAValue, SSAValue] = {arg: t.value(arg.index // 2) for arg in block.args}
    elements = Elements(t, known, extents_of(t.value(0)))
    order: SSAValue | None = None
    for key in reversed(keys):
        value = elements.repeated(key.value)
        value = in_total_order(t, value) if key.is_total else value
        value = t.cast(value, _BYTE) if element_type_of(value) == i1 else value
        if order is None:
            order = _sorted(t, value, dim, largest=key.is_descending)
        else:
            moved = t.emit(GatherElementsOp.get(value, order, dim))
            places = _sorted(t, moved, dim, largest=key.is_descending)
            order = t.emit(GatherElementsOp.get(order, places, dim))
    assert order is not None, "an order has at least one key"
    return order


def _sorted(t: StablehloNode, value: SSAValue, dim: int, *, largest: bool) -> SSAValue:
    extent = t.fixed(extents_of(value)[dim])
    return t.insert(TopKOp.get(value, extent, dim, largest=largest))[1]


def _ranked(t: StablehloNode, block: Block, dim: int) -> SSAValue:
    """Return the places of the elements in the order of any region.

    The rank of an element is the number of elements that the region orders before it, or that are
    equal and precede it. Compares each with each other one.
    """
    shape = t.numbers(t.value(0))
    extent = shape[dim]
    pairs = [*shape[:dim], extent, extent, *shape[dim + 1 :]]
    if np.prod(pairs, dtype=np.float64) > _MOST_COMPARED:
        t.unsupported(
            f"its region compares no keys, for which dim {dim} of {list(shape)} is too large",
            hint="compare values of the elements by LT or GT; the first ones that differ decide",
        )
    own, other = list(pairs), list(pairs)
    own[dim + 1], other[dim] = 1, 1
    these, those = (
        [t.broadcast(t.reshape(value, side), pairs) for value in t.op.operands]
        for side in (own, other)
    )
    is_before, is_after = (
        Elements(
            t,
            dict(zip((*block.args[::2], *block.args[1::2]), (*first, *second), strict=True)),
            pairs,
        ).repeated(returned_by(block)[0])
        for first, second in ((those, these), (these, those))
    )
    here, there = (t.emit(IotaOp.of(d, tensor_type(_INDEX, pairs))) for d in (dim, dim + 1))
    is_earlier = t.apply("and", t.apply("not", is_after), t.apply("lt", there, here))
    before = t.cast(t.apply("or", is_before, is_earlier), _INDEX)
    counts = t.reshape(t.emit(ReduceOp.get(before, "add", [dim + 1])), shape)
    return _sorted(t, counts, dim, largest=False)


_INDEX = IntegerType(32)


def first_sorted(t: StablehloNode, value: SSAValue, dim: int, count: int) -> SSAValue | None:
    """Return the first `count` elements by one sort key, without sorting the others.

    None for any other value.
    """
    owner = value.owner
    if isinstance(owner, GatherElementsOp):
        places = _first_places(t, owner.indices, dim, count)
        return None if places is None else t.emit(GatherElementsOp.get(owner.data, places, dim))
    if isinstance(owner, ElementwiseOp) and owner.ROW.name == "cast":
        places = _first_places(t, owner.inputs[0], dim, count)
        return None if places is None else t.cast(places, element_type_of(value))
    return None


def _first_places(t: StablehloNode, order: SSAValue, dim: int, count: int) -> SSAValue | None:
    owner = order.owner
    if not isinstance(owner, TopKOp) or owner.dim.value.data != dim or order != owner.indices:
        return None
    largest = bool(owner.largest.value.data)
    return t.insert(TopKOp.get(owner.input, count, dim, largest=largest))[1]


@converter("top_k")
def top_k(t: StablehloNode) -> Sequence[SSAValue]:
    """Return the `k` largest elements of the last dim, in the total order of floats, and their
    places as i32.
    """
    return _extreme(t, t.integer("k"), largest=True)


def called_top_k(t: StablehloNode) -> Sequence[SSAValue]:
    """Convert JAX's call of a selection of the largest or the smallest elements of the last dim."""
    options = t.options("mhlo.attributes")
    if "k" not in options:
        t.fail("expected 'mhlo.attributes' with a number 'k'")
    return _extreme(t, options["k"], largest=bool(options.get("largest", 1)))


def _extreme(t: StablehloNode, k: int, *, largest: bool) -> Sequence[SSAValue]:
    x, dim = t.value(0), len(shape_of(t.value(0))) - 1
    values, places = t.insert(TopKOp.get(in_total_order(t, x), k, dim, largest=largest))
    if is_float(element_type_of(x)):
        values = t.emit(GatherElementsOp.get(x, places, dim))
    return [values, t.cast(places, _INDEX)]
