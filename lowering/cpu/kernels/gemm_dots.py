"""Products of few rows with an elementwise epilogue, whose right operand lies by columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.contraction import Contraction
from braid.analysis.nests.matmul import MatrixProduct, matrix_product, open_contraction
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.base import extents_of, shape_of
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.contraction.dots import DotKernel, dot_cycles, moving_factor
from braid.lowering.cpu.kernels.contraction.matmul import (
    by_columns,
    matmul_size,
    supports_strides,
    widens_fast,
    with_batches_inside,
)
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.cpu.unit.vector_unit import VectorUnit
from braid.lowering.emit.math.points import has_code
from braid.support.sizes.expression import Extent
from braid.targets.kernels.kernel_family import Kernel, OpenCandidate
from braid.targets.kernels.schedules import Schedule

_MOST_ROWS = 64
"""The most rows of a product that this kernel is tried for: each adds up all its sums, so that more
never pay."""


@dataclass(frozen=True)
class GemmDotsFamily(VectorFamily):
    """`braid.matmul` of f32 or f64 with an elementwise epilogue, by products of rows.

    Layouts: everything is row-major except B, which is column-major (`ba`, `abdc`, for few rows
    `dabc`): a transpose of it is then only a layout, as for the keys of an attention. B may be f16
    or bf16 that is converted as it is loaded.
    """

    name: str = "gemm-dots"
    version: int = 3
    anchors: ClassVar = (MatmulOp,)

    def match(self, group: FusedOp) -> "_Dots | None":
        """Match one product of block arguments; the rest is elementwise."""
        found = matrix_product(group)
        if found is None or found.slabs is not None or not has_code(found.points):
            return None
        are_many = matmul_size(found, packed=False).rows > _MOST_ROWS
        if are_many or not widens_fast(found, self.machine):
            return None
        return _Dots(group, self.unit_of(found.op.output), found)

    def match_open(self, group: FusedOp) -> OpenCandidate | None:
        """Match as `match` does, whatever the numbers of rows and columns."""
        found = matrix_product(group, is_open=True)
        if found is None or found.slabs is not None or not has_code(found.points):
            return None
        return _OpenDots(group, self.unit_of(found.op.output), found)


@dataclass(frozen=True, eq=False)
class _Dots(VectorCandidate):
    product: MatrixProduct

    def choices(self) -> Sequence[LayoutChoice]:
        """Return columns of B, batch by batch or with batches between columns."""
        return _choices(self.group, self.product)

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether there are neighbouring elements along the innermost dims."""
        return supports_strides(self.group, choice)

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of multiplying and adding up, or of memory where that is slower."""
        size = matmul_size(self.product, packed=False)
        moved = self.moving_seconds(choice)
        moved *= moving_factor(size, self.unit)
        return max(dot_cycles(size, self.unit) / self.unit.fma_rate, moved)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Return a run of columns per grid iteration."""
        return _kernel(self.group, symbol, self.unit, self.product, shape_of)


@dataclass(frozen=True)
class _OpenDots:
    """A product with open dims; see `OpenCandidate`."""

    group: FusedOp
    unit: VectorUnit
    product: MatrixProduct

    def supports_open_layout(self, choice: LayoutChoice) -> bool:
        """Return where tensors fit each other at all sizes, and the depth is a number."""
        if choice not in _choices(self.group, self.product):
            return False
        nest = _nest(self.product, choice, self.unit.lanes, extents_of)
        return nest is not None and isinstance(nest.depth, int)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Return a run of columns per grid iteration."""
        return _kernel(self.group, symbol, self.unit, self.product, extents_of)


def _choices(group: FusedOp, product: MatrixProduct) -> list[LayoutChoice]:
    choice = by_columns(group, product)
    return [choice, *with_batches_inside(group, product, choice)]


def _nest(
    product: MatrixProduct, choice: LayoutChoice, lanes: int, extents_of: ExtentsOf
) -> Contraction[Extent] | None:
    return open_contraction(product, choice, lanes, lanes, 1, extents_of)


def _kernel(
    group: FusedOp, symbol: str, unit: VectorUnit, product: MatrixProduct, extents_of: ExtentsOf
) -> Kernel:
    nest = _nest(product, stored_choice(group), unit.lanes, extents_of)
    assert nest is not None, "the family was asked for layouts it did not offer"
    kernel = DotKernel(nest, unit.lanes)
    return grid_kernel(group, symbol, unit, kernel.grid, kernel.iteration, nest.in_place)
