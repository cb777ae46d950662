"""Which kernel a group gets, such as one with a convolution: of which family, in which schedule.

It is the cheapest one, or what `braid.schedule` names (see `select-schedules`). All ask here, so
that they get the same answer: `select-layouts` for the best kernel in each choice of layouts,
storage and code generation for the one in which the tensors of a group are stored.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.structure.verification import InvalidIRError
from braid.dialects.braid.attribute_names import SCHEDULE
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.support.settings import DEFAULTS, Kernels, Settings
from braid.targets.backends import kernel_families
from braid.targets.costs.cost import Source
from braid.targets.costs.cost_records import CostRecords, GroupRecords, load_records
from braid.targets.kernels.family_calls import Match, is_own
from braid.targets.kernels.group_matches import GroupMatches
from braid.targets.kernels.kernel_family import LIBRARIES, KernelFamily, Reordering
from braid.targets.kernels.kernel_schedule import find_match, schedule_of
from braid.targets.kernels.schedules import Entries
from braid.targets.machines.target import Device


@dataclass(frozen=True)
class KernelOption:
    """`match` makes a kernel in `layouts`, a run of which takes `seconds`, as `source` says."""

    match: Match
    layouts: LayoutChoice
    seconds: float
    source: Source

    @property
    def family(self) -> KernelFamily:
        """Whose kernel it is."""
        return self.match.family


class KernelChoice:
    """Chooses among the kernels of some families, asked in order of preference among equals."""

    def __init__(
        self,
        families: Iterable[KernelFamily],
        records: Callable[[], CostRecords] = load_records,
        settings: Settings = DEFAULTS,
    ) -> None:
        """`records` has what was measured; `settings` are those of the module with the groups.

        Raises BraidError for a family that lacks a part.
        """
        self.matches = GroupMatches(families)
        """What families find in groups."""
        self._load, self._settings = records, settings

    @staticmethod
    def on(device: Device) -> "KernelChoice":
        """Return the choice among all kernels of a device. Raises BraidError as above."""
        return KernelChoice(kernel_families(device), settings=device.settings)

    def choose(self, group: FusedOp) -> tuple[Match, Entries] | None:
        """The family and the schedule that `braid.schedule` names, else those of `match`.

        The schedule is the family's default then; None where no family takes the group. Raises
        InvalidIRError where no family has the schedule for the group as its tensors are stored.
        """
        chosen = schedule_of(group)
        if chosen is None:
            match = self.match(group)
            return None if match is None else (match, match.default_schedule())
        takers = self.matches.in_choice(group, stored_choice(group))
        match = find_match(takers, chosen)
        if match is None:
            names = ", ".join(match.family.name for match in takers) or "none"
            own = (match for match in takers if match.family.name == chosen.family)
            reasons = "".join(f": {match.refusal(chosen.schedule)}" for match in own)
            raise InvalidIRError(
                f"no kernel family has the schedule '{chosen}' for this group{reasons}",
                location=source_location(group),
                hint=f"leave out '{SCHEDULE}'; families that take the group: {names}",
            )
        return match, chosen.schedule

    def match(self, group: FusedOp, choice: LayoutChoice | None = None) -> Match | None:
        """That of the cheapest family that takes `group` in `choice`, strides included.

        By default as its tensors are stored; None if no family takes it.
        """
        choice = stored_choice(group) if choice is None else choice
        takers = self.matches.in_choice(group, choice)
        if len(takers) <= 1:
            return takers[0] if takers else None
        records = self._records.of_group(group)
        options = self._counted([_option(match, choice, records) for match in takers])
        return min(options, key=lambda option: option.seconds).match

    def options(self, group: FusedOp) -> list[KernelOption]:
        """The best way to make `group` in each choice of layouts, the preferred one first."""
        best: dict[LayoutChoice, KernelOption] = {}
        records = self._records.of_group(group)
        matches = self.matches.of(group)
        found = [_option(match, choice, records) for match in matches for choice in match.layouts]
        for option in self._counted(found):
            if option.layouts not in best or option.seconds < best[option.layouts].seconds:
                best[option.layouts] = option
        return list(best.values())

    def option(self, match: Match, choice: LayoutChoice) -> KernelOption:
        """A kernel in `choice`: as measured if it was, else as its family predicts."""
        return _option(match, choice, self._records.of_group(match.group))

    def reorder(
        self, tensor: AnyTensor, source: Layout, target: Layout
    ) -> tuple[KernelFamily, float] | None:
        """Who makes this reorder, in the least seconds that families predict without a group.

        None where a group may know better: something was measured, or other families are installed.
        """
        if self._records or not all(map(is_own, self.matches.families)):
            return None
        best: tuple[KernelFamily, float] | None = None
        for family, predicting in self._reordering:
            seconds = predicting.reorder_seconds(tensor, source, target)
            if seconds is not None and (best is None or seconds < best[1]):
                best = family, seconds
        return best

    def _counted(self, options: list[KernelOption]) -> list[KernelOption]:
        """Return those that may be the best.

        Of a vendor's library, that is what was measured alone, if others may be: predictions of its
        kernels are not comparable with those of others.
        """
        return [option for option in options if self._counts(option)] or options

    def _counts(self, option: KernelOption) -> bool:
        if option.source is Source.MEASURED or option.family.name not in LIBRARIES:
            return True
        return self._settings.kernels is not Kernels.BEST or self._settings.library_on_miss

    @cached_property
    def _reordering(self) -> list[tuple[KernelFamily, Reordering]]:
        return [(f, f) for f in self.matches.families if isinstance(f, Reordering)]

    @cached_property
    def _records(self) -> CostRecords:
        return self._load()


def _option(match: Match, choice: LayoutChoice, records: GroupRecords) -> KernelOption:
    measured = records.seconds(choice, match.family)
    if measured is not None:
        return KernelOption(match, choice, measured, Source.MEASURED)
    return KernelOption(match, choice, match.seconds(choice), Source.FAMILY)
