"""`select-schedules`: groups get the schedules that were searched for on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.storage.strided_storage import stored_choice
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.variants import program_functions
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.support.settings import Kernels
from braid.targets.backends import (
    backend_names,
    grouping_of,
    kernel_families,
)
from braid.targets.costs.schedule_records import TunedKernel, load_tuned
from braid.targets.kernels.group_matches import GroupMatches
from braid.targets.kernels.kernel_family import LIBRARIES
from braid.targets.kernels.kernel_schedule import (
    KernelSchedule,
    find_match,
    schedule_of,
    set_schedule,
)
from braid.targets.kernels.keys import schedule_key
from braid.targets.machines.resolve import device_of, target_of
from braid.targets.machines.target import Device, Target


@dataclass(frozen=True)
class SelectSchedulesPass(DecisionPass):
    """Writes `braid.schedule` on the groups for which a record has the best schedule.

    Records are those of `braid tune`. In: layouts and storage are decided. A group with
    `braid.schedule` keeps it. A record is ignored if its schedule is no longer in the space of a
    family. A record of a vendor's kernel counts only if such kernels may be chosen
    (`--kernels=best`). Groups without a record have the default; with `--untuned=library` the
    vendor's kernel, where it has one. A remark says how many groups have a record. On devices whose
    backend forms its own groups (`schedule_pass`), these have the schedules.

    ```mlir
    %y = braid.fused(%x, %w) {braid.schedule = {family = "gemm", schedule = {rows = 4, …}}} : …
    ```
    """

    name = "select-schedules"

    target: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look up all groups of the model and of what it launches."""
        target = target_of(op, self.target)
        selection = _Selection(load_tuned())
        for function in program_functions(op):
            groups = [
                group
                for group in function.walk()
                if isinstance(group, FusedOp) and not selection.is_part(group, target)
            ]
            known = sum(selection.decides(group, device_of(group, target)) for group in groups)
            if groups:
                _say(function, known, len(groups))


class _Selection:
    """Decides for each group by the records `tuned`."""

    def __init__(self, tuned: Mapping[str, TunedKernel]) -> None:
        self._tuned, self._matches = tuned, dict[Device, GroupMatches]()
        self._are_parts = dict[Device, bool]()

    def is_part(self, group: FusedOp, target: Target) -> bool:
        """Return whether the schedule belongs to another group, which the backend forms itself."""
        device = device_of(group, target)
        if device not in self._are_parts:
            known = device.backend in backend_names()
            self._are_parts[device] = known and grouping_of(device) is not None
        return self._are_parts[device]

    def decides(self, group: FusedOp, device: Device) -> bool:
        """Return whether a record does; the default needs no attribute."""
        on_miss = device.settings.library_on_miss
        if not self._tuned and not on_miss:
            return False
        if schedule_of(group) is not None or device.backend not in backend_names():
            return False
        found = self._tuned.get(schedule_key(group, device.machine))
        if found is not None and self._follows(group, found, device):
            return True
        if on_miss:
            any(self._takes(group, KernelSchedule.of(name, {}), device) for name in LIBRARIES)
        return False

    def _follows(self, group: FusedOp, found: TunedKernel, device: Device) -> bool:
        """Return whether the record counts."""
        is_best = device.settings.kernels is Kernels.BEST
        library = KernelSchedule.of(found.vendor, {})
        if found.keeps_library and is_best and self._takes(group, library, device):
            return True
        if found.chosen is None:
            return True
        return self._takes(group, found.chosen, device, found.version)

    def _takes(
        self, group: FusedOp, chosen: KernelSchedule, device: Device, version: int | None = None
    ) -> bool:
        """Write the schedule on `group`, if a family, of this version, has it for the group."""
        if device not in self._matches:
            self._matches[device] = GroupMatches(kernel_families(device))
        match = find_match(self._matches[device].in_choice(group, stored_choice(group)), chosen)
        if match is None or version not in (None, match.family.version):
            return False
        set_schedule(group, chosen)
        return True


def _say(function: FuncOp, known: int, count: int) -> None:
    emit_remark(
        function,
        SelectSchedulesPass.name,
        f"{known} of {count} groups have a record of a search",
        known=known,
        groups=count,
    )
