"""`select-stream-splits`: into how many tiles each op of a chip is cut."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import SCHEDULE
from braid.dialects.braid.variants import public_functions
from braid.lowering.npu.stream_parts import StreamPart, stream_parts
from braid.lowering.npu.stream_schedule import DEFAULT, StreamSchedule, chosen_schedule
from braid.passes.split.select_splits import is_splittable
from braid.support.errors import BraidError
from braid.targets.kernels.kernel_schedule import schedule_of
from braid.targets.machines.resolve import target_of


@dataclass(frozen=True)
class SelectStreamSplitsPass(ModulePass):
    """Decides by the schedule of each stream how its ops are cut, as `select-splits` does.

    In: `braid.schedule` on ops of streams, as written by `select-stream-schedules`; without it the
    default. Out: `braid.split` on those ops that use more than the schedule, or the memory of their
    units, allows. With `devices`, only on ops of these chips. Raises as `select-splits`, and
    BraidError for an invalid schedule of a stream.

    ```mlir
    %y = braid.exp %x {braid.split = array<i64: 2, 1>} : (tensor<8x9xf32>) -> tensor<8x9xf32>
    ```
    """

    name = "select-stream-splits"

    target: str | None = None
    devices: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write the decision."""
        target = target_of(op, self.target)
        for function in public_functions(op):
            for part in stream_parts(function, target, self.devices):
                chip = target.backend_of(target.device(part.device))
                ops = [each for each in part.members if each.results and is_splittable(each)]
                schedule_of_part(part).decide_splits(ops, chip)


def schedule_of_part(part: StreamPart) -> StreamSchedule:
    """Return the schedule on its ops, else the default. Raises BraidError for a schedule that
    streams lack.
    """
    named = next((op for op in part.members if schedule_of(op) is not None), None)
    if named is None:
        return DEFAULT
    found = chosen_schedule(named)
    if found is None:
        raise _no_schedule(named)
    return found


def _no_schedule(op: Operation) -> BraidError:
    return BraidError(
        f"'{SCHEDULE}' is {schedule_of(op)}, which is not a schedule of a stream",
        location=source_location(op),
        hint="leave it out, or give parts, first, follow, reductions and pieces of family 'stream'",
    )
