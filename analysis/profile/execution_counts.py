"""Expected execution counts of blocks, from profiles in attributes.

`scf.if` carries `braid.branch_probability` (of the first region, or of each), `scf.index_switch`
`braid.case_probabilities`, `scf.for` and `scf.while` `braid.trip_count`. Bounds that are constants
are the trip count of an `scf.for`, whatever a profile says. A module with `braid.profile` was
profiled: its ops without counts get a default; without a profile they weigh 1.
"""

import math
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase, Float64Type, FloatAttr, IntegerAttr, ModuleOp, f64
from xdsl.ir import Block, Operation, Region, SSAValue

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.warnings import emit_warning
from braid.dialects.braid.attribute_names import (
    BRANCH_PROBABILITY,
    CASE_PROBABILITIES,
    CHECK_COUNT,
    PROFILE,
    TRIP_COUNT,
)
from braid.support.errors import BraidError

DEFAULT_BRANCH_PROBABILITY = 0.5
DEFAULT_TRIP_COUNT = 10.0

_TOLERANCE = 0.01
"""Numbers that differ by no more than this part say the same."""


@dataclass
class ExecutionCounts:
    """Expected executions of blocks, per run of the function that they are in.

    With `is_profiled` false, ops without counts run once.
    """

    is_profiled: bool
    default_trip_count: float = DEFAULT_TRIP_COUNT
    ignore: bool = False
    _known: dict[Block, float] = field(default_factory=dict[Block, float])

    @staticmethod
    def of(module: ModuleOp, default_trip_count: float = DEFAULT_TRIP_COUNT) -> "ExecutionCounts":
        """Return the counts that the attributes in `module` imply."""
        attributes = (BRANCH_PROBABILITY, CASE_PROBABILITIES, TRIP_COUNT)
        is_profiled = PROFILE in module.attributes or any(
            name in op.attributes for op in module.walk() for name in attributes
        )
        return ExecutionCounts(is_profiled, default_trip_count)

    @staticmethod
    def ones() -> "ExecutionCounts":
        """Return counts by which every op runs once, whatever attributes say."""
        return ExecutionCounts(is_profiled=False, ignore=True)

    def of_block(self, block: Block) -> float:
        """Return expected executions of `block`: the factors of all regions around it,
        multiplied.
        """
        if block not in self._known:
            parent = block.parent_op()
            outer = parent.parent if parent is not None else None
            factor = 1.0 if block.parent is None else self._factor(parent, block.parent)
            self._known[block] = factor * (self.of_block(outer) if outer is not None else 1.0)
        return self._known[block]

    def _factor(self, op: Operation | None, region: Region) -> float:
        """Run of `region` per run of `op`."""
        if self.ignore or op is None:
            return 1.0
        if isinstance(op, scf.IfOp):
            if isinstance(op.attributes.get(BRANCH_PROBABILITY), DenseArrayBase):
                return _probabilities(op, BRANCH_PROBABILITY)[op.regions.index(region)]
            probability = _number(op, BRANCH_PROBABILITY, 1.0)
            if probability is None:
                return DEFAULT_BRANCH_PROBABILITY if self.is_profiled else 1.0
            return probability if region is op.true_region else 1.0 - probability
        if isinstance(op, scf.IndexSwitchOp):
            probabilities = case_probabilities(op)
            if probabilities is None:
                return 1.0 / len(op.regions) if self.is_profiled else 1.0
            # The default is the first region of the op and the last of the probabilities.
            return probabilities[op.regions.index(region) - 1]
        if isinstance(op, scf.ForOp | scf.WhileOp):
            return self._trips(op, region)
        return 1.0

    def _trips(self, op: scf.ForOp | scf.WhileOp, region: Region) -> float:
        trips = _number(op, TRIP_COUNT, math.inf)
        if isinstance(op, scf.ForOp) and (constant := constant_trips(op)) is not None:
            if trips is not None:
                warn_of_other_trips(op, trips, constant)
            return float(constant)
        checks = isinstance(op, scf.WhileOp) and region is op.before_region
        if checks and (known := _number(op, CHECK_COUNT, math.inf)) is not None:
            return known
        if trips is None:
            trips = self.default_trip_count if self.is_profiled else None
        if trips is None:
            return 1.0
        return trips + 1.0 if checks else trips


def expected_trips(op: scf.ForOp | scf.WhileOp) -> float:
    """Return how many iterations a loop has whose bounds are not constants: from a profile, or the
    default.
    """
    trips = _number(op, TRIP_COUNT, math.inf)
    return DEFAULT_TRIP_COUNT if trips is None else trips


def constant_trips(op: scf.ForOp) -> int | None:
    """Return how often a loop turns whose bounds and step are constants; None for other loops."""
    start, end, step = (_constant(value) for value in (op.lb, op.ub, op.step))
    if start is None or end is None or step is None or step <= 0:
        return None
    return max(0, -((start - end) // step))


def warn_of_other_trips(op: scf.ForOp, profiled: float, constant: int) -> None:
    """Warn of a profile that contradicts the constant bounds of a loop."""
    if abs(profiled - constant) > _TOLERANCE * max(constant, 1):
        emit_warning(
            op,
            f"the profile has {profiled:g} iterations each time that the loop is entered, its "
            f"bounds {constant}; the bounds are taken",
            hint="was it taken with another version of the model?",
        )


def case_probabilities(op: scf.IndexSwitchOp) -> tuple[float, ...] | None:
    """Return the probabilities of the cases of `op`, its default last; None if it has
    no name.

    Raises BraidError for an attribute that is not one number per region, from 0 to 1, with a sum
    of at most 1: it is less where a profile has runs that took none of the branches it counts.
    """
    if CASE_PROBABILITIES not in op.attributes:
        return None
    return _probabilities(op, CASE_PROBABILITIES)


def _probabilities(op: Operation, name: str) -> tuple[float, ...]:
    attribute = op.attributes[name]
    array = cast(DenseArrayBase[Float64Type], attribute)
    if isinstance(attribute, DenseArrayBase) and array.elt_type == f64:
        numbers = array.get_values()
        fits = len(numbers) == len(op.regions) and all(0 <= number <= 1 for number in numbers)
        if fits and sum(numbers) <= 1 + _TOLERANCE:
            return tuple(numbers)
    what = "branch" if name == BRANCH_PROBABILITY else "case and one for the default"
    raise BraidError(
        f"'{name}' of '{op.name}' is {attribute}, expected an array<f64> of "
        f"{len(op.regions)} numbers with a sum of at most 1: one for each {what}",
        location=source_location(op),
    )


def _constant(value: SSAValue) -> int | None:
    if isinstance(value.owner, arith.ConstantOp):
        number = value.owner.value
        return number.value.data if isinstance(number, IntegerAttr) else None
    if isinstance(value.owner, arith.IndexCastOp):
        return _constant(value.owner.input)
    return None


def _number(op: Operation, name: str, largest: float) -> float | None:
    """Return the number in an attribute that people may write too.

    Raises BraidError for one that is not a number, or not from 0 to `largest`.
    """
    attribute = op.attributes.get(name)
    if attribute is None:
        return None
    if isinstance(attribute, FloatAttr | IntegerAttr):
        number = float(cast(FloatAttr | IntegerAttr, attribute).value.data)
        if 0 <= number <= largest and number < math.inf:
            return number
    wanted = f"a number from 0 to {largest:g}" if largest < math.inf else "a number from 0 on"
    raise BraidError(
        f"'{name}' of '{op.name}' is {attribute}, expected {wanted}",
        location=source_location(op),
    )
