"""Lower bounds by parts against the optimum of the whole."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.deadline import Deadline
from braid.solvers.rematerialization import Op, Problem, simulate, solve
from braid.solvers.rematerialization.parts import cut_at_articulations
from braid.solvers.rematerialization.progress import Progress
from braid.solvers.rematerialization.prove import prove_by_parts

BLOCK = 5


def blocks(costs: list[tuple[int, int]]) -> Problem:
    """Blocks one after the other: the first result of each is read at its end as well.

    In less than the natural peak, each must make its first or its second result again.
    """
    sizes, ops, last = [1], list[Op](), 0
    for first, second in costs:
        a, b, c, d, e = range(len(sizes), len(sizes) + BLOCK)
        sizes += [4, 4, 8, 4, 1]
        ops += [Op(first, (last,), (a,)), Op(second, (last,), (b,))]
        ops += [Op(9, (a, b), (c,)), Op(9, (c,), (d,)), Op(9, (a, b, d), (e,))]
        last = e
    return Problem(tuple(ops), (0, *sizes[1:]), frozenset({last}))


def bound_by_parts(problem: Problem, budget: int, sequence: tuple[int, ...]) -> float:
    """Return the bound that the parts prove, in the problem's unit."""
    progress = Progress(problem, budget, sequence, Deadline.after(30))
    for _ in prove_by_parts(progress, 0, BLOCK):
        pass
    return progress.scale.bound(problem, progress.bound)


def test_parts_end_where_one_tensor_is_read_later() -> None:
    parts = cut_at_articulations(blocks([(1, 1)] * 3), BLOCK)
    assert parts == [tuple(range(i, i + BLOCK)) for i in (0, 5, 10)]


def test_a_skip_over_everything_leaves_one_part() -> None:
    problem = blocks([(1, 1)] * 3)
    end = len(problem.sizes)
    skip = Op(1, (1, end - 1), (end,))
    whole = Problem((*problem.ops, skip), (*problem.sizes, 1), frozenset({end}))
    parts = cut_at_articulations(whole, BLOCK)
    assert [op for part in parts for op in part] == list(whole.required)
    # The tensor of the skip and that of the block cross every cut but the last.
    assert len(parts) == 1


@settings(max_examples=4, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=3))
def test_the_bound_is_no_more_than_the_optimum_of_the_whole(costs: list[tuple[int, int]]) -> None:
    problem = blocks(costs)
    natural = simulate(problem, problem.required).peak
    bounds: list[float] = []
    for budget in (natural, natural - 1, natural - 3):
        schedule = solve(problem, budget, time_limit=3)
        bound = bound_by_parts(problem, budget, schedule.sequence)
        assert problem.base_duration <= bound <= schedule.duration
        if schedule.proven:
            bounds.append(bound)
    assert all(tighter >= looser for looser, tighter in pairwise(bounds))


def test_each_part_adds_what_it_recomputes() -> None:
    problem = blocks([(1, 7), (3, 5), (6, 2)])
    natural = simulate(problem, problem.required).peak
    schedule = solve(problem, natural - 1, time_limit=20)
    bound = bound_by_parts(problem, natural - 1, schedule.sequence)
    assert problem.base_duration < bound <= schedule.duration
