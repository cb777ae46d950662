"""`select-schedules`: groups get the schedules that were searched for on this machine."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.variants import program_functions
from braid.targets.backends import Kernels, backend_names, kernel_families, kernels_chosen
from braid.targets.costs.schedule_records import TunedKernel, load_tuned, schedule_key
from braid.targets.kernels.group_matches import GroupMatches
from braid.targets.kernels.kernel_family import LIBRARY
from braid.targets.kernels.kernel_schedule import (
    KernelSchedule,
    find_match,
    schedule_of,
    set_schedule,
)
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Device


@dataclass(frozen=True)
class SelectSchedulesPass(ModulePass):
    """Writes `braid.schedule` on the groups of which a record says how they are best made.

    Records are those of `braid tune`. In: layouts and storage are decided. What says
    `braid.schedule` already keeps it. A record that no family has in its space any more does not
    count, and one whose result is a vendor's kernel does only where these are among what is chosen
    (`--kernels=best`). Where there are records, a remark says of how many groups.

    ```mlir
    %y = braid.fused(%x, %w) {braid.schedule = {family = "gemm", schedule = {rows = 4, …}}} : …
    ```
    """

    name = "select-schedules"

    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks up all groups of the model and of what it launches."""
        tuned = load_tuned()
        if not tuned:
            return
        target = target_of(op, self.target)
        matches: dict[Device, GroupMatches] = {}
        for function in program_functions(op):
            known, count = 0, 0
            for group in function.walk():
                if not isinstance(group, FusedOp):
                    continue
                count += 1
                device = device_of(group, target)
                if schedule_of(group) is None and device.backend in backend_names():
                    found = tuned.get(schedule_key(group, device.machine))
                    if found is not None:
                        if device not in matches:
                            matches[device] = GroupMatches(kernel_families(device))
                        known += _decide(group, found, matches[device])
            if known:
                _say(function, known, count)


def _decide(group: FusedOp, found: TunedKernel, matches: GroupMatches) -> bool:
    """Whether the record counts; the default needs no attribute."""
    if found.keeps_library and kernels_chosen() is Kernels.BEST:
        library = KernelSchedule.of(LIBRARY, {})
        if find_match(matches.in_choice(group, stored_choice(group)), library) is not None:
            set_schedule(group, library)
            return True
    if found.chosen is None:
        return True
    match = find_match(matches.in_choice(group, stored_choice(group)), found.chosen)
    if match is None or match.family.version != found.version:
        return False
    set_schedule(group, found.chosen)
    return True


def _say(function: FuncOp, known: int, count: int) -> None:
    emit_remark(
        function,
        SelectSchedulesPass.name,
        f"{known} of {count} groups have a record of a search",
        known=known,
        groups=count,
    )
