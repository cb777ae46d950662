"""The smallest budget: a lower bound with whom to blame, and the least that was reached."""

from collections.abc import Sequence
from dataclasses import dataclass

from braid.solvers.deadline import Deadline
from braid.solvers.rematerialization.order import candidate_orders
from braid.solvers.rematerialization.plain_order import least_memory_order
from braid.solvers.rematerialization.problem import Problem
from braid.solvers.rematerialization.simulate import simulate
from braid.solvers.rematerialization.start import first_schedule


@dataclass(frozen=True)
class Need:
    """`bytes` that every schedule needs at one time: while one of `ops` runs, for `tensors`.

    `ops` is empty when it is the graph's inputs and outputs together that need the most.
    """

    bytes: int
    ops: tuple[int, ...]
    tensors: tuple[int, ...]


@dataclass(frozen=True)
class MinimumBudget:
    """`found` is the peak of `sequence`; no schedule has a peak below `need.bytes`."""

    found: int
    sequence: tuple[int, ...]
    need: Need

    @property
    def proven(self) -> bool:
        """True if no smaller budget is feasible."""
        return self.found == self.need.bytes


def structural_need(problem: Problem) -> Need:
    """Return the largest need of a single op, or that of the graph's outputs at the end."""
    inputs = [tensor for tensor, maker in enumerate(problem.producer) if maker < 0]
    ends = sum(problem.sizes[t] for t in problem.outputs if problem.producer[t] >= 0)
    own = {op: problem.own_bytes(op) for op in problem.required}
    most = max(own.values(), default=0)
    if most <= ends + problem.pinned_bytes:
        return Need(ends + problem.pinned_bytes, (), tuple(sorted({*problem.outputs, *inputs})))
    ops = tuple(op for op, size in own.items() if size == most)
    tensors = {tensor for op in ops for tensor in problem.own_tensors(op)}
    by_size = sorted(tensors.union(inputs), key=lambda tensor: (-problem.sizes[tensor], tensor))
    return Need(most, ops, tuple(by_size))


def minimum_budget(
    problem: Problem,
    *,
    time_limit: float = 30.0,
    seed: int = 0,
    tolerance: float = 0.002,
    orders: Sequence[Sequence[int]] = (),
    fixed_order: bool = False,
) -> MinimumBudget:
    """Search for the smallest budget within which a schedule exists, whatever its duration.

    Bisects between the structural need and the least natural peak, with heuristics at each budget,
    until the two are within `tolerance` of each other or `time_limit` seconds have passed. `orders`
    are known ones of the required ops, the only ones of first executions with `fixed_order`.
    Deciding feasibility is PSPACE-hard in general (it is a pebble game), so `found` may be larger
    than necessary; `proven` says when it is not.
    """
    deadline = Deadline.after(time_limit)
    need = structural_need(problem)
    if not orders:
        orders = [least_memory_order(problem, need.bytes, deadline.share(0.2), seed)]
    tried = [tuple(order) for order in orders]
    for order in candidate_orders(problem, seed, 6) if not fixed_order else ():
        tried.append(order)
        if deadline.remaining < 0.7 * time_limit:
            break
    best = min(tried, key=lambda order: simulate(problem, order).peak)
    found, refuted = simulate(problem, best).peak, need.bytes - 1
    trial = need.bytes
    while found - refuted > max(1, tolerance * found) and not deadline.passed:
        give_up = Deadline.after(time_limit / 8).earlier(deadline)
        sequence = first_schedule(
            problem,
            trial,
            tried,
            enough=Deadline(0.0),
            give_up=give_up,
            fixed_order=fixed_order,
        )
        if sequence is None:
            refuted = trial
        else:
            best, found = sequence, simulate(problem, sequence).peak
        trial = (refuted + found) // 2
    return MinimumBudget(found, best, need)
