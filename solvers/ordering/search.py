"""Search for a topological order with the least peak memory or the least makespan."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from braid.solvers.deadline import Deadline
from braid.solvers.ordering.baselines import by_priority, depth_first, greedy_by_memory, kahn
from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.memory import MemoryProblem


@dataclass(frozen=True)
class Order:
    """A topological order, its objective (bytes or seconds), and a bound on all orders."""

    order: tuple[int, ...]
    value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """Return how far the bound is below the value, as a fraction of the value."""
        return 1 - self.lower_bound / self.value if self.value else 0.0

    @property
    def proven(self) -> bool:
        """True if no order is better (up to rounding of sums of durations)."""
        return self.gap <= 1e-9


def baselines(problem: MemoryProblem | LatencyProblem) -> dict[str, list[int]]:
    """Return the classical orders by name: those that the problem has the data for."""
    orders = {"kahn": kahn(problem.graph), "depth-first": depth_first(problem.graph)}
    if isinstance(problem, MemoryProblem):
        orders["greedy-by-memory"] = greedy_by_memory(problem)
    else:
        orders["critical-path"] = by_priority(problem.graph, problem.tails)
    return orders


def search(
    problem: MemoryProblem | LatencyProblem,
    *,
    time_limit: float = 10.0,
    deadline: Deadline | None = None,
    seed: int = 0,
    good_enough: float = 0.0,
    candidates: Iterable[Sequence[int]] = (),
    only_good: bool = False,
) -> Order:
    """Return the best order found in `time_limit` seconds, with a lower bound.

    The result is never worse than the classical orders and the `candidates` (such as the order
    the model came in). A value of at most `good_enough` ends the search; with `only_good` the proof
    that there is no such peak does as well. Seconds of searches for memory are those that counted
    steps take on a usual machine, so that the result is the same for the same seed; other searches
    give the same as long as the time limit does not cut them short. `deadline`, where it is given,
    goes by such a clock, and stands for the time limit.

    Raises ValueError when a candidate is not a topological order.
    """
    by_work = isinstance(problem, MemoryProblem)
    if deadline is None:
        deadline = Deadline.by_work(time_limit) if by_work else Deadline.after(time_limit)
    known = [*map(list, candidates), *baselines(problem).values()]
    for order in known:
        if not problem.graph.is_order(order):
            raise ValueError(f"a candidate order of {len(order)} ops is not a topological order")
    start = min(known, key=problem.evaluate)
    # Imported here: most compilations search nothing.
    if isinstance(problem, MemoryProblem):
        from braid.solvers.ordering.memory_search import improve_memory

        found, bound = improve_memory(problem, start, deadline, seed, good_enough, only_good)
    else:
        from braid.solvers.ordering.latency_search import improve_latency

        found, bound = improve_latency(problem, start, deadline.at, seed, good_enough)
    value = problem.evaluate(found)
    return Order(tuple(found), value, min(bound, value))
