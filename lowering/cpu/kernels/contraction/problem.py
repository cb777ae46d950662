"""Products of matrices with an elementwise epilogue, as loop nests over stored tensors. No IR."""

import math
from dataclasses import dataclass
from typing import Generic

from xdsl.ir import SSAValue

from braid.analysis.nests.dims import KnownOrOpen, LoopDim
from braid.analysis.nests.pointwise import Pointwise
from braid.lowering.cpu.kernels.contraction.slabs import Slabs
from braid.lowering.cpu.kernels.contraction.zeros import Framed, WindowDim
from braid.support.sizes.expression import Extent
from braid.targets.kernels.kernel_family import InPlace


@dataclass(frozen=True)
class Contraction(Generic[KnownOrOpen]):
    """C[outer, row, n] = epilogue(Σ A[outer, row, k] · B[outer, k, n]).

    `outer` and `row` dims have strides for A, B, every leaf of the epilogue, and C, in this
    order; `row` advances B by 0. `reduction` dims have strides in A and B. B is stored in
    column blocks `block_stride` elements apart, where columns are `column_stride` apart; `columns`
    counts those of C. `columns_padded`
    says that B has whole blocks. A begins `a_start` elements into its buffer. `vector_steps` are
    the elements to the next vector of columns, for every leaf, 0 where it is repeated, and for C.
    `a` and `b` are numbers of the kernel's arguments. With `slabs`, B is a table of slabs, and
    strides for B lead to the index of a slab instead. Of `framed` dims not all products are made:
    A is zero in the others. They are in the order of the reduction, the row dim's last. Extents of
    `outer` and `row` may be open; a step along `row` is known.
    """

    outer: tuple[LoopDim[KnownOrOpen], ...]
    row: LoopDim[KnownOrOpen]
    reduction: tuple[LoopDim, ...]
    columns: int
    columns_padded: bool
    block_stride: int
    a: int
    b: int
    anchor: SSAValue
    points: Pointwise
    vector_steps: tuple[int, ...]
    a_start: int = 0
    slabs: Slabs | None = None
    framed: tuple[Framed, ...] = ()
    column_stride: int = 1

    @property
    def in_place(self) -> tuple[InPlace, ...]:
        """Operands of the epilogue that a result may overwrite: not A or B."""
        dims = (*self.outer, self.row)

        def along(tensor: int) -> tuple[Extent, ...]:
            return tuple(dim.strides[tensor] for dim in dims)

        *steps, step = self.vector_steps
        leaves = [(*along(2 + number), leaf) for number, leaf in enumerate(steps)]
        results = [(*along(-1), step)] * len(self.points.results)
        product = [leaf for leaf in self.points.leaves if leaf.index in (self.a, self.b)]
        return self.points.in_place(leaves, results, product)

    @property
    def row_window(self) -> WindowDim | None:
        """The windows along the row dim, if these are framed."""
        of_rows = [framed.window for framed in self.framed if framed.dim == len(self.outer)]
        return of_rows[0] if of_rows else None

    @property
    def share(self) -> float:
        """Of the products of a row those that are made, whatever its position along the row dim."""
        framed = (each for each in self.framed if each.dim < len(self.outer))
        return math.prod(each.window.share for each in framed)

    @property
    def rows(self: "Contraction") -> int:
        """Rows of A over all outer dims."""
        return self.row.extent * math.prod(dim.extent for dim in self.outer)

    @property
    def depth(self) -> int:
        """Products per element of C."""
        return math.prod(dim.extent for dim in self.reduction)
