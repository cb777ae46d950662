"""Orders of a subgraph that are worth timing, on one stream or on several."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from braid.passes.order.subgraphs import COUNTED_OPS
from braid.solvers.ordering import MemoryProblem, baselines, count_orders
from braid.solvers.ordering.graph import all_orders
from braid.solvers.ordering.processor_search import list_schedules
from braid.solvers.ordering.processors import ProcessorProblem

ENUMERATED_ORDERS = 2000


@dataclass(frozen=True)
class Trial:
    """Ops in the order in which they run, and the inter-op stream of each; None: on all of them."""

    order: tuple[int, ...]
    streams: tuple[int | None, ...]
    stream_count: int = 1

    @staticmethod
    def on_one_stream(order: Sequence[int]) -> "Trial":
        """Return a schedule of one op after the other."""
        return Trial(tuple(order), (None,) * len(order))

    def within(self, piece: Sequence[int]) -> "Trial":
        """Return the trial with the ops of `piece` numbered by their place in it."""
        place = {op: index for index, op in enumerate(piece)}
        return Trial(tuple(place[op] for op in self.order), self.streams, self.stream_count)

    def of(self, piece: Sequence[int]) -> "Trial":
        """Return the inverse of `within`."""
        return Trial(tuple(piece[op] for op in self.order), self.streams, self.stream_count)


def order_trials(problem: MemoryProblem, first: Trial, count: int) -> list[Trial]:
    """Return up to `count` different orders: `first`, then those of the least estimated memory.

    They are chosen among all orders if these are few, otherwise among the classical ones.
    """
    graph = problem.graph
    few = len(graph) <= COUNTED_OPS and count_orders(graph, ENUMERATED_ORDERS) is not None
    orders = all_orders(graph) if few else iter(baselines(problem).values())
    ranked = sorted(map(tuple, orders), key=problem.evaluate)
    return _different(first, map(Trial.on_one_stream, ranked), count)


def inter_op_trials(problem: ProcessorProblem, first: Trial, count: int) -> list[Trial]:
    """Return up to `count` different schedules, `first` and then those of list scheduling.

    Among the latter, the one that runs one op at a time on all streams comes first, then the
    fastest.
    """
    schedules = list_schedules(problem, sorted(range(len(problem)), key=first.order.index))
    together = schedules.pop("together")
    trials: list[Trial] = []
    for order, wide in (together, *sorted(schedules.values(), key=problem.evaluate)):
        streams = problem.place((order, wide)).processors
        trials.append(Trial(tuple(order), tuple(streams[op] for op in order), problem.processors))
    return _different(first, trials, count)


def _different(first: Trial, others: Iterable[Trial], count: int) -> list[Trial]:
    return list(islice(dict.fromkeys((first, *others)), count))
