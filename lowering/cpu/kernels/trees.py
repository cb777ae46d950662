"""Decision trees: several walks go side by side, so that each hides the others' latency.

The walks of a block of rows in one tree come together, while its nodes are in the cache; rows that
are left over walk down several trees at once. A walk has no branch: a step picks the next node by
an address, and a leaf leads to itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from braid.analysis.nests.pointwise import ExtentsOf
from braid.analysis.nests.trees import TreesNest, trees_nest
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.base import element_type_of, shape_of
from braid.dialects.braid.reduction import neutral_of
from braid.dialects.braid.regions import FusedOp
from braid.dialects.braid.tree_ensemble import NODE_WORDS, WORDS, TreeEnsembleOp
from braid.lowering.common.emitted_dialects import memref
from braid.lowering.cpu.kernels.groups.vector_family import SizedFamily, VectorCandidate
from braid.lowering.cpu.unit.kernel_function import grid_kernel
from braid.lowering.emit.buffer import Buffer
from braid.lowering.emit.compare import choose, compare
from braid.lowering.emit.emitter import Emitter, Index, Value
from braid.lowering.emit.math.elementwise_table import Emit, emitter_of
from braid.lowering.emit.rows import each
from braid.targets.kernels.flexible_layouts import flexible_choices
from braid.targets.kernels.kernel_family import Kernel
from braid.targets.kernels.schedules import Schedule

_WALKS = 8
"""Walks side by side: more registers than these need are not there."""

_ROWS = 64
"""Rows of a block, which take turns in each tree."""

_FEW_STEPS = 10
"""Walks of trees up to this depth take all steps; in deeper trees few paths are that long."""

_STEP_CYCLES = 4.0
"""The cycles of one step of one walk."""


@dataclass(frozen=True)
class TreesFamily(SizedFamily):
    """A tree ensemble alone in its group, row-major, of any number of rows."""

    name: str = "trees"
    version: int = 1
    anchors: ClassVar = (TreeEnsembleOp,)

    def match(self, group: FusedOp, extents_of: ExtentsOf = shape_of) -> "Trees | None":
        """Match a tree ensemble that has rows, and whose operands are the group's."""
        nest = trees_nest(group, extents_of)
        if nest is None:
            return None
        type = element_type_of(group.results[0])
        combine = emitter_of(nest.kind, [type, type], type)
        assert combine is not None
        return Trees(group, self.unit_of(group.inputs[0]), nest, type, combine)


@dataclass(frozen=True, eq=False)
class Trees(VectorCandidate):
    """The trees of a group; `combine` makes one of two weights."""

    nest: TreesNest
    type: Attribute
    combine: Emit

    def choices(self) -> Sequence[LayoutChoice]:
        """Return the choice with row-major layouts alone."""
        return flexible_choices(self.group)[:1]

    def seconds(self, choice: LayoutChoice) -> float:
        """Return the larger of memory traffic and the steps of all walks."""
        nest = self.nest
        assert isinstance(nest.rows, int)
        walks = nest.rows * nest.groups * nest.trees
        cycles = walks * (_STEP_CYCLES * (nest.depth + 1) + nest.classes)
        clock = self.unit.fma_rate / self.unit.multiply_adds
        return max(cycles / clock, self.moving_seconds(choice))

    def emit(self, symbol: str, schedule: Schedule) -> Kernel:
        """Emit a block of rows for each iteration of the grid."""
        rows = self.nest.rows
        whole, blocks = rows // _ROWS, -(-rows // _ROWS)

        def iteration(e: Emitter, buffers: Sequence[Buffer], index: Index) -> None:
            begin = e.mul(index, _ROWS)
            walks = _Walks(e, self, *buffers[:5])
            e.branch(
                index,
                whole,
                lambda: walks.block(begin, _ROWS),
                lambda: walks.rest(begin, e.sub(rows, begin)),
            )

        return grid_kernel(self.group, symbol, self.unit, blocks, iteration)


