"""What searched schedules gain over the default ones, by which layouts are chosen."""

from collections.abc import Mapping, Sequence

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.support.settings import Kernels
from braid.targets.costs.schedule_records import TunedKernel, choice_key
from braid.targets.kernels.family_calls import Match
from braid.targets.kernels.group_matches import GroupMemo
from braid.targets.kernels.keys import canonical_kernel_text
from braid.targets.machines.machine import Machine


class TunedGains:
    """Of groups on `machine`, by the records `tuned`; make one for each pass.

    Times of layouts are predictions mostly, which measurements are not compared with fairly. What
    was searched takes the part of the default's time that it took beside it.
    """

    def __init__(
        self, tuned: Mapping[str, TunedKernel], machine: Machine, kernels: Kernels
    ) -> None:
        """`kernels` says whose kernels there are."""
        self._tuned, self._machine, self._kernels = tuned, machine, kernels
        self._texts = GroupMemo(canonical_kernel_text)

    def __bool__(self) -> bool:
        """Whether anything was searched."""
        return bool(self._tuned)

    def of(self, group: FusedOp, choice: LayoutChoice, matches: Sequence[Match]) -> float:
        """What one run takes in `choice`, as a part of what it takes by the default schedule.

        `matches` are those of the group; a record of another version of its family does not count.
        """
        found = self._tuned.get(choice_key(group, choice, self._machine, self._texts.of(group)))
        if found is None or not found.baseline:
            return 1.0
        is_library = found.keeps_library and self._kernels is Kernels.BEST
        # Mostly the library wants weights in another layout, of which there is a cost.
        takers = (m for m in matches if m.family.name == found.vendor and choice in m.layouts)
        if is_library and found.library is not None and any(takers):
            return found.library / found.baseline
        chosen, version = found.chosen, found.version
        made = ((match.family.name, match.family.version) for match in matches)
        return found.gain if chosen is not None and (chosen.family, version) in made else 1.0
