"""The ops of a block and what must come before what."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, is_side_effect_free

from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.order import has_fixed_place
from braid.solvers.ordering import Graph

LEAVES = (ConstantOp, ParameterOp, arith.ConstantOp)
"""Ops that compute nothing: they come before all others and are not searched."""


@dataclass(frozen=True)
class BlockGraph:
    """The movable ops of a block, numbered in their order.

    `leaves` are constants and parameters. Ops with side effects keep their order, and so do
    launches and waits unless `launches_move`.
    """

    block: Block
    leaves: tuple[Operation, ...]
    ops: tuple[Operation, ...]
    launches_move: bool = False

    @staticmethod
    def of(block: Block, *, launches_move: bool = False) -> "BlockGraph":
        """Return the ops of `block` without its terminator."""
        movable = [op for op in block.ops if not op.has_trait(IsTerminator)]
        leaves = tuple(op for op in movable if isinstance(op, LEAVES))
        others = tuple(op for op in movable if not isinstance(op, LEAVES))
        return BlockGraph(block, leaves, others, launches_move)

    @cached_property
    def index(self) -> dict[Operation, int]:
        """The number of each op."""
        return {op: number for number, op in enumerate(self.ops)}

    @cached_property
    def graph(self) -> Graph:
        """Return which ops precede which: by values, also read in nested regions, or effects."""
        edges = [
            (number, user)
            for number, op in enumerate(self.ops)
            for result in op.results
            for user in self.users(result)
        ]
        effects = [number for number, op in enumerate(self.ops) if self._keeps_its_place(op)]
        return Graph.from_edges(len(self.ops), [*edges, *itertools.pairwise(effects)])

    def _keeps_its_place(self, op: Operation) -> bool:
        return has_fixed_place(op) if self.launches_move else not is_side_effect_free(op)

    def users(self, value: SSAValue) -> tuple[int, ...]:
        """Return the ops of the block that read `value`, themselves or in their regions,
        ascending.
        """
        numbers = {self.index.get(self._in_block(use.operation)) for use in value.uses}
        return tuple(sorted(number for number in numbers if number is not None))

    def escapes(self, value: SSAValue) -> bool:
        """Return whether the terminator of the block reads `value`."""
        return any(use.operation is self.block.last_op for use in value.uses)

    def _in_block(self, op: Operation) -> Operation:
        while op.parent is not self.block:
            op = cast(Operation, op.parent_op())
        return op
