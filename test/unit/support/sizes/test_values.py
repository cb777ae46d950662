"""Sizes mean what is written, however they are simplified, printed and asked about.

All of it is compared with all values of three symbols in small ranges: see `expressions.py`.
"""

import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from braid.support.sizes.assumptions import Answer, Assumed, Assumptions
from braid.support.sizes.evaluation import evaluate
from braid.support.sizes.expression import Extent, Size, SizeError, SizeLimitError, symbol
from braid.support.sizes.operators import is_equal, select
from braid.support.sizes.reading import parse_size
from braid.support.sizes.text import print_size
from test.unit.support.sizes.expressions import NAMES, Written, made, value, written

points = st.lists(st.tuples(*[st.integers(-9, 40)] * 3), min_size=8, max_size=8)


def size_of(expression: Written) -> Extent:
    try:
        return made(expression)
    except SizeError:  # it divides by zero, or a float is no size
        assume(False)
        raise


def known_value(size: Extent, values: Mapping[str, int]) -> int | None:
    try:
        return evaluate(size, values)
    except SizeError:
        return None


@settings(max_examples=150)
@given(written, points)
def test_simplification_keeps_values(expression: Written, at: list[tuple[int, ...]]) -> None:
    size = size_of(expression)
    for point in at:
        values = dict(zip(NAMES, point, strict=True))
        if (expected := value(expression, values)) is not None:
            assert evaluate(size, values) == expected


@settings(max_examples=150)
@given(written)
def test_text_says_the_size(expression: Written) -> None:
    size = size_of(expression)
    again = parse_size(print_size(size))
    assert again == size and hash(again) == hash(size)
    assert not isinstance(size, Size) or print_size(again) == print_size(size)


assumed = st.builds(
    lambda low, extent, multiple: Assumed(low, low + extent + multiple - 1, multiple),
    st.integers(-2, 3),
    st.integers(0, 5),
    st.sampled_from([1, 1, 2, 3]),
)


def allowed(assumptions: Assumptions) -> Iterator[dict[str, int]]:
    """Yield all allowed assignments."""
    by_name = assumptions.by_name
    ranges = [range(own.minimum, (own.maximum or 0) + 1) for own in by_name.values()]
    for point in itertools.product(*ranges):
        values = dict(zip(by_name, point, strict=True))
        if all(by_name[name].allows(number) for name, number in values.items()):
            facts = [known_value(fact, values) for fact in assumptions.facts]
            if all(fact is None or fact >= 0 for fact in facts):
                yield values


def answer_of(found: set[bool]) -> Answer:
    """Return the answer of somebody who has looked at all assignments."""
    if len(found) != 1:
        return Answer.UNKNOWN
    return Answer.YES if found == {True} else Answer.NO


def check_answers(
    left: Written, right: Written, ranges: tuple[Assumed, ...], fact: Written | None
) -> None:
    a, b = size_of(left), size_of(right)
    facts = [] if fact is None or isinstance(size_of(fact), int) else [size_of(fact)]
    assumptions = Assumptions.of(dict(zip(NAMES, ranges, strict=True)), facts)
    simplified = assumptions.simplified(a)
    low, high = assumptions.bounds(a)
    answers = {name: getattr(assumptions, name)(a, b) for name in ("equal", "at_most", "divides")}
    found: dict[str, set[bool]] = {name: set() for name in answers}
    for values in allowed(assumptions):
        x, y = value(left, values), value(right, values)
        if x is None:
            continue
        assert evaluate(simplified, values) == x
        assert (low is None or low <= x) and (high is None or x <= high)
        if y is not None:
            found["equal"].add(x == y)
            found["at_most"].add(x <= y)
            found["divides"].add(y % x == 0 if x else y == 0)
    for name, answer in answers.items():
        if answer is not Answer.UNKNOWN and found[name]:
            assert answer is answer_of(found[name]), name


questions = given(written, written, st.tuples(assumed, assumed, assumed), st.none() | written)
test_answers_are_never_wrong = settings(max_examples=50)(questions(check_answers))
test_many_answers_are_never_wrong = pytest.mark.slow(
    settings(max_examples=20_000)(questions(check_answers))
)


