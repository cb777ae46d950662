"""The simulator on streams whose times are known by hand, and its errors."""

from dataclasses import asdict

import pytest

from braid.support.errors import BraidError
from braid.targets.machines.target import BackendDescription, Issue, SharedPort, Unit
from braid.targets.simulator.instructions import Instruction, Kind, Stream
from braid.targets.simulator.report import report
from braid.targets.simulator.simulate import simulate

# One byte or operation a second, so that amounts are seconds; fetching takes 1e-6 s.
UNITS = (
    Unit("in", "load", 1.0, port="bus"),
    Unit("mac", "matrix", 1.0, startup_seconds=0.5),
    Unit("out", "store", 1.0, port="bus"),
)


def backend(bandwidth: float = 2.0) -> BackendDescription:
    ports = (SharedPort("bus", bandwidth), SharedPort("code", 1e6))
    return BackendDescription("chip", (), 0.0, UNITS, (), ports, Issue(1, "code"))


def stream(*instructions: tuple[Kind, int, int]) -> Stream:
    return Stream(tuple(Instruction(*fields, 0) for fields in instructions), ("op",))


def test_a_chain_takes_the_sum_of_its_parts() -> None:
    chain = stream(
        (Kind.LOAD, 0, 3),
        (Kind.SYNC, 1, 0),
        (Kind.MATRIX, 1, 4),
        (Kind.SYNC, 2, 2),
        (Kind.STORE, 2, 2),
    )
    result = simulate(chain, backend())
    assert result.seconds == pytest.approx(3 + 0.5 + 4 + 2, abs=1e-4)
    assert result.busy == pytest.approx((3, 4.5, 2))
    assert result.stalled == pytest.approx((0, 3, 7.5), abs=1e-4)


def test_units_run_side_by_side_without_a_sync() -> None:
    result = simulate(stream((Kind.LOAD, 0, 3), (Kind.MATRIX, 1, 4)), backend())
    assert result.seconds == pytest.approx(4.5, abs=1e-4)


def test_a_unit_executes_in_order_behind_a_sync() -> None:
    blocked = stream((Kind.MATRIX, 1, 4), (Kind.SYNC, 0, 0), (Kind.LOAD, 0, 1), (Kind.LOAD, 0, 1))
    assert simulate(blocked, backend()).seconds == pytest.approx(4.5 + 2, abs=1e-4)


def test_a_sync_may_wait_for_a_sync_of_a_later_unit() -> None:
    nested = stream((Kind.LOAD, 0, 3), (Kind.SYNC, 1, 0), (Kind.SYNC, 0, 1), (Kind.LOAD, 0, 1))
    assert simulate(nested, backend()).seconds == pytest.approx(4, abs=1e-4)


@pytest.mark.parametrize(("bandwidth", "seconds"), [(2.0, 4.0), (1.0, 6.0), (0.5, 12.0)])
def test_transfers_share_a_port(bandwidth: float, seconds: float) -> None:
    """At 1 B/s each gets half: 2 bytes of both take 4 s, then the rest of the longer runs alone."""
    both = stream((Kind.LOAD, 0, 4), (Kind.STORE, 2, 2))
    assert simulate(both, backend(bandwidth)).seconds == pytest.approx(seconds, abs=1e-4)


def test_instructions_are_fetched_one_by_one() -> None:
    many = stream(
        *[(Kind.SYNC, 0, index - 1) if index else (Kind.LOAD, 0, 0) for index in range(50)]
    )
    assert simulate(many, backend()).seconds <= 50e-6
    slow = BackendDescription(
        "chip", (), 0.0, UNITS, (), (SharedPort("bus", 1.0),), Issue(2, "bus")
    )
    three = stream(*[(Kind.LOAD, 0, 0)] * 3)
    assert simulate(three, slow).seconds == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("instructions", "message"),
    [
        (
            [(Kind.SYNC, 0, 1), (Kind.LOAD, 0, 1)],
            "stands still: instruction 0 waits for instruction 1",
        ),
        ([(Kind.LOAD, 7, 1)], "is for unit 7, but backend 'chip' has 3 units"),
        ([(Kind.LOAD, 1, 1)], "is a load, but unit 'mac' executes matrix"),
    ],
)
def test_streams_that_cannot_run(instructions: list[tuple[Kind, int, int]], message: str) -> None:
    with pytest.raises(BraidError, match=message):
        simulate(stream(*instructions), backend())


def test_a_backend_without_issue_model() -> None:
    with pytest.raises(BraidError, match="not programmed by instructions"):
        simulate(stream(), BackendDescription("cpu", (), 0.0, UNITS, ()))


def test_the_report_is_plain_data() -> None:
    chain = stream((Kind.LOAD, 0, 3), (Kind.SYNC, 1, 0), (Kind.MATRIX, 1, 4))
    found = report(simulate(chain, backend()), chain, backend())
    assert [bar.unit for bar in found.bars] == ["in", "mac"]
    assert [bar.op for bar in found.bars] == ["op", "op"]
    for unit in found.units:
        assert unit.busy + unit.stalled + unit.idle == pytest.approx(found.seconds)
    assert asdict(found)["units"][1]["busy"] == pytest.approx(4.5)
