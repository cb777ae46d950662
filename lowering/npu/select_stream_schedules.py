"""`select-stream-schedules`: streams get the schedules that were searched for their chip."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.structure.clusters import complete_clusters, has_clusters
from braid.dialects.braid.variants import public_functions
from braid.lowering.npu.stream_family import STREAM_VERSION
from braid.lowering.npu.stream_group import described_machine, stream_group
from braid.lowering.npu.stream_parts import StreamPart, stream_parts
from braid.lowering.npu.stream_schedule import STREAM_FAMILY, StreamSchedule
from braid.passes.order.block_graph import LEAVES
from braid.targets.costs.schedule_records import load_tuned
from braid.targets.kernels.kernel_schedule import schedule_of, set_schedule
from braid.targets.kernels.keys import schedule_key
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target


@dataclass(frozen=True)
class SelectStreamSchedulesPass(ModulePass):
    """Writes `braid.schedule` on the ops of the streams for which a record has a schedule.

    Records are those of `braid tune`. In: ops that are not split, on their devices. Ops with
    `braid.schedule` keep it, and a stream without a record has the default schedule. A remark says
    how many have one. With `devices`, only streams of these chips.

    ```mlir
    %y = braid.conv %x, %w {braid.schedule = {family = "stream", schedule = {parts = 8, …}}} : …
    ```
    """

    name = "select-stream-schedules"

    target: str | None = None
    devices: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look up the streams of all functions."""
        target = target_of(op, self.target)
        if has_clusters(op):
            complete_clusters(op)
        for function in public_functions(op):
            found = stream_parts(function, target, self.devices)
            parts = [part for part in found if part.has_instructions]
            known = sum(_decides(part, target) for part in parts)
            if parts:
                emit_remark(
                    function,
                    self.name,
                    f"{known} of {len(parts)} streams have a record of a search",
                    known=known,
                    groups=len(parts),
                )


def _decides(part: StreamPart, target: Target) -> bool:
    """Return whether a record says how the stream is made."""
    tuned = load_tuned()
    ops = [op for op in part.members if not isinstance(op, LEAVES)]
    if not tuned or any(schedule_of(op) is not None for op in ops):
        return False
    group = stream_group(part)
    if group is None:
        return False
    chip = target.backend_of(target.device(part.device))
    found = tuned.get(schedule_key(group, described_machine(chip)))
    if found is None or found.version != STREAM_VERSION:
        return False
    chosen = found.chosen
    if chosen is None:
        return True
    if chosen.family != STREAM_FAMILY or StreamSchedule.of(chosen.schedule) is None:
        return False
    for op in ops:
        set_schedule(op, chosen)
    return True
