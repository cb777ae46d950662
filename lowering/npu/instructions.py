"""From a block of ops in their order to the instruction stream of a chip."""

from xdsl.ir import Block

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.regions import GroupOp
from braid.lowering.npu.compile_subgraph import compile_subgraph
from braid.lowering.npu.cut_subgraphs import Cut
from braid.lowering.npu.link import link
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.latency_problem import ChipProblem, chip_problem
from braid.support.errors import BraidError, UnsupportedError
from braid.targets.costs.simulator.instructions import Stream
from braid.targets.costs.simulator.steps import Transfers
from braid.targets.machines.target import BackendDescription


def lower_to_instructions(block: Block, backend: BackendDescription) -> Stream:
    """The stream that runs the ops of `block` on `backend` in the order in which they stand.

    What is read several times stays on the chip while there is room; loads, stores and spills are
    put in where they are necessary. Raises UnsupportedError for control flow and open dims, and
    InfeasibleError for an op whose operands and results do not fit the chip. Raises BraidError for
    a backend without units that load and store.
    """
    graph, chip, transfers = lowered_block(block, backend)
    if not graph.ops:
        return Stream((), ())
    cut = Cut(graph, chip, backend, [range(len(graph.ops))])
    return link([(compile_subgraph(cut.source(0)), cut.placement(0))], backend, transfers)


def lowered_block(
    block: Block, backend: BackendDescription
) -> tuple[BlockGraph, ChipProblem, Transfers]:
    """The ops of `block`, what they are to the chip, and how data gets onto it.

    Raises as `lower_to_instructions`.
    """
    graph = BlockGraph.of(block)
    for op in graph.ops:
        if op.regions and not isinstance(op, GroupOp):
            raise UnsupportedError(
                f"'{op.name}' cannot be lowered to instructions: a stream has no control flow",
                location=source_location(op),
                hint="lower each branch or loop body as a function of its own",
            )
    chip = chip_problem(graph, backend, {})
    if chip.transfers is None:
        raise BraidError(
            f"backend '{backend.name}' has no units that load and store",
            hint="streams are for chips that are programmed by instructions",
        )
    return graph, chip, chip.transfers
