"""Matrix products as contractions: which groups are one, and their loops in chosen layouts.

A matmul may read slabs of a table, such as weights of experts, directly instead of through a
gather, so that they are not copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import BlockArgument, Operation, SSAValue

from braid.analysis.nests.contraction import Contraction, Product, Slabs, has_types
from braid.analysis.nests.dims import LoopDim, Stored, is_repeated, merged
from braid.analysis.nests.pointwise import ExtentsOf, pointwise
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.structure.conversions import narrow_source
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import is_unsigned
from braid.dialects.braid.indexing import GatherBase, GatherNdOp, slab_rank
from braid.dialects.braid.layout import DYNAMIC, Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class SlabGather:
    """`op` takes matrices `table[indices[…]]` of a table [slabs, k, n], both block arguments."""

    op: GatherBase
    table: BlockArgument
    indices: BlockArgument

    def stored(self, stride: int) -> Slabs:
        """Return the table whose slabs are `stride` elements apart."""
        count = shape_of(self.table)[0]
        return Slabs(self.indices.index, count, stride, is_unsigned(element_type_of(self.indices)))

    def index_strides(self, choice: LayoutChoice) -> tuple[Extent, ...]:
        """Return the elements from one stored index to the next, by batch dim of the product."""
        shape = shape_of(self.indices)
        strides = choice.operands[self.indices.index].storage_strides(shape)
        if isinstance(self.op, GatherNdOp):
            shape, strides = shape[:-1], strides[:-1]
        return _repeated(shape, strides)


@dataclass(frozen=True)
class MatrixProduct(Product):
    """A product of matrices, in batches.

    With `slabs`, `right` is the table from which the right operand is gathered; if it is `widened`,
    that operand is `right` converted to f32.
    """

    slabs: SlabGather | None
    widened: bool

    @property
    def has_one_right(self) -> bool:
        """Return whether all batches have the same right operand."""
        return self.slabs is None and all(extent == 1 for extent in shape_of(self.right)[:-2])


def matrix_product(
    group: FusedOp, accumulates: bool = False, *, is_open: bool = False
) -> MatrixProduct | None:
    """Return the only product of the group: not empty, its right operand read by nothing else.

    Its element type is f32 or f64, or, if it `accumulates`, a narrower type with a wider
    accumulator. The right operand of one of f32 may be gathered from a table, or be converted from
    fewer bits.
    """
    products = [op for op in group.body.block.ops if isinstance(op, MatmulOp)]
    if len(products) != 1:
        return None
    op = products[0]
    left, right = op.lhs, op.rhs
    slabs = None if accumulates else _slab_gather(right)
    widening = None if accumulates else _widening(right)
    apart = widening
    if slabs is not None:
        right, apart = slabs.table, slabs.op
    elif widening is not None:
        right = widening.operands[0]
    if not isinstance(left, BlockArgument) or not isinstance(right, BlockArgument) or left is right:
        return None
    if not has_types(op, accumulates):
        return None
    points = pointwise(group, op, apart=apart, is_open=is_open)
    if points is None or right in points.leaves or (accumulates and left in points.leaves):
        return None
    if slabs is not None and slabs.indices in points.leaves:
        return None
    extents = (*shape_of(left), *shape_of(right))
    if 0 in extents or not (is_open or DYNAMIC not in extents):
        return None
    sizes = (1, points.shape[-1], shape_of(left)[-1])
    return MatrixProduct(op, left, right, points, *sizes, slabs, widening is not None)


def _widening(value: SSAValue) -> Operation | None:
    """Return the op that converts `value` from fewer bits to f32, for the product alone."""
    op = value.owner
    if not isinstance(op, Operation) or not value.has_one_use():
        return None
    return None if narrow_source(op) is None else op


def _slab_gather(value: SSAValue) -> SlabGather | None:
    """Return the gather of `value` from a table if it gathers whole slabs and has a single reader.

    The result is None for a gather along another dim, with batch dims, or with tuples of several
    indices.
    """
    op = value.owner
    if not isinstance(op, GatherBase) or slab_rank(value) != 2 or not value.has_one_use():
        return None
    table, indices = op.data, op.indices
    if not isinstance(table, BlockArgument) or not isinstance(indices, BlockArgument):
        return None
    return SlabGather(op, table, indices) if len(shape_of(table)) == 3 else None


def matmul_contraction(
    product: MatrixProduct, choice: LayoutChoice, block: int, lanes: int, step: int = 1
) -> Contraction:
    """Return the contraction in these layouts, for column blocks of `block` columns.

    Vectors have `lanes` columns. A step of the reduction is over `step` rows of B, which are
    neighbours in its blocks.
    """
    found = open_contraction(product, choice, block, lanes, step, shape_of)
    assert found is not None, "a static product whose extents do not fit"
    return cast(Contraction, found)


def open_contraction(
    product: MatrixProduct,
    choice: LayoutChoice,
    block: int,
    lanes: int,
    step: int,
    extents_of: ExtentsOf,
) -> Contraction[Extent] | None:
    """Return the contraction as `matmul_contraction` does, with extents from `extents_of`.

    None where the operands are not known to fit each other at all sizes.
    """
    a, b = (Stored(extents_of(v), choice.operands[v.index]) for v in (product.left, product.right))
    *leaves, result = product.points.stored(choice, extents_of)
    shape = result.shape
    fits = is_repeated(a.shape[:-1], shape[:-1])
    fits = fits and all(is_repeated(leaf.shape, shape) for leaf in leaves)
    if not fits or a.shape[-1] != b.shape[-2] or b.shape[-1] != shape[-1]:
        return None
    stored, slabs = _strides_of(b), None
    if product.slabs is not None and isinstance(stored[0], int):
        slabs = product.slabs.stored(stored[0])
        b_strides = (*product.slabs.index_strides(choice), 0)
    elif product.slabs is None and is_repeated(b.shape[:-2], shape[:-2]):
        b_strides = (*_repeated(b.shape, stored)[: len(shape) - 2], 0)
    else:
        return None
    strides = [_repeated(t.shape, t.layout.storage_strides(t.shape)) for t in (a, *leaves)]
    tensors = (strides[0], b_strides, *strides[1:], result.layout.storage_strides(shape))
    dims = [
        LoopDim[Extent](extent, tuple(strides[dim] for strides in tensors))
        for dim, extent in enumerate(shape[:-1])
    ]
    outer = merged(dims)
    row = LoopDim[Extent](1, (0,) * len(tensors))
    if outer and outer[-1].strides[1] == 0:
        outer, row = outer[:-1], outer[-1]
    steps = -(-a.shape[-1] // step)
    column_stride, k_stride, block_stride = _strides_of_right(b.layout, stored, block, step, steps)
    return Contraction(
        product,
        outer=outer,
        row=row,
        reduction=(LoopDim[Extent](steps, (step, k_stride)),),
        columns=shape[-1],
        columns_padded=not b.layout.is_permutation,
        block_stride=block_stride,
        column_stride=column_stride,
        vector_steps=(*(lanes * cast(int, leaf[-1]) for leaf in strides[1:]), lanes),
        slabs=slabs,
    )


def _strides_of_right(
    layout: Layout, stored: Sequence[Extent], block: int, step: int, steps: Extent
) -> tuple[Extent, Extent, Extent]:
    """Return the elements of B to the next column, step of the reduction and column block."""
    if has_rows(layout):
        return 1, stored[-2], block
    if layout.is_permutation:
        k_stride, column_stride = stored[-2:]
        return column_stride, k_stride, block * column_stride
    return 1, block * step, block * step * steps


def has_rows(layout: Layout) -> bool:
    """Return whether elements of a row of a matrix lie next to each other, in no blocks."""
    return layout.is_permutation and layout.permutation[-1] == layout.rank - 1


def _strides_of(tensor: Stored[Extent]) -> tuple[Extent, ...]:
    """Return the strides along logical dims if there are no blocks, else along those of storage."""
    layout = tensor.layout.untransformed
    strides = layout.storage_strides(tensor.shape)
    if not layout.is_permutation:
        return strides
    by_dim = dict(zip(layout.permutation, strides, strict=True))
    return tuple(by_dim[dim] for dim in range(layout.rank))


def _repeated(shape: Sequence[Extent], strides: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the strides, with 0 for the dims that are repeated."""
    return tuple(0 if e == 1 else s for e, s in zip(shape, strides, strict=False))
