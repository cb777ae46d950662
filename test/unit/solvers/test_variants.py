"""Choices of variants against all subsets."""

from itertools import combinations
from random import Random

import pytest

from braid.solvers.variants import MOST_CANDIDATES, Budget, Variant, choose_variants


def best_gain(variants: list[Variant], budget: Budget) -> float:
    """Return the most that a subset within the budget saves."""
    return max(
        sum(each.gain for each in subset)
        for count in range(len(variants) + 1)
        for subset in combinations(variants, count)
        if sum(each.bytes for each in subset) <= budget.bytes
        and sum(each.compile_seconds for each in subset) <= budget.compile_seconds
    )


@pytest.mark.parametrize("seed", range(120))
def test_the_choice_is_the_best_of_all_subsets(seed: int) -> None:
    random = Random(seed)
    variants = [
        Variant(random.randint(-3, 20), random.randint(0, 9), random.randint(0, 9))
        for _ in range(random.randint(0, 10))
    ]
    budget = Budget(random.randint(0, 40), random.randint(0, 40))
    chosen = choose_variants(variants, budget)
    assert list(chosen) == sorted(set(chosen))
    assert all(variants[i].gain > 0 for i in chosen)
    assert sum(variants[i].bytes for i in chosen) <= budget.bytes
    assert sum(variants[i].compile_seconds for i in chosen) <= budget.compile_seconds
    assert sum(variants[i].gain for i in chosen) == best_gain(variants, budget)


def test_many_alike_are_chosen_at_once() -> None:
    variants = [Variant(1.0, 3.0, 1.0)] * MOST_CANDIDATES
    assert len(choose_variants(variants, Budget(20.0, 100.0))) == 6


def test_wrong_problems_are_refused() -> None:
    with pytest.raises(ValueError, match="25 variants"):
        choose_variants([Variant(1.0, 1.0, 1.0)] * 25, Budget(1.0, 1.0))
    with pytest.raises(ValueError, match="negative"):
        choose_variants([Variant(1.0, -1.0, 1.0)], Budget(1.0, 1.0))
