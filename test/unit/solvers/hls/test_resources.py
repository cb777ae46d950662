"""What multipliers of addresses take."""

from functools import cache
from itertools import product

import pytest

from braid.solvers.hls.nests import Affine, Array, Loop, Nest, Op
from braid.solvers.hls.resources import address_multipliers, signed_digits

LARGEST = 200


@cache
def fewest(number: int) -> int:
    """Powers of two of either sign that add up to it, by trying them."""
    powers = [sign * 2**one for one in range(10) for sign in (1, -1)]
    reached, count = {0}, 0
    while number not in reached:
        reached = {a + b for a, b in product(reached, powers) if abs(a + b) <= 1024}
        count += 1
    return count


def test_signed_digits_are_as_few_as_can_be() -> None:
    assert all(signed_digits(number) == fewest(number) for number in range(LARGEST))


@pytest.mark.parametrize(("length", "multipliers"), [(64, 0), (56, 0), (10, 0), (58, 1), (784, 1)])
def test_two_shifts_need_no_multiplier(length: int, multipliers: int) -> None:
    index = (Affine(0, (("i", 1),)), Affine(0, (("j", 1),)))
    nest = Nest("nest", (Loop("j", length), Loop("i", 8)), 1, (Op("load", (), "a", index),))
    array = Array("a", (8, length), 32, (("none", 1), ("none", 1)))
    assert address_multipliers(nest, {"a": array}) == multipliers


def test_rows_of_what_is_copied_are_multiplied() -> None:
    """In order as well, unlike those of what is computed with, or of what is written."""
    index = (Affine(0, (("i", 1),)), Affine(0, (("j", 1),)))
    array = Array("a", (8, 58), 32, (("none", 1), ("none", 1)))

    def multipliers(*ops: Op) -> int:
        nest = Nest("nest", (Loop("i", 8), Loop("j", 58)), 1, ops)
        return address_multipliers(nest, {"a": array})

    load = Op("load", (), "a", index)
    assert multipliers(load, Op("write", (0,), "s")) == 1
    assert multipliers(load, Op("mul", (0, 0)), Op("write", (1,), "s")) == 0
    assert multipliers(Op("read", (), "s"), Op("store", (0,), "a", index)) == 0
