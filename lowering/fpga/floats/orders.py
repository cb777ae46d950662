"""Orders in which the points of a nest are computed: its loops, and the work of an iteration."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from braid.lowering.fpga.floats.domains import dim
from braid.lowering.fpga.floats.nodes import Node
from braid.solvers.hls.nests import Affine, Condition, Loop
from braid.solvers.hls.schedule import Operators

_MOST_WASTE = 1.08
"""Iterations for each that is needed, where lanes do not divide a dim."""
_MOST_TERMS = 16


@dataclass(frozen=True)
class Order:
    """Loops from the outermost on, and unrolled ones; `index` has each dim by their variables.

    `lanes` = (dim, number): the dim of the result that is unrolled; `groups` splits loops, which
    take the numbers of a stream lane by lane.
    """

    loops: tuple[Loop, ...]
    unrolled: tuple[Loop, ...]
    index: tuple[Affine, ...]
    bounds: tuple[Condition, ...]
    lanes: tuple[int, int]
    interval: int = 1

    @property
    def iterations(self) -> int:
        """Iterations of the flattened loop."""
        count = 1
        for loop in self.loops:
            count *= loop.trips
        return count

    def sequence(self, dims: Sequence[int]) -> list[int]:
        """Return those of `dims` that have loops, in the order of the loops."""
        found: list[int] = []
        for loop in self.loops:
            found += [
                at for at in dims if loop.name in self.index[at].variables and at not in found
            ]
        return found


def orders_of(node: Node, operators: Operators, most_lanes: int) -> Iterator[Order]:
    """Yield loop orders whose innermost loop is a dim of the result, if there is any, unrolled in
    part.

    Dims of the result keep their order except for that one, and so do reduced dims, which are
    between them or outermost. Sums come back to an element after all of the innermost loop; where
    that is longer than an adder takes, it is also cut into blocks of about that length.
    """
    parallel = [at for at in range(node.parallel) if node.extents[at] > 1]
    reductions = [at for at in node.reductions if node.extents[at] > 1]
    if not reductions:
        yield from _elementwise(node, parallel, most_lanes)
        return
    for last in parallel or [None]:
        rest = [at for at in parallel if at != last]
        for before in range(len(rest), -1, -1):
            outer, inner = rest[:before], rest[before:]
            for terms in _divisors(node.extents[reductions[-1]], min(_MOST_TERMS, most_lanes)):
                around = operators.carried_by(terms) + operators.load + operators.store
                tiles = _tiles(node, last, most_lanes // terms, around, not inner)
                for lanes, length, blocks in tiles:
                    yield _made(
                        node, (outer, reductions, inner, last), terms, lanes, length, blocks
                    )


def _tiles(
    node: Node, last: int | None, most: int, around: int, has_blocks: bool
) -> Iterator[tuple[int, int, int]]:
    """Yield (lanes, length, blocks) of the innermost dim."""
    if last is None:
        yield 1, 1, 1
        return
    extent = node.extents[last]
    for lanes in range(1, min(extent, most) + 1):
        groups = ceil(extent / lanes)
        if groups * lanes <= _MOST_WASTE * extent:
            yield lanes, groups, 1
        for length in range(around - 1, around + 4) if has_blocks else ():
            blocks = ceil(extent / (lanes * length)) if length > 0 else 0
            if blocks > 1 and blocks * lanes * length <= _MOST_WASTE * extent:
                yield lanes, length, blocks


def _made(
    node: Node,
    places: tuple[list[int], list[int], list[int], int | None],
    terms: int,
    lanes: int,
    length: int,
    blocks: int,
) -> Order:
    outer, reductions, inner, last = places
    index = [Affine() for _ in node.extents]
    loops: list[Loop] = []
    unrolled: list[Loop] = []

    def plain(at: int, trips: int, name: str, factor: int) -> None:
        if trips > 1:
            loops.append(Loop(name, trips))
            index[at] += Affine.of(0, {name: factor})

    for at in outer:
        plain(at, node.extents[at], dim(at), 1)
    if last is not None:
        plain(last, blocks, f"{dim(last)}b", lanes * length)
    for at in reductions:
        own = terms if at == reductions[-1] else 1
        plain(at, node.extents[at] // own, dim(at), own)
    for at in inner:
        plain(at, node.extents[at], dim(at), 1)
    if last is not None:
        plain(last, length, dim(last), lanes)
        if lanes > 1:
            unrolled.append(Loop(f"{dim(last)}u", lanes))
            index[last] += Affine.of(0, {f"{dim(last)}u": 1})
    if terms > 1:
        name = f"{dim(reductions[-1])}u"
        unrolled.append(Loop(name, terms))
        index[reductions[-1]] += Affine.of(0, {name: 1})
    bounds = _bounds(node, index, last, lanes * length * blocks)
    return Order(
        tuple(loops or [Loop("once", 1)]),
        tuple(unrolled),
        tuple(index),
        bounds,
        (-1 if last is None else last, lanes),
    )


def _bounds(
    node: Node, index: Sequence[Affine], last: int | None, covered: int
) -> tuple[Condition, ...]:
    if last is None or covered == node.extents[last]:
        return ()
    return (Condition(Affine(node.extents[last] - 1) + index[last].scaled(-1), True),)


def _elementwise(node: Node, parallel: Sequence[int], most: int) -> Iterator[Order]:
    """Yield orders with any dim innermost, and longer intervals, in which operators are shared."""
    for last in parallel or [None]:
        rest = [at for at in parallel if at != last]
        extent = 1 if last is None else node.extents[last]
        for lanes in range(1, min(extent, most) + 1):
            groups = ceil(extent / lanes)
            if groups * lanes <= _MOST_WASTE * extent:
                yield _made(node, (rest, [], [], last), 1, lanes, groups, 1)


def _divisors(number: int, most: int) -> list[int]:
    return [one for one in range(1, min(number, most) + 1) if number % one == 0]
