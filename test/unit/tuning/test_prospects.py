"""The expected gain of measuring more, beside samples of the distribution that it is made for."""

import math

import numpy as np
import pytest

from braid.tuning.prospects import LEAST_SAMPLE, expected_gain


@pytest.mark.parametrize("count", [3, 4, 5, 8, 21])
@pytest.mark.parametrize("incumbent", [0.85, 1.0, 1.2])
def test_one_more_time(count: int, incumbent: float) -> None:
    """Its mean gain, by drawing it from Student's t."""
    generator = np.random.default_rng(count)
    logs = generator.normal(0.0, 0.1, count)
    scale = logs.std(ddof=1) * math.sqrt(1 + 1 / count)
    drawn = logs.mean() + scale * generator.standard_t(count - 1, 4_000_000)
    gains = np.maximum(0.0, math.log(incumbent) - drawn)
    error = 4 * gains.std() / math.sqrt(gains.size)
    found = expected_gain([float(t) for t in np.exp(logs)], 1, incumbent)
    assert found == pytest.approx(gains.mean(), abs=error)


@pytest.mark.parametrize("count", [4, 12])
@pytest.mark.parametrize("left", [2, 30])
def test_it_bounds_the_gain_of_many(count: int, left: int) -> None:
    generator = np.random.default_rng(left)
    logs = generator.normal(0.0, 0.1, count)
    scale = logs.std(ddof=1) * math.sqrt(1 + 1 / count)
    drawn = logs.mean() + scale * generator.standard_t(count - 1, (100_000, left)).min(axis=1)
    gain = np.maximum(0.0, math.log(0.8) - drawn).mean()
    assert expected_gain([float(t) for t in np.exp(logs)], left, 0.8) >= 0.95 * gain


def test_units_do_not_matter() -> None:
    times = [1.0, 1.3, 1.1, 1.25]
    microseconds = [time * 1e-6 for time in times]
    assert expected_gain(times, 5, 1.0) == pytest.approx(expected_gain(microseconds, 5, 1e-6))


def test_too_few_times_say_nothing() -> None:
    assert expected_gain([1.0] * (LEAST_SAMPLE - 1), 4, 0.5) == math.inf
    assert expected_gain([1.0, 0.0, 1.0], 4, 0.5) == math.inf, "a clock that stood still"


def test_nothing_is_left() -> None:
    assert expected_gain([1.0, 2.0], 0, 1.0) == 0.0


def test_equal_times() -> None:
    """What always took the same will again."""
    assert expected_gain([2.0] * 5, 3, 1.0) == 0.0
    assert expected_gain([1.0] * 5, 3, 1.0) == 0.0


def test_less_is_expected_of_fewer_and_of_a_faster_incumbent() -> None:
    times = [1.0, 1.3, 1.1, 1.25, 0.9]
    by_left = [expected_gain(times, left, 0.9) for left in range(6)]
    assert by_left == sorted(by_left)
    by_incumbent = [expected_gain(times, 4, incumbent) for incumbent in (0.1, 0.5, 0.8, 1.0, 2.0)]
    assert by_incumbent == sorted(by_incumbent) and by_incumbent[0] > 0
