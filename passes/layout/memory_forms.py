"""The memory of a value that may be available in several layouts.

A form of a value is the value in one layout as made available in one block. In each interval
between its reads it is unneeded, held by the block, or held by a block around it. An interval may
need only values that an earlier one needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from xdsl.ir import Block, Operation, OpResult, SSAValue

from braid.dialects.braid.layout import Layout
from braid.passes.layout.availability import Available, LayoutSets
from braid.passes.layout.memory_rows import Maker, Mask, MemoryRows, form_bytes

UNNEEDED, INHERITED = 0, 2
"""Strategies of a form in an interval; 1 is to be held by the block."""


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


@dataclass
class ValueForms:
    """The forms of one value, whose `maker` makes it; `holders` come parents first."""

    rows: MemoryRows
    value: SSAValue
    maker: Maker
    sets: LayoutSets
    holders: Sequence[Available]
    readers: Sequence[Reader]
    forms: dict[Block, _Forms] = field(default_factory=dict[Block, _Forms])

    def add(self) -> None:
        """Add nodes of the forms and of what makes them, and edges between these and the
        problem's.
        """
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
        """Return per option whether a form may be needed: where the option has it."""
        column = np.array(has)
        return np.stack([np.ones_like(column), column, column], axis=1)

    def _tie_to_source(self, holder: Available, node: int, layout: int) -> None:
        """Let the block hold a form only if it did not exist before the block's reorders."""
        if holder.parent is not None:
            source, has = holder.parent.node, [layout in s for s in self.sets.sets]
        else:
            source, made = self.maker
            has = [x == self.sets.layouts[layout] and not self._stays for x in made]
        column = np.array(has)
        self.rows.add_edge(source, node, np.stack([np.ones_like(column), ~column, column], axis=1))

    def _inherit(self, holder: Available, above: Available) -> None:
        """Require that an inherited form is kept in the outer block in the same interval."""
        forms, outer = self.forms[holder.block], self.forms[above.block]
        for item in self._items(holder):
            inner_at = forms.times.index(self._time(item, holder.block))
            outer_at = outer.times.index(self._time(item, above.block))
            needed = np.ones((3, 3), dtype=bool)
            needed[INHERITED, UNNEEDED] = False
            for inner, around in zip(forms.nodes, outer.nodes, strict=True):
                self.rows.add_edge(inner[inner_at], around[outer_at], needed)

    def _add_reorders(self, holder: Available) -> None:
        """Add the gap in which a block's forms are made, from each starting form, with its
        memory.
        """
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
        """Return per option whether a form that it reads is needed."""
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
        at = forms.times.index(self.rows.read_at(reader.op, block))
        for layout, nodes in zip(self.sets.layouts, forms.nodes, strict=True):
            reads = [wanted == layout for wanted in reader.layouts]
            self.rows.add_edge(reader.node, nodes[at], self._reads(reads))

    def _items(self, holder: Available) -> list["Reader | Available"]:
        """Return the readers of forms of a block: readers in it or nested, and reorders in nested
        blocks.
        """
        inside = [r for r in self.readers if _is_in(r.op, holder.block)]
        nested = [
            h for h in self.holders if h is not holder and _is_in(h.block.parent_op(), holder.block)
        ]
        return [*inside, *nested]

    def _time(self, item: "Reader | Available", block: Block) -> int:
        if isinstance(item, Reader):
            return self.rows.read_at(item.op, block)
        return self.rows.seen_from(self._gap(item), item.block.first_op, block)

    def _gap(self, holder: Available) -> int:
        """Return when reorders of a block run: after the maker, or at the block's start."""
        owner = self.value.owner
        if isinstance(owner, Operation) and owner.parent is holder.block:
            return self.rows.at(owner) + 1
        return self.rows.entered(holder.block)


def _is_in(op: Operation | None, block: Block) -> bool:
    while op is not None:
        if op.parent is block:
            return True
        op = op.parent_op()
    return False
