"""Tables of functions of one index."""

from collections.abc import Callable

import numpy as np
import pytest

from braid.lowering.fpga.rtl.shared_tables import SharedTables


def column(bits: int, function: Callable[[int], int]) -> tuple[int, ...]:
    """Return the lowest bits of its values."""
    return tuple(function(index) & 1 for index in range(1 << bits))


def random_column(size: int) -> tuple[int, ...]:
    return tuple(int(one) for one in np.random.default_rng(0).integers(0, 2, size))


def test_known_bits_and_bits_of_the_index_take_none() -> None:
    tables = SharedTables()
    assert tables.more(column(9, lambda i: 1)) == 0
    assert tables.more(column(9, lambda i: i >> 3)) == 0
    assert tables.more(column(5, lambda i: ~i >> 2)) == 0


def test_six_bits_are_a_table_and_wide_multiplexers_are_free() -> None:
    assert SharedTables().more(column(6, lambda i: i * i % 37)) == 1
    assert SharedTables().more(random_column(256)) == 4


def test_equal_parts_are_made_once() -> None:
    tables = SharedTables()
    assert tables.more(column(10, lambda i: (i & 63) % 5)) == 1
    assert tables.more(column(10, lambda i: ~((i & 63) % 5))) == 0
    # The condition that selects a function or its inverse.
    assert tables.more(column(10, lambda i: (i & 63) % 5 ^ i >> 9)) == 1
    # One more of six bits, and the choice between them.
    assert tables.more(column(10, lambda i: (i & 63) % (5 if i < 512 else 7))) == 2


def test_a_random_function_takes_a_table_for_64_bits_and_what_chooses() -> None:
    """Of 1536 places, Yosys (`synth_xilinx`) was measured to take 266 for eight."""
    assert SharedTables().more(random_column(4096)) == 64 + 16 + 4 + 1
    assert 8 * SharedTables().more(random_column(1536)) == pytest.approx(266, rel=0.05)


def test_what_is_beyond_the_last_bit_is_free() -> None:
    values = random_column(5 * 64)
    # Five of six bits, a choice between four, and one between that and the fifth.
    assert SharedTables().more(values) == 7
