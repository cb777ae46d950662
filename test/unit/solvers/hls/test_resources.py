"""What multipliers of addresses take."""

from functools import cache
from itertools import product

import pytest

from braid.solvers.hls.nests import Affine, Array, Condition, Loop, Nest, Op
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


ROW, COLUMN = Affine(0, (("i", 1),)), Affine(0, (("j", 1),))


def multipliers(loops: str, *ops: Op, length: int = 58) -> int:
    """Of a nest of loops with these names over a matrix of 8 rows."""
    nest = Nest("nest", tuple(Loop(name, 8) for name in loops), 1, ops)
    array = Array("a", (8, length), 32, (("none", 1), ("none", 1)))
    return address_multipliers(nest, {"a": array})


@pytest.mark.parametrize(("length", "expected"), [(64, 0), (56, 0), (10, 0), (58, 1), (784, 1)])
def test_two_shifts_need_no_multiplier(length: int, expected: int) -> None:
    assert multipliers("ji", Op("load", (), "a", (ROW, COLUMN)), length=length) == expected


def test_a_row_is_multiplied_by_a_dsp_where_the_column_is_added() -> None:
    load = Op("load", (), "a", (ROW, COLUMN))
    sometimes = Op("write", (0,), "s", guards=(Condition(COLUMN),))
    # Conditions keep the innermost loop's body apart from the rows of outer loops.
    assert multipliers("ij", load) == 1
    assert multipliers("ij", load, sometimes) == 0
    assert multipliers("ji", load, sometimes) == 1
    assert multipliers("ijk", load, sometimes) == 1
    # Those of constants are known.
    assert multipliers("j", Op("load", (), "a", (Affine(3), COLUMN))) == 0


def test_one_multiplier_is_enough_for_a_row() -> None:
    both = Op("load", (), "a", (ROW, COLUMN)), Op("store", (0,), "a", (ROW, COLUMN))
    assert multipliers("ij", *both) == 1
    other = Op("store", (0,), "a", (COLUMN, ROW))
    assert multipliers("ij", both[0], other) == 2


def test_addresses_of_three_dims_in_order_are_counted() -> None:
    plane = Affine(0, (("k", 1),))
    array = Array("a", (8, 8, 58), 32, (("none", 1),) * 3)

    def of(loops: str) -> int:
        store = Op("store", (), "a", (plane, ROW, COLUMN))
        nest = Nest("nest", tuple(Loop(name, 8) for name in loops), 1, (store,))
        return address_multipliers(nest, {"a": array})

    assert (of("kij"), of("kji")) == (0, 1)
