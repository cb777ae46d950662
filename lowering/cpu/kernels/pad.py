"""Paddings that copy their operand: long pieces in vectors, then the border around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.padding import fits, inside, match_padding
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, stored_choice
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.copies.border import write_border
from braid.lowering.cpu.kernels.copies.strided import copy_loops
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule


@dataclass(frozen=True)
class PadFamily(VectorFamily):
    """`braid.pad` alone in its group, of an operand that lies elsewhere.

    Layouts: the same on both sides, any; dims that are stored in blocks are not padded.
    """

    name: str = "pad"
    version: int = 1
    anchors: ClassVar = (PadOp,)

    def match(self, group: FusedOp) -> "_Padding | None":
        """One padding that is not empty."""
        op = match_padding(group)
        if op is None or boxes_of(group) or min(shape_of(op.input), default=0) < 1:
            return None
        return _Padding(group, self.unit, op)


@dataclass(frozen=True, eq=False)
class _Padding(VectorCandidate):
    op: PadOp

    def choices(self) -> Sequence[LayoutChoice]:
        """Row-major first."""
        return [choice for choice in flexible_choices(self.group) if fits(self.op, choice)]

    def seconds(self, choice: LayoutChoice) -> float:
        """Memory traffic."""
        return self.moving_seconds(choice)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """One slice of the outermost dim per grid iteration; the border belongs to the first."""
        op = self.op
        layout = stored_choice(self.group).results[0]
        start, dims = inside(op, layout)
        *outer, inner = dims
        grid = outer[0].extent if outer else 1

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            e.branch(index, 1, lambda: write_border(e, op, layout, buffers[-1]), lambda: None)
            first = outer[0].strides if outer else (0, 0)
            source = e.mul(index, first[0])
            target = e.add(e.mul(index, first[1]), start)
            copy_loops(e, [*outer[1:], inner], (buffers[0], buffers[-1]), (source, target))

        return grid_kernel(self.group, symbol, self.unit, grid, iteration)
