"""Paddings that copy their operand: long pieces in vectors, then the border around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.dims import LoopDim, has_elements
from braid.analysis.nests.padding import PadNest, pad_nest
from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.copies.border import write_border
from braid.lowering.cpu.kernels.copies.strided import copy_loops
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.support.sizes.expression import Extent
from braid.support.sizes.operators import maximum
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule


@dataclass(frozen=True)
class PadFamily(SizedFamily):
    """`braid.pad` alone in its group, of an operand that lies elsewhere.

    Layouts: the same on both sides, any; dims that are stored in blocks are not padded.
    """

    name: str = "pad"
    version: int = 1
    anchors: ClassVar = (PadOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Pad | None":
        """Match a padding that is not empty, with any extents."""
        nest = pad_nest(group, extents_of)
        if nest is None or boxes_of(group) or not nest.operand or not has_elements(nest.operand):
            return None
        return Pad(group, self.unit, nest)


@dataclass(frozen=True, eq=False)
class Pad(VectorCandidate):
    """The padding of a group."""

    nest: PadNest

    def choices(self) -> Sequence[LayoutChoice]:
        """Return row-major layouts first."""
        return [choice for choice in flexible_choices(self.group) if self.nest.fits(choice)]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of its memory traffic."""
        return self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit one slice of the outermost dim per grid iteration; the border belongs to the
        first.
        """
        layout = stored_choice(self.group).results[0]
        start, dims = self.nest.inside(layout)
        first = dims[0] if len(dims) > 1 else LoopDim[Extent](1, (0, 0))
        rest = dims[1:] or dims

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            e.branch(
                index, 1, lambda: write_border(e, self.nest, layout, buffers[-1]), lambda: None
            )

            def copy() -> None:
                source, target = (e.mul(index, stride) for stride in first.strides)
                at = (source, e.add(target, start))
                copy_loops(e, rest, (buffers[0], buffers[-1]), at)

            if isinstance(first.extent, int):
                copy()
            else:
                e.branch(index, first.extent, copy, lambda: None)

        # There is a border to write around nothing, too.
        grid = maximum(1, first.extent)
        return grid_kernel(self.group, symbol, self.unit, grid, iteration)
