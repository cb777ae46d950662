"""Which family makes the kernel of a group in given layouts, and what a run of it costs.

Layout selection and lowering ask the same question here and so get the same answer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.regions import FusedOp
from braid.targets.costs.cost_records import CostRecords, GroupRecords, load_records
from braid.targets.kernels import family_calls
from braid.targets.kernels.family_calls import Match
from braid.targets.kernels.kernel_family import KernelFamily

_State = tuple[str | Operation | SSAValue | Attribute, ...]


@dataclass(frozen=True)
class KernelOption:
    """`match` makes a kernel in `layouts` that takes `seconds` a run, `measured` or predicted."""

    match: Match
    layouts: LayoutChoice
    seconds: float
    measured: bool

    @property
    def family(self) -> KernelFamily:
        """Whose kernel it is."""
        return self.match.family


class KernelCosts:
    """Answers for some families, in order of preference among equals.

    Families match a group once, and again after it was changed: make one for each pass.
    """

    def __init__(
        self, families: Iterable[KernelFamily], records: CostRecords | None = None
    ) -> None:
        """`records` are by default those of this user.

        Raises BraidError for a family of another package that lacks a part of the protocol.
        """
        self._families = tuple(families)
        family_calls.check_families(self._families)
        self.records = load_records() if records is None else records
        self._matches: dict[FusedOp, tuple[_State, tuple[Match, ...]]] = {}

    def matches(self, group: FusedOp) -> tuple[Match, ...]:
        """The candidates of all families that take `group`."""
        state = tuple(_state(group))
        known = self._matches.get(group)
        if known is None or known[0] != state:
            found = (family_calls.match(family, group) for family in self._families)
            known = (state, tuple(match for match in found if match is not None))
            self._matches[group] = known
        return known[1]

    def options(self, group: FusedOp) -> list[KernelOption]:
        """The best way to make `group` in each choice of layouts, the preferred one first."""
        best: dict[LayoutChoice, KernelOption] = {}
        records = self.records.of_group(group)
        for match in self.matches(group):
            for choice in match.layouts:
                option = _option(match, choice, records)
                if choice not in best or option.seconds < best[choice].seconds:
                    best[choice] = option
        return list(best.values())

    def match_for(self, group: FusedOp, choice: LayoutChoice) -> Match | None:
        """That of the best option in `choice`, strides included; None if no family takes it."""
        takers = [
            match
            for match in self.matches(group)
            if choice in match.layouts and match.takes_strides(choice)
        ]
        if len(takers) <= 1:
            return takers[0] if takers else None
        options = [self.option(match, choice) for match in takers]
        return min(options, key=lambda option: option.seconds).match

    def option(self, match: Match, choice: LayoutChoice) -> KernelOption:
        """What `match` makes of its group, by measurement if there is one."""
        return _option(match, choice, self.records.of_group(match.group))


def _option(match: Match, choice: LayoutChoice, records: GroupRecords) -> KernelOption:
    measured = records.seconds(choice, match.family)
    seconds = match.seconds(choice) if measured is None else measured
    return KernelOption(match, choice, seconds, measured is not None)


def _state(group: FusedOp) -> Iterator[str | Operation | SSAValue | Attribute]:
    """Everything about `group` that a family may look at: equal while nothing of it changes."""
    yield from group.operand_types
    yield from group.result_types
    yield from (argument.type for argument in group.body.block.args)
    for op in group.walk():
        yield op
        if op is not group:
            yield from op.operands
            yield from op.result_types
        for named in (op.properties, op.attributes):
            for name, attribute in named.items():
                yield name
                yield attribute
