"""Measured ÷ predicted by kind: robust, between the coarser kind and what was measured."""

import math
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.targets.costs.probed_support import places
from braid.targets.costs.ratios import FURTHEST, STRENGTH, Ratios, Sample


def samples(kinds, *ratios):
    return [Sample(kinds, 2.0, 2.0 * ratio) for ratio in ratios]


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert Ratios().of_kinds(["a", "b"]) == 1.0
    assert Ratios.of(samples(["a"], 3.0)).of_kinds(["b"]) == 1.0


def test_few_samples_move_it_less_than_many() -> None:
    one = Ratios.of(samples(["a"], 4.0)).of_kinds(["a"])
    assert one == pytest.approx(4.0 ** (1 / (1 + STRENGTH)))
    many = Ratios.of(samples(["a"], *[4.0] * 100)).of_kinds(["a"])
    assert one < many < 4.0 and many == pytest.approx(4.0, rel=0.03)


def test_a_kind_without_samples_is_as_its_coarser_one() -> None:
    ratios = Ratios.of(samples(["conv", "conv 1x1"], *[0.5] * 50))
    assert ratios.of_kinds(["conv", "conv 3x3"]) == ratios.of_kinds(["conv"]) < 0.55
    other = Ratios.of([*samples(["conv", "conv 1x1"], *[0.5] * 50), *samples(["conv", "late"], 2)])
    assert other.of_kinds(["conv"]) < other.of_kinds(["conv", "late"]) < 2


def test_one_outlier_moves_nothing() -> None:
    ratios = Ratios.of(samples(["a"], 2, 2, 2, 2, 1e9))
    assert ratios.medians["a"] == (pytest.approx(math.log(2)), 5)


def test_what_takes_no_time_counts_as_far_too_short() -> None:
    assert Sample(["a"], 1.0, 0.0).ratio == 1 / FURTHEST
    assert Sample(["a"], 1e-9, 1.0).ratio == FURTHEST


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_it_lies_between_one_and_the_median(ratios: list[float]) -> None:
    found = math.log(Ratios.of(samples(["a", "b"], *ratios)).of_kinds(["a", "b"]))
    middle = median(map(math.log, ratios))
    assert min(0.0, middle) - 1e-9 <= found <= max(0.0, middle) + 1e-9
    # As far from the median as the formula of the docstring says, twice.
    left = (STRENGTH / (len(ratios) + STRENGTH)) ** 2
    assert found == pytest.approx((1 - left) * middle)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({"a": 1.0, "b": 2.0, "c": 4.0}, {"a": 1, "b": 2, "c": 3}),
        ({"a": 1.0, "b": 0.97}, {"a": 1, "b": 1}),
        ({"a": 0.0, "b": 1e-7}, {"a": 1, "b": 1}),
        ({"a": 0.0, "b": 1e-5}, {"a": 1, "b": 2}),
    ],
)
def test_who_is_as_fast_has_the_same_place(seconds, expected) -> None:
    assert places(seconds) == expected
