"""Check the cost of chosen layouts: carried out on a copy, it is the sum over the resulting ops.

Each op in the layouts of its types, and each reorder that was inserted, counts as often as its
block is expected to run; a weight counts once in each layout in which no function before reads it.
This is the definition of the objective of `select-layouts`, without flow, sets or a solver.
"""

import math
from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark
from braid.analysis.execution.compute_ops import is_compute
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.tensor_storage import is_view
from braid.analysis.structure.nesting import ops_outside_groups
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.clusters import device_name
from braid.dialects.braid.constants import ParameterOp
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.regions import FusedOp, GroupOp
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.layout.apply_layouts import ApplyLayoutsPass
from braid.passes.layout.select_layouts import SelectLayoutsPass
from braid.passes.verification.claims import (
    AppliedCopy,
    claims_about,
    name_of,
    number,
    require_at_most,
    require_bound,
    require_equal,
)
from braid.passes.verification.live_bytes import linear_peak
from braid.support.byte_sizes import parse_size
from braid.targets.costs.layout_costs import LayoutCosts


def check_layouts(
    context: Context, pass_: ModulePass, module: ModuleOp, remarks: Sequence[Remark]
) -> None:
    """Raise WrongClaimError where cost, bound, peak or number of reorders are wrong."""
    assert isinstance(pass_, SelectLayoutsPass)
    copy = AppliedCopy(module)
    copy.apply(context, ApplyLayoutsPass(pass_.change_signature), "the layouts")
    costs = pass_.costs_of(module)
    counts = ExecutionCounts.of(copy.module, pass_.default_trip_count)
    if pass_.ignore_profile:
        counts = ExecutionCounts.ones()
    weights: StoredLayouts = {}
    for remark in claims_about(remarks, pass_, "cost"):
        function = copy.of(remark.op)
        assert isinstance(function, FuncOp)
        total = LayoutTotal(copy, costs, counts, weights)
        total.add(function)
        require_equal(remark, "cost", total.cost)
        require_equal(remark, "reorders", total.reorders)
        require_bound(remark, total.cost)
        if pass_.memory_limit is not None:
            require_at_most(remark, "peak_bytes", parse_size(pass_.memory_limit), "the limit")
            found = linear_peak(function)
            if found > number(remark, "peak_bytes"):
                raise WrongClaimError(
                    f"{name_of(function)}: a peak of {found} bytes is claimed "
                    f"to be {number(remark, 'peak_bytes'):.0f}"
                )


_Weight = tuple[str, str | None]
"""Its key, and the device that reads it."""

StoredLayouts = dict[_Weight, set[Layout]]


class LayoutTotal:
    """Adds up what the ops of a function cost after `apply-layouts`.

    `weights` are the layouts in which the functions added before read each weight, on each device:
    a function that reads one in another pays for the copy. It is given those of this function.
    """

    def __init__(
        self,
        copy: AppliedCopy,
        costs: LayoutCosts,
        counts: ExecutionCounts,
        weights: "StoredLayouts",
    ) -> None:
        self.cost = 0.0
        self.reorders = 0
        self._weights = weights
        self._copy, self._costs, self._counts = copy, costs, counts
        self._expressions = ParameterExpressions()

    def add(self, function: FuncOp) -> None:
        """Add the ops of `function`; raises WrongClaimError for one that cannot run so."""
        read: list[tuple[_Weight, Layout]] = []
        for op in ops_outside_groups(function):
            if not (op.results and self._expressions.is_known(op.results[0])):
                self._add(op)
                read.extend(self._copies(op))
        for weight, layout in read:
            self._weights.setdefault(weight, set()).add(layout)

    def _copies(self, op: Operation) -> Iterator[tuple[_Weight, Layout]]:
        """Yield the layouts of the weights that `op` reads; adds what those cost that are new."""
        original = self._copy.origin.get(op)
        if original is None:
            return
        for value, stored in zip(original.operands, op.operands, strict=True):
            parameter = value.owner
            if isinstance(parameter, ParameterOp):
                weight = parameter.key.data, device_name(original)
                layout = layout_of(stored.type)
                if layout not in self._weights.get(weight, {layout}):
                    self.cost += self._costs.another_copy(value.type, layout)
                yield weight, layout

    def _add(self, op: Operation) -> None:
        once = self._once(op)
        if math.isinf(once):
            raise WrongClaimError(f"{name_of(op)} cannot run in the layouts that were chosen")
        assert op.parent is not None
        self.cost += self._counts.of_block(op.parent) * once

    def _once(self, op: Operation) -> float:
        """Return the cost of one run of `op`."""
        original = self._copy.origin.get(op)
        if original is None:
            return self._inserted(op)
        if is_compute(original) or isinstance(original, GroupOp):
            return self._in_types(op, original)
        return 0.0

    def _inserted(self, op: Operation) -> float:
        """Return a reorder, or a view: also the rest of a group that moves nothing."""
        if isinstance(op, FusedOp):
            inner = op.body.block.first_op
            assert isinstance(inner, ReorderOp)
            self.reorders += 1
            return self._reorder(inner, device_name(op))
        if not is_view(op):
            raise WrongClaimError(f"{name_of(op)} was inserted and is neither a reorder nor a view")
        return 0.0

    def _reorder(self, op: ReorderOp, device: str | None) -> float:
        source, target = layout_of(op.input.type), layout_of(op.output.type)
        devices = () if device is None else (device,)
        return self._costs.reorder(op.input.type, source, target, devices)

    def _in_types(self, op: Operation, original: Operation) -> float:
        """Return the cost of `original` in the layouts of the types of `op`, infinity if it is
        impossible.
        """
        operands = tuple(layout_of(value.type) for value in op.operands)
        results = tuple(layout_of(value.type) for value in op.results)
        fitting = [
            choice.cost
            for choice in self._costs.choices(original)
            if tuple(choice.layouts.operands) == operands
            and tuple(choice.layouts.results) == results
        ]
        return min(fitting, default=math.inf)
