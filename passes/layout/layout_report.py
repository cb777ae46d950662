"""Report why layouts were chosen: the choices of every op, and the total cost of each."""

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from braid.analysis.profile.execution_counts import ExecutionCounts
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.layout import Layout
from braid.passes.layout.flow import collect_flow
from braid.passes.layout.problem import LayoutProblemBuilder
from braid.solvers.strategy import solve
from braid.solvers.strategy.marginals import min_marginals
from braid.targets.costs.cost import Source
from braid.targets.costs.layout_costs import LayoutCosts


@dataclass(frozen=True)
class ChoiceReport:
    """One way to run an op: its cost per run, and the least cost of everything if it is taken.

    The unit is that of the costs; infinity where nothing fits with the choice. `family` makes the
    kernel; it is empty for an op that is not a group, and on targets without families. `source`
    knew the cost.
    """

    layouts: LayoutChoice
    family: str
    source: Source
    cost: float
    total: float


@dataclass(frozen=True)
class OpReport:
    """All choices of `op`, and which was taken; `is_exact` as `Marginals.reoptimized`."""

    op: Operation
    executions: float
    choices: tuple[ChoiceReport, ...]
    chosen: int
    is_exact: bool


@dataclass(frozen=True)
class ReorderReport:
    """A reorder that moves data, and its cost per run."""

    value: SSAValue
    source: Layout
    target: Layout
    executions: float
    cost: float


@dataclass(frozen=True)
class LayoutReport:
    """The optimum of a function.

    Where not all sets of the `most_layouts` of a value were tried, the result is not proven: the
    bound is the least cost of the ops. It is None if all were tried.
    """

    cost: float
    lower_bound: float
    ops: tuple[OpReport, ...]
    reorders: tuple[ReorderReport, ...]
    most_layouts: int | None = None


def layout_report(
    function: FuncOp, costs: LayoutCosts, counts: ExecutionCounts, *, time_limit: float = 10.0
) -> LayoutReport:
    """Return the decision of `select-layouts` for `function`, with the rejected alternatives.

    Raises `InfeasibleAssignment` and `TimeoutError` as `solve`.
    """
    problem = LayoutProblemBuilder(function, collect_flow(function, costs), costs, counts).build()
    solution = problem.checked(solve(problem.problem, time_limit=time_limit))
    open_nodes = [
        number
        for number, variable in enumerate(problem.variables)
        if variable.slot is None and variable.choices is not None
    ]
    marginals = min_marginals(
        problem.problem, solution.assignment, open_nodes, time_limit=time_limit
    )
    ops: list[OpReport] = []
    for number, marginal in zip(open_nodes, marginals, strict=True):
        variable = problem.variables[number]
        choices = variable.choices or ()
        known = (variable.families, variable.sources, variable.costs)
        rows = zip(choices, *known, marginal.costs, strict=True)
        ops.append(
            OpReport(
                variable.owner,
                counts.of_block(variable.block),
                tuple(ChoiceReport(*row) for row in rows),
                solution.assignment[number],
                marginal.reoptimized,
            )
        )
    reorders = tuple(
        ReorderReport(
            reorder.value,
            reorder.source,
            reorder.target,
            counts.of_block(reorder.block),
            costs.reorder(
                reorder.value.type,
                reorder.source,
                reorder.target,
                () if reorder.device is None else (reorder.device,),
            ),
        )
        for reorder in problem.reorders(solution.assignment)
        if not reorder.is_view
    )
    return LayoutReport(
        solution.cost, solution.lower_bound, tuple(ops), reorders, problem.most_layouts
    )
