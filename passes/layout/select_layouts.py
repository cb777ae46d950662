"""`select-layouts`: in which layout every tensor lives, and where it is reordered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf, prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.diagnostics.remarks import RemarkValue, emit_remark
from braid.analysis.execution.compute_ops import runtime_functions
from braid.analysis.profile.execution_counts import DEFAULT_TRIP_COUNT, ExecutionCounts
from braid.analysis.structure.functions import named_symbols
from braid.dialects.braid.attribute_names import LAYOUTS
from braid.dialects.braid.layout import InvalidLayout, Layout
from braid.dialects.braid.variants import variant_sizes
from braid.passes.layout.conflicts import find_conflict
from braid.passes.layout.decisions import write_layouts, write_reorders
from braid.passes.layout.flow import Flow, LayoutVariable, ValueLayouts, collect_flow
from braid.passes.layout.generic_kernels import remark_generic_kernels
from braid.passes.layout.problem import LayoutProblem, LayoutProblemBuilder
from braid.passes.layout.stored_weights import StoredWeights
from braid.passes.sizes.likely_decisions import DecisionPass
from braid.solvers.deadline import Deadline
from braid.solvers.strategy import InfeasibleAssignment, Solution, greedy, solve
from braid.solvers.strategy.problem import peak_usage
from braid.support.byte_sizes import parse_size
from braid.support.errors import BraidError, InfeasibleError
from braid.targets.costs.cost import Source, tally
from braid.targets.costs.cost_source import CostSource
from braid.targets.costs.layout_costs import LayoutCosts
from braid.targets.kernels.kernel_family import GENERIC
from braid.targets.machines.resolve import target_of

_LEAST_SHARE = 0.05
"""The least share of the time limit that the search has."""


def _restricted(flow: Flow, wanted: Layout) -> Flow:
    """Return every op in `wanted` as cheaply as possible, or as many as exist."""
    return Flow([_restrict(variable, wanted) for variable in flow.variables])


def _restrict(variable: LayoutVariable, wanted: Layout) -> LayoutVariable:
    if variable.slot is not None:
        return variable
    ports = (*variable.makes, *variable.reads)
    in_layout = [
        sum(port.layouts[option] == wanted for port in ports)
        for option in range(len(variable.costs))
    ]
    options = range(len(in_layout))
    # Kernels in mixed layouts are better than generic code in `wanted` alone.
    fast = [o for o in options if variable.families and variable.families[o] != GENERIC]
    option = max(fast or options, key=lambda o: (in_layout[o], -variable.costs[o]))

    def only(port: ValueLayouts) -> ValueLayouts:
        return replace(port, layouts=(port.layouts[option],))

    choices = variable.choices
    return replace(
        variable,
        choices=None if choices is None else (choices[option],),
        families=variable.families[option : option + 1],
        sources=variable.sources[option : option + 1],
        costs=(variable.costs[option],),
        copies=variable.copies[option : option + 1],
        makes=tuple(map(only, variable.makes)),
        reads=tuple(map(only, variable.reads)),
    )


def _largest_first(module: ModuleOp) -> list[FuncOp]:
    """Return the functions to decide; of the variants of a model those for the largest shapes come
    first.

    They compute the most with each weight, so that they gain the most by its layout.
    """
    return sorted(runtime_functions(module), key=lambda func: -prod(variant_sizes(func).values()))


def _write(
    func: FuncOp, problem: LayoutProblem, assignment: Sequence[int], stored: StoredWeights
) -> int:
    """Write the decisions, in place of older ones, and return how many reorders move data."""
    for op in func.walk():
        op.attributes.pop(LAYOUTS, None)

    def owner_of(pair: tuple[LayoutVariable, int]) -> int:
        return id(pair[0].owner)

    chosen = list(zip(problem.variables, assignment, strict=False))
    carried = sorted((c for c in chosen if c[0].slot is not None), key=owner_of)
    for _, group in groupby(carried, key=owner_of):
        pairs = sorted(group, key=lambda pair: pair[0].slot or 0)
        layouts = [variable.carried[option] for variable, option in pairs]
        write_layouts(pairs[0][0].owner, carried=layouts)
    for variable, option in chosen:
        if variable.slot is None and variable.choices is not None:
            layouts = variable.choices[option]
            write_layouts(variable.owner, operands=layouts.operands, results=layouts.results)
            stored.add(variable.owner, layouts)
    reorders = problem.reorders(assignment)
    write_reorders(func, reorders)
    return sum(not reorder.is_view for reorder in reorders)


def _sources(problem: LayoutProblem, assignment: Sequence[int]) -> str:
    """Return how many of the chosen costs each source knew."""
    chosen = zip(problem.variables, assignment, strict=False)
    return tally(
        Counter(
            c.sources[option]
            for c, option in chosen
            if c.sources and (c.costs[option] or c.sources[option] is Source.UNKNOWN)
        )
    )


def _unknown(problem: LayoutProblem, assignment: Sequence[int]) -> tuple[int, int]:
    """Return how many chosen ops, and how many reorders, have unknown costs."""
    chosen = zip(problem.variables, assignment, strict=False)
    ops = sum(bool(c.sources) and c.sources[option] is Source.UNKNOWN for c, option in chosen)
    moved = [reorder for reorder in problem.reorders(assignment) if not reorder.is_view]
    return ops, sum(not problem.costs.tells_of(each.source, each.target) for each in moved)


@dataclass(frozen=True)
class SelectLayoutsPass(DecisionPass):
    """Chooses layouts so that the expected cost of ops and reorders is least.

    In: groups (`braid.fused`) or declared ops, with costs from their declarations, the kernel
    families of `target`, or its roofline. Out: `braid.layouts` on ops, `braid.reorders` on
    functions. Costs are multiplied by the expected runs of their block; a reorder is placed where
    these are fewest, once for all users. Reorders of weights are free; but if variants of a model
    for several shapes need a weight in different layouts, each further layout costs the time to
    store it once.

    Options: `algorithm` is `exact`, `greedy` or `fixed:<layout>` (every op in that layout if it
    can, by its fastest kernel); `cost` the resource to minimize; `ignore-profile` counts every op
    once;
    `default-trip-count` is taken for loops without counts in a profiled module; `memory-limit`
    (bytes, or `64MiB`) bounds what all tensors take that are live at once, copies in other
    layouts included, in the order of the module (see `memory_rows`); with `change-signature`,
    arguments and results of functions that nothing calls take what layout is best too. The remark
    says the cost, a lower bound that no choice of layouts goes below, the gap, and who knew the
    costs. If costs are unknown, it reports the number of such ops and reorders, and no gap.
    Another remark names each group of more than 1 % of the time that no kernel family but the
    generic loops takes.

    ```mlir
    %y = braid.fused(%x, %w) …       // {braid.layouts = {operands = […], results = […]}}
    ```
    """

    name = "select-layouts"

    target: str | None = None
    backend: str | None = None
    algorithm: str = "exact"
    cost: str = "seconds"
    time_limit: float = 10.0
    ignore_profile: bool = False
    default_trip_count: float = DEFAULT_TRIP_COUNT
    memory_limit: int | str | None = None
    change_signature: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.default_trip_count < inf:
            raise ValueError(
                f"default-trip-count is {self.default_trip_count:g}, expected a number from 0 on"
            )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decide for every function that runs with the model."""
        self.decide(op, self.costs_of(op))

    def costs_of(self, module: ModuleOp) -> LayoutCosts:
        """Return the option values about costs."""
        target = target_of(module, self.target)
        costs = CostSource(target)
        if self.backend:
            costs = CostSource.single(costs.on(target.device_with(self.backend)), target)
        return LayoutCosts(module, costs, self.cost)

    def decide(self, module: ModuleOp, costs: LayoutCosts) -> None:
        """Select layouts by `costs`, whatever the target."""
        counts = ExecutionCounts.of(module, self.default_trip_count)
        if self.ignore_profile:
            counts = ExecutionCounts.ones()
        called = named_symbols(module) if self.change_signature else frozenset[str]()
        stored = StoredWeights(costs)
        for func in _largest_first(module):
            self._decide(func, costs, counts, stored, is_called=func.sym_name.data in called)

    def _limit(self) -> int | None:
        try:
            return None if self.memory_limit is None else parse_size(self.memory_limit)
        except ValueError as error:
            raise BraidError(f"'memory-limit': {error}") from error

    def _decide(
        self,
        func: FuncOp,
        costs: LayoutCosts,
        counts: ExecutionCounts,
        stored: StoredWeights,
        *,
        is_called: bool,
    ) -> None:
        deadline = Deadline.after(self.time_limit)
        changes = self.change_signature and not is_called
        flow = collect_flow(func, costs, stored, change_signature=changes)
        if self.algorithm.startswith("fixed:"):
            flow = _restricted(flow, _parse_layout(self.algorithm.partition(":")[2]))
        problem = LayoutProblemBuilder(func, flow, costs, counts).build(self._limit())
        solution = problem.checked(self._solve(func, problem, deadline))
        reorders = _write(func, problem, solution.assignment, stored)
        unknown = _unknown(problem, solution.assignment)
        gap = "gap unknown" if any(unknown) else f"gap {solution.gap:.2%}"
        message = (
            f"cost {solution.cost:.9g} {self.cost}, lower bound {solution.lower_bound:.9g}, "
            f"{gap}, {reorders} reorders"
        )
        data: dict[str, RemarkValue] = {
            "cost": solution.cost,
            "lower_bound": solution.lower_bound,
            "gap": None if any(unknown) else solution.gap,
            "reorders": reorders,
        }
        if any(unknown):
            data["unknown_ops"], data["unknown_reorders"] = unknown
            message += (
                f", {self.cost} of {unknown[0]} ops and {unknown[1]} reorders not known and "
                "counted as 0"
            )
        if (memory := problem.problem.memory) is not None:
            data["peak_bytes"] = peak_usage(memory, np.array(solution.assignment))
            message += f", peak {data['peak_bytes']} of {memory.limit} bytes"
        if (most := problem.most_layouts) is not None:
            message += f", not all sets of the {most} layouts of a value were tried"
        data["sources"] = sources = _sources(problem, solution.assignment)
        emit_remark(func, self.name, f"{message}; costs: {sources}", **data)
        if self.cost == "seconds":
            remark_generic_kernels(func, self.name, problem, solution.assignment, costs)

    def _solve(self, func: Operation, problem: LayoutProblem, deadline: Deadline) -> Solution:
        # Making the problem counts too; where that took all the time, a little is searched still.
        seconds = max(deadline.remaining, _LEAST_SHARE * self.time_limit)
        try:
            if self.algorithm == "greedy":
                return greedy(problem.problem)
            if self.algorithm == "exact" or self.algorithm.startswith("fixed:"):
                return solve(problem.problem, time_limit=seconds)
        except InfeasibleAssignment as error:
            raise self._infeasible(func, problem, error) from error
        except TimeoutError as error:
            raise self._out_of_time(func) from error
        raise BraidError(
            f"unknown algorithm '{self.algorithm}'",
            hint="expected 'exact', 'greedy' or 'fixed:<layout>'",
        )

    def _out_of_time(self, func: Operation) -> BraidError:
        fits, way_out = "together", ""
        if self.memory_limit is not None:
            fits, way_out = f"into {self.memory_limit} of memory", " or memory-limit"
        return BraidError(
            f"no choice of layouts that fits {fits} was found within {self.time_limit:g} s, "
            "though there may be one",
            location=source_location(func),
            hint=f"give a larger time-limit{way_out}",
        )

    def _infeasible(
        self, func: Operation, problem: LayoutProblem, error: InfeasibleAssignment
    ) -> InfeasibleError:
        """Return the contradiction, as far as it is known: a pair of ops, or all of them."""
        if (conflict := find_conflict(problem)) is not None:
            return InfeasibleError(
                f"no choice of layouts fits together: {conflict}",
                location=source_location(conflict.reader),
                hint="declare more layouts or reorders",
            )
        if self.memory_limit is None:
            return InfeasibleError(
                f"no choice of layouts fits together, though any two ops do ({error})",
                location=source_location(func),
                hint="declare more layouts or reorders",
            )
        if (most := problem.most_layouts) is not None:
            return InfeasibleError(
                f"no choice of layouts that fits into {self.memory_limit} of memory was found; "
                f"not all sets of the {most} layouts of a value were tried",
                location=source_location(func),
                hint="give a larger memory-limit, or declare fewer layouts",
            )
        return InfeasibleError(
            f"no choice of layouts fits into {self.memory_limit} of memory",
            location=source_location(func),
            hint="give a larger memory-limit",
        )


def _parse_layout(text: str) -> Layout:
    try:
        return Layout.named(text)
    except InvalidLayout as error:
        raise BraidError(str(error)) from error
