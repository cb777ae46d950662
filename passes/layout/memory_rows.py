"""The memory that layouts take, as rows of the assignment problem.

Counted are the tensors that the ops of a function make, in every layout in which they are made
available, each from the op or reorder that makes it to the last op that reads it in that layout;
what a loop reads from outside stays until the loop ends. What control flow carries counts once,
as its result; arguments of the function, weights and views take nothing. All of it is in the
order of the module: `plan-memory`, which lets tensors share, needs no more.

A form of a value, that is the value in one layout as it is made available in one block, is
unneeded, held by the block, or held by a block around it, in each of the intervals between its
reads. An interval may need what an earlier one needed and no more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from braid.analysis.liveness import LOOPS, Numbering
from braid.analysis.memory_graph import value_bytes
from braid.analysis.tensor_storage import is_view, storage_bytes
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.opaque import OpaqueOp
from braid.passes.layout.availability import Available, LayoutSets
from braid.solvers.strategy import ProblemBuilder

UNNEEDED, HELD, INHERITED = range(3)
"""The strategies of a form in an interval."""

Mask = npt.NDArray[np.bool_]

Maker = tuple[int, Sequence[Layout]]
"""The node whose choice makes a value, and the layout of the value in each of its options."""


@dataclass(frozen=True)
class Reader:
    """`op`, whose choice is `node`, reads the value in `layouts[option]`."""

    op: Operation
    node: int
    layouts: tuple[Layout, ...]


@dataclass
class _Forms:
    """The forms in one block: `nodes[layout][interval]`, intervals ending at `times`."""

    times: list[int]
    nodes: list[list[int]] = field(default_factory=list[list[int]])


class MemoryRows:
    """Adds to a problem what its values take, at times that count ops and the gaps between."""

    def __init__(self, func: FuncOp, builder: ProblemBuilder) -> None:
        self._numbering = Numbering(func.body)
        self._builder = builder

    def add_fixed(self, value: SSAValue, maker: Maker) -> None:
        """A value that nothing reorders: from its definition to its last read."""
        live = self.made_during(value)
        if live is not None:
            reads = (self._read_at(use.operation, _home(value)) for use in value.uses)
            last = max(reads, default=0)
            self.add_made(value, maker, (live[0], max(live[1], last + 1)))

    def add_made(self, value: SSAValue, maker: Maker, live: tuple[int, int]) -> None:
        """What the maker makes of `value` takes memory at the times `live`."""
        node, layouts = maker
        usage = [form_bytes(value, layout) for layout in layouts]
        copy = self.add_form(usage, live)
        self.add_edge(node, copy, np.eye(len(usage), dtype=bool))

    def add_edge(self, first: int, second: int, allowed: Mask) -> None:
        """Forbids pairs of strategies."""
        self._builder.add_edge(first, second, np.where(allowed, 0.0, math.inf))

    def add(
        self,
        value: SSAValue,
        maker: Maker,
        sets: LayoutSets,
        holders: Sequence[Available],
        readers: Sequence[Reader],
    ) -> None:
        """A value whose `maker` makes one layout per option; `holders` come parents first."""
        _Value(self, value, maker, sets, holders, readers).add()

    def add_form(self, usage: Sequence[int], live: tuple[int, int]) -> int:
        """A node that costs nothing but memory, and its number."""
        return self._builder.add_node(np.zeros(len(usage)), usage=usage, live=live)

    def made_during(self, value: SSAValue) -> tuple[int, int] | None:
        """When `value` is there in any case: while it is made, or while what carries it runs.

        None for what has no memory of its own.
        """
        owner = value.owner
        if isinstance(owner, Operation):
            return None if is_view(owner) else (self.at(owner), self.at(owner) + 1)
        parent = owner.parent_op()
        if isinstance(parent, scf.WhileOp) and owner is parent.before_region.block:
            return self.at(parent), 2 * self._numbering.span(parent).end + 2
        return None

    def at(self, op: Operation) -> int:
        """The time at which `op` runs."""
        return 2 * self._numbering.span(op).start + 1

    def entered(self, block: Block) -> int:
        """The gap before the first op of `block`."""
        assert block.first_op is not None
        return self.at(block.first_op) - 1

    def seen_from(self, time: int, inner: Operation | None, block: Block) -> int:
        """The last time at which what `inner` does at `time` needs something of `block`."""
        while inner is not None and inner.parent is not block:
            inner = inner.parent_op()
            if isinstance(inner, LOOPS):
                time = 2 * self._numbering.span(inner).end + 1
        return time

    def _read_at(self, op: Operation, block: Block) -> int:
        """The last time at which `op`, or what reads the view that it makes, reads."""
        own = self.seen_from(self.at(op), op, block)
        if not is_view(op):
            return own
        return max((self._read_at(use.operation, block) for use in op.results[0].uses), default=own)

    def read_at(self, reader: Reader, block: Block) -> int:
        """As `_read_at`, of a reader."""
        return self._read_at(reader.op, block)


@dataclass
class _Value:
    """The rows of one value."""

    rows: MemoryRows
    value: SSAValue
    maker: Maker
    sets: LayoutSets
    holders: Sequence[Available]
    readers: Sequence[Reader]
    forms: dict[Block, _Forms] = field(default_factory=dict[Block, _Forms])

    def add(self) -> None:
        """Nodes of the forms and of what makes them, and edges between these and the problem's."""
        self._sizes = [form_bytes(self.value, layout) for layout in self.sets.layouts]
        live = self.rows.made_during(self.value)
        self._stays = live is not None and isinstance(self.value, OpResult)
        if live is not None:
            self.rows.add_made(self.value, self.maker, live)
        for holder in self.holders:
            self._add_forms(holder)
            self._add_reorders(holder)
        for reader in self.readers:
            self._add_reader(reader)

    def _add_forms(self, holder: Available) -> None:
        times = sorted({self._time(item, holder.block) for item in self._items(holder)})
        forms = self.forms[holder.block] = _Forms(times)
        starts = [self._gap(holder), *times]
        for layout, size in enumerate(self._sizes):
            nodes = [
                self.rows.add_form([0, size, 0], (a + 1, b + 1))
                for a, b in zip(starts, times, strict=False)
            ]
            for node in nodes:
                self.rows.add_edge(
                    holder.node, node, self._allowed([layout in s for s in self.sets.sets])
                )
                self._tie_to_source(holder, node, layout)
            for first, second in pairwise(nodes):
                self.rows.add_edge(
                    first, second, np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1]], dtype=bool)
                )
            forms.nodes.append(nodes)
        if holder.parent is not None:
            self._inherit(holder, holder.parent)

    def _allowed(self, has: Sequence[bool]) -> Mask:
        """Per option: a form may be needed where the option has it."""
        column = np.array(has)
        return np.stack([np.ones_like(column), column, column], axis=1)

    def _tie_to_source(self, holder: Available, node: int, layout: int) -> None:
        """A form that was there before the block's reorders is not held by the block."""
        if holder.parent is not None:
            source, has = holder.parent.node, [layout in s for s in self.sets.sets]
        else:
            source, made = self.maker
            has = [x == self.sets.layouts[layout] and not self._stays for x in made]
        column = np.array(has)
        self.rows.add_edge(source, node, np.stack([np.ones_like(column), ~column, column], axis=1))

    def _inherit(self, holder: Available, above: Available) -> None:
        """What is inherited in an interval is needed above at the same time."""
        forms, outer = self.forms[holder.block], self.forms[above.block]
        for item in self._items(holder):
            inner_at = forms.times.index(self._time(item, holder.block))
            outer_at = outer.times.index(self._time(item, above.block))
            needed = np.ones((3, 3), dtype=bool)
            needed[INHERITED, UNNEEDED] = False
            for inner, around in zip(forms.nodes, outer.nodes, strict=True):
                self.rows.add_edge(inner[inner_at], around[outer_at], needed)

    def _add_reorders(self, holder: Available) -> None:
        """The gap in which the forms of a block are made: from which, and what that takes."""
        node, made = self.maker
        above, sets = holder.parent, self.sets.sets
        starts = sets if above else [frozenset([self.sets.layouts.index(x)]) for x in made]
        source_node = above.node if above else node
        pairs = [(p, s) for p in dict.fromkeys(starts) for s in sets if self._extends(p, s)]
        there = [frozenset[int]() if above is None and self._stays else p for p, _ in pairs]
        usage = [sum(self._sizes[x] for x in s - p) for p, (_, s) in zip(there, pairs, strict=True)]
        gap = self._gap(holder)
        choice = self.rows.add_form(usage, (gap, gap + 1))
        self.rows.add_edge(
            source_node, choice, np.array([[p == start for p, _ in pairs] for start in starts])
        )
        self.rows.add_edge(
            holder.node, choice, np.array([[s == own for _, s in pairs] for own in sets])
        )
        if above is None:
            return
        outer = self.forms[above.block]
        at = outer.times.index(self._time(holder, above.block))
        for layout, nodes in enumerate(outer.nodes):
            read = [any(a == layout for a, _ in self.sets.steps(p, s)) for p, s in pairs]
            self.rows.add_edge(choice, nodes[at], self._reads(read))

    def _reads(self, reads: Sequence[bool]) -> Mask:
        """Per option: a form that it reads is needed."""
        column = np.array(reads)
        return np.stack([~column, np.ones_like(column), np.ones_like(column)], axis=1)

    def _extends(self, have: frozenset[int], want: frozenset[int]) -> bool:
        if not have <= want:
            return False
        try:
            self.sets.steps(have, want)
        except ValueError:
            return False
        return True

    def _add_reader(self, reader: Reader) -> None:
        block = reader.op.parent
        assert block is not None
        forms = self.forms[block]
        at = forms.times.index(self.rows.read_at(reader, block))
        for layout, nodes in zip(self.sets.layouts, forms.nodes, strict=True):
            reads = [wanted == layout for wanted in reader.layouts]
            self.rows.add_edge(reader.node, nodes[at], self._reads(reads))

    def _items(self, holder: Available) -> list["Reader | Available"]:
        """What reads forms of a block: readers in it or nested, and reorders in nested blocks."""
        inside = [r for r in self.readers if _is_in(r.op, holder.block)]
        nested = [
            h for h in self.holders if h is not holder and _is_in(h.block.parent_op(), holder.block)
        ]
        return [*inside, *nested]

    def _time(self, item: "Reader | Available", block: Block) -> int:
        if isinstance(item, Reader):
            return self.rows.read_at(item, block)
        return self.rows.seen_from(self._gap(item), item.block.first_op, block)

    def _gap(self, holder: Available) -> int:
        """When reorders of a block run: behind the maker, or at the block's start."""
        owner = self.value.owner
        if isinstance(owner, Operation) and owner.parent is holder.block:
            return self.rows.at(owner) + 1
        return self.rows.entered(holder.block)


def _home(value: SSAValue) -> Block:
    owner = value.owner
    if isinstance(owner, Block):
        return owner
    assert owner.parent is not None
    return owner.parent


def _is_in(op: Operation | None, block: Block) -> bool:
    while op is not None:
        if op.parent is block:
            return True
        op = op.parent_op()
    return False


def form_bytes(value: SSAValue, layout: Layout) -> int:
    """Bytes of `value` in `layout`; what an opaque op declares, or the logical size, if abstract.

    Raises UnsupportedError for open dims.
    """
    size = value_bytes(value)
    declared = isinstance(value.owner, OpaqueOp) and value.owner.bytes is not None
    return size if layout.is_abstract or declared else storage_bytes(value.type, layout)
