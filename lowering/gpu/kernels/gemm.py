"""Matrix products by tiles: `mma.sync` for 16-bit floats and bytes, multiply-adds for f32.

f32 is multiplied by `mma.sync` as well where the machine permits tf32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import BlockArgument

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.dtypes import bytes_of
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.gpu.contraction.problem import ElementKind
from braid.lowering.gpu.contraction.schedules import copied_together
from braid.lowering.gpu.kernels.contraction_candidate import TiledProduct, match_product
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.machines.machine import Machine


@dataclass(frozen=True)
class GemmFamily(KernelFamily):
    """`braid.matmul` with an elementwise epilogue, batched or not, of any extents.

    Layouts: everything row-major but B, which may also be transposed, so that elements along K are
    next to each other: bytes are only read fast so. In other layouts batches are inside of rows, as
    the heads of attention in tokens: of both operands, or of the right one and the result.
    """

    machine: Machine
    name: str = "gpu-gemm"
    version: int = 3

    def match(self, group: FusedOp) -> "_Gemm | None":
        """Match one product of block arguments, the rest elementwise on its result."""
        found = match_product(group, MatmulOp, self.machine)
        return None if found is None else _Gemm(group, self.machine, found)


@dataclass(frozen=True, eq=False)
class _Gemm(TiledProduct):
    @property
    def layouts(self) -> Sequence[LayoutChoice]:
        """Row-major layouts; for 8-bit operands rather a transposed B. Batches inside of rows come
        last.
        """
        rank = len(shape_of(self.found.op.output))
        letters = Layout.row_major(rank).tag
        transposed = Layout.parse(letters[:-2] + letters[-1] + letters[-2])
        order = (Layout.row_major(rank), transposed)
        is_bytes = self.found.kind is ElementKind.S8
        choices = [self._choice(layout) for layout in (order[::-1] if is_bytes else order)]
        shapes = [shape_of(value) for value in (*self.found.op.operands, *self.group.outputs)]
        if is_bytes or rank < 3 or any(shape[:-2] != shapes[0][:-2] for shape in shapes):
            return choices
        *outer, batch, row, column = letters
        inside = Layout.parse("".join((*outer, row, batch, column)))
        turned = Layout.parse("".join((*outer, column, batch, row)))
        choices.append(self._choice(turned, left=inside))
        choices.append(self._choice(inside, result=inside))
        return choices

    def _choice(
        self, right: Layout, left: Layout | None = None, result: Layout | None = None
    ) -> LayoutChoice:
        """Return layouts of both operands, where nothing else reads them, and of results."""
        operands = [Layout.row_major(len(shape_of(value))) for value in self.group.inputs]
        for value, layout in zip(self.found.op.operands, (left, right), strict=True):
            assert isinstance(value, BlockArgument)
            if layout is not None and value.uses.get_length() == 1:
                operands[value.index] = layout
        plain = [Layout.row_major(len(shape_of(value))) for value in self.group.outputs]
        return LayoutChoice(tuple(operands), tuple(result or own for own in plain))

    def extents(self) -> tuple[int, int, int, int]:
        """Return the extents; batches that share B count as rows."""
        *batch, rows, columns = shape_of(self.found.op.output)
        left, right = self.found.op.operands
        depth = shape_of(left)[-1]
        if prod(shape_of(right)[:-2]) == 1:
            return 1, prod(batch) * rows, columns, depth
        return prod(batch), rows, columns, depth

    def copied(self, layouts: Sequence[Layout]) -> tuple[int, int]:
        """Return contiguous bytes: those of rows, and one element of B where it is transposed.

        Bytes of B are copied along K, f32 along columns.
        """
        left, right = self.found.op.operands
        element = bytes_of(element_type_of(left))
        depth, columns = shape_of(right)[-2:]
        plain = layouts[1].tag[-1] == Layout.row_major(len(shape_of(right))).tag[-1]
        line = (columns if plain else depth) * element
        apart = plain if element == 1 else not plain and self.found.kind is ElementKind.F32
        return copied_together(depth * element), element if apart else copied_together(line)

    @property
    def slowdown(self) -> float:
        """The slowdown of a row-major B of bytes, which are gathered one by one."""
        return 3.0 if self.found.kind is ElementKind.S8 else 1.01
