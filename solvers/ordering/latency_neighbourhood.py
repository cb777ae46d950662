"""Search of large neighbourhoods of an order of issue: windows of it are put in another order."""

from itertools import accumulate
from math import inf
from random import Random
from time import monotonic

from braid.solvers.ordering.latency import LatencyProblem
from braid.solvers.ordering.latency_timeline import SPACING, Timeline

LONGEST = 256
"""Ops of the longest window."""
TRIAL_ROUNDS = 4000
TRIED = 0.1
"""Windows that are changed with loads in each way before one is settled on, and their time."""
TRIED_OPS = 600
"""Pieces with more ops have no windows to spare for both ways."""
PAYS = 0.98
"""Of such a piece loads come early if that saves so much of what it starts with."""
RESET = 64
"""Changes after which the schedule is made anew."""


def neighbourhood_search(
    problem: LatencyProblem,
    start: list[int],
    target: float,
    deadline: float,
    seed: int,
    rounds: int,
) -> list[int]:
    """Change windows of `start` as long as that is no worse; return the best order.

    An order that is good without early loads is another one than with them: of few ops both are
    tried for a while. Stops at `target`, at `deadline` or after `rounds` windows.
    """
    value, order, ahead = inf, start, 0
    for choice in _choices(problem, start):
        now = monotonic()
        limit = now + (deadline - now) * TRIED
        first = min(rounds, TRIAL_ROUNDS)
        found, seconds = _change_windows(problem, start, choice, target, limit, seed, first)
        if seconds < value:
            value, order, ahead = seconds, found, choice
    if value > target and rounds > TRIAL_ROUNDS:
        rest = rounds - TRIAL_ROUNDS
        order, _ = _change_windows(problem, order, ahead, target, deadline, seed + 1, rest)
    return min(start, order, key=problem.evaluate)


def _choices(problem: LatencyProblem, start: list[int]) -> tuple[int, ...]:
    """By how many ops loads come early; planning them costs half of the windows."""
    if len(problem.aheads) == 1 or len(start) <= TRIED_OPS:
        return problem.aheads
    late, early = (problem.seconds(start, ahead) for ahead in problem.aheads)
    return problem.aheads[1:] if early < PAYS * late else problem.aheads[:1]


def _change_windows(
    problem: LatencyProblem,
    start: list[int],
    ahead: int,
    target: float,
    deadline: float,
    seed: int,
    rounds: int,
) -> tuple[list[int], float]:
    """Search with loads up to `ahead` ops early; return an order and its seconds."""
    random = Random(seed)
    timeline = Timeline(problem, start, ahead)
    # Addressing takes no time and moves along with what needs it.
    moving = {*traffic.reads, *traffic.makes} if (traffic := problem.traffic) else set[int]()
    busy = moving | {op for op, own in enumerate(problem.stages) if own}
    best, value, changes = start, timeline.value, 0
    waiting = list(accumulate(timeline.idle()))
    for _ in range(rounds if len(start) > 2 else 0):
        if value <= target or monotonic() > deadline:
            break
        begin, end = _window(random, timeline, waiting)
        window = timeline.order[begin:end]
        ops = _reordered(problem, window, random)
        same = [op for op in ops if op in busy] == [op for op in window if op in busy]
        if same or not timeline.change(begin, ops):
            continue
        changes += 1
        if changes % RESET == 0 or timeline.value <= target:
            timeline.reset(timeline.order)
            if timeline.value < value:
                best, value = timeline.order.copy(), timeline.value
            elif timeline.value > value:
                timeline.reset(best)
            waiting = list(accumulate(timeline.idle()))
    timeline.reset(timeline.order)
    return (timeline.order, timeline.value) if timeline.value < value else (best, value)


def _window(random: Random, timeline: Timeline, waiting: list[float]) -> tuple[int, int]:
    """A window anywhere, or about where the busiest unit is `waiting` (sums over blocks)."""
    count = len(timeline.order)
    length = min(2 + int(random.expovariate(1.0) * random.choice((2, 8, 32))), count, LONGEST)
    last = count - length
    if random.random() < 0.5 or not waiting[-1]:
        begin = random.randint(0, last)
    else:
        (block,) = random.choices(range(len(waiting)), cum_weights=waiting)
        middle = block * SPACING + random.randint(-4 * SPACING, 4 * SPACING)
        begin = min(max(middle - length // 2, 0), last)
    return begin, begin + length


def _reordered(problem: LatencyProblem, window: list[int], random: Random) -> list[int]:
    """An op moved with what it needs to the front of `window`, or with what needs it to the end."""
    graph = problem.graph
    if random.random() < 0.5:
        group = {window[-1]}
        for op in reversed(window):
            if op in group:
                group.update(graph.predecessors[op])
        return [op for op in window if op in group] + [op for op in window if op not in group]
    group = {window[0]}
    for op in window:
        if op in group:
            group.update(graph.successors[op])
    return [op for op in window if op not in group] + [op for op in window if op in group]
