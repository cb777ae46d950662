"""Cases in which every two values of different parameters meet, instead of all products."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any


def all_pairs(*parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return cases, a value of each parameter, such that each two values of two parameters occur
    together.

    Most failures depend on one parameter or on two together; those that need three are too rare to
    justify the time of testing all combinations. The cases are chosen one after the other, each the
    one with the most pairs that no case has yet.
    """
    places = list(combinations(range(len(parameters)), 2))
    cases = list(product(*(range(len(values)) for values in parameters)))
    left = {(i, j, case[i], case[j]) for case in cases for i, j in places}
    chosen: list[tuple[int, ...]] = []
    while left:
        best = max(cases, key=lambda c: sum((i, j, c[i], c[j]) in left for i, j in places))
        left -= {(i, j, best[i], best[j]) for i, j in places}
        chosen.append(best)
    return [tuple(values[n] for values, n in zip(parameters, case, strict=True)) for case in chosen]
