"""Each rule of the search, with synthetic times."""

import json
import random
from collections.abc import Callable

import pytest

from braid.tuning.search import Final, Found, LevelResult, Order, Rule, Stop, Turn, search

LEVELS = (("a", "b"), ("c", "d"), ("e", "f"))
"""Points by level."""


def space(level: int) -> tuple[str, ...]:
    return LEVELS[level]


def from_table(**times: float | None) -> Callable[[str], float | None]:
    return lambda point: times[point]


def test_below_the_threshold_at_once() -> None:
    """The baseline is so much faster that finer levels are not looked at."""
    found = search(space, from_table(a=2.0, b=1.5), baseline=1.0)
    assert [step.stop for step in found.steps] == [Stop.BELOW]
    assert (found.point, found.seconds) == (None, 1.0)
    (step,) = found.steps
    assert (step.size, step.tried, step.best, step.threshold) == (2, 2, 1.5, 0.7)
    assert step.ratio == pytest.approx(1 / 1.5)


def test_above_and_then_below() -> None:
    found = search(space, from_table(a=1.3, b=1.5, c=1.2, d=1.1), baseline=1.0)
    assert [step.stop for step in found.steps] == [None, Stop.BELOW]
    assert found.point is None, "the baseline is the fastest"
    by_letter = search(
        space,
        from_table(a=1.3, b=1.5, c=1.2, d=1.1),
        baseline=1.0,
        rule=Rule(final=Final.THRESHOLD),
    )
    assert (by_letter.point, by_letter.seconds) == ("d", 1.1)


def test_to_the_last_level() -> None:
    times = from_table(a=1.0, b=0.9, c=0.8, d=0.85, e=0.5, f=None)
    found = search(space, times, baseline=1.0)
    assert [step.stop for step in found.steps] == [None, None, Stop.LAST]
    assert (found.point, found.seconds, found.steps[-1].failed) == ("e", 0.5, 1)
    assert found.times == {"a": 1.0, "b": 0.9, "c": 0.8, "d": 0.85, "e": 0.5}


def test_the_letter_at_the_last_level() -> None:
    """No level fell below, and the last does not beat the baseline: the baseline."""
    rule = Rule(thresholds=(0.5,), final=Final.THRESHOLD)
    times = from_table(a=1.2, b=1.2, c=1.2, d=1.2, e=1.1, f=1.2)
    found = search(space, times, baseline=1.0, rule=rule)
    assert [step.threshold for step in found.steps] == pytest.approx([0.5, 0.6, 0.7])
    assert (found.steps[-1].stop, found.point) == (Stop.LAST, None)
    assert search(space, times, baseline=1.15, rule=rule).point == "e"


def test_below_at_level_zero_is_the_baseline_by_the_letter() -> None:
    rule = Rule(final=Final.THRESHOLD)
    assert search(space, from_table(a=2.0, b=1.5), baseline=1.0, rule=rule).point is None


@pytest.mark.parametrize(("trials", "stops"), [(0, 1), (1, 1), (3, 2), (4, 3)])
def test_trials(trials: int, stops: int) -> None:
    asked: list[str] = []

    def measure(point: str) -> float:
        asked.append(point)
        return 0.5

    found = search(space, measure, baseline=1.0, rule=Rule(trials=trials))
    assert len(asked) == trials
    assert len(found.steps) == stops and found.steps[-1].stop is Stop.BUDGET
    assert found.point == ("a" if trials else None)


def test_time() -> None:
    spent = iter([False, False, True])
    found = search(space, lambda _: 0.5, baseline=1.0, is_spent=lambda: next(spent))
    assert found.steps[-1].stop is Stop.BUDGET and found.steps[-1].level == 1


def test_the_user_stops() -> None:
    turns: list[Turn[str]] = []

    def steer(turn: Turn[str]) -> Order[str]:
        turns.append(turn)
        return Order(stop=len(turns) == 3)

    found = search(space, lambda _: 0.5, baseline=1.0, steer=steer)
    assert [step.stop for step in found.steps] == [None, Stop.USER]
    assert [turn.level for turn in turns] == [0, 1, 2] and turns[0].step is None
    assert turns[0].points == list(space(0)) and turns[1].points == list(space(1))


def test_the_user_stops_before_anything() -> None:
    found = search(space, lambda _: 0.5, baseline=1.0, steer=lambda _: Order(stop=True))
    assert found == Found(None, 1.0, 1.0, ())


def test_the_user_overrules_the_rule() -> None:
    """Below the threshold it goes on where the user lowers that, or names a level."""
    orders = iter([Order[str](), Order[str](threshold=0.1), Order[str](stop=True)])
    found = search(space, lambda _: 2.0, baseline=1.0, steer=lambda _: next(orders))
    assert [(s.level, s.threshold, s.stop) for s in found.steps] == [
        (0, 0.1, None),
        (1, 0.1, Stop.USER),
    ]
    orders = iter([Order[str](), Order[str](level=2), Order[str]()])
    found = search(space, lambda _: 2.0, baseline=1.0, steer=lambda _: next(orders))
    assert [(s.level, s.stop) for s in found.steps] == [(0, None), (2, Stop.BELOW)]


def test_the_user_restricts_the_space() -> None:
    orders = iter([Order(points=list(space(0))[:1]), Order[str](stop=True)])
    found = search(space, lambda _: 0.5, baseline=1.0, steer=lambda _: next(orders))
    assert list(found.times) == list(space(0))[:1]


