"""Banks of memories against reading them number by number, and loops against their numbers."""

import numpy as np
import pytest

from braid.solvers.hls.banks import Loops, fewest_passes, loops_of, reads_of


@pytest.mark.parametrize("seed", range(40))
def test_reads_give_the_order_and_one_pass_less_cannot(seed: int) -> None:
    random = np.random.default_rng(seed)
    words, width = (int(one) for one in random.integers(1, 9, 2))
    size = words * width
    order = random.permutation(size)
    if seed % 2:
        order = np.arange(size).reshape(words, width).T.ravel()
    beat = int(random.choice([one for one in range(1, size + 1) if size % one == 0]))
    banks = int(random.choice([one for one in range(1, words + 1) if words % one == 0]))
    passes = fewest_passes(order, words, beat, banks)
    reads = reads_of(order, words, beat, banks, passes)
    assert reads.addresses.shape == (size // beat * passes, banks)
    memory = np.arange(size).reshape(words, width)
    found = [
        memory[addresses[bank] * banks + bank, lane]
        for addresses, own, lanes in zip(reads.addresses, reads.banks, reads.lanes, strict=True)
        for bank, lane in zip(own, lanes, strict=True)
    ]
    np.testing.assert_array_equal(found, order)
    for fewer in range(1, passes):
        if beat % fewer == 0:
            groups = (order // width).reshape(-1, beat // fewer)
            assert any(
                len({one % banks for one in set(group)}) < len(set(group)) for group in groups
            )


@pytest.mark.parametrize("seed", range(40))
def test_loops_are_those_of_their_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(0, 5))
    extents, strides = (
        tuple(int(one) for one in random.integers(low, 5, count)) for low in (1, -4)
    )
    numbers = Loops(7, extents, strides).values
    found = loops_of(numbers)
    assert found is not None and len(found.extents) <= count
    np.testing.assert_array_equal(found.values, numbers)


def test_numbers_in_no_loops_have_none() -> None:
    assert loops_of(np.array([0, 1, 3, 7])) is None
    assert loops_of(np.array([5, 0, 1, 2])) is None
