"""Least makespan: exact on small pieces, beams and annealing on what is left."""

from collections.abc import Sequence
from time import monotonic

from braid.solvers.ordering.graph import all_orders, count_orders, cut_after, key_nodes
from braid.solvers.ordering.latency import LatencyProblem, restrict
from braid.solvers.ordering.latency_annealing import anneal
from braid.solvers.ordering.latency_ideals import BranchAndBound, beam_search
from braid.solvers.ordering.latency_list import list_orders

EXACT_OPS = 300
"""Pieces with more ops are not searched exactly: their trees are too deep to be pruned."""
MOVES = 10_000
"""Moves of annealing for each op, at most."""
CLOSE_MOVES = 20_000
"""Moves before a proof is tried."""
BEAMS = (1, 8, 64)
CLOSE = 0.95
"""A gap of so much is proven before the least value is looked for."""
ENUMERATED_OPS = 64
ENUMERATED_ORDERS = 2000


def improve_latency(
    problem: LatencyProblem, start: list[int], deadline: float, seed: int, good_enough: float
) -> tuple[list[int], float]:
    """Return an order no worse than `start`, and a lower bound on all orders.

    Where every stage waits for its op's predecessors, nothing overlaps a key node: the makespan
    is the sum over the pieces between them, each searched on its own.
    """
    pieces = _independent_pieces(problem, start)
    if len(pieces) == 1:
        return _improve_piece(problem, start, deadline, seed, good_enough)
    left = len(start)
    order: list[int] = []
    bound = 0.0
    for piece in pieces:
        local = restrict(problem, piece)
        now = monotonic()
        limit = now + (deadline - now) * len(piece) / max(left, 1)
        found, local_bound = _improve_piece(local, list(range(len(piece))), limit, seed, 0.0)
        order += [piece[op] for op in found]
        bound += local_bound
        left -= len(piece)
    if problem.evaluate(order) > problem.evaluate(start):
        order = start
    return order, max(bound, problem.lower_bound(deadline))


def _independent_pieces(problem: LatencyProblem, order: Sequence[int]) -> list[list[int]]:
    if problem.traffic or not all(stage.waits for own in problem.stages for stage in own):
        return cut_after((), order)
    return cut_after(key_nodes(problem.graph), order)


def _improve_piece(
    problem: LatencyProblem, order: list[int], deadline: float, seed: int, good_enough: float
) -> tuple[list[int], float]:
    """Return an order no worse than the given one and a lower bound."""
    bound = problem.lower_bound(deadline)
    if problem.evaluate(order) <= max(bound, good_enough):
        return order, bound
    if len(problem) <= ENUMERATED_OPS and count_orders(problem.graph, ENUMERATED_ORDERS):
        order = min(all_orders(problem.graph), key=problem.evaluate)
        return order, problem.evaluate(order)
    starts = [order, *list_orders(problem, deadline)]
    order = min(starts, key=problem.evaluate)
    target = max(bound, good_enough)
    if len(problem) <= EXACT_OPS:
        close = max(bound / CLOSE, good_enough)
        order = anneal(problem, starts, close, deadline, seed, CLOSE_MOVES)
        order = _beams(problem, order, target, deadline)
        order, bound = _prove(problem, order, bound, deadline, good_enough)
        target = max(bound, good_enough)
    moves = MOVES * len(problem)
    return anneal(problem, [order, *starts], target, deadline, seed, moves), bound


def _beams(problem: LatencyProblem, order: list[int], target: float, deadline: float) -> list[int]:
    """Return the best of `order` and those of beams, within a part of the time."""
    for width in BEAMS:
        now = monotonic()
        if problem.evaluate(order) <= target:
            break
        found = beam_search(problem, width, now + (deadline - now) * 0.1)
        if found is None:
            break
        order = min(order, found, key=problem.evaluate)
    return order


def _prove(
    problem: LatencyProblem, order: list[int], bound: float, deadline: float, good_enough: float
) -> tuple[list[int], float]:
    """Return an order no worse than `order` and a bound no lower than `bound`.

    That no order is faster than a bit less than the known value takes a far smaller tree than
    finding the least, so it is tried first.
    """
    for part in (CLOSE, 1.0):
        now = monotonic()
        value = problem.evaluate(order)
        if value <= max(bound, good_enough):
            break
        exact = BranchAndBound(problem, part * value, now + (deadline - now) * 0.3)
        complete = exact.run(good_enough)
        order = min([order, *exact.found], key=problem.evaluate)
        if complete:
            # Nothing is faster than this even without spills.
            bound = max(bound, exact.value)
    return order, bound
