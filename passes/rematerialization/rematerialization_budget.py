"""The order and the recomputations that fit a block into a byte budget, by the solver."""

from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.traits import is_side_effect_free

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.storage.memory_graph import MemoryGraph
from braid.dialects.braid.names import names_of
from braid.passes.order.memory_problem import may_overwrite
from braid.solvers.rematerialization import InfeasibleBudgetError, Op, Problem, Schedule, solve
from braid.support.byte_sizes import format_size
from braid.support.errors import InfeasibleError, Note
from braid.targets.costs.cost_source import OpSeconds

_BLAMED = 4
"""Tensors that a message names."""


@dataclass(frozen=True)
class SolverOptions:
    """The options of a solver: seconds, seed, threads, and whether first runs keep their order."""

    time_limit: float = 60.0
    seed: int = 0
    workers: int = 1
    fixed_order: bool = False


def budget_problem(graph: MemoryGraph, seconds: OpSeconds) -> Problem:
    """Return the graph as an instance; op i and tensor t keep their numbers.

    Inputs and weights have size 0, since they are not in the arena. Ops with side effects keep
    their order through tensors without bytes that follow the graph's own. A result that a kernel
    writes over an operand, as plan-memory lets it where nothing else reads that any more, counts
    once. Effects of select-storage on concatenations are not counted: they never add to a peak.
    """
    sizes = list(graph.arena_sizes)
    ops: list[Op] = []
    previous: int | None = None
    for index, op in enumerate(graph.ops):
        inputs, outputs = graph.inputs[index], graph.outputs[index]
        if not is_side_effect_free(op):
            inputs = inputs if previous is None else (*inputs, previous)
            previous = len(sizes)
            sizes.append(0)
            outputs = (*outputs, previous)
        ops.append(
            Op(
                seconds(op),
                inputs,
                outputs,
                graph.workspace[index],
                graph.can_recompute(index),
                describe(op),
                tuple(graph.number[t] for t in may_overwrite(op) if t in graph.number),
            )
        )
    effects = frozenset([previous] if previous is not None else [])
    return Problem(tuple(ops), tuple(sizes), graph.results | effects)


def fit_budget(
    graph: MemoryGraph, budget: int, options: SolverOptions, seconds: OpSeconds
) -> tuple[Problem, Schedule]:
    """Return the instance and the shortest schedule found with a peak of at most `budget` bytes.

    Raises InfeasibleError, with the smallest feasible budget that was found and the tensors to
    blame, if none exists or none was found.
    """
    problem = budget_problem(graph, seconds)
    try:
        schedule = solve(
            problem,
            budget,
            time_limit=options.time_limit,
            seed=options.seed,
            workers=options.workers,
            fixed_order=options.fixed_order,
        )
    except InfeasibleBudgetError as error:
        raise _infeasible(graph, error) from error
    return problem, schedule


def describe(op: Operation) -> str:
    """Return the stable names of `op`, or what it is."""
    return ", ".join(names_of(op)) or op.name


def _infeasible(graph: MemoryGraph, error: InfeasibleBudgetError) -> InfeasibleError:
    verdict = "is infeasible" if error.proven else "was not reached"
    made = [t for t in error.blamed_tensors if t < len(graph.tensors) and graph.producer[t] >= 0]
    largest = sorted(made, key=lambda tensor: -graph.sizes[tensor])[:_BLAMED]
    notes = [_blame(graph, tensor) for tensor in largest]
    where = graph.ops[error.blamed_ops[0]] if error.blamed_ops else graph.block.parent_op()
    at = f" by '{describe(where)}'" if error.blamed_ops and where is not None else " at the end"
    return InfeasibleError(
        f"a memory budget of {error.budget} bytes ({format_size(error.budget)}) {verdict}: "
        f"{error.lower_bound} bytes are needed{at}",
        location=None if where is None else source_location(where),
        notes=notes,
        hint=f"the smallest budget found feasible is {error.smallest_found} bytes "
        f"({format_size(error.smallest_found)})",
    )


def _blame(graph: MemoryGraph, tensor: int) -> Note:
    op = graph.ops[graph.producer[tensor]]
    size = graph.sizes[tensor]
    return Note(
        f"the result of '{describe(op)}' takes {size} bytes ({format_size(size)})",
        source_location(op),
    )
