"""Times of tokens against a simulation that steps through every cycle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.solvers.hls.timing import Clocked, Deadlock, Fifos, Tokens, ends_of


def stepped(processes: list[Clocked], depths: list[int], most: int = 2000) -> list[int] | None:
    """Return the ends by stepping; None if it has not ended after `most`. Shares nothing but the
    data."""
    tick = [0] * len(processes)
    ends: list[int | None] = [None] * len(processes)
    written: dict[int, list[int]] = {}
    read: dict[int, list[int]] = {}
    for cycle in range(most):
        for number, process in enumerate(processes):
            waited = [ends[one] for one in process.after]
            if ends[number] is not None or any(end is None for end in waited):
                continue
            if any(cycle < end + process.delay for end in waited if end is not None):
                continue
            now = [one for one in process.tokens if tick[number] in one.ticks]
            if all(_may(one, cycle, written, read, depths) for one in now):
                for one in now:
                    (written if one.writes else read).setdefault(one.fifo, []).append(cycle)
                tick[number] += 1
            if tick[number] == process.length:
                ends[number] = cycle + 1
        if all(end is not None for end in ends):
            return [end for end in ends if end is not None]
    return None


def _may(one: Tokens, cycle: int, written: dict, read: dict, depths: list[int]) -> bool:
    gone, come = read.get(one.fifo, []), written.get(one.fifo, [])
    if one.writes:
        freed = sum(time < cycle for time in gone)
        return len(come) - freed < depths[one.fifo]
    return sum(time < cycle for time in come) > len(gone)


@st.composite
def designs(draw: st.DrawFn) -> tuple[list[Clocked], list[int]]:
    count = draw(st.integers(2, 4))
    lengths = [draw(st.integers(1, 12)) for _ in range(count)]
    tokens: list[list[Tokens]] = [[] for _ in range(count)]
    depths: list[int] = []
    for _ in range(draw(st.integers(1, 4))):
        writer = draw(st.integers(0, count - 2))
        reader = draw(st.integers(writer + 1, count - 1))
        many = draw(st.integers(1, min(lengths[writer], lengths[reader])))
        for number, writes in ((writer, True), (reader, False)):
            at = st.lists(
                st.integers(0, lengths[number] - 1), min_size=many, max_size=many, unique=True
            )
            ticks = np.array(sorted(draw(at)), np.int64)
            tokens[number].append(Tokens(len(depths), writes, ticks))
        depths.append(draw(st.integers(1, 4)))
    after = [
        tuple(sorted(draw(st.sets(st.integers(0, n - 1), max_size=1)))) if n else ()
        for n in range(count)
    ]
    return [
        Clocked(f"p{n}", lengths[n], tuple(tokens[n]), after[n], draw(st.integers(0, 2)))
        for n in range(count)
    ], depths


@settings(max_examples=300, deadline=None)
@given(designs())
def test_ends_are_those_of_a_simulation(given_design):
    processes, depths = given_design
    expected = stepped(processes, depths)
    if expected is None:
        with pytest.raises(Deadlock):
            ends_of(processes, Fifos(depths))
    else:
        assert list(ends_of(processes, Fifos(depths)).ends) == expected


def test_a_reader_of_what_nobody_writes_is_a_deadlock():
    reads = Tokens(0, False, np.array([0], np.int64))
    with pytest.raises(Deadlock, match="reads 1 tokens of a FIFO that gets 0"):
        ends_of([Clocked("reader", 1, (reads,))], Fifos([2]))


def test_a_stalled_process_holds_back_what_it_has_computed():
    writer = Clocked("writer", 100, (Tokens(0, True, np.array([0, 99], np.int64)),))
    between = Clocked(
        "between",
        8,
        (Tokens(0, False, np.array([0, 1], np.int64)), Tokens(1, True, np.array([6, 7], np.int64))),
    )
    reader = Clocked("reader", 2, (Tokens(1, False, np.array([0, 1], np.int64)),))
    assert ends_of([writer, between, reader], Fifos([2, 2])).ends == (100, 107, 108)
