"""Requests ahead of a memory, beside a simulation cycle by cycle."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from braid.solvers.hls.bursts import (
    BURST_BYTES,
    LEAST_PORT,
    MOST_BEATS,
    burst_words,
    bursts_ahead,
    port_bits,
)


def waits(words: int, burst: int, latency: int, ahead: int, takes: int = 600) -> int:
    """Cycles, after that of the first word, in which none is there to be taken."""
    lengths = [min(burst, words - first) for first in range(0, words, burst)]
    under_way: deque[tuple[int, int]] = deque()
    lefts: deque[int] = deque()
    stored = taken = asked = waited = 0
    freed = 0
    cycle = 0
    while taken < takes:
        is_there = stored > 0
        if is_there:
            taken += 1
            stored -= 1
            lefts[0] -= 1
            freed = int(lefts[0] == 0)
            if freed:
                lefts.popleft()
        else:
            waited += taken > 0
        # The answer to what was asked for so long ago; one word a cycle.
        if under_way and under_way[0][0] <= cycle:
            time, left = under_way.popleft()
            stored += 1
            if left > 1:
                under_way.appendleft((time, left - 1))
        if len(lefts) + freed < ahead:
            length = lengths[asked % len(lengths)]
            under_way.append((cycle + latency, length))
            lefts.append(length)
            asked += 1
        freed = 0
        cycle += 1
    return waited


@given(st.integers(1, 70), st.integers(0, 5), st.integers(1, 60))
def test_the_fewest_requests(words: int, log_burst: int, latency: int) -> None:
    burst = min(1 << log_burst, 1 << (words - 1).bit_length())
    ahead = bursts_ahead(words, burst, latency)
    assert waits(words, burst, latency, ahead) == 0
    if ahead > 1:
        assert waits(words, burst, latency, ahead - 1) > 0


@pytest.mark.parametrize("port", [32, 64, 128, 256, 512, 1024])
@pytest.mark.parametrize("words", [1, 2, 3, 100, 1 << 20])
def test_bursts_keep_the_rules(port: int, words: int) -> None:
    burst = burst_words(words, port)
    assert 1 <= burst <= MOST_BEATS and burst * port // 8 <= BURST_BYTES
    assert burst & (burst - 1) == 0 and burst < 2 * words


def test_ports() -> None:
    assert [port_bits(bits) for bits in (1, 32, 33, 65, 512)] == [LEAST_PORT, 32, 64, 128, 512]
