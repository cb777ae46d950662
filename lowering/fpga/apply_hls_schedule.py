"""`apply-hls-schedule`: folds the stages of designs as was decided."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.dialects.braid_hls.design import DesignOp
from braid.lowering.fpga.schedule.select import apply_schedule


@dataclass(frozen=True)
class ApplyHlsSchedulePass(ModulePass):
    """In each iteration, stages compute as much as their `unroll` says.

    In: designs with `unroll` = (channels, terms of each) on stages. Out: those stages with `folds`
    and `ii`, their ops scheduled anew; channels have slots for the values in flight in their
    writer. Raises BraidError where `unroll` does not divide.

    ```mlir
    braid_hls.stage(%x) {unroll = array<i64: 2, 9>, folds = array<i64: 4, 1>, ii = 4 : i64, …}
    ```
    """

    name = "apply-hls-schedule"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold the stages."""
        for design in op.ops:
            if isinstance(design, DesignOp):
                apply_schedule(design)
