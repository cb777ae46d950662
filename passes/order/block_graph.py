"""The ops of a block and what must come before what."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, is_side_effect_free

from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.solvers.ordering import Graph

LEAVES = (ConstantOp, ParameterOp, arith.ConstantOp)
"""Ops that compute nothing: they stand before all others and are not searched."""


@dataclass(frozen=True)
class BlockGraph:
    """The ops of a block that can change places, numbered as they stand.

    `leaves` are constants and parameters. Ops with side effects keep their order.
    """

    block: Block
    leaves: tuple[Operation, ...]
    ops: tuple[Operation, ...]

    @staticmethod
    def of(block: Block) -> "BlockGraph":
        """The ops of `block` without its terminator."""
        movable = [op for op in block.ops if not op.has_trait(IsTerminator)]
        leaves = tuple(op for op in movable if isinstance(op, LEAVES))
        return BlockGraph(block, leaves, tuple(op for op in movable if not isinstance(op, LEAVES)))

    @cached_property
    def index(self) -> dict[Operation, int]:
        """The number of each op."""
        return {op: number for number, op in enumerate(self.ops)}

    @cached_property
    def graph(self) -> Graph:
        """Which ops come before which: through values, also read in nested regions, or effects."""
        edges = [
            (number, user)
            for number, op in enumerate(self.ops)
            for result in op.results
            for user in self.users(result)
        ]
        effects = [number for number, op in enumerate(self.ops) if not is_side_effect_free(op)]
        return Graph.from_edges(len(self.ops), [*edges, *itertools.pairwise(effects)])

    def users(self, value: SSAValue) -> tuple[int, ...]:
        """The ops of the block that read `value`, themselves or in their regions, ascending."""
        numbers = {self.index.get(self._in_block(use.operation)) for use in value.uses}
        return tuple(sorted(number for number in numbers if number is not None))

    def escapes(self, value: SSAValue) -> bool:
        """Whether the terminator of the block reads `value`."""
        return any(use.operation is self.block.last_op for use in value.uses)

    def _in_block(self, op: Operation) -> Operation:
        while op.parent is not self.block:
            op = cast(Operation, op.parent_op())
        return op
