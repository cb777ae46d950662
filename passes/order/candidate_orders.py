"""The orders of a subgraph among which a search decides, each with its value."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from braid.dialects.braid.names import names_of
from braid.dialects.braid.opaque import OpaqueOp
from braid.solvers.deadline import Deadline
from braid.solvers.ordering import LatencyProblem, MemoryProblem, all_orders, baselines
from braid.solvers.ordering.latency_list import list_orders

_LOOK = 2e-6
"""Seconds for each op of what makes an order and evaluates it."""
ENUMERATED_ORDERS = 20_000
"""Subgraphs with more have candidates of list scheduling alone."""


@dataclass(frozen=True)
class CandidateOrder:
    """An order of the ops of a subgraph, by their places in it, and the objective's value."""

    value: float
    order: tuple[int, ...]


def candidate_orders(
    problem: MemoryProblem | LatencyProblem,
    orders: int | None,
    found: Sequence[int],
    count: int,
    deadline: Deadline,
) -> list[CandidateOrder]:
    """Return the `count` best candidates, best first, `found` first among equals.

    All orders are candidates if there are at most `orders`; otherwise the candidates are the order
    found, the classical ones, and those of list scheduling. At `deadline`, which for times is one
    of `time.monotonic`, the candidates so far are all.
    """
    every: Iterable[Sequence[int]]
    if orders is not None and orders <= ENUMERATED_ORDERS:
        every = all_orders(problem.graph)
    else:
        every = _heuristic(problem, deadline)
    first = tuple(found)
    known = {first: problem.evaluate(first)}
    for order in every:
        if deadline.passed:
            break
        deadline.spend(_LOOK * len(first))
        if tuple(order) not in known:
            known[tuple(order)] = problem.evaluate(order)
    best = heapq.nsmallest(count, known.items(), key=lambda each: (each[1], each[0] != first))
    return [CandidateOrder(value, order) for order, value in best]


def _heuristic(
    problem: MemoryProblem | LatencyProblem, deadline: Deadline
) -> Iterator[Sequence[int]]:
    yield range(len(problem.graph))
    yield from baselines(problem).values()
    if isinstance(problem, LatencyProblem):
        yield from list_orders(problem, deadline.at)


def written(ops: Sequence[Operation], order: Sequence[int]) -> str:
    """Return the ops in this order: the names of the model's layers, else kinds, with their
    places.
    """
    return " ".join(f"{_label(ops[place])}#{place}" for place in order)


def _label(op: Operation) -> str:
    if names := names_of(op):
        return "+".join(names)
    return op.kind.data if isinstance(op, OpaqueOp) else op.name.removeprefix("braid.")
