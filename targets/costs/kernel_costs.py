"""Which family makes the kernel of a group in given layouts, and what a run of it costs.

Layout selection and lowering ask the same question here and so get the same answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.targets.costs.cost_records import CostRecords, GroupRecords, load_records
from braid.targets.kernels import family_calls
from braid.targets.kernels.kernel_family import KernelFamily, takes_strides


@dataclass(frozen=True)
class KernelOption:
    """`family` makes a kernel in `layouts` that takes `seconds` a run, `measured` or predicted."""

    family: KernelFamily
    layouts: LayoutChoice
    seconds: float
    measured: bool


class KernelCosts:
    """Answers for some families, in order of preference among equals."""

    def __init__(
        self, families: Iterable[KernelFamily], records: CostRecords | None = None
    ) -> None:
        """`records` are by default those of this user.

        Raises BraidError for a family of another package that lacks a part of the protocol.
        """
        self._families = tuple(families)
        family_calls.check_families(self._families)
        self.records = load_records() if records is None else records

    def options(self, group: FusedOp) -> list[KernelOption]:
        """The best way to make `group` in each choice of layouts, the preferred one first."""
        best: dict[LayoutChoice, KernelOption] = {}
        records = self.records.of_group(group)
        for family in self._families:
            if family_calls.accepts(family, group):
                for choice in family_calls.layouts(family, group):
                    option = _option(group, family, choice, records)
                    if choice not in best or option.seconds < best[choice].seconds:
                        best[choice] = option
        return list(best.values())

    def family_for(self, group: FusedOp, choice: LayoutChoice) -> KernelFamily | None:
        """The family of the best option in `choice`, strides included; None if none takes it."""
        takers = [
            family
            for family in self._families
            if family_calls.accepts(family, group)
            and choice in family_calls.layouts(family, group)
            and takes_strides(family, group, choice)
        ]
        if len(takers) <= 1:
            return takers[0] if takers else None
        options = [self.option(group, family, choice) for family in takers]
        return min(options, key=lambda option: option.seconds).family

    def option(self, group: FusedOp, family: KernelFamily, choice: LayoutChoice) -> KernelOption:
        """What `family` makes of `group`, by measurement if there is one."""
        return _option(group, family, choice, self.records.of_group(group))


def _option(
    group: FusedOp, family: KernelFamily, choice: LayoutChoice, records: GroupRecords
) -> KernelOption:
    measured = records.seconds(choice, family.name)
    seconds = family_calls.seconds(family, group, choice) if measured is None else measured
    return KernelOption(family, choice, seconds, measured is not None)
