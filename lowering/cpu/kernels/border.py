"""Paddings whose operand lies in the padded tensor already: only the border is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, stored_choice
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.base import shape_of
from braid.dialects.braid.movement import PadOp
from braid.dialects.braid.regions import FusedOp
from braid.lowering.cpu.kernels.emit.buffer import Buffer
from braid.lowering.cpu.kernels.emit.emitter import Emitter, Index
from braid.lowering.cpu.kernels.emit.kernel_function import grid_kernel
from braid.lowering.cpu.kernels.groups.traffic import moving_seconds
from braid.lowering.cpu.kernels.groups.vector_family import VectorFamily
from braid.lowering.cpu.kernels.padding.border import write_border
from braid.lowering.cpu.kernels.padding.match import match_padding
from braid.targets.kernels.kernel_family import Kernel, KernelRequest


@dataclass(frozen=True)
class BorderFamily(VectorFamily):
    """`braid.pad` of a tensor that lies inside the result, alone in its group.

    Layouts: any; dims that are stored in blocks are not padded.
    """

    name: str = "border"

    def layouts(self, group: FusedOp) -> Sequence[LayoutChoice]:
        """The layouts in which that was decided."""
        return () if _match(group) is None else [stored_choice(group)]

    def takes_strides(self, group: FusedOp, choice: LayoutChoice) -> bool:
        """With neighbouring elements along the innermost dim."""
        return choice.results[0].storage_strides(shape_of(group.results[0]))[-1] == 1

    def seconds(self, group: FusedOp, choice: LayoutChoice) -> float:
        """Memory traffic of the border."""
        inner, outer = (storage_bytes(v.type) for v in (group.operands[0], group.results[0]))
        return moving_seconds(outer - inner, self.unit)

    def emit(self, request: KernelRequest) -> Kernel:
        """One slab of the border after the other."""
        op = _match(request.group)
        assert op is not None
        layout = stored_choice(request.group).results[0]

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            write_border(e, op, layout, buffers[-1])

        return grid_kernel(request, self.unit, 1, iteration)


def _match(group: FusedOp) -> PadOp | None:
    return match_padding(group) if boxes_of(group) else None
