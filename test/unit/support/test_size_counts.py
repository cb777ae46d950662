"""Counts of sizes that are added up, against the runs themselves."""

from collections import Counter
from random import Random

import pytest

from braid.support.size_counts import MOST_SIZES, SizeCount, add_size_counts, size_counts_of


def sketch(runs: list[int]) -> list[SizeCount]:
    """Return what the runtime keeps of these runs: a model of `size_counts.c`."""
    counts: dict[int, tuple[int, int]] = {}
    for size in runs:
        if size in counts:
            counts[size] = (counts[size][0] + 1, counts[size][1])
        elif len(counts) < MOST_SIZES:
            counts[size] = (1, 0)
        else:
            evicted = min(counts, key=lambda each: counts[each][0])
            least, _ = counts.pop(evicted)
            counts[size] = (least + 1, least)
    return [SizeCount((("n", size),), *each) for size, each in counts.items()]


@pytest.mark.parametrize("seed", range(6))
def test_sums_bound_the_runs_and_keep_what_is_frequent(seed: int) -> None:
    random = Random(seed)
    most = random.choice((20, 400, 5000))
    runs = [
        [int(random.paretovariate(1.0)) % most for _ in range(random.choice((10, 3000)))]
        for _ in range(3)
    ]
    true = Counter(size for each in runs for size in each)
    total = add_size_counts(map(sketch, runs))
    found = {dict(each.sizes)["n"]: each for each in total}
    assert len(found) == len(total) <= MOST_SIZES
    assert all(each.count - each.error <= true[n] <= each.count for n, each in found.items())
    least = total[-1].count if len(total) == MOST_SIZES else 0
    assert all(n in found for n, count in true.items() if count > least)
    assert [each.count for each in total] == sorted((e.count for e in total), reverse=True)
    if most == 20:
        assert {n: each.count for n, each in found.items()} == dict(true)


def test_entries_survive_a_file() -> None:
    counts = (SizeCount((("a", 3), ("b", 1)), 9, 2), SizeCount((("a", 2), ("b", 1)), 4))
    assert size_counts_of([each.to_json() for each in counts]) == counts


ENTRY = {"dims": {"n": 1}, "count": 2}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "no list of at most 256"),
        ([{**ENTRY, "dims": {"n": n}} for n in range(257)], "no list of at most 256"),
        ([{**ENTRY, "dims": {}}], "expected a size by each name"),
        ([{**ENTRY, "dims": [1]}], "expected a size by each name"),
        ([{**ENTRY, "dims": {"": 1}}], "no name of a dim"),
        ([{**ENTRY, "dims": {"n": -1}}], "not an integer"),
        ([{**ENTRY, "dims": {"n": 1.5}}], "not an integer"),
        ([{**ENTRY, "dims": {"n": True}}], "not an integer"),
        ([{**ENTRY, "count": 1 << 61}], "not an integer"),
        ([{**ENTRY, "error": 3}], "not an integer from 0 to 2"),
        ([ENTRY, ENTRY], "the same sizes twice"),
        ([ENTRY, {"dims": {"m": 1}, "count": 2}], "different dims"),
    ],
)
def test_wrong_entries_are_refused(entries: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        size_counts_of(entries)
