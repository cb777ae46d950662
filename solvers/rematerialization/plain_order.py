"""Orders that need no recomputation: those of least peak memory."""

from collections.abc import Sequence

from braid.solvers.deadline import Deadline
from braid.solvers.ordering.graph import Graph
from braid.solvers.ordering.memory import MemoryProblem, Tensor
from braid.solvers.ordering.search import search
from braid.solvers.rematerialization.problem import Problem


def order_problem(problem: Problem) -> tuple[MemoryProblem, tuple[int, ...]]:
    """Return the problem of ordering the required ops, and which op of `problem` each is.

    Its peaks are those of `simulate` for schedules in which every required op runs once.
    """
    ops = problem.required
    number = {op: index for index, op in enumerate(ops)}
    edges = [(number[maker], number[op]) for op in ops for maker in problem.predecessors[op]]
    made = [t for op in ops for t in problem.ops[op].outputs]
    place = {tensor: index for index, tensor in enumerate(made)}
    tensors = tuple(
        Tensor(
            problem.sizes[t],
            number[problem.producer[t]],
            tuple(number[user] for user in problem.consumers[t] if user in number),
            t in problem.outputs,
        )
        for t in made
    )
    workspace = tuple(problem.ops[op].workspace for op in ops)
    in_place = tuple(tuple(place[t] for t in problem.overwritten(op)) for op in ops)
    graph = Graph.from_edges(len(ops), edges)
    return MemoryProblem(graph, tensors, workspace, problem.pinned_bytes, in_place), ops


def least_memory_order(
    problem: Problem,
    budget: int,
    deadline: Deadline,
    seed: int,
    known: Sequence[int] = (),
    *,
    only_good: bool = False,
) -> tuple[int, ...]:
    """Return an order of the required ops with a small peak; it need not be below `budget`.

    A peak of at most `budget` ends the search; with `only_good`, so does the proof that there is
    none. `known` is an order to begin with.
    """
    memory, ops = order_problem(problem)
    number = {op: index for index, op in enumerate(ops)}
    candidates = [[number[op] for op in order] for order in (problem.required, known) if order]
    found = search(
        memory,
        time_limit=max(deadline.remaining, 0.0),
        seed=seed,
        good_enough=budget,
        candidates=candidates,
        only_good=only_good,
    )
    return tuple(ops[index] for index in found.order)
