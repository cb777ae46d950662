"""The time that the ops of a block take on a chip's units, as an ordering problem."""

from collections.abc import Mapping

from xdsl.ir import Block, Operation

from braid.analysis.simulator.steps import step_seconds, steps_of
from braid.dialects.braid.regions import GroupOp
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.order_attribute import blocks_of
from braid.solvers.ordering import LatencyProblem, Stage
from braid.targets.target import Backend


def latency_problem(
    block: BlockGraph, backend: Backend, inner: Mapping[Block, float]
) -> LatencyProblem:
    """The problem of ordering `block` for the least time on `backend`.

    This is the fast estimate: every step runs alone on its unit at the unit's rate. Against the
    simulation of the instruction stream it leaves out the fetching of instructions and the
    sharing of ports. `inner` are the seconds of nested blocks, during which the chip does
    nothing else on the unit that it uses last; the longest of an op's blocks counts.
    """
    return LatencyProblem(block.graph, tuple(_stages(op, backend, inner) for op in block.ops))


def _stages(op: Operation, backend: Backend, inner: Mapping[Block, float]) -> tuple[Stage, ...]:
    if op.regions and not isinstance(op, GroupOp):
        longest = max((inner[block] for block in blocks_of(op)), default=0.0)
        return tuple(Stage(unit, longest) for unit in range(len(backend.units))[-1:])
    return tuple(
        Stage(step.unit, step_seconds(step, backend), step.waits) for step in steps_of(op, backend)
    )