@dataclass(frozen=True)
class _Walks:
    """The walks of some rows."""

    e: Emitter
    trees: Trees
    features: Buffer
    nodes: Buffer
    roots: Buffer
    weights: Buffer
    target: Buffer

    @property
    def nest(self) -> TreesNest:
        """Return the number of steps of all walks."""
        return self.trees.nest

    def block(self, begin: Index, count: Index) -> None:
        """Walk with `count` rows, several at a time, through the trees in turn."""
        e, nest = self.e, self.nest
        e.loop(0, count, 1, lambda row: self._clear(e.add(begin, row)))

        def tree(number: Index) -> None:
            group, _ = e.divmod(number, nest.trees)
            root = self.roots.load_scalar(e, number)

            def together(first: Index) -> None:
                rows = [e.add(begin, e.add(first, i)) for i in range(_WALKS)]
                places = self._leaves(rows, [root] * _WALKS)
                for row, place in zip(rows, places, strict=True):
                    self._add(row, group, place)

            e.loop(0, count, _WALKS, together)

        e.loop(0, nest.groups * nest.trees, 1, tree)

    def rest(self, begin: Index, count: Index) -> None:
        """Walk with rows that fill no block: several at a time, and the remaining ones one by
        one."""
        e = self.e
        left = e.divmod(count, _WALKS)[1]
        together = e.sub(count, left)
        self.block(begin, together)
        self.single(e.add(begin, together), left)

    def single(self, begin: Index, count: Index) -> None:
        """Walk with one row after the other down several trees at once."""
        e, nest = self.e, self.nest
        whole = nest.trees - nest.trees % _WALKS

        def one(number: Index) -> None:
            row = e.add(begin, number)
            self._clear(row)

            def group(own: Index) -> None:
                first = e.mul(own, nest.trees)

                def together(tree: Index, count: int) -> None:
                    at = [e.add(first, e.add(tree, i)) for i in range(count)]
                    roots = [self.roots.load_scalar(e, place) for place in at]
                    for place in self._leaves([row] * count, roots):
                        self._add(row, own, place)

                if whole:
                    e.loop(0, whole, _WALKS, lambda tree: together(tree, _WALKS))
                if nest.trees != whole:
                    together(whole, nest.trees - whole)

            e.loop(0, nest.groups, 1, group)

        e.loop(0, count, 1, one)

    def _clear(self, row: Index) -> None:
        """Set the results of a row to what changes nothing."""
        e, width = self.e, self.nest.groups * self.nest.classes
        neutral = e.constant(
            neutral_of(self.nest.kind, self.trees.type), e.vector_type(self.trees.type)
        )
        first = e.mul(row, width)

        def store(at: Index, mask: Value | None) -> None:
            self.target.store(e, neutral, e.add(first, at), mask)

        each(e, width, store)

    def _add(self, row: Index, group: Index, place: Index) -> None:
        """Combine the weights of a leaf with what a row has in a group."""
        e, nest = self.e, self.nest
        leaf = e.mul(e.minimum(place, nest.leaves - 1), nest.classes)
        to = e.mul(e.add(e.mul(row, nest.groups), group), nest.classes)
        if nest.classes == 1:
            total = self.target.load_scalar(e, to), self.weights.load_scalar(e, leaf)
            result = self.trees.combine(e, total)
            e.effect(memref.StoreOp.get(result, self.target.ref, [e.index(to)]))
            return

        def vector(at: Index, mask: Value | None) -> None:
            total = self.target.load(e, e.add(to, at), mask)
            found = self.weights.load(e, e.add(leaf, at), mask)
            self.target.store(e, self.trees.combine(e, [total, found]), e.add(to, at), mask)

        each(e, nest.classes, vector)

    def _leaves(self, rows: Sequence[Index], roots: Sequence[Value]) -> Sequence[Index]:
        """Return the nodes at which walks of these rows end that begin at these nodes."""
        e, nest = self.e, self.nest
        begins = [e.mul(row, nest.features) for row in rows]
        first = [e.minimum(self._index(root), nest.nodes - 1) for root in roots]
        places = [e.index(place) for place in first]

        def steps(places: Sequence[Value]) -> Sequence[Value]:
            return [self._next(begin, p) for begin, p in zip(begins, places, strict=True)]

        if nest.depth <= _FEW_STEPS:
            return e.carry(0, nest.depth, 1, places, lambda _, values: steps(values))
        return e.repeat(places, steps, self._go_on)

    def _go_on(self, places: Sequence[Value]) -> Value:
        """Return whether any of the walks goes on."""
        e = self.e
        furthest: Index = places[0]
        for place in places[1:]:
            furthest = e.maximum(furthest, place)
        return compare(e, "uge", e.index(furthest), e.index(self.nest.leaves))

    def _next(self, begin: Index, place: Value) -> Value:
        """Return the node to which one step leads, for a row whose features begin there."""
        e, nest = self.e, self.nest
        word = WORDS[self.trees.type]
        node = e.mul(place, NODE_WORDS)
        first = self.nodes.load_scalar(e, node)
        one = e.constant(1, word)
        feature = e.minimum(self._index(e.apply(arith.ShRUIOp, first, one)), nest.features - 1)
        value = self.features.load_scalar(e, e.add(begin, feature))
        bits = self.nodes.load_scalar(e, e.add(node, 1))
        split = e.make(arith.BitcastOp, [bits], self.trees.type)
        holds = compare(e, "ole", value, split)
        if nest.tracks_missing:
            tracks = compare(e, "ne", e.apply(arith.AndIOp, first, one), e.constant(0, word))
            missing = e.apply(arith.AndIOp, compare(e, "uno", value, value), tracks)
            holds = e.apply(arith.OrIOp, holds, missing)
        way = choose(e, holds, e.index(2), e.index(3))
        found = self._index(self.nodes.load_scalar(e, e.add(node, way)))
        return e.index(e.minimum(found, nest.nodes - 1))

    def _index(self, word: Value) -> Index:
        return self.e.make(arith.IndexCastOp, [word], IndexType())
