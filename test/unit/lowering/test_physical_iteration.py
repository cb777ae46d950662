from itertools import product

import pytest
from xdsl.ir.affine import AffineExpr, AffineMap

from braid.dialects.braid.layout import Layout
from braid.lowering.common.physical_iteration import Operand, physical_iteration

D = [AffineExpr.dimension(i) for i in range(4)]


def operand(tag, shape, *index, dims=None) -> Operand:
    return Operand(AffineMap(dims or len(index), 0, tuple(index)), Layout.parse(tag), shape)


@pytest.mark.parametrize("source", ["abc", "acb", "aBc4b"])
@pytest.mark.parametrize("target", ["abc", "cba", "aBc4b", "aCb2c"])
def test_every_point_is_visited_once_at_its_place(source, target) -> None:
    shape = (2, 6, 4)
    operands = [operand(tag, shape, *D[:3]) for tag in (source, target)]
    loops = physical_iteration(operands, shape, [True] * 3)
    seen = set()
    for point in product(*(range(n) for n in loops.extents)):
        index = tuple(expr.eval(point, []) for expr in loops.logical)
        if any(b is not None and i >= b for i, b in zip(index, loops.bounds, strict=True)):
            continue
        seen.add(index)
        for access, each in zip(loops.maps, operands, strict=True):
            stored = tuple(e.eval(index, []) for e in each.layout.storage_map.results)
            assert tuple(e.eval(point, []) for e in access.results) == stored
    assert seen == set(product(*(range(n) for n in shape)))


def test_loops_follow_the_storage_of_the_result() -> None:
    shape = (1, 8, 16, 16)
    operands = [operand("abcd", shape, *D), operand("acdb", shape, *D)]
    loops = physical_iteration(operands, shape, [True] * 4)
    assert loops.maps[1].results[:3] == tuple(D[:3])


def test_reductions_go_outside_of_contiguous_dims() -> None:
    """Columns of a row-major matrix are added up row by row."""
    rows, columns = D[1], D[0]
    operands = [
        operand("ab", (100, 64), rows, columns, dims=2),
        operand("a", (64,), columns, dims=2),
    ]
    assert physical_iteration(operands, (64, 100), [True, False]).origins == (1, 0)


def test_reductions_over_contiguous_dims_stay_inside() -> None:
    operands = [
        operand("ab", (100, 64), D[0], D[1], dims=2),
        operand("a", (100,), D[0], dims=2),
    ]
    assert physical_iteration(operands, (100, 64), [True, False]).origins == (0, 1)


def test_short_dims_in_a_row_stay_inside() -> None:
    """A few neighbours take less time than a walk through memory by whole rows."""
    shape = (1000, 3, 5)
    operands = [operand("abc", shape, *D[:3]) for _ in range(2)]
    assert physical_iteration(operands, shape, [True] * 3).origins == (0, 1, 2)


def test_short_dims_that_only_the_result_has_in_a_row_go_outside() -> None:
    """Channels last of three channels, from images of each."""
    shape = (1, 3, 50, 60)
    operands = [operand("abcd", shape, *D), operand("acdb", shape, *D)]
    assert physical_iteration(operands, shape, [True] * 4).origins == (0, 2, 1, 3)


def test_tails_that_an_operand_lacks() -> None:
    shape = (2, 6, 4)
    operands = [operand(tag, shape, *D[:3]) for tag in ("abc", "aBc4b", "cBa4b", "aBc4b")]
    loops = physical_iteration(operands, shape, [True] * 3)
    assert loops.bounds == (None, 6, None)
    assert loops.has_tails == (False, True, True, True)
