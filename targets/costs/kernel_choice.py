"""Choose the kernel that a group gets, such as one with a convolution: its family and schedule.

It is the cheapest one, or the one that `braid.schedule` names (see `select-schedules`). All ask
here, so that they get the same answer: `select-layouts` for the best kernel in each choice of
layouts, storage and code generation for the one in which the tensors of a group are stored.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.sizes.open_forms import bound_group, symbols_in
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import stored_choice
from braid.analysis.structure.verification import InvalidIRError
from braid.dialects.braid.attribute_names import SCHEDULE
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.support.checked_calls import is_own
from braid.support.settings import DEFAULTS, Kernels, Settings
from braid.targets.backends import kernel_families
from braid.targets.costs.cost import Source
from braid.targets.costs.cost_records import load_records
from braid.targets.costs.measurements import Factor, Measured, Measurements
from braid.targets.kernels.group_matches import GroupMatches, Match
from braid.targets.kernels.kernel_family import LIBRARIES, KernelFamily
from braid.targets.kernels.kernel_schedule import find_match, schedule_of
from braid.targets.kernels.schedules import Entries
from braid.targets.machines.target import Device


@dataclass(frozen=True)
class KernelOption:
    """`match` makes a kernel in `layouts`; a run of it takes `seconds` by `source`.

    This is the time of the default schedule; the tuned one takes `gain` times as long.
    `factor` is by what predictions for the group are off, None where nothing was measured.
    """

    match: Match
    layouts: LayoutChoice
    seconds: float
    source: Source
    gain: float = 1.0
    factor: Factor | None = None

    @property
    def family(self) -> KernelFamily:
        """Whose kernel it is."""
        return self.match.family


class KernelChoice:
    """Chooses among the kernels of some families, asked in order of preference among equals."""

    def __init__(
        self,
        families: Iterable[KernelFamily],
        measurements: Measurements | None = None,
        settings: Settings = DEFAULTS,
        likely: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Take the `settings` of the module with the groups, and `likely` values of its symbols.

        `measurements` are by default the records of this user that are about kernels.

        Raises BraidError for a family that lacks a part.
        """
        self.matches = GroupMatches(families)
        """The matches that families find in groups."""
        self._measurements = measurements or Measurements(load_records())
        self.likely = likely
        """The sizes that groups with open dims are looked at with."""
        self._compares = settings.kernels is Kernels.BEST and not settings.library_on_miss

    @staticmethod
    def on(device: Device) -> "KernelChoice":
        """Return the choice among all kernels of a device. Raises BraidError as above."""
        return KernelChoice(kernel_families(device), settings=device.settings)

    def at(self, likely: Mapping[str, int]) -> "KernelChoice":
        """Return the same choice for groups whose symbols have other `likely` values."""
        other = copy(self)
        other.likely = likely
        return other

    def choose(self, group: FusedOp) -> tuple[Match, Entries] | None:
        """Return the family and the schedule that `braid.schedule` names, else those of `match`.

        The schedule is the family's default then; None where no family takes the group. Raises
        InvalidIRError where no family has the schedule for the group as its tensors are stored.

        A group with open dims is decided at likely sizes, among families that take it at all.
        """
        if symbols_in(group):
            group = bound_group(group, self.likely)
        chosen = schedule_of(group)
        if chosen is None:
            match = self.match(group)
            return None if match is None else (match, match.default_schedule())
        takers = self.matches.in_choice(group, stored_choice(group))
        match = find_match(takers, chosen)
        if match is None:
            names = ", ".join(match.family.name for match in takers) or "none"
            own = (match for match in takers if match.family.name == chosen.family)
            reasons = "".join(f": {match.unsupported_reason(chosen.schedule)}" for match in own)
            raise InvalidIRError(
                f"no kernel family has the schedule '{chosen}' for this group{reasons}",
                location=source_location(group),
                hint=f"leave out '{SCHEDULE}'; families that take the group: {names}",
            )
        return match, chosen.schedule

    def match(self, group: FusedOp, choice: LayoutChoice | None = None) -> Match | None:
        """Return the match of the cheapest family that takes `group` in `choice`, strides included.

        By default as its tensors are stored; None if no family takes it.
        """
        choice = stored_choice(group) if choice is None else choice
        takers = self.matches.in_choice(group, choice)
        if len(takers) <= 1:
            return takers[0] if takers else None
        return self.options(group, choice)[0].match

    def options(self, group: FusedOp, choice: LayoutChoice | None = None) -> list[KernelOption]:
        """Return the best way to make `group` in each choice of layouts, the preferred one first.

        With a `choice`, only the kernels for that choice are considered, strides included.
        """
        best: dict[LayoutChoice, KernelOption] = {}
        for option in self.contenders(group, choice):
            known = best.get(option.layouts)
            if known is None or option.seconds < known.seconds:
                best[option.layouts] = option
        return list(best.values())

    def contenders(
        self, group: FusedOp, choice: LayoutChoice | None = None
    ) -> Iterator[KernelOption]:
        """Yield all ways to make `group` that count, among which `options` takes the cheapest.

        With a `choice`, only the kernels for that choice are considered, strides included. Families
        come in order of preference.
        """
        matches = self.matches.of(group)
        ways = (
            [(match, offered) for match in matches for offered in match.layouts]
            if choice is None
            else [(match, choice) for match in matches if match.supports_layout(choice)]
        )
        known, factor = [Measured() for _ in ways], None
        if self._measurements:
            known, factor = self._measurements.of(group, matches, ways)
        # Predictions for kernels of a vendor's library are not comparable with other predictions:
        # if there are other kernels, library kernels count only with measured times.
        counts = [
            not self._compares or measured.seconds is not None or match.family.name not in LIBRARIES
            for (match, _), measured in zip(ways, known, strict=True)
        ]
        for (match, layouts), (seconds, gain), is_counted in zip(ways, known, counts, strict=True):
            if not is_counted and any(counts):
                continue
            source = Source.FAMILY if seconds is None else Source.MEASURED
            seconds = match.candidate.seconds(layouts) if seconds is None else seconds
            yield KernelOption(match, layouts, seconds, source, gain, factor)

    def reorder(
        self, tensor: AnyTensor, source: Layout, target: Layout
    ) -> tuple[KernelFamily, float] | None:
        """Return the family that makes this reorder, in the least seconds that families predict
        without a group.

        None where a group may know better: something was measured, or other families are installed.
        """
        if self._measurements or not all(map(is_own, self.matches.families)):
            return None
        best: tuple[KernelFamily, float] | None = None
        for family in self.matches.families:
            seconds = family.reorder_seconds(tensor, source, target)
            if seconds is not None and (best is None or seconds < best[1]):
                best = family, seconds
        return best
