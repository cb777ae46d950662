"""The group of an outlined kernel, and which family makes its code: the cheapest that takes it."""

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.ir import Block

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.strided_storage import STORAGE_DECISIONS, stored_choice
from braid.analysis.structure.verification import InvalidIRError
from braid.dialects.braid.attribute_names import SCHEDULE
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.targets.costs.device_costs import DeviceCosts
from braid.targets.kernels.family_calls import Match
from braid.targets.kernels.kernel_family import KernelFamily, Schedule
from braid.targets.kernels.kernel_schedule import find_match, schedule_of


def group_of(function: func.FuncOp) -> FusedOp:
    """The group that `outline-kernels` made `function` of, on operands of its own."""
    body = function.body.clone().block
    last = body.last_op
    assert isinstance(last, func.ReturnOp)
    body.insert_op_before(YieldOp(*last.arguments), last)
    last.detach()
    last.erase()
    region = body.parent
    assert region is not None
    region.detach_block(body)
    operands = Block(arg_types=function.function_type.inputs.data)
    group = FusedOp(operands.args, function.function_type.outputs.data, body)
    operands.add_op(group)
    for name in (*STORAGE_DECISIONS, SCHEDULE):
        if (attribute := function.attributes.get(name)) is not None:
            group.attributes[name] = attribute
    return group


class KernelSelection:
    """Chooses among some families."""

    def __init__(self, families: Sequence[KernelFamily]) -> None:
        """Raises BraidError for a family that lacks a part of the protocol."""
        self._costs = DeviceCosts.of_families(families)

    def choose(self, group: FusedOp) -> tuple[Match, Schedule] | None:
        """The family and the schedule that `braid.schedule` names, else those of `match`.

        The schedule is the family's default then; None where no family takes the group. Raises
        InvalidIRError where no family has the schedule for the group as its tensors are stored.
        """
        chosen = schedule_of(group)
        if chosen is None:
            match = self.match(group)
            return None if match is None else (match, match.default_schedule())
        takers = self._costs.matches.in_choice(group, stored_choice(group))
        match = find_match(takers, chosen)
        if match is None:
            names = ", ".join(match.family.name for match in takers) or "none"
            raise InvalidIRError(
                f"no kernel family has the schedule '{chosen}' for this group",
                location=source_location(group),
                hint=f"leave out '{SCHEDULE}'; families that take the group: {names}",
            )
        return match, chosen.schedule

    def match(self, group: FusedOp) -> Match | None:
        """That of the cheapest family that takes `group` as its tensors are stored."""
        return self._costs.match_for(group, stored_choice(group))
