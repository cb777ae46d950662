"""The simulator against live ranges counted by hand."""

import pytest

from braid.solvers.rematerialization import Op, Problem, simulate

# Tensor 0 is a graph input; ops 0, 1, 2 make tensors 1, 2, 3; op 2 also reads tensor 1.
DIAMOND = Problem(
    (Op(5.0, (0,), (1,)), Op(7.0, (1,), (2,), workspace=4), Op(1.5, (1, 2), (3,))),
    (100, 10, 20, 30),
    frozenset({3}),
)


def test_profile_counts_inputs_live_tensors_and_workspace() -> None:
    result = simulate(DIAMOND, (0, 1, 2))
    assert result.profile.tolist() == [110, 134, 160]
    assert (result.peak, result.duration) == (160, 13.5)


def test_recomputed_instance_ends_the_old_one() -> None:
    chain = Problem(
        (Op(1, (), (0,)), Op(1, (0,), (1,)), Op(1, (1,), (2,)), Op(1, (0, 2), (3,))),
        (50, 1, 1, 1),
        frozenset({3}),
    )
    assert simulate(chain, (0, 1, 2, 3)).profile.tolist() == [50, 51, 52, 52]
    assert simulate(chain, (0, 1, 2, 0, 3)).profile.tolist() == [50, 51, 2, 51, 52]


def test_output_stays_to_the_end() -> None:
    problem = Problem((Op(1, (), (0,)), Op(1, (), (1,))), (8, 1), frozenset({0, 1}))
    assert simulate(problem, (0, 1)).profile.tolist() == [8, 9]
    assert simulate(problem, (1, 0)).profile.tolist() == [1, 9]


def test_nothing_to_run_leaves_the_inputs() -> None:
    assert simulate(Problem((), (12,), frozenset({0})), ()).peak == 12


@pytest.mark.parametrize(
    ("sequence", "message"),
    [((1, 0, 2), "before it exists"), ((0, 1), "never run"), ((0, 1, 2, 9), "there is no op 9")],
)
def test_invalid_sequences_are_rejected(sequence: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(DIAMOND, sequence)


def test_op_that_is_not_recomputable_runs_once() -> None:
    problem = Problem((Op(1, (), (0,), recomputable=False),), (1,), frozenset({0}))
    with pytest.raises(ValueError, match="runs twice"):
        simulate(problem, (0, 0))


@pytest.mark.parametrize(
    ("ops", "sizes", "message"),
    [
        ((Op(1, (1,), (0,)), Op(1, (), (1,))), (1, 1), "after a use"),
        ((Op(1, (), (0,)), Op(1, (), (0,))), (1,), "two producers"),
        ((Op(1, (3,), (0,)),), (1,), "does not exist"),
        ((Op(-1, (), (0,)),), (1,), "negative"),
        ((Op(1, (), (0,)),), (-1,), "negative size"),
    ],
)
def test_malformed_problems_are_rejected(
    ops: tuple[Op, ...], sizes: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Problem(ops, sizes, frozenset())
