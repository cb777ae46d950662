"""In which layouts a value is made available where, and what that costs.

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

MAX_LAYOUTS = 5
"""Sets of more layouts than this are enumerated up to two members only."""


@dataclass(frozen=True)
class LayoutSets:
    """The sets in which a value can be available, and the cheapest ways to extend them."""

    layouts: tuple[Layout, ...]
    sets: tuple[frozenset[int], ...]
    reorder: Matrix

    @staticmethod
    def of(layouts: Sequence[Layout], cost: ReorderCost) -> "LayoutSets":
        """All sets of `layouts`, whose reorders cost `cost`."""
        indices = range(len(layouts))
        largest = len(layouts) if len(layouts) <= MAX_LAYOUTS else 2
        sets = [frozenset(c) for n in range(1, largest + 1) for c in combinations(indices, n)]
        matrix = np.array([[cost(a, b) for b in layouts] for a in layouts])
        return LayoutSets(tuple(layouts), tuple(sets), matrix)

    @cached_property
    def has_detours(self) -> bool:
        """Whether some reorder is cheaper through a third layout."""
        return bool((shortest_paths(self.reorder) < self.reorder).any())

    def steps(self, have: frozenset[int], want: frozenset[int]) -> list[tuple[int, int]]:
        """The reorders (from, to) that extend `have` to `want` at least cost, in order.

        Raises ValueError if there is no way.
        """
        cost, steps = self._extend(have, want - have, {})
        if math.isinf(cost):
            raise ValueError("a layout cannot be reached by reorders")
        return list(steps)

    def from_layout(self, made: Sequence[Layout]) -> Matrix:
        """Cost per (option that makes layout `made[i]`, set): the reorders needed."""
        return self._from_each_layout[[self.layouts.index(layout) for layout in made]]

    @cached_property
    def _from_each_layout(self) -> Matrix:
        return self._costs([frozenset((index,)) for index in range(len(self.layouts))], self.sets)

    @cached_property
    def from_sets(self) -> Matrix:
        """Cost per (set in the outer block, set in the inner one): the reorders needed."""
        return self._costs(self.sets, self.sets)

    def contains(self, wanted: Sequence[Layout]) -> Matrix:
        """Per (set, option that wants layout `wanted[j]`): 0 if available, else infinity."""
        return self._contains_each[:, [self.layouts.index(layout) for layout in wanted]]

    @cached_property
    def _contains_each(self) -> Matrix:
        indices = range(len(self.layouts))
        return np.array([[0.0 if i in s else math.inf for i in indices] for s in self.sets])

    def _costs(self, rows: Iterable[frozenset[int]], columns: Sequence[frozenset[int]]) -> Matrix:
        known: _Extensions = {}
        return np.array(
            [
                [self._extend(r, c - r, known)[0] if r <= c else math.inf for c in columns]
                for r in rows
            ]
        )

    def _extend(
        self, have: frozenset[int], missing: frozenset[int], known: "_Extensions"
    ) -> tuple[float, tuple[tuple[int, int], ...]]:
        """Cheapest reorders that add `missing` to `have`, by recursion over what is added first."""
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
    """The blocks from `home` down to every user's block, each with its parent, parents first."""
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
