"""The solver against brute force on random graphs, and its invariants on larger ones."""

from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.rematerialization import (
    InfeasibleBudgetError,
    Op,
    Problem,
    minimum_budget,
    simulate,
    solve,
)


def training_chain(sizes: list[int], durations: list[int]) -> Problem:
    """Return a forward chain and its backward: step i's gradient reads activations i and i - 1."""
    count = len(sizes)
    ops = [Op(durations[i], (i - 1,) if i else (), (i,)) for i in range(count)]
    for i in reversed(range(count)):
        tensor = 2 * count - 1 - i
        inputs = {i, max(i - 1, 0), tensor - 1}
        ops.append(Op(2 * durations[i], tuple(sorted(inputs)), (tensor,)))
    return Problem(tuple(ops), (*sizes, *reversed(sizes)), frozenset({2 * count - 1}))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Random DAGs: a graph input, ops of no to two outputs, workspaces, zero durations."""
    sizes = [draw(st.integers(0, 2))]
    ops: list[Op] = []
    for _ in range(draw(st.integers(1, 5))):
        inputs = draw(st.sets(st.integers(0, len(sizes) - 1), max_size=3))
        outputs = range(len(sizes), len(sizes) + draw(st.sampled_from([1, 1, 1, 2, 0])))
        sizes.extend(draw(st.integers(0, 6)) for _ in outputs)
        workspace = draw(st.sampled_from([0, 0, 1, 3]))
        recomputable = draw(st.sampled_from([True, True, True, False]))
        duration = draw(st.integers(0, 4))
        smaller = [t for t in inputs if len(outputs) == 1 and sizes[t] <= sizes[outputs[0]]]
        overwrites = draw(st.sets(st.sampled_from(smaller))) if smaller else ()
        ops.append(
            Op(
                duration,
                tuple(sorted(inputs)),
                tuple(outputs),
                workspace,
                recomputable,
                overwrites=tuple(overwrites),
            )
        )
    results = draw(st.sets(st.integers(0, len(sizes) - 1), max_size=2))
    return Problem(tuple(ops), tuple(sizes), frozenset(results))


def shortest_duration(problem: Problem, budget: int) -> float | None:
    """Dijkstra over (resident tensors, ops that ran once); None when the budget is infeasible.

    It searches states, not sequences, and so shares nothing with what it checks.
    """
    inputs = {tensor for tensor, maker in enumerate(problem.producer) if maker < 0}
    room = budget - problem.pinned_bytes
    goal = frozenset(problem.outputs - inputs)
    once = {i for i, op in enumerate(problem.ops) if not op.recomputable or not op.outputs}
    effects = {i for i, op in enumerate(problem.ops) if not op.outputs}
    queue = [(0.0, 0, frozenset[int](), frozenset[int]())]
    done: set[tuple[frozenset[int], frozenset[int]]] = set()
    ticket = 0
    while queue and room >= 0:
        duration, _, resident, ran = heappop(queue)
        if (resident, ran) in done:
            continue
        done.add((resident, ran))
        if goal <= resident and effects <= ran:
            return duration
        after = [(duration, resident - {tensor}, ran) for tensor in resident]
        for index, op in enumerate(problem.ops):
            tensors = resident | set(op.outputs)
            used = sum(problem.sizes[tensor] for tensor in tensors) + op.workspace
            if not set(op.inputs) - inputs <= resident or not (op.recomputable or index not in ran):
                continue
            left = (duration + op.duration, ran | ({index} & once))
            if used <= room:
                after.append((left[0], tensors, left[1]))
            for over in set(op.overwrites) - inputs:
                if used - problem.sizes[over] <= room:
                    after.append((left[0], tensors - {over}, left[1]))
        for state in after:
            ticket += 1
            heappush(queue, (state[0], ticket, state[1], state[2]))
    return None


def runs_within(problem: Problem, sequence: tuple[int, ...], budget: int) -> bool:
    """Whether a memory of `budget` bytes that frees what is not read again runs the sequence."""
    inputs = {tensor for tensor, maker in enumerate(problem.producer) if maker < 0}
    used = sum(problem.sizes[tensor] for tensor in inputs)
    resident: set[int] = set()
    for step, index in enumerate(sequence):
        op = problem.ops[index]
        if not set(op.inputs) - inputs <= resident:
            return False
        kept: set[int] = set()
        for tensor in resident | set(op.outputs):
            later = sequence[step + 1 :]
            reads = [k for k, o in enumerate(later) if tensor in problem.ops[o].inputs]
            makes = [k for k, o in enumerate(later) if tensor in problem.ops[o].outputs]
            ends = not makes and tensor in problem.outputs
            if ends or (reads and (not makes or reads[0] < makes[0])):
                kept.add(tensor)
        during = kept | (resident & set(op.inputs)) | set(op.outputs)
        bytes_ = used + op.workspace + sum(problem.sizes[tensor] for tensor in during)
        dead = (set(op.overwrites) & resident) - kept
        bytes_ -= max((problem.sizes[tensor] for tensor in dead), default=0)
        if bytes_ > budget:
            return False
        resident = kept
    return True


@settings(max_examples=150, deadline=None)
@given(problems(), st.floats(0, 1))
def test_agrees_with_brute_force(problem: Problem, tightness: float) -> None:
    check_brute_force(problem, tightness)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(problems(), st.floats(0, 1))
def test_ten_thousand(problem: Problem, tightness: float) -> None:
    check_brute_force(problem, tightness)


def check_brute_force(problem: Problem, tightness: float) -> None:
    natural = simulate(problem, problem.required).peak
    lowest = max((problem.own_bytes(op) for op in problem.required), default=0)
    budget = round(lowest + tightness * (natural - lowest))
    best = shortest_duration(problem, budget)
    try:
        schedule = solve(problem, budget, time_limit=5)
    except InfeasibleBudgetError as error:
        assert best is None
        assert error.smallest_found > budget
        return
    result = simulate(problem, schedule.sequence)
    assert runs_within(problem, schedule.sequence, budget)
    assert (result.peak, result.duration) == (schedule.peak, schedule.duration)
    assert schedule.peak <= budget
    assert best is not None
    assert schedule.lower_bound <= best <= schedule.duration
    if schedule.proven:
        assert schedule.duration == best


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=4, max_size=9))
def test_duration_never_falls_with_the_budget(steps: list[tuple[int, int]]) -> None:
    problem = training_chain([size for size, _ in steps], [time for _, time in steps])
    natural = simulate(problem, problem.required).peak
    before = problem.base_duration
    for budget in range(natural, minimum_budget(problem, time_limit=2).found - 1, -2):
        schedule = solve(problem, budget, time_limit=5)
        assert schedule.peak <= budget
        if schedule.proven:
            assert schedule.duration >= before
            before = schedule.duration
        assert schedule.duration >= before


def test_chain_recomputes_the_cheap_large_activation() -> None:
    problem = training_chain([4, 1, 1, 1, 1, 1, 1], [1, 50, 50, 50, 50, 50, 50])
    natural = simulate(problem, problem.required).peak
    schedule = solve(problem, natural - 1)
    assert schedule.proven
    assert [op for op in range(14) if schedule.sequence.count(op) > 1] == [0]


def test_order_alone_can_meet_the_budget() -> None:
    # Two producers of 10 bytes, each reduced to 1: one after the other needs 12, in order 21.
    ops = (Op(9, (), (0,)), Op(9, (), (1,)), Op(1, (0,), (2,)), Op(1, (1,), (3,)))
    problem = Problem((*ops, Op(1, (2, 3), (4,))), (10, 10, 1, 1, 1), frozenset({4}))
    free = solve(problem, 12)
    assert free.proven
    assert free.duration == problem.base_duration
    fixed = solve(problem, 20, fixed_order=True)
    assert list(dict.fromkeys(fixed.sequence)) == [0, 1, 2, 3, 4]
    assert fixed.duration == problem.base_duration + 9


def test_two_workers_find_the_same_optimum() -> None:
    problem = training_chain([8, 4, 6, 3, 5, 2, 4, 1], [3, 9, 4, 8, 2, 7, 5, 6])
    budget = round(0.7 * simulate(problem, problem.required).peak)
    one, two = (solve(problem, budget, time_limit=20, workers=count) for count in (1, 2))
    assert one.proven
    assert two.proven
    assert one.duration == two.duration


def test_infeasible_budget_names_the_largest_op() -> None:
    problem = training_chain([3, 30, 3], [1, 1, 1])
    with pytest.raises(InfeasibleBudgetError) as caught:
        solve(problem, 50)
    error = caught.value
    assert error.proven
    assert error.blamed_ops == (4,)
    assert error.blamed_tensors[:2] == (1, 4)
    assert error.lower_bound == problem.own_bytes(4)
    schedule = solve(problem, error.smallest_found)
    assert schedule.peak <= error.smallest_found


def test_fractional_durations_keep_the_bound_valid() -> None:
    ops = (Op(0.1, (), (0,)), Op(0.7, (0,), (1,)), Op(0.3, (1,), (2,)), Op(0.2, (0, 2), (3,)))
    problem = Problem(ops, (5, 4, 2, 2), frozenset({3}))
    schedule = solve(problem, 9)
    assert schedule.proven
    assert schedule.duration == schedule.lower_bound == pytest.approx(1.4)
