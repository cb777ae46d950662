"""How often a block is expected to run, from profiles written as attributes.

`scf.if` carries `braid.branch_probability` (of the first region), `scf.for` and `scf.while`
`braid.trip_count`. A module with `braid.profile` is one that was profiled: what lacks counts in
it gets a default; without a profile every op weighs 1.
"""

import math
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.attribute_names import BRANCH_PROBABILITY, PROFILE, TRIP_COUNT
from braid.support.errors import BraidError

DEFAULT_BRANCH_PROBABILITY = 0.5
DEFAULT_TRIP_COUNT = 10.0


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
        """The counts that the attributes in `module` imply."""
        attributes = (BRANCH_PROBABILITY, TRIP_COUNT)
        is_profiled = PROFILE in module.attributes or any(
            name in op.attributes for op in module.walk() for name in attributes
        )
        return ExecutionCounts(is_profiled, default_trip_count)

    @staticmethod
    def ones() -> "ExecutionCounts":
        """Every op runs once, whatever the attributes say."""
        return ExecutionCounts(is_profiled=False, ignore=True)

    def of_block(self, block: Block) -> float:
        """Expected executions of `block`: the factors of all regions around it, multiplied."""
        if block not in self._known:
            parent = block.parent_op()
            outer = parent.parent if parent is not None else None
            factor = 1.0 if block.parent is None else self._factor(parent, block.parent)
            self._known[block] = factor * (self.of_block(outer) if outer is not None else 1.0)
        return self._known[block]

    def _factor(self, op: Operation | None, region: Region) -> float:
        """Runs of `region` per run of `op`."""
        if self.ignore or op is None:
            return 1.0
        if isinstance(op, scf.IfOp):
            probability = _number(op, BRANCH_PROBABILITY, 1.0)
            if probability is None:
                return DEFAULT_BRANCH_PROBABILITY if self.is_profiled else 1.0
            return probability if region is op.true_region else 1.0 - probability
        if isinstance(op, scf.ForOp | scf.WhileOp):
            trips = _number(op, TRIP_COUNT, math.inf)
            if trips is None:
                trips = self.default_trip_count if self.is_profiled else None
            if trips is None:
                return 1.0
            checks_once_more = isinstance(op, scf.WhileOp) and region is op.before_region
            return trips + 1.0 if checks_once_more else trips
        return 1.0


def _number(op: Operation, name: str, largest: float) -> float | None:
    """The number in an attribute that people may write too.

    Raises BraidError for one that is no number, or not from 0 to `largest`.
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
