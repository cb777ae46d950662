"""`select-rematerialization`: the recomputed ops, by thresholds or for a byte budget."""

from dataclasses import dataclass
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.memory_graph import MemoryGraph
from braid.dialects.braid.attribute_names import ORDER
from braid.dialects.braid.order import order_attribute
from braid.passes.rematerialization.function_sets import PlannedSet, sets_of_function
from braid.passes.rematerialization.recompute_decisions import clear_sets, write_sets
from braid.passes.rematerialization.recompute_order import schedule_positions
from braid.passes.rematerialization.rematerialization_budget import (
    SolverOptions,
    describe,
    fit_budget,
)
from braid.passes.rematerialization.rematerialization_options import Option, resolve
from braid.passes.rematerialization.rematerialization_sets import Criteria
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.solvers.rematerialization import Problem, Schedule, simulate
from braid.support.byte_sizes import format_size
from braid.support.errors import BraidError
from braid.targets.costs.cost_source import CostSource
from braid.targets.machines.resolve import target_of


@dataclass(frozen=True)
class SelectRematerializationPass(DecisionPass):
    """Picks ops to recompute instead of keeping their results.

    By thresholds, it looks at every edge from a producer to a reader. The path between them is
    indirect if the reader also depends on the producer through other ops, whether or not there
    is a direct edge beside that. A set, the producer with what it needs, is picked if

    - `tensor-threshold`: what it makes is larger than this;
    - `peak-threshold`: the path is indirect and the bytes live while an op on it runs are more
      than this: of what the ops make (`peak=intermediates`), or also of inputs, weights and what
      blocks around make (`peak=all`), from the beginning of the block to their last use;
    - `jump-threshold`: what it makes is larger than one of its inputs by more than this (weights
      and constants are not counted);
    - `fusion-rules` (`default` or a TOML file as `rematerialization_rules.toml`): the producer
      can be fused with the reader, or it cannot and the path is indirect.

    A value that is not kept for a producer is not kept for its copies either: if that edge was
    picked, the set includes the producer's producer, too. A reader in the regions of control flow
    counts as that op, and gets separate copies in its region (the producer must fuse with all
    readers). Values that a region yields stay. One criterion that holds is enough, with `mode=all`
    all that are given must. Where `tensor-threshold` and `peak-threshold` are both given, the first
    is for edges without an indirect path, the second for those with one, and together they are one
    criterion. Out: the decision as `recompute_decisions.py` says. Raises BraidError for a function
    with an order that is not applied.

    With `budget`, order and recomputation are chosen for the least time with a peak of at most
    that many bytes in the arena (inputs and weights are not in it). An op takes what a profile
    measured (`braid.seconds`) or an estimate, times its expected executions. Out: `braid.order`
    of the function, in which an op stands as often as it runs. The search takes at most
    `time_limit` seconds in `workers` threads; with `fixed_order` the first runs keep their order.
    Raises InfeasibleError, which names the smallest budget found and the tensors to blame.

    Sizes are bytes or have a unit (`64MiB`). An attribute `braid.rematerialization` of a function
    or the module may also hold parameters; those of the pass take precedence.

    ```mlir
    func.func @main(…) attributes {braid.rematerialization = {tensor_threshold = "64MiB"}} {…}
    %0 = braid.broadcast %x … {braid.recompute_sets = array<i64: 0>}
    %1 = braid.exp %0 … {braid.recompute_operands = array<i64: 0>}
    ```
    """

    name = "select-rematerialization"

    tensor_threshold: int | str | None = None
    peak_threshold: int | str | None = None
    jump_threshold: int | str | None = None
    fusion_rules: str | None = None
    mode: Literal["union", "all"] | None = None
    peak: Literal["intermediates", "all"] | None = None
    budget: int | str | None = None
    time_limit: float = 60.0
    workers: int = 1
    seed: int = 0
    fixed_order: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide for every function that runs with the model."""
        given: dict[str, Option | None] = {
            "tensor_threshold": self.tensor_threshold,
            "peak_threshold": self.peak_threshold,
            "jump_threshold": self.jump_threshold,
            "fusion_rules": self.fusion_rules,
            "mode": self.mode,
            "peak": self.peak,
            "budget": self.budget,
        }
        counts, costs = ExecutionCounts.of(op), CostSource(target_of(op))
        for function in runtime_functions(op):
            parameters = resolve(function, given)
            clear_sets(function)
            if parameters.criteria is not None:
                self._select_sets(function, parameters.criteria)
            elif parameters.budget is not None:
                self._fit_budget(function, parameters.budget, costs, counts)

    def _select_sets(self, function: FuncOp, criteria: Criteria) -> None:
        """Decide for all blocks of the function; the remark counts the sets of all of them."""
        if ORDER in function.attributes:
            raise BraidError(
                f"the function has {ORDER}, a decision that excludes sets to recompute",
                location=source_location(function),
                hint="run apply-order before select-rematerialization, or remove the attribute",
            )
        sets = sets_of_function(function, criteria)
        write_sets(sets)
        for planned in sets:
            self._report_set(planned)
        members = sum(len(planned.members) for planned in sets)
        message = f"sets: {len(sets)}, ops to recompute: {members}"
        emit_remark(function, self.name, message, sets=len(sets), ops=members)

    def _report_set(self, planned: PlannedSet) -> None:
        names = "; ".join(map(describe, planned.members))
        message = (
            f"recompute {names} for {describe(planned.reader)}: {format_size(planned.bytes)} "
            f"by {' and '.join(planned.reasons)}"
        )
        data = {"bytes": planned.bytes, "ops": len(planned.members)}
        emit_remark(planned.reader, self.name, message, **data)

    def _fit_budget(
        self, function: FuncOp, budget: int, costs: CostSource, counts: ExecutionCounts
    ) -> None:
        graph = MemoryGraph.of(function.body.block)
        options = SolverOptions(self.time_limit, self.seed, self.workers, self.fixed_order)
        seconds = costs.expected_seconds(counts)
        problem, schedule = fit_budget(graph, budget, options, seconds)
        function.attributes[ORDER] = order_attribute([schedule_positions(graph, schedule.sequence)])
        self._report_schedule(function, problem, schedule, costs.sources())

    def _report_schedule(
        self, function: FuncOp, problem: Problem, schedule: Schedule, sources: str
    ) -> None:
        base = problem.base_duration
        increase = schedule.duration / base - 1 if base else 0.0
        natural = simulate(problem, range(len(problem.ops))).peak
        again = len(schedule.sequence) - len(set(schedule.sequence))
        emit_remark(
            function,
            self.name,
            f"peak {format_size(schedule.peak)} instead of {format_size(natural)} (arena tensors "
            f"and scratch, before addresses are planned), time {schedule.duration:.6g} s "
            f"(+{increase:.3%}), recomputations {again}, lower bound "
            f"{schedule.lower_bound:.6g} s, gap {schedule.gap:.3%}; costs: {sources}",
            cost=schedule.duration,
            lower_bound=schedule.lower_bound,
            gap=schedule.gap,
            time_increase=increase,
            recomputations=again,
            peak_bytes=schedule.peak,
            natural_peak_bytes=natural,
            sources=sources,
        )
