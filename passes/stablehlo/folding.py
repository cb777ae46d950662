"""Reductions by any region: it is applied to whole tensors, to halves of the elements each time.

StableHLO leaves open in which order elements are combined, but for those next to each other.
"""

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue

from braid.dialects.braid.base import extents_of
from braid.dialects.braid.movement import ConcatOp
from braid.passes.stablehlo.node import StablehloNode
from braid.passes.stablehlo.regions import Elements, returned_by
from braid.support.sizes.operators import product_of


def folded(
    t: StablehloNode, block: Block, values: Sequence[SSAValue], dims: Sequence[int]
) -> list[SSAValue]:
    """Return `values` with `dims` reduced, which go away, from the initial values of `t` on."""
    shape = t.extents(values[0])
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    extents = [shape[dim] for dim in kept]
    count = t.fixed(product_of(shape[dim] for dim in dims))
    order = [*sorted(dims), *kept]
    rows = [t.reshape(t.transpose(value, order), [count, *extents]) for value in values]
    initial = [t.repeat(value, extents) for value in t.op.operands[len(values) :]]
    if count == 0:
        return initial
    while count > 1:
        pairs = count // 2
        left, right = ([t.part(row, 0, start, pairs, 2) for row in rows] for start in (0, 1))
        combined = combine(t, block, left, right)
        if count % 2:
            last = [t.part(row, 0, count - 1, 1) for row in rows]
            combined = [
                t.emit(ConcatOp.get([value, rest], 0))
                for value, rest in zip(combined, last, strict=True)
            ]
        rows, count = combined, pairs + count % 2
    return combine(t, block, initial, [t.reshape(row, extents) for row in rows])


def combine(
    t: StablehloNode, block: Block, left: Sequence[SSAValue], right: Sequence[SSAValue]
) -> list[SSAValue]:
    """Return the results of a region on two values each, all of one shape."""
    shape = extents_of(left[0])
    elements = Elements(t, dict(zip(block.args, (*left, *right), strict=True)), shape)
    return [elements.repeated(value) for value in returned_by(block)]
