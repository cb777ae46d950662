"""Paddings whose operand lies in the padded tensor already: only the border is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from braid.analysis.nests.padding import PadNest, pad_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, stored_choice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.copies.border import write_border
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds
from braid.lowering.cpu.kernels.groups.vector_family import VectorCandidate, VectorFamily
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.emitter import Emitter, Index
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule


@dataclass(frozen=True)
class BorderFamily(VectorFamily):
    """`braid.pad` of a tensor that lies inside the result, alone in its group.

    Layouts: any; dims that are stored in blocks are not padded.
    """

    name: str = "border"
    version: int = 1
    anchors: ClassVar = (PadOp,)

    def match(self, group: FusedOp) -> "_Border | None":
        """Match a padding whose operand was decided to lie in the result."""
        nest = pad_nest(group) if boxes_of(group) else None
        return None if nest is None else _Border(group, self.unit, nest)


@dataclass(frozen=True, eq=False)
class _Border(VectorCandidate):
    nest: PadNest

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the layouts in which that was decided."""
        return [stored_choice(self.group)]

    def supports_strides(self, choice: LayoutChoice) -> bool:
        """Return whether there are neighbouring elements along the innermost dim."""
        return choice.results[0].storage_strides(shape_of(self.group.results[0]))[-1] == 1

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the seconds of the memory traffic of the border."""
        values = (self.group.operands[0], self.group.results[0])
        inner, outer = (storage_bytes(value.type) for value in values)
        return moving_seconds(outer - inner, self.unit)

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit the border slab by slab."""
        layout = stored_choice(self.group).results[0]

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            write_border(e, self.nest, layout, buffers[-1])

        return grid_kernel(self.group, symbol, self.unit, 1, iteration)
