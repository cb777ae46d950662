"""Matrix products with an elementwise epilogue, by any arithmetic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.matmul import (
    MatrixProduct,
    has_rows,
    matrix_product,
    open_contraction,
)
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.byte_pairs import columns_of_chunk
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.floats import FLOATS
from braid.lowering.cpu.kernels.contraction.matmul import (
    matmul_size,
    stored_right,
    supports_strides,
    widens_fast,
    with_batches_inside,
)
from braid.lowering.cpu.kernels.contraction.microkernel import (
    VECTORS,
    WIDE_VECTORS,
    feasible_tiles,
)
from braid.lowering.cpu.kernels.contraction.product import (
    ProductArithmetic,
    ProductFamily,
    ProductStorage,
    StoredProduct,
)
from braid.lowering.cpu.kernels.contraction.shuffled import Positions
from braid.lowering.cpu.kernels.contraction.tiling import ContractionSize
from braid.lowering.cpu.kernels.groups.layout_choices import row_major_choice
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.support.sizes.expression import Extent


@dataclass(frozen=True)
class GemmFamily(ProductFamily):
    """`braid.matmul` by some arithmetic, with an elementwise epilogue.

    Layouts: everything row-major but B, which is packed into column blocks (`Ba32b`, `abDc32d`:
    best for weights, which are packed at compile time). With float elements it may also be
    row-major, gathered from a row-major table, or, for f32, stored as f16 or bf16 and converted as
    it is loaded. With 8- and 16-bit elements, A has rows padded to whole steps, and B, shared by
    all batches, is in blocks of columns and of a step's rows (`BA32b4a`).
    """

    arithmetic: ProductArithmetic = FLOATS
    anchors: ClassVar = (MatmulOp,)

    @property
    def identity(self) -> tuple[str, int]:
        """See the base class."""
        return self.arithmetic.gemm

    def find(self, group: FusedOp, extents_of: ExtentsOf | None = None) -> "MatmulStorage | None":
        """See the base class; floats may come by slabs of one operand, or be converted."""
        accumulates = self.arithmetic.accumulates
        found = matrix_product(group, accumulates, is_open=extents_of is not None)
        if found is None or not widens_fast(found, self.machine):
            return None
        if accumulates and not found.has_one_right:
            return None
        return MatmulStorage(found, extents_of or shape_of)


@dataclass(frozen=True)
class MatmulStorage(ProductStorage):
    """A product of matrices."""

    product: MatrixProduct

    may_overlap: ClassVar = True

    def float_choices(
        self, group: FusedOp, lanes: int, ranked: Callable[[LayoutChoice], list[int]]
    ) -> Sequence[LayoutChoice]:
        """Return row-major layouts, except for B, which is in blocks of columns, or finally in
        whole rows.
        """
        rank = len(shape_of(self.product.right))

        def stored(block: int) -> LayoutChoice:
            return stored_right(group, self.product, _packed(rank, block))

        plain = row_major_choice(group)
        between = with_batches_inside(group, self.product, plain)
        return [*map(stored, ranked(stored(lanes))), plain, *between]

    def stepped_choice(
        self, group: FusedOp, block: int, step: int, in_pairs: bool = False
    ) -> LayoutChoice:
        """Return everything row-major but B, in blocks of columns and of a step's rows (`BA32b4a`).

        Rows of A are padded to whole steps.
        """
        plain = Layout.row_major(len(self.product.points.shape))
        batch, k, n = plain.tag[:-2], plain.tag[-2], plain.tag[-1]
        suffix = ":pairs" if in_pairs else ""
        own = {
            self.product.right.index: f"{batch}{n.upper()}{k.upper()}{block}{n}{step}{k}{suffix}"
        }
        if shape_of(self.product.left)[-1] % step:
            own[self.product.left.index] = f"{batch}{k}{n.upper()}{step}{n}"
        operands = tuple(
            Layout.parse(own[index]) if index in own else plain
            for index in range(len(group.inputs))
        )
        return LayoutChoice(operands, (plain,) * len(group.outputs))

    def supports_strides(self, group: FusedOp, choice: LayoutChoice, step: int) -> bool:
        """Take strides for floats if the innermost dims are contiguous; packed B has none."""
        right = choice.operands[self.product.right.index]
        packed = not has_rows(right) and right.strides is not None
        return step == 1 and not packed and supports_strides(group, choice)

    def stored(self, choice: LayoutChoice, unit: VectorUnit, step: int) -> "StoredMatmul":
        """See the base class."""
        return StoredMatmul(choice, unit, step, self.product, self.extents_of)


@dataclass(frozen=True)
class StoredMatmul(StoredProduct):
    """A product of matrices in some layouts."""

    product: MatrixProduct

    @property
    def exists(self) -> bool:
        """Always, where extents are numbers."""
        return self.extents_of is shape_of or super().exists

    @property
    def _right(self) -> Layout:
        return self.choice.operands[self.product.right.index]

    @property
    def block(self) -> int:
        """See the base class."""
        return self._right.block(self._right.rank - 1)

    @property
    def size(self) -> ContractionSize:
        """See the base class."""
        return matmul_size(self.product, not has_rows(self._right), self.step)

    @property
    def b_bytes(self) -> int:
        """Bytes of one slab of a table."""
        right = self.product.right
        slabs = 1 if self.product.slabs is None else shape_of(right)[0]
        return storage_bytes(right.type, self._right) // slabs

    @property
    def positions(self) -> Positions:
        """Contiguous rows of A."""
        depth = self.size.depth * self.step
        return Positions(depth, depth, columns_of_chunk(1))

    @property
    def float_vectors(self) -> Sequence[int]:
        """See the base class; whole rows of B allow any strides, and more schedules for one row of
        A."""
        if not has_rows(self._right):
            return [self.block // self.unit.lanes]
        is_wide = self.size.rows == 1 and feasible_tiles(self.unit, 0, (WIDE_VECTORS,))
        return (*VECTORS, WIDE_VECTORS) if is_wide else VECTORS

    def contraction(self, block: int) -> Contraction[Extent] | None:
        """See the base class."""
        lanes, step = self.unit.lanes, self.step
        return open_contraction(self.product, self.choice, block, lanes, step, self.extents_of)


def _packed(rank: int, block: int) -> Layout:
    """Return the layout of B: batch dims, column blocks, K, then the columns of a block."""
    letters = Layout.row_major(rank).tag
    batch, k, n = letters[:-2], letters[-2], letters[-1]
    return Layout.parse(f"{batch}{n.upper()}{k}{block}{n}")