def test_what_has_no_answer() -> None:
    """A size and an answer have no truth value, and no order: whoever forgets to ask is told."""
    size = symbol("s")
    assert size == symbol("s") and size != 1 and isinstance(size - size, int)
    with pytest.raises(TypeError, match="no truth value"):
        bool(size)
    with pytest.raises(TypeError):
        assert size < 3  # pyright: ignore
    with pytest.raises(TypeError, match="no truth value"):
        bool(Assumptions().equal(size, 1))
    assert Assumptions().at_most(0, size) is Answer.YES
    assert Assumptions().at_most(size, 1 << 62) is Answer.UNKNOWN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has nothing at character 1, expected a size"),
        ("s +", "has nothing at character 4, expected a size"),
        ("(s", r"expected '\)'"),
        ("s s", "has 's' at character 3, expected the end"),
        ("s ? 2", r"has '\? 2' at character 3"),
        ("select(s, 1, 2)", "expected a comparison"),
        ("s floordiv 0", "divides by zero"),
        ("s mod (2 - 2)", "divides by zero"),
        ("floor(s)", "expected a float, such as f32"),
        ("floor(f32(s) * f64(2.0))", "no 'mul'"),
        ("floor(f32(inf))", "no integer of 64 bits"),
        ("9" * 300, "more than 512 bits"),
        (f"{'9' * 150} * {'9' * 150}", "more than 512 bits"),
        (f"s + {'9' * 154} + {'9' * 154} * 9", "more than 512 bits"),
        ("(" * 5000 + "s", "100 parentheses"),
        ("-" * 5000 + "x floordiv " * 60 + "2", "more than"),
        ("(a + b + c + d + e + f) * " * 20 + "1", "more than"),
        ("max(min(" * 30 + "s, t" + ", u), v)" * 30, "more than"),
        ("+".join(f"x{i}" for i in range(5000)), "more than"),
        ("x" * 300, "has 300 characters"),
        ('"' + "\\x" + '"', "escape without a meaning"),
        ('"a', "expected a size"),
        ("s" * (3 << 20), "at most"),
    ],
    ids=range(23),
)
def test_other_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("S * (T + 1) - S", "S * T"),
        ("(S + 15) floordiv 16 * 16", "16 * ((S + 15) floordiv 16)"),
        ("S ceildiv 16", "(S + 15) floordiv 16"),
        ("-(-S floordiv W)", "S ceildiv W"),
        ("(S + 3) mod 16 + T", "(S + 3) mod 16 + T"),
        ("T - 2 * (S mod 4)", "-2 * (S mod 4) + T"),
        ("max(-S, -T)", "-min(S, T)"),
        ("min(S + 1, 65)", "min(S, 64) + 1"),
        ("select(S > 5, 5, S)", "select(S <= 5, S, 5)"),
        ("select(S = 1, T, S)", "select(S = 1, T, S)"),
        ("select(S != 1, S, 1)", "S"),
        ("select(min(S, 9) = 1, S, min(S, 9))", "min(S, 9)"),
        ("select(min(S, 1) = 1, S, T)", "select(min(S, 1) = 1, S, T)"),
        ("select(max(S + 2, 3) = 7, S, T)", "select(max(S, 1) = 5, 5, T)"),
        ("ceil(f32(S) * f32(1.5))", "ceil((f32(S) * f32(0x1.8p+0)))"),
        ('"1 of a\\"b" * "min"', '"1 of a\\x22b" * "min"'),
        ("B * S * 768 floordiv (S * 768)", "B"),
        ("((S + 1) floordiv 2 + 1) floordiv 2", "(S + 3) floordiv 4"),
    ],
)
def test_printed_form(text: str, printed: str) -> None:
    assert print_size(parse_size(text)) == printed


def test_names_of_any_characters() -> None:
    for name in ("é\n\\", "select", "f32", "a b", "1", "\x00", "a.b$c:d", "😀", '"'):
        assert parse_size(print_size(symbol(name) + 1)) == symbol(name) + 1
    for name in ("", "x" * 201):
        with pytest.raises(SizeError, match="characters, expected 1 to 200"):
            symbol(name)


def test_assumptions_that_nothing_meets() -> None:
    for wrong in (
        lambda: Assumed(minimum=5, maximum=4),
        lambda: Assumed(minimum=5, maximum=7, multiple_of=4),
        lambda: Assumed(multiple_of=0),
        lambda: Assumed(maximum=8, likely=(9,)),
        lambda: Assumptions.of({}, [-1]),
    ):
        with pytest.raises(SizeError):
            wrong()


def test_sizes_go_to_other_processes() -> None:
    """Names have other hashes there."""
    text = "min(s, 3) + select(a <= b, s floordiv a, floor(f32(s) * f32(1.5)))"
    size, assumptions = parse_size(text), Assumptions.of({"s": Assumed(1, 8)}, [symbol("a") - 1])
    program = f"""
import pickle, sys
from braid.support.sizes.reading import parse_size
size, assumptions = pickle.loads(sys.stdin.buffer.read())
expected = parse_size({text!r})
assert size == expected and hash(size) == hash(expected) and isinstance(size - expected, int)
assert assumptions.bounds(parse_size("s + a")) == (2, None)
"""
    environment = {**os.environ, "PYTHONHASHSEED": "123"}
    command = [sys.executable, "-c", program]
    subprocess.run(command, input=pickle.dumps((size, assumptions)), env=environment, check=True)


TOKENS = [
    *("s", "t", "0", "1", "16", "(", ")", ",", "+", "-", "*", "=", "<=", "<", "floordiv", "mod"),
    *("min(", "select(", "floor(", "f32(", "to_f64(", "sqrt(", "1.5", "0x1p+3", "nan", '"', "?"),
]


@settings(max_examples=200)
@given(st.lists(st.sampled_from(TOKENS), max_size=14))
def test_any_text_is_a_size_or_an_error(tokens: list[str]) -> None:
    try:
        size = parse_size(" ".join(tokens))
    except SizeError:
        return
    assert parse_size(print_size(size)) == size


def test_chains_of_broadcasts_end_in_an_error_not_in_memory() -> None:
    """Each makes three of the size before: whoever makes them defines a symbol instead."""
    size: Extent = symbol("a")
    with pytest.raises(SizeLimitError):
        for number in range(60):
            other = symbol(f"b{number}")
            size = select(is_equal(size, 1), other, size)
