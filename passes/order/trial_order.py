"""Compute what a function would need in its best order, to decide on rewritings that change it."""

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.ir import Operation

from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.memory_problem import memory_problem
from braid.solvers.ordering import search


@dataclass(frozen=True)
class TrialOrder:
    """`peak` bytes are live at once where op `numbers[i]` of the movable ones runs i-th."""

    numbers: tuple[int, ...]
    peak: int


def movable_ops(function: func.FuncOp) -> BlockGraph:
    """Return the ops that have an order; ops on parameters alone are hoisted later."""
    block, known = BlockGraph.of(function.body.block), ParameterExpressions()
    moving = tuple(op for op in block.ops if not (op.results and known.all_known(op.results)))
    return BlockGraph(block.block, block.leaves, moving)


def trial_order(function: func.FuncOp, time_limit: float) -> TrialOrder:
    """Return the order of least peak that is found in `time_limit` seconds; nested ops are
    apart.
    """
    block = movable_ops(function)
    problem = memory_problem(block, [0] * len(block.ops))
    found = search(problem, time_limit=time_limit, candidates=[range(len(block.ops))])
    return TrialOrder(tuple(found.order), int(found.value))


def positions(function: func.FuncOp, order: TrialOrder) -> dict[Operation, int]:
    """Return when each op of `function` runs; the order was found for it or its clone."""
    ops = movable_ops(function).ops
    return {ops[number]: place for place, number in enumerate(order.numbers)}


def take_body(function: func.FuncOp, changed: func.FuncOp) -> None:
    """Move the body of `changed`, a rewritten clone, into `function`."""
    function.body.detach_block(function.body.block)
    function.body.add_block(changed.body.detach_block(changed.body.block))
