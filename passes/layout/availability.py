"""Compute the layouts in which a value is available in each block, and their cost.

A value is made in one layout in its block; every reorder adds a layout in one block, for all
users in it and nested in it. So for each value there is a tree of blocks, each with a set of
layouts that contains its parent's; a reorder is paid once in its block, however many users it
has there.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt
from xdsl.ir import Block, SSAValue

from braid.dialects.braid.layout import Layout
from braid.targets.costs.layout_costs import shortest_paths

ReorderCost = Callable[[Layout, Layout], float]
Matrix = npt.NDArray[np.float64]

MAX_LAYOUTS = 8
"""The most layouts of which all sets are enumerated; of more only some are, without a proof."""


@dataclass(frozen=True)
class LayoutSets:
    """The sets in which a value can be available, and the cheapest ways to extend them.

    Without `is_complete`, sets are left out, and the best may be among these.
    """

    layouts: tuple[Layout, ...]
    sets: tuple[frozenset[int], ...]
    reorder: Matrix
    is_complete: bool = True

    @staticmethod
    def of(layouts: Sequence[Layout], cost: ReorderCost) -> "LayoutSets":
        """Return the sets of `layouts`, whose reorders cost `cost`.

        If a value has more than `MAX_LAYOUTS` sets: those of one or two layouts, and all that can
        be made of each.
        """
        indices = range(len(layouts))
        matrix = np.array([[cost(a, b) for b in layouts] for a in layouts])
        is_complete = len(layouts) <= MAX_LAYOUTS
        largest = len(layouts) if is_complete else 2
        sets = [frozenset(c) for n in range(1, largest + 1) for c in combinations(indices, n)]
        if not is_complete:
            reach = np.isfinite(shortest_paths(matrix))
            sets.extend(frozenset(np.flatnonzero(row).tolist()) for row in reach)
        return LayoutSets(tuple(layouts), tuple(dict.fromkeys(sets)), matrix, is_complete)

    @cached_property
    def distances(self) -> Matrix:
        """Least cost of the reorders from one layout to another, through any others."""
        return shortest_paths(self.reorder)

    def path(self, source: int, target: int) -> list[tuple[int, int]]:
        """Return the reorders (from, to) that lead from one layout to another at least cost, in
        order.

        Raises ValueError if there is no way.
        """
        cost = np.full(len(self.layouts), np.inf)
        cost[source] = 0.0
        before = np.full(len(self.layouts), -1)
        left = set(range(len(self.layouts)))
        while left:  # E. W. Dijkstra, 1959
            nearest = min(left, key=lambda layout: float(cost[layout]))
            left.remove(nearest)
            for layout in left:
                if cost[nearest] + self.reorder[nearest, layout] < cost[layout]:
                    cost[layout] = cost[nearest] + self.reorder[nearest, layout]
                    before[layout] = nearest
        if math.isinf(cost[target]):
            raise ValueError("a layout cannot be reached by reorders")
        steps: list[tuple[int, int]] = []
        while target != source:
            steps.append((int(before[target]), target))
            target = int(before[target])
        return steps[::-1]

    def steps(self, have: frozenset[int], want: frozenset[int]) -> list[tuple[int, int]]:
        """Return the reorders (from, to) that extend `have` to `want` at least cost, in order.

        Raises ValueError if there is no way.
        """
        if len(want) > MAX_LAYOUTS:
            return self._tree(have, want)
        cost, steps = self._extend(have, want - have, {})
        if math.isinf(cost):
            raise ValueError("a layout cannot be reached by reorders")
        return list(steps)

    def _tree(self, have: frozenset[int], want: frozenset[int]) -> list[tuple[int, int]]:
        """Return the reorders that extend `have` to `want`, the cheapest next one first."""
        steps: list[tuple[int, int]] = []
        there, missing = set(have), set(want - have)
        while missing:
            pairs = ((s, t) for s in sorted(there) for t in sorted(missing))
            source, target = min(pairs, key=lambda pair: float(self.reorder[pair]))
            if math.isinf(self.reorder[source, target]):
                raise ValueError("a layout cannot be reached by reorders")
            steps.append((source, target))
            there.add(target)
            missing.remove(target)
        return steps

    def from_layout(self, made: Sequence[Layout]) -> Matrix:
        """Return the cost per (option that makes layout `made[i]`, set): the reorders needed."""
        return self._from_each_layout[[self.layouts.index(layout) for layout in made]]

    @cached_property
    def _from_each_layout(self) -> Matrix:
        return self._costs([frozenset((index,)) for index in range(len(self.layouts))], self.sets)

    @cached_property
    def from_sets(self) -> Matrix:
        """Cost per (set in the outer block, set in the inner one): the reorders needed."""
        return self._costs(self.sets, self.sets)

    def contains(self, wanted: Sequence[Layout]) -> Matrix:
        """Return per (set, option that wants layout `wanted[j]`) 0 if available, else infinity."""
        return self._contains_each[:, [self.layouts.index(layout) for layout in wanted]]

    @cached_property
    def _contains_each(self) -> Matrix:
        indices = range(len(self.layouts))
        return np.array([[0.0 if i in s else math.inf for i in indices] for s in self.sets])

    def _costs(self, rows: Iterable[frozenset[int]], columns: Sequence[frozenset[int]]) -> Matrix:
        known: _Extensions = {}
        return np.array(
            [[self._cost(r, c, known) if r <= c else math.inf for c in columns] for r in rows]
        )

    def _cost(self, have: frozenset[int], want: frozenset[int], known: "_Extensions") -> float:
        if len(want) <= MAX_LAYOUTS:
            return self._extend(have, want - have, known)[0]
        try:
            return sum(float(self.reorder[step]) for step in self._tree(have, want))
        except ValueError:
            return math.inf

    def _extend(
        self, have: frozenset[int], missing: frozenset[int], known: "_Extensions"
    ) -> tuple[float, tuple[tuple[int, int], ...]]:
        """Return the cheapest reorders that add `missing` to `have`, by recursion over the first
        addition.
        """
        if not missing:
            return 0.0, ()
        key = (have, missing)
        if key not in known:
            best: tuple[float, tuple[tuple[int, int], ...]] = (math.inf, ())
            for target in sorted(missing):
                source = min(sorted(have), key=lambda s: self.reorder[s, target])
                rest, steps = self._extend(have | {target}, missing - {target}, known)
                cost = float(self.reorder[source, target]) + rest
                if cost < best[0]:
                    best = cost, ((source, target), *steps)
            known[key] = best
        return known[key]


@dataclass(frozen=True)
class Available:
    """The node that says in which of `sets` a value is available in a block.

    `parent` is that of the block around, None for the block in which the value is made.
    """

    value: SSAValue
    block: Block
    sets: LayoutSets
    node: int
    parent: "Available | None"


_Extensions = dict[tuple[frozenset[int], frozenset[int]], tuple[float, tuple[tuple[int, int], ...]]]


def block_tree(home: Block, users: Iterable[Block]) -> dict[Block, Block | None]:
    """Return the blocks from `home` down to every user's block, each with its parent, parents
    first.
    """
    parents: dict[Block, Block | None] = {home: None}
    for user in users:
        path: list[Block] = []
        block = user
        while block not in parents:
            path.append(block)
            owner = block.parent_op()
            assert owner is not None and owner.parent is not None
            block = owner.parent
        for inner in reversed(path):
            parents[inner] = block
            block = inner
    return parents
