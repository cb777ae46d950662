"""Selections of implementations beside all that there are."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.hls.selection import (
    Choice,
    Selection,
    Uses,
    cheapest,
    fastest,
    fastest_measured,
    fits,
    price,
    total,
    work_bound,
)

NUMBERS = st.integers(0, 12)
CHOICES = st.builds(Choice, st.integers(1, 9), st.tuples(NUMBERS, NUMBERS, NUMBERS))
STAGES = st.lists(st.lists(CHOICES, min_size=1, max_size=4), min_size=1, max_size=4)
BUDGETS = st.tuples(*[st.integers(0, 40)] * 3)
Stages = list[list[Choice]]


def all_that_fit(stages: Stages, budget: Uses) -> list[tuple[int, float, tuple[int, ...]]]:
    """Cycles, price and numbers."""
    found: list[tuple[int, float, tuple[int, ...]]] = []
    for picked in product(*(range(len(stage)) for stage in stages)):
        uses = total(stages, picked)
        if fits(uses, budget):
            cycles = max(stage[one].cycles for stage, one in zip(stages, picked, strict=True))
            found.append((cycles, price(uses, budget), picked))
    return found


@settings(max_examples=150, deadline=None)
@given(STAGES, BUDGETS)
def test_the_fastest_selection_is_that_of_all_that_fit(stages: Stages, budget: Uses) -> None:
    found, every = fastest(stages, budget), all_that_fit(stages, budget)
    assert (found is None) == (not every)
    if found is not None:
        assert found.cycles == found.lower_bound == min(every)[0] >= work_bound(stages, budget)
        assert found.uses == total(stages, found.picked) and fits(found.uses, budget)
        cheap = min(cost for cycles, cost, _ in every if cycles <= found.cycles)
        # The integer program has prices in steps.
        assert price(found.uses, budget) <= cheap + 1e-4


@settings(max_examples=100, deadline=None)
@given(STAGES, BUDGETS, st.data())
def test_what_is_measured_replaces_what_was_thought(
    stages: Stages, budget: Uses, data: st.DataObject
) -> None:
    """The optimum of choices as they are measured, although few of them are."""
    more = st.tuples(*[st.integers(0, 6)] * 3)
    real = [
        [
            Choice(one.cycles, tuple(map(sum, zip(one.uses, data.draw(more), strict=True))))
            for one in stage
        ]
        for stage in stages
    ]
    asked: set[tuple[int, int]] = set()

    def measure(stage: int, choice: int) -> Uses:
        assert (stage, choice) not in asked
        asked.add((stage, choice))
        return real[stage][choice].uses

    found, best = fastest_measured(stages, budget, measure), fastest(real, budget)
    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert found.cycles == best.cycles == found.lower_bound
        assert found.uses == total(real, found.picked)


def test_after_the_last_round_the_best_that_was_measured_is_taken() -> None:
    """Ten fast choices that turn out too large, and a slow one that fits."""
    stage = [*(Choice(5 + one, (1,)) for one in range(10)), Choice(90, (1,))]

    def measure(stage: int, choice: int) -> Uses:
        return (1 if choice in (8, 10) else 9,)

    assert fastest_measured([stage], (4,), measure) == Selection((8,), 13, 13, (1,))
    # Nothing that was measured fits in the first round: it goes on until something does.
    found = fastest_measured([stage], (4,), measure, rounds=1)
    assert found == Selection((8,), 13, 13, (1,))


def test_many_stages_are_measured_until_nothing_is_faster() -> None:
    """Each choice looks cheaper than what was measured of another, so that all would be."""
    stages = [[Choice(5, (one,)) for one in range(20)] for _ in range(30)]
    asked: list[tuple[int, int]] = []

    def measure(stage: int, choice: int) -> Uses:
        asked.append((stage, choice))
        return (20 + choice,)

    found = fastest_measured(stages, (10_000,), measure, measures=50)
    assert found is not None and (found.cycles, found.lower_bound) == (5, 5)
    assert found.picked == (0,) * 30 and len(asked) == 60
    # What was measured does not fit: it goes on.
    tight = [[Choice(5, (1,)), Choice(6, (1,)), Choice(9, (3,))]]
    found = fastest_measured(tight, (4,), lambda _, choice: ((9, 3, 3)[choice],), measures=1)
    assert found == Selection((1,), 6, 6, (3,))


def test_stages_that_are_not_the_slowest_take_little() -> None:
    slow, quick = [Choice(100, (8,))], [Choice(10, (40,)), Choice(50, (8,)), Choice(200, (2,))]
    assert fastest([slow, quick], (64,)) == Selection((0, 1), 100, 100, (16,))
    assert cheapest([slow, quick], 40, (64,)) == (None, True)
    assert fastest([slow, quick], (9,)) is None
