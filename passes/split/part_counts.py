"""Select the number of parts into which each dim of an op is split: as few as fit a memory."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Operation

from braid.passes.split.split_dims import SplitDim, part_bytes

SINGLE = 2
"""The most parts that a single dim may make, in multiples of the fewest parts.

Parts along one dim take less to join than parts along several."""


def select_counts(
    op: Operation, dims: Sequence[SplitDim], limit: int, start: Mapping[int, int]
) -> dict[int, int] | None:
    """Return the parts per dim with which every part fits `limit`, None if there are none.

    Dims are split in their order, unless leaving out the first ones, or dividing the parts in
    another way among two dims, makes fewer parts. The first dim alone is split where that suffices,
    unless it makes more than `SINGLE` times as many: each part reads all that is not cut along that
    dim, so that a thousand parts may read most of an operand a thousand times. Counts are multiples
    or divisors of `start`, so that parts are unions or subsets of the others' parts.
    """
    search = _PartCountSearch(op, dims, limit, start)
    found = search.in_order(dims)
    if found == start:
        return search.coarsened(start)
    if found is None or _parts(found) <= SINGLE:
        return found
    others = (search.in_order(dims[skip:]) for skip in range(1, len(dims)))
    feasible = [found, *(other for other in others if other is not None)]
    fewest = search.balanced(min(feasible, key=_parts))
    if len(found) == 1 and _parts(found) <= SINGLE * _parts(fewest):
        return found
    return fewest


def counts_in_order(op: Operation, dims: Sequence[SplitDim], limit: int) -> dict[int, int] | None:
    """Return the parts per dim with which every part fits `limit`, None if there are none.

    Each dim is split into as few parts as suffice, or as many as there can be, before the next.
    """
    return _PartCountSearch(op, dims, limit, {}).in_order(dims)


def _parts(counts: Mapping[int, int]) -> int:
    return math.prod(counts.values())


class _PartCountSearch:
    """Counts for one op; `start` has the number of which each dim's count is a multiple."""

    def __init__(
        self, op: Operation, dims: Sequence[SplitDim], limit: int, start: Mapping[int, int]
    ) -> None:
        self.op = op
        self.dims = dims
        self.limit = limit
        self.start = start

    def in_order(self, order: Sequence[SplitDim]) -> dict[int, int] | None:
        """Split one dim of `order` after the other, each into as few parts as suffice.

        A dim of which no number suffices is split into as many parts as there can be. Splits that
        later dims make unnecessary are undone.
        """
        counts = dict(self.start)
        for dim in order:
            if self._fits(counts):
                break
            counts[dim.dim] = self._fewest(counts, dim)
        if not self._fits(counts):
            return None
        for dim in order:
            counts[dim.dim] = self._fewest(counts, dim)
        return {dim: count for dim, count in counts.items() if count > 1}

    def coarsened(self, counts: Mapping[int, int]) -> dict[int, int]:
        """Put whole parts together for as long as that fits, the least preferred dims first."""
        made = dict(counts)
        for dim in reversed([d.dim for d in self.dims if d.dim in counts]):
            divisors = (n for n in range(1, made[dim] + 1) if made[dim] % n == 0)
            made[dim] = next(n for n in divisors if self._fits({**made, dim: n}))
        return {dim: count for dim, count in made.items() if count > 1}

    def balanced(self, counts: dict[int, int]) -> dict[int, int]:
        """Divide the parts otherwise among two dims for as long as that makes fewer."""
        improved = True
        while improved:
            improved = False
            for first, second in itertools.combinations(self.dims, 2):
                better = self._balanced_pair(counts, first, second)
                if better is not None:
                    counts, improved = better, True
        return counts

    def _balanced_pair(
        self, counts: dict[int, int], first: SplitDim, second: SplitDim
    ) -> dict[int, int] | None:
        rest = {d: c for d, c in counts.items() if d not in (first.dim, second.dim)}
        least, best = _parts(counts), None
        step = self.start.get(first.dim, 1)
        for count in _useful_counts(first.extent // first.unit, step):
            tried = {**rest, first.dim: count}
            if _parts(tried) * self.start.get(second.dim, 1) >= least:
                break
            tried[second.dim] = self._fewest(tried, second)
            if _parts(tried) < least and self._fits(tried):
                least, best = _parts(tried), tried
        return best and {dim: count for dim, count in best.items() if count > 1}

    def _fits(self, counts: Mapping[int, int]) -> bool:
        return part_bytes(self.op, self.dims, counts) <= self.limit

    def _fewest(self, counts: Mapping[int, int], dim: SplitDim) -> int:
        """Return the least count of `dim` with which all fits, or else the largest possible.

        It is found by bisection, as parts only shrink when there are more of them.
        """
        step = self.start.get(dim.dim, 1)

        def needs(factor: int) -> float:
            return part_bytes(self.op, self.dims, {**counts, dim.dim: factor * step})

        low, high = 0, dim.extent // dim.unit // step
        while high > 1 and needs(high) == math.inf:
            high -= 1
        if high == 0:
            return step
        if needs(high) > self.limit:
            return high * step
        while high - low > 1:
            middle = (low + high) // 2
            if needs(middle) <= self.limit:
                high = middle
            else:
                low = middle
        return high * step


def _useful_counts(units: int, step: int) -> Iterator[int]:
    """Yield the multiples of `step` that make the largest part smaller than all counts below them.

    These are at most about twice the square root of `units`.
    """
    count = step
    while count <= units:
        yield count
        size = -(-units // count)
        if size == 1:
            return
        enough = math.ceil(units / (size - 1))
        count = math.ceil(enough / step) * step
