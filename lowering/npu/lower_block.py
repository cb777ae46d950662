"""From a block of ops in their order to the instruction stream of a chip."""

from collections.abc import Sequence

from xdsl.ir import Block

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.regions import GroupOp
from braid.lowering.npu.compile_subgraph import compile_subgraph
from braid.lowering.npu.cut_subgraphs import Cut
from braid.lowering.npu.link import link
from braid.lowering.npu.stream_program import StreamProgram, stream_program, with_addresses
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.latency_problem import ChipProblem, chip_problem
from braid.support.errors import BraidError, UnsupportedError
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Stream
from braid.targets.simulator.steps import Transfers


def lower_to_instructions(block: Block, backend: BackendDescription) -> Stream:
    """Return the stream of `lower_to_program`. Raises as that does."""
    return lower_to_program(block, backend).stream


def lower_to_program(
    block: Block, backend: BackendDescription, order: Sequence[int] | None = None
) -> StreamProgram:
    """Return the stream that runs the ops of `block` on `backend`, in `order` or as they stand.

    Values that are read several times stay on the chip while there is free memory; loads, stores
    and spills are inserted where necessary. Raises UnsupportedError for control flow and open dims,
    and InfeasibleError for an op whose operands and results do not fit the chip. Raises BraidError
    for a backend without units that load and store.
    """
    return _program(block, backend, order, backend.memories[0].bytes if backend.memories else 0)


def _program(
    block: Block, backend: BackendDescription, order: Sequence[int] | None, capacity: int
) -> StreamProgram:
    graph, chip, transfers = lowered_block(block, backend)
    cut = Cut(graph, chip, backend, [order or range(len(graph.ops))])
    objects = [(compile_subgraph(cut.source(0)), cut.placement(0))] if graph.ops else []
    return stream_program(link(objects, backend, transfers), graph, chip, capacity)


def lower_to_run(
    block: Block, backend: BackendDescription, order: Sequence[int] | None = None
) -> StreamProgram:
    """Run `lower_to_program` with less on the chip at once where buffers would not fit in one
    piece.

    Such a stream loads and stores more. Raises as `lower_to_program`.
    """
    capacity = backend.memories[0].bytes if backend.memories else 0
    return with_addresses(backend, lambda chip: _program(block, chip, order, capacity))


def lowered_block(
    block: Block, backend: BackendDescription
) -> tuple[BlockGraph, ChipProblem, Transfers]:
    """Return the ops of `block`, their effects on the chip, and the transfers of data onto it.

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
