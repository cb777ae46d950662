"""What checks say makes sizes simpler, and keeps their values wherever the checks hold."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from braid.support.sizes.assumptions import Assumptions
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, SizeError
from braid.support.sizes.reading import parse_size
from braid.support.sizes.simplification import Simplification
from test.unit.support.sizes.expressions import NAMES, Written, made, written

POINTS = [dict(zip(NAMES, point, strict=True)) for point in itertools.product(range(7), repeat=3)]

checks = st.lists(st.tuples(written, written, st.booleans()), min_size=1, max_size=3)


def value(size: Extent, at: dict[str, int]) -> int | None:
    try:
        return evaluate(size, at)
    except SizeError:
        return None


@settings(max_examples=100, deadline=None)
@given(checks, written)
def test_values_are_kept_where_checks_hold(
    expressions: list[tuple[Written, Written, bool]], expression: Written
) -> None:
    found, left = Simplification(Assumptions.of({})), POINTS
    try:
        size = made(expression)
        facts = [(made(a) - made(b), is_zero) for a, b, is_zero in expressions]
        for fact, is_zero in facts:
            found.add(fact, is_zero)
    except SizeError:  # a size that has no value, or is negative where it must not be
        return
    for fact, is_zero in facts:
        held = [(point, value(fact, point)) for point in left]
        left = [p for p, v in held if v is not None and (v == 0 if is_zero else v >= 0)]
    simpler = found.of(size)
    for point in left:
        expected = value(size, point)
        assert expected is None or value(simpler, point) == expected


def simplified(text: str, *equalities: str) -> str:
    found = Simplification(Assumptions.of({}))
    for each in equalities:
        found.add(parse_size(each), is_zero=True)
    return str(found.of(parse_size(text)))


def test_sizes_that_are_equal_are_written_alike() -> None:
    halves = "(h + 1) floordiv 2 - 2 * ((h + 3) floordiv 4)"
    assert simplified("(h + 1) floordiv 2", halves) == "2 * ((h + 3) floordiv 4)"
    quarters = "(h + 3) floordiv 4 - 2 * ((h + 7) floordiv 8)"
    assert simplified("(h + 1) floordiv 2", halves, quarters) == "4 * ((h + 7) floordiv 8)"
    assert simplified("(h + 1) floordiv 2", quarters, halves) == "4 * ((h + 7) floordiv 8)"


def test_parts_of_a_select_that_are_equal_are_one() -> None:
    assert simplified("select(n = 1, m, n)", "n - m") == "n"
    assert simplified("select(n = 1, m, n)") == "select(n = 1, m, n)"
    # The part that is not chosen has no value where it divides by zero.
    text = "select(n = 0, n, (n * n) floordiv (n + m))"
    assert simplified(text, "m") == simplified(text)


def test_a_size_that_is_made_of_itself_is_not_replaced() -> None:
    text = "(n + 1) floordiv 2"
    assert simplified(text, f"{text} - (3 * ({text}) + n) floordiv 4") == text
