"""One of several implementations for each stage: the fastest that fit the resources of a part.

A pipeline is as fast as its slowest stage. So the answer is the least number of cycles within which
all stages have choices that fit together: bisection over the numbers that occur finds it. Within a
limit each stage takes its cheapest choice, since a faster one would only wait; if these do not fit,
an integer program finds choices that do (a multiple-choice knapsack of several resources; Kellerer,
Pferschy, Pisinger, "Knapsack problems", 2004, chapter 11).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ortools.sat.python import cp_model

Uses = tuple[int, ...]
"""The amount that is used of each resource."""

_PRICE = 1 << 20
"""The price of all of a resource in the integer program."""


@dataclass(frozen=True)
class Choice:
    """`cycles` of a stage that takes `uses` of the resources."""

    cycles: int
    uses: Uses


@dataclass(frozen=True)
class Selection:
    """The number of a choice for each stage; no selection that fits has less than `lower_bound`."""

    picked: tuple[int, ...]
    cycles: int
    lower_bound: int
    uses: Uses

    @property
    def gap(self) -> float:
        """(cycles - lower bound) / cycles."""
        return (self.cycles - self.lower_bound) / self.cycles


Stages = Sequence[Sequence[Choice]]
Measure = Callable[[int, int], Uses]
"""A function from the numbers of a stage and of one of its choices to the resources that the choice
really takes."""


def total(stages: Stages, picked: Sequence[int]) -> Uses:
    """Return the total of all stages."""
    uses = [stage[one].uses for stage, one in zip(stages, picked, strict=True)]
    return tuple(map(sum, zip(*uses, strict=True)))


def least(stages: Stages) -> Uses:
    """Return what no selection goes below, resource by resource."""
    each = [tuple(map(min, zip(*(one.uses for one in stage), strict=True))) for stage in stages]
    return tuple(map(sum, zip(*each, strict=True)))


def fits(uses: Sequence[int], budget: Sequence[int]) -> bool:
    """Return whether no resource is exceeded."""
    return all(used <= given for used, given in zip(uses, budget, strict=True))


def fastest(stages: Stages, budget: Uses, work: float = 10.0) -> Selection | None:
    """Return the selection within `budget` whose slowest stage has the fewest cycles; None without
    one.

    Of as many cycles it is the cheapest, in shares of the budget. An integer program that takes
    more than `work`, about seconds, is taken to have no answer; the lower bound does not rely on
    that.
    """
    floor = max(min(one.cycles for one in stage) for stage in stages)
    limits = sorted({one.cycles for stage in stages for one in stage if one.cycles >= floor})
    best: tuple[int, ...] | None = None
    low, high, proven = 0, len(limits), 0
    while low < high:
        middle = (low + high) // 2
        picked, is_proven = cheapest(stages, limits[middle], budget, work)
        if picked is None:
            low = middle + 1
            proven = max(proven, low * is_proven)
        else:
            best, high = picked, middle
    if best is None:
        return None
    return Selection(best, limits[high], limits[proven], total(stages, best))


def fastest_measured(
    stages: Stages,
    budget: Uses,
    measure: Measure,
    *,
    rounds: int = 40,
    measures: int = 128,
    work: float = 10.0,
) -> Selection | None:
    """Return the fastest choices as `fastest` does, with the resources that `measure` reports.

    Picked choices are measured and the pick is repeated until it contains measured choices only. It
    is then the fastest even if all choices were measured. After this many rounds, it is the fastest
    of those that were, if these fit. After this many `measures` the result may not be the cheapest
    of the fastest choices, since many stages would take long to measure.
    """
    known = [list(stage) for stage in stages]
    measured: list[set[int]] = [set() for _ in stages]
    while True:
        found = fastest(known, budget, work)
        if found is None:
            return None
        new = [at for at, one in enumerate(found.picked) if one not in measured[at]]
        if not new:
            return found
        if min(rounds, measures) <= 0:
            seen = _of_these(known, measured, budget, work)
            if seen is not None and (rounds <= 0 or seen.cycles == found.cycles):
                return replace(seen, lower_bound=found.lower_bound)
        for at in new:
            one = found.picked[at]
            known[at][one] = replace(known[at][one], uses=measure(at, one))
            measured[at].add(one)
        rounds -= 1
        measures -= len(new)


def _of_these(
    stages: Stages, allowed: Sequence[set[int]], budget: Uses, work: float
) -> Selection | None:
    numbers = [sorted(one) for one in allowed]
    if not all(numbers):
        return None
    some = [[stage[one] for one in own] for stage, own in zip(stages, numbers, strict=True)]
    found = fastest(some, budget, work)
    if found is None:
        return None
    picked = (own[one] for own, one in zip(numbers, found.picked, strict=True))
    return replace(found, picked=tuple(picked))


def cheapest(
    stages: Stages, limit: int, budget: Uses, work: float = 10.0
) -> tuple[tuple[int, ...] | None, bool]:
    """Return the cheapest choices of at most `limit` cycles that fit, and whether that is
    proven.
    """
    fitting = [[at for at, one in enumerate(stage) if one.cycles <= limit] for stage in stages]
    if not all(fitting):
        return None, True
    chosen = [[stage[at] for at in own] for stage, own in zip(stages, fitting, strict=True)]
    if not fits(least(chosen), budget):
        return None, True
    prices = [[price(one.uses, budget) for one in stage] for stage in chosen]
    picked = [min(range(len(own)), key=own.__getitem__) for own in prices]
    is_proven = True
    if not fits(total(chosen, picked), budget):
        picked, is_proven = _by_integer_program(chosen, prices, budget, work)
        if picked is None:
            return None, is_proven
    return tuple(own[one] for own, one in zip(fitting, picked, strict=True)), is_proven


def price(uses: Uses, budget: Uses) -> float:
    """Return the price of resources: the sum of their shares of the budget."""
    return sum(used / max(given, 1) for used, given in zip(uses, budget, strict=True))


def _by_integer_program(
    stages: Stages, prices: Sequence[Sequence[float]], budget: Uses, work: float
) -> tuple[list[int] | None, bool]:
    model = cp_model.CpModel()
    taken = [[model.new_bool_var("") for _ in stage] for stage in stages]
    for own in taken:
        model.add_exactly_one(own)
    for resource, given in enumerate(budget):
        model.add(
            sum(
                variable * choice.uses[resource]
                for own, stage in zip(taken, stages, strict=True)
                for variable, choice in zip(own, stage, strict=True)
            )
            <= given
        )
    model.minimize(
        sum(
            variable * round(cost * _PRICE)
            for own, costs in zip(taken, prices, strict=True)
            for variable, cost in zip(own, costs, strict=True)
        )
    )
    solver = cp_model.CpSolver()
    # Counted by the solver, so that designs do not depend on what else the machine does.
    solver.parameters.max_deterministic_time = work
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, status == cp_model.INFEASIBLE
    picked = [next(at for at, one in enumerate(own) if solver.boolean_value(one)) for own in taken]
    return picked, status == cp_model.OPTIMAL


def work_bound(stages: Stages, budget: Uses) -> int:
    """Return a lower bound of cycles: those in which the budget does the work of all stages.

    In T cycles a resource with B units provides B · T unit-cycles; each stage needs at least those
    of its best choice.
    """
    works = [
        sum(min(one.cycles * one.uses[resource] for one in stage) for stage in stages)
        for resource in range(len(budget))
    ]
    return max(-(-work // max(given, 1)) for work, given in zip(works, budget, strict=True))