def test_the_baseline_is_the_fastest_in_the_end() -> None:
    times = from_table(a=1.01, b=1.2, c=1.0, d=1.05, e=1.0, f=1.0)
    rule = Rule(thresholds=(0.7, 0.7, 0.7))
    found = search(space, times, baseline=1.0, rule=rule)
    assert (found.steps[-1].stop, found.point, found.seconds) == (Stop.LAST, None, 1.0)


def test_all_failed() -> None:
    found = search(space, lambda _: None, baseline=1.0)
    assert (found.point, found.steps[0].best, found.steps[0].stop) == (None, None, Stop.BELOW)
    assert "none ran" in str(found.steps[0])


def test_what_is_known_is_not_measured_again() -> None:
    asked: list[str] = []

    def measure(point: str) -> float:
        asked.append(point)
        return 0.9

    found = search(space, measure, baseline=1.0, known={"a": 0.4, "d": 0.3, "z": 0.1})
    assert "a" not in asked and "d" not in asked
    assert found.point == "d", "and what is not of the space does not count"


@pytest.mark.parametrize("best", [0.5, 0.0, None])
def test_steps_as_records_have_them(best: float | None) -> None:
    step = search(space, lambda _: best, baseline=1.0).steps[-1]
    fields = json.loads(json.dumps(step.fields, allow_nan=False))
    assert LevelResult.of(fields) == step
    for changed in ({"stop": "x"}, {"best": "x"}, {"more": 1}, {"ratio": []}):
        assert LevelResult.of(fields | changed) is None
    assert LevelResult.of({}) is None


EVEN = {f"{level}.{number}": 1.2 + number / 100 for level in range(3) for number in range(9)}
"""Times that differ by less than a tenth, at three levels of nine points; the baseline is 1."""


def even_space(level: int) -> list[str]:
    return [point for point in EVEN if point.startswith(f"{level}.")]


def test_a_level_ends_where_its_rest_promises_little() -> None:
    """Times around 1.21 that differ by 0.01 leave no hope of less than 1."""
    found = search(even_space, EVEN.__getitem__, baseline=1.0)
    assert [(s.level, s.tried, s.spared, s.stop) for s in found.steps] == [
        (0, 3, 6, None),
        (1, 2, 7, Stop.BELOW),
    ]
    assert "3 of 9 schedules tried, 6 promise too little" in str(found.steps[0])
    assert (found.point, found.seconds) == (None, 1.0)


def test_levels_do_not_end_ahead_of_the_baseline() -> None:
    """Equal times say nothing of the others: there may be more to gain."""
    times = {f"{number}": 1.0 for number in range(9)} | {"last": 0.5}
    found = search(lambda _: list(times), times.__getitem__, baseline=1.001, rule=Rule(levels=1))
    assert (found.steps[0].spared, found.point) == (0, "last")


@pytest.mark.parametrize("last", [0.5, 2.0])
def test_a_level_goes_on_while_times_differ_much(last: float) -> None:
    """By factors of two, one of the next may well be half of the baseline."""
    times = {"a": 2.0, "b": 1.05, "c": 4.0, "d": 1.5, "e": last}
    found = search(lambda _: list(times), times.__getitem__, baseline=1.0, rule=Rule(levels=1))
    assert (found.steps[0].tried, found.steps[0].spared) == (5, 0)


def test_a_least_gain_of_zero_measures_all() -> None:
    found = search(even_space, EVEN.__getitem__, baseline=1.0, rule=Rule(least_gain=0.0))
    assert [(s.tried, s.spared) for s in found.steps] == [(9, 0), (9, 0)]


def test_gains_are_expected_over_the_own_best_by_the_letter() -> None:
    """There the result is a schedule even if the baseline is far ahead."""
    letter, fastest = (
        search(even_space, EVEN.__getitem__, baseline=0.5, rule=Rule(levels=1, final=final))
        for final in (Final.THRESHOLD, Final.FASTEST)
    )
    assert letter.steps[0].tried > fastest.steps[0].tried


def test_what_the_user_names_is_measured_and_what_was_spared_is_offered_again() -> None:
    turns: list[Turn[str]] = []

    def steer(turn: Turn[str]) -> Order[str]:
        turns.append(turn)
        if len(turns) == 2:
            return Order(level=0)
        return Order(points=turn.points, level=0) if len(turns) == 3 else Order(stop=len(turns) > 3)

    def levels(level: int) -> list[str]:
        return even_space(0)

    found = search(levels, EVEN.__getitem__, baseline=1.0, steer=steer)
    assert [(s.tried, s.spared) for s in found.steps] == [(3, 6), (2, 4), (4, 0)]
    assert len(found.times) == 9


def test_never_slower_than_the_baseline_nor_than_what_was_measured() -> None:
    for seed in range(300):
        generator = random.Random(seed)
        times = {
            point: None if generator.random() < 0.2 else generator.uniform(0.2, 3)
            for level in LEVELS
            for point in level
        }
        rule = Rule(
            thresholds=tuple(sorted(generator.uniform(0.3, 1.5) for _ in range(3))),
            levels=generator.randint(1, 3),
            trials=generator.choice([None, 1, 3, 5]),
        )
        found = search(space, times.__getitem__, baseline=1.0, rule=rule)
        assert found.seconds == min(1.0, *found.times.values(), 1.0)
        assert found.seconds == (1.0 if found.point is None else times[found.point])
        tried = sum(step.tried for step in found.steps)
        assert tried == len(found.times) + sum(step.failed for step in found.steps)
        for step in found.steps[:-1]:
            assert step.stop is None and step.ratio >= step.threshold
