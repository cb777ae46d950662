"""`braid.reshape` as `tensor.collapse_shape` and `tensor.expand_shape`."""

from collections.abc import Sequence
from itertools import pairwise

from xdsl.builder import Builder
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue

from braid.dialects.braid.base import AnyTensor
from braid.lowering.common.element_types import tensor_type_of

Groups = list[list[int]]


def reshaped(builder: Builder, source: SSAValue, result_type: AnyTensor) -> SSAValue:
    """Return the row-major tensor `source` under another shape, collapsed and expanded in groups of
    dims.

    The shapes have common products at the group's ends: [2, 3, 4] to [6, 2, 2] collapses to
    [6, 4] and expands from there.
    """
    source_type = tensor_type_of(source)
    before, after = source_type.get_shape(), result_type.get_shape()
    collapse, expand, extents = common_groups(before, after)
    element_type = source_type.element_type
    if len(extents) != len(before):
        source = builder.insert(
            tensor.CollapseShapeOp(
                operands=[source],
                result_types=[TensorType(element_type, extents)],
                properties={"reassociation": _attribute(collapse)},
            )
        ).result
    if len(extents) != len(after):
        source = builder.insert(
            tensor.ExpandShapeOp(source, (), _attribute(expand), after, result_type)
        ).result
    return source


def common_groups(before: Sequence[int], after: Sequence[int]) -> tuple[Groups, Groups, list[int]]:
    """Return the dims of both shapes in groups of equal products, and the products.

    Without elements there is one group of everything.
    """
    if 0 in before:
        return _one(before), _one(after), [0] if before and after else []
    left, right = _cuts(before), _cuts(after)
    common = sorted(left.keys() & right.keys())
    bounds = [(left[c], right[c]) for c in common]
    bounds[-1] = (len(before), len(after))
    collapse = [list(range(a, b)) for (a, _), (b, _) in pairwise(bounds)]
    expand = [list(range(a, b)) for (_, a), (_, b) in pairwise(bounds)]
    return collapse, expand, [q // p for p, q in pairwise(common)]


def _one(shape: Sequence[int]) -> Groups:
    return [list(range(len(shape)))] if shape else []


def _cuts(shape: Sequence[int]) -> dict[int, int]:
    """Return a map from the product of the dims before a position to the first such position."""
    cuts, product = {1: 0}, 1
    for position, extent in enumerate(shape, 1):
        product *= extent
        cuts.setdefault(product, position)
    return cuts


def _attribute(groups: Groups) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr(ArrayAttr(IntegerAttr(dim, i64) for dim in group) for group in groups)
