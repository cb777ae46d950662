"""Intervals, depths, resources and cycles of small nests."""

from dataclasses import replace

import pytest

from braid.solvers.hls.estimate import estimate
from braid.solvers.hls.events import accesses_of
from braid.solvers.hls.nests import (
    Affine,
    Array,
    Condition,
    Design,
    Loop,
    Nest,
    Op,
    Process,
    Stream,
)
from braid.solvers.hls.schedule import Operators, schedule

OPERATORS = Operators(
    {"add": 7, "mul": 4, "slow_add": 6}, {"add": 2, "mul": 3}, carried=(4, 8, 12, 13, 16)
)
ROW, COLUMN = Affine(0, (("i", 1),)), Affine(0, (("j", 1),))


def product(loops: tuple[Loop, ...], unrolled: tuple[Loop, ...] = ()) -> Nest:
    """y[i] += a[i, j] * x[j]."""
    u = Affine(0, tuple((loop.name, 1) for loop in unrolled))
    body = (
        Op("load", (), "a", (ROW, COLUMN.scaled(4) + u if unrolled else COLUMN), unrolled=unrolled),
        Op("load", (), "y", (ROW,), unrolled=unrolled),
        Op("mul", (0,), unrolled=unrolled),
        Op("add", (1, 2), unrolled=unrolled),
        Op("store", (3,), "y", (ROW,), unrolled=unrolled),
    )
    return Nest("nest", loops, 1, body)


def arrays(banks: int = 4) -> dict[str, Array]:
    return {
        "a": Array("a", (8, 64), 32, (("none", 1), ("cyclic", banks)), external=True),
        "y": Array("y", (8,), 32, (("none", 1),)),
    }


def test_a_sum_in_the_innermost_loop_takes_its_adder_from_iteration_to_iteration():
    inner = product((Loop("i", 8), Loop("j", 64)))
    assert schedule(inner, arrays(), OPERATORS).interval == 4
    outer = product((Loop("j", 64), Loop("i", 8)))
    assert schedule(outer, arrays(), OPERATORS).interval == 1
    short = product((Loop("j", 64), Loop("i", 3)))
    # Four for the adder and one each for load and store, over three iterations.
    assert schedule(short, arrays(), OPERATORS).interval == 2


@pytest.mark.parametrize(
    ("terms", "interval"), [(1, 4), (2, 8), (3, 12), (4, 12), (5, 13), (8, 13), (9, 16), (40, 16)]
)
def test_terms_of_an_iteration_are_added_by_a_tree(terms: int, interval: int):
    nest = product((Loop("i", 8), Loop("j", 16)), (Loop("u", terms),))
    operators = replace(OPERATORS, ports=terms)
    found = schedule(nest, arrays(), operators)
    assert (found.interval, found.bound_by) == (interval, "the sum in y")


def test_ports_of_outer_arrays_bound_the_interval():
    nest = product((Loop("j", 16), Loop("i", 100)), (Loop("u", 4),))
    assert schedule(nest, arrays(), OPERATORS).interval == 1
    found = schedule(nest, arrays(banks=1), OPERATORS)
    assert (found.interval, found.bound_by) == (2, "accesses to a")


@pytest.mark.parametrize(("rows", "interval"), [(2, 4), (6, 6), (7, 4)])
def test_sums_that_go_on_at_once_stay_in_a_bank_while_that_is_fast_enough(rows: int, interval: int):
    """Rows of a load and a store each have two ports; an adder with DSPs takes six cycles."""
    lane = Affine(0, (("u", 1),))
    unrolled = (Loop("u", rows),)
    y = Affine(0, (("i", rows), ("u", 1)))
    body = (
        Op("load", (), "y", (y,), unrolled=unrolled),
        Op("read", (), "x", (lane,), unrolled=unrolled),
        Op("add", (0, 1), unrolled=unrolled),
        Op("store", (2,), "y", (y,), unrolled=unrolled),
    )
    nest = Nest("nest", (Loop("i", 8), Loop("j", 64)), 1, body)
    y_array = {"y": Array("y", (8 * rows,), 32, (("none", 1),))}
    assert schedule(nest, y_array, OPERATORS).interval == interval


def test_adders_that_go_around_are_those_on_the_longest_chain():
    assert [OPERATORS.links(terms) for terms in (1, 2, 4, 8, 16)] == [1, 2, 3, 3, 4]
    assert OPERATORS.unhurried(4) == 3 * 6 + 1 + 1


def test_iterations_of_tokens_are_those_where_conditions_hold():
    first = Condition(COLUMN)
    late = Condition(ROW + Affine(-2), at_least=True)
    nest = Nest("n", (Loop("i", 4), Loop("j", 3)), 1, (Op("read", (), "s", (), (first, late)),))
    (access,) = accesses_of(nest)
    expected = [i * 3 + j for i in range(4) for j in range(3) if j == 0 and i >= 2]
    assert access.iterations.tolist() == expected


def test_stages_overlap_where_they_stream_and_not_where_they_share_an_array():
    count = (Loop("i", 100),)
    write = Nest("w", count, 1, (Op("load", (), "x", (ROW,)), Op("write", (0,), "s")))
    read = Nest("r", count, 1, (Op("read", (), "s"), Op("store", (0,), "y", (ROW,))))
    outer = {name: Array(name, (100,), 32, (("none", 1),), True) for name in "xy"}
    streamed = Design(
        "d", (Process("w", (write,)), Process("r", (read,))), outer, {"s": Stream("s", (), 32, 2)}
    )
    copy = Nest("c", count, 1, (Op("load", (), "x", (ROW,)), Op("store", (0,), "t", (ROW,))))
    again = Nest("a", count, 1, (Op("load", (), "t", (ROW,)), Op("store", (0,), "y", (ROW,))))
    buffered = Design(
        "d",
        (Process("c", (copy,)), Process("a", (again,))),
        {**outer, "t": Array("t", (100,), 32, (("none", 1),))},
    )
    assert 100 < estimate(streamed, OPERATORS).cycles < 110
    assert 200 < estimate(buffered, OPERATORS).cycles < 210
