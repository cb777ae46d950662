"""Schedules of parts, one after the other, against schedules of the whole."""

from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.rematerialization import (
    InfeasibleBudgetError,
    Op,
    Problem,
    simulate,
    solve,
)
from braid.solvers.rematerialization.compose import schedule_parts
from test.unit.solvers.rematerialization.test_parts import BLOCK, blocks
from test.unit.solvers.rematerialization.test_solve import problems, shortest_duration


def best_of(problem: Problem, budget: int, share: float) -> tuple[int, ...] | None:
    """Return the solver of the parts: that of the whole problem."""
    assert 0 < share <= 1
    try:
        return solve(problem, budget, time_limit=2).sequence
    except InfeasibleBudgetError:
        return None


def chained(parts: list[Problem]) -> Problem:
    """Return the problems in sequence: each op without inputs reads the value that the last one
    kept."""
    sizes, ops, last = list[int](), list[Op](), ()
    for part in parts:
        first = len(sizes)
        sizes += part.sizes
        for op in part.ops:
            inputs = tuple(first + t for t in op.inputs) or last
            outputs = tuple(first + t for t in op.outputs)
            ops.append(Op(op.duration, inputs, outputs, op.workspace, op.recomputable))
        made = [first + t for op in part.ops for t in op.outputs]
        if made:
            ops.append(Op(1, tuple(made), (len(sizes),)))
            last = (len(sizes),)
            sizes.append(1)
    return Problem(tuple(ops), tuple(sizes), frozenset(last))


@settings(max_examples=30, deadline=None)
@given(st.lists(problems(), min_size=2, max_size=2), st.floats(0, 1))
def test_composed_schedules_are_schedules(parts: list[Problem], tightness: float) -> None:
    problem = chained(parts)
    natural = simulate(problem, problem.required).peak
    lowest = max((problem.own_bytes(op) for op in problem.required), default=0)
    budget = round(lowest + tightness * (natural - lowest))
    found = schedule_parts(problem, budget, 2, best_of)
    if found is None:
        return
    result = simulate(problem, found)
    assert result.peak <= budget
    best = shortest_duration(problem, budget) if len(problem.ops) <= 9 else None
    assert best is None or best <= result.duration
    assert solve(problem, budget, time_limit=3).duration <= result.duration


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=3))
def test_composing_loses_nothing_where_cuts_are_crossed_once(costs: list[tuple[int, int]]) -> None:
    problem = blocks(costs)
    budget = simulate(problem, problem.required).peak - 1
    found = schedule_parts(problem, budget, BLOCK, best_of)
    whole = solve(problem, budget, time_limit=10)
    assert found is not None
    assert whole.proven
    assert simulate(problem, found).duration == whole.duration


def test_a_graph_of_one_part_is_not_composed() -> None:
    assert schedule_parts(blocks([(1, 2)]), 19, BLOCK, best_of) is None


def test_tensors_that_pass_a_part_are_counted() -> None:
    # Tensor 0 (3 bytes) passes the second op, whose result, an output of 2 bytes, the third one.
    ops = (Op(1, (), (0,)), Op(1, (), (1,)), Op(1, (0,), (2,)))
    budgets: list[int] = []

    def note(part: Problem, budget: int, share: float) -> tuple[int, ...] | None:
        budgets.append(budget)
        return part.required

    assert schedule_parts(Problem(ops, (3, 2, 1), frozenset({1, 2})), 10, 1, note) == (0, 1, 2)
    assert budgets == [10, 7, 8]


def test_forty_blocks_below_the_natural_peak() -> None:
    problem = blocks([(1 + i * 5 % 9, 1 + i * 7 % 9) for i in range(40)])
    natural = simulate(problem, problem.required).peak
    schedule = solve(problem, natural - 1, time_limit=30)
    assert schedule.peak < natural
    assert schedule.gap <= 0.01
    # Each block makes the cheaper one of two results again.
    again = sum(min(1 + i * 5 % 9, 1 + i * 7 % 9) for i in range(40))
    assert schedule.duration <= problem.base_duration + again + 1e-9


def test_what_a_part_cannot_do_is_not_composed() -> None:
    problem = blocks([(1, 1)] * 3)
    assert schedule_parts(problem, 16, BLOCK, best_of) is None
