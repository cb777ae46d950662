"""The memory that layouts take, as rows of the assignment problem.

Counted are the tensors that the ops of a function make, in every layout in which they are made
available, each from the op or reorder that makes it to the last op that reads it in that layout;
what a loop reads from outside stays until the loop ends. Values that control flow carries count
once, as its results; arguments of the function, weights and views take no memory. All of it is in
the order of the module: `plan-memory`, which lets tensors share, needs no more.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.storage.liveness import LOOPS, Numbering
from braid.analysis.storage.memory_graph import value_bytes
from braid.analysis.storage.tensor_storage import is_view, storage_bytes
from braid.analysis.structure.nesting import parent_block
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.opaque import OpaqueOp
from braid.solvers.strategy import ProblemBuilder

Mask = npt.NDArray[np.bool_]

Maker = tuple[int, Sequence[Layout]]
"""The node whose choice makes a value, and the layout of the value in each of its options."""


class MemoryRows:
    """Adds to a problem what its values take, at times that count ops and the gaps between."""

    def __init__(self, func: FuncOp, builder: ProblemBuilder) -> None:
        self._numbering = Numbering(func.body)
        self._builder = builder

    def add_fixed(self, value: SSAValue, maker: Maker) -> None:
        """Add a value that nothing reorders, live from its definition to its last read."""
        live = self.made_during(value)
        if live is not None:
            reads = (self.read_at(use.operation, parent_block(value)) for use in value.uses)
            last = max(reads, default=0)
            self.add_made(value, maker, (live[0], max(live[1], last + 1)))

    def add_made(self, value: SSAValue, maker: Maker, live: tuple[int, int]) -> None:
        """Add the memory that the maker's result `value` takes at the times `live`."""
        node, layouts = maker
        usage = [form_bytes(value, layout) for layout in layouts]
        copy = self.add_form(usage, live)
        self.add_edge(node, copy, np.eye(len(usage), dtype=bool))

    def add_edge(self, first: int, second: int, allowed: Mask) -> None:
        """Forbid pairs of strategies."""
        self._builder.add_edge(first, second, np.where(allowed, 0.0, math.inf))

    def add_form(self, usage: Sequence[int], live: tuple[int, int]) -> int:
        """Return a node that costs nothing but memory, and its number."""
        return self._builder.add_node(np.zeros(len(usage)), usage=usage, live=live)

    def made_during(self, value: SSAValue) -> tuple[int, int] | None:
        """Return when `value` always exists: while it is made, or while control flow that carries
        it runs.

        It is None for a value without memory of its own.
        """
        owner = value.owner
        if isinstance(owner, Operation):
            return None if is_view(owner) else (self.at(owner), self.at(owner) + 1)
        parent = owner.parent_op()
        if isinstance(parent, scf.WhileOp) and owner is parent.before_region.block:
            return self.at(parent), 2 * self._numbering.span(parent).end + 2
        return None

    def at(self, op: Operation) -> int:
        """Return the time at which `op` runs."""
        return 2 * self._numbering.span(op).start + 1

    def entered(self, block: Block) -> int:
        """Return the gap before the first op of `block`."""
        assert block.first_op is not None
        return self.at(block.first_op) - 1

    def seen_from(self, time: int, inner: Operation | None, block: Block) -> int:
        """Return the last time at which what `inner` does at `time` needs something of `block`."""
        while inner is not None and inner.parent is not block:
            inner = inner.parent_op()
            if isinstance(inner, LOOPS):
                time = 2 * self._numbering.span(inner).end + 1
        return time

    def read_at(self, op: Operation, block: Block) -> int:
        """Return the last time at which `op`, or what reads the view that it makes, reads."""
        own = self.seen_from(self.at(op), op, block)
        if not is_view(op):
            return own
        return max((self.read_at(use.operation, block) for use in op.results[0].uses), default=own)


def form_bytes(value: SSAValue, layout: Layout) -> int:
    """Return the bytes of `value` in `layout`; what an opaque op declares, or the logical size, if
    abstract.

    Raises UnsupportedError for open dims.
    """
    size = value_bytes(value)
    declared = isinstance(value.owner, OpaqueOp) and value.owner.bytes is not None
    return size if layout.is_abstract or declared else storage_bytes(value.type, layout)
