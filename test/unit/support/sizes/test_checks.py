"""Sizes at which checks hold."""

import pytest

from braid.support.sizes.checks import SizeChecks
from braid.support.sizes.reading import parse_size

MASKED = {"past + new - total": True}
STEP = {"past": 1024, "new": 1, "total": 128}


def checks(texts: dict[str, bool]) -> SizeChecks:
    return SizeChecks.of((parse_size(text), is_zero) for text, is_zero in texts.items())


@pytest.mark.parametrize(
    ("texts", "sizes", "fixed", "wanted"),
    [
        (MASKED, STEP, ("past", "new"), {**STEP, "total": 1025}),
        (MASKED, STEP, ("total", "new"), {**STEP, "past": 127}),
        (MASKED, {**STEP, "total": 1025}, (), {**STEP, "total": 1025}),
        (MASKED, STEP, ("past", "total"), None),  # new would be negative
        (MASKED, STEP, ("past", "new", "total"), None),
        ({"n - 16": False}, {"n": 3}, (), {"n": 16}),
        ({"n - 16": False, "8 - n": False}, {"n": 3}, (), None),
        ({"a - b": True, "b - c": True}, {"a": 7, "b": 8, "c": 9}, ("c",), dict.fromkeys("abc", 9)),
    ],
)
def test_sizes_that_checks_need(
    texts: dict[str, bool], sizes: dict[str, int], fixed: tuple[str, ...], wanted: object
) -> None:
    found = checks(texts).solved(sizes, fixed)
    assert found == wanted
    if found is not None:
        assert checks(texts).hold(found)


def test_sums() -> None:
    assert checks(MASKED).sums_of({"past"}) == {"total"}
    assert checks({"total - past - new": True}).sums_of({"past"}) == {"total"}
    assert checks({"past + new - total": False}).sums_of({"past"}) == set()
    assert checks(MASKED).sums_of(set()) == set()
    assert checks(MASKED).among({"past", "new"}).checked == ()
