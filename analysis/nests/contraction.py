"""Contractions: sums of products of two tensors, with elementwise ops on the result."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, cast

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import BlockArgument, SSAValue

from braid.analysis.nests.dims import KnownOrOpen, LoopDim
from braid.analysis.nests.pointwise import InPlace, Pointwise
from braid.analysis.nests.windows import WindowDim
from braid.dialects.braid.base import element_type_of
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.support.sizes.expression import Extent, ExtentT
from braid.support.sizes.operators import product_of


@dataclass(frozen=True)
class Product:
    """A product of two block arguments, `left` and `right`, and the elementwise ops on its result.

    Columns and depth are divided into `groups`, each a product of its own with `columns` columns
    of the result and `depth` rows of the right operand.
    """

    op: MatmulOp | ConvOp
    left: BlockArgument
    right: BlockArgument
    points: Pointwise
    groups: int
    columns: int
    depth: int

    def has_whole(self, columns: int, step: int) -> bool:
        """Return whether no block of columns, and no step of rows, is of two groups."""
        whole = self.columns % columns == self.depth % step == 0
        return self.groups == 1 or whole


@dataclass(frozen=True)
class Slabs:
    """A stored table of right operands: B is slab number `indices[position]` of it.

    `indices` is the number of a kernel's argument. The table has `count` slabs that are `stride`
    elements apart; `is_unsigned` says how indices are widened.
    """

    indices: int
    count: int
    stride: int
    is_unsigned: bool


@dataclass(frozen=True)
class Framed:
    """A dim of windows with zeros around the image: number `reduced` of the reduction.

    `dim` is that of the positions, counted over the outer dims and then the row dim.
    """

    dim: int
    reduced: int
    window: WindowDim


@dataclass(frozen=True)
class Contraction(Generic[KnownOrOpen]):
    """C[outer, row, n] = epilogue(Σ A[outer, row, k] · B[outer, k, n]).

    A and B are the left and the right operand of `product`, or the other way round if it is
    `turned`. `outer` and `row` dims have strides for A, B, every leaf of the epilogue, and C, in
    this order; `row` advances B by 0. `reduction` dims have strides in A and B. B is stored in
    column blocks `block_stride` elements apart, where columns are `column_stride` apart; `columns`
    counts those of C. `columns_padded` means that B consists of whole blocks. A begins `a_start`
    elements into its buffer. `vector_steps` are the elements to the next vector of columns, for
    every leaf, 0 where it is repeated, and for C. With `slabs`, B is a table of slabs, and strides
    for B lead to the index of a slab instead. Some products of `framed` dims are skipped: A is zero
    in the others. They are in the order of the reduction, the row dim's last.
    """

    product: Product
    outer: tuple[LoopDim[KnownOrOpen], ...]
    row: LoopDim[KnownOrOpen]
    reduction: tuple[LoopDim[KnownOrOpen], ...]
    columns: KnownOrOpen
    columns_padded: bool
    block_stride: KnownOrOpen
    column_stride: KnownOrOpen
    vector_steps: tuple[int, ...]
    a_start: int = 0
    slabs: Slabs | None = None
    framed: tuple[Framed, ...] = ()
    turned: bool = False

    @property
    def a(self) -> int:
        """Return the number of the kernel's argument that A is."""
        return (self.product.right if self.turned else self.product.left).index

    @property
    def b(self) -> int:
        """Return the number of the kernel's argument that B is."""
        return (self.product.left if self.turned else self.product.right).index

    @property
    def anchor(self) -> SSAValue:
        """Return the product, to which the epilogue is applied."""
        return self.product.op.output

    @property
    def points(self) -> Pointwise:
        """Return the epilogue."""
        return self.product.points

    @property
    def in_place(self) -> tuple[InPlace, ...]:
        """Return the operands of the epilogue that a result may overwrite: not A or B."""
        dims = (*self.outer, self.row)

        def along(tensor: int) -> tuple[Extent, ...]:
            return tuple(dim.strides[tensor] for dim in dims)

        *steps, step = self.vector_steps
        leaves = [(*along(2 + number), leaf) for number, leaf in enumerate(steps)]
        results = [(*along(-1), step)] * len(self.points.results)
        return self.points.in_place(leaves, results, (self.product.left, self.product.right))

    @property
    def row_window(self) -> WindowDim | None:
        """Return the windows along the row dim, if these are framed."""
        of_rows = [framed.window for framed in self.framed if framed.dim == len(self.outer)]
        return of_rows[0] if of_rows else None

    @property
    def share(self) -> float:
        """Return the part of a row's products that are made at any position along the row dim."""
        framed = (each for each in self.framed if each.dim < len(self.outer))
        return math.prod(each.window.share for each in framed)

    @property
    def rows(self) -> KnownOrOpen:
        """Return the rows of A over all outer dims."""
        return _iterations((self.row, *self.outer))

    @property
    def depth(self) -> KnownOrOpen:
        """Return the products per element of C."""
        return _iterations(self.reduction)


def _iterations(dims: Sequence[LoopDim[ExtentT]]) -> ExtentT:
    return cast(ExtentT, product_of([dim.extent for dim in dims]))


def has_types(op: ConvOp | MatmulOp, accumulates: bool) -> bool:
    """Return whether a product is of f32 or f64; or, if so asked, added up in a type of its own."""
    if accumulates:
        return op.accumulator is not None
    return op.accumulator is None and element_type_of(op.operands[0]) in (f32, f64)
