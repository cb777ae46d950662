"""The time that the ops of a block take on a chip's units, as an ordering problem."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.ir import Block, Operation, SSAValue

from braid.analysis.storage.memory_graph import value_bytes
from braid.dialects.braid.order import blocks_of
from braid.passes.order.block_graph import BlockGraph
from braid.passes.order.buffer_reads import BufferReads, has_blocks
from braid.solvers.ordering import LatencyProblem, Traffic, UnitStage, Value
from braid.targets.costs.backend_support import require_supported
from braid.targets.costs.device_rates import DeviceRates
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.buffers import comes_from_outside
from braid.targets.simulator.steps import (
    Transfers,
    step_seconds,
    steps_of,
    transfers_of,
)


@dataclass(frozen=True)
class ChipProblem:
    """A problem on a chip, and how data gets there: `transfers` is None without transfers.

    `values` are the buffers on the chip by their numbers in the traffic.
    """

    problem: LatencyProblem
    transfers: Transfers | None
    values: tuple[SSAValue, ...] = ()


def latency_problem(
    block: BlockGraph, backend: BackendDescription, inner: Mapping[Block, float]
) -> LatencyProblem:
    """Return the problem of ordering `block` for the least time on `backend`.

    This is the fast estimate: every step runs alone on its unit at the unit's rate. Against the
    simulation of the instruction stream it leaves out the fetching of instructions and the
    sharing of ports. `inner` are the expected seconds of nested blocks in one
    run of the op that they are in, during which the chip does nothing else on the unit that it
    uses last.

    Raises InfeasibleError for an op whose operands and results do not fit the chip, and
    UnsupportedError for open dims and for an op that the backend does not run.
    """
    return chip_problem(block, backend, inner).problem


def chip_problem(
    block: BlockGraph, backend: BackendDescription, inner: Mapping[Block, float]
) -> ChipProblem:
    """Return `latency_problem`, with what it takes to write down the transfers."""
    require_supported(block.ops, backend)
    rates = DeviceRates(backend)
    stages = tuple(_stages(op, rates, inner) for op in block.ops)
    counts = tuple(map(len, backend.kinds))
    transfers = transfers_of(backend)
    if transfers is None:
        return ChipProblem(LatencyProblem(block.graph, stages, counts=counts), None)
    reads = BufferReads.of(block, transfers.capacity)
    number = {value: place for place, value in enumerate(reads.readers)}
    over: dict[SSAValue, list[SSAValue]] = {
        op.results[0]: reads.overwritable(op) for op in block.ops if len(op.results) == 1
    }
    values = tuple(
        replace(
            _value(block, reads, value, users, rates, transfers),
            over=tuple(number[other] for other in over.get(value, ())),
        )
        for value, users in reads.readers.items()
    )
    traffic = Traffic(values, transfers.capacity, transfers.load, transfers.store)
    problem = LatencyProblem(block.graph, stages, traffic, counts)
    return ChipProblem(problem, transfers, tuple(reads.readers))


def _value(
    block: BlockGraph,
    reads: BufferReads,
    value: SSAValue,
    users: list[int],
    rates: DeviceRates,
    transfers: Transfers,
) -> Value:
    size = value_bytes(value)
    sources = reads.sources.get(value, ())
    producer = None
    if not sources and not comes_from_outside(value):
        maker = value.owner
        assert isinstance(maker, Operation)
        producer = block.index.get(maker)  # None: a block around makes it.
    return Value(
        size,
        producer,
        tuple(users),
        rates.unit_seconds(rates.backend.units[transfers.load], size),
        rates.unit_seconds(rates.backend.units[transfers.store], size),
        value in reads.stored,
        sources=tuple(sources),
    )


def _stages(
    op: Operation, rates: DeviceRates, inner: Mapping[Block, float]
) -> tuple[UnitStage, ...]:
    backend = rates.backend
    if has_blocks(op):
        expected = sum(inner.get(block, 0.0) for block in blocks_of(op))
        return tuple(UnitStage(kind[0], expected) for kind in backend.kinds[-1:])
    return tuple(UnitStage(step.unit, step_seconds(step, rates)) for step in steps_of(op, backend))
