"""Objects of arbitrary pieces, linked: everything runs behind what it needs, and fits."""

from dataclasses import replace

import pytest
from xdsl.dialects import func

from benchmarks.generators.opaque_modules import random_module
from braid.analysis.storage.memory_graph import value_bytes
from braid.lowering.npu.compile_subgraph import compile_subgraph
from braid.lowering.npu.cut_subgraphs import Cut
from braid.lowering.npu.link import link
from braid.lowering.npu.lower_block import lower_to_instructions, lowered_block
from braid.passes.order.block_graph import BlockGraph
from braid.solvers.ordering.residency_plan import AHEADS
from braid.targets.machines.load import load_target
from braid.targets.machines.target import BackendDescription
from braid.targets.simulator.instructions import Kind, Stream
from braid.targets.simulator.simulate import simulate
from braid.targets.simulator.stream_object import StreamObject


def chip(memory: int) -> BackendDescription:
    backend = load_target("npu-small").default_backend
    return replace(backend, memories=(replace(backend.memories[0], bytes=memory),))


def random_function(seed: int) -> func.FuncOp:
    function = random_module(seed, 40, parameters=0.4, largest=20_000).body.block.first_op
    assert isinstance(function, func.FuncOp)
    return function


def needed(function: func.FuncOp) -> int:
    """Return the bytes of the op that uses most."""
    return max(sum(map(value_bytes, {*op.operands, *op.results})) for op in function.body.block.ops)


def linked(
    function: func.FuncOp, length: int, backend: BackendDescription
) -> tuple[BlockGraph, Stream, Stream]:
    """Return a graph, its stream from pieces of so many ops, and its stream as a whole."""
    graph, problem, _ = lowered_block(function.body.block, backend)
    assert problem.transfers is not None
    numbers = list(range(len(graph.ops)))
    cut = Cut(graph, problem, backend, [numbers[n : n + length] for n in numbers[::length]])
    objects = [
        (compile_subgraph(cut.source(piece)), cut.placement(piece))
        for piece in range(len(cut.pieces))
    ]
    stream = link(objects, backend, problem.transfers).stream
    return graph, stream, lower_to_instructions(function.body.block, backend)


def amounts(stream: Stream, *kinds: Kind) -> list[int]:
    return [i.amount for i in stream.instructions if i.kind in kinds]


@pytest.mark.parametrize("room", [1.0, 1.3, 4.0])
@pytest.mark.parametrize("length", [1, 7, 20])
@pytest.mark.parametrize("seed", range(4))
def test_ops_run_behind_those_that_they_need(seed: int, length: int, room: float) -> None:
    """Also where values skip pieces and go through memory; the simulator checks that all fits."""
    function = random_function(seed)
    backend = chip(int(needed(function) * room))
    graph, stream, whole = linked(function, length, backend)
    timeline = simulate(stream, backend)
    assert len(stream.ops) == len(graph.ops)
    start: dict[int, float] = {}
    end: dict[int, float] = {}
    loaded: dict[int, float] = {}
    listed = enumerate(stream.instructions)
    runs = {i.op: n for n, i in listed if i.kind in (Kind.MATRIX, Kind.VECTOR)}
    for span in timeline.spans:
        instruction = stream.instructions[span.index]
        if instruction.kind in (Kind.MATRIX, Kind.VECTOR):
            start[instruction.op], end[instruction.op] = span.start, span.end
        elif instruction.kind is Kind.LOAD and span.index < runs[instruction.op]:
            loaded[instruction.op] = max(span.end, loaded.get(instruction.op, 0.0))
    for op, before in enumerate(graph.graph.predecessors):
        assert start[op] >= max((end[other] for other in before), default=0.0)
        assert start[op] >= loaded.get(op, 0.0)
    assert amounts(stream, Kind.MATRIX, Kind.VECTOR) == amounts(whole, Kind.MATRIX, Kind.VECTOR)


@pytest.mark.parametrize("seed", [3, 7, 10, 13])
def test_early_loads_save_as_much_as_estimated(seed: int) -> None:
    module = random_module(seed, 40, parameters=0.4, largest=200_000)
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    backend = chip(int(needed(function) * 1.3))
    problem = lowered_block(function.body.block, backend)[1].problem
    order = range(len(problem))
    late, *earlier = (problem.seconds(order, ahead) for ahead in AHEADS)
    early = min(earlier)
    stream = lower_to_instructions(function.body.block, backend)
    assert early < 0.98 * late
    assert simulate(stream, backend).seconds == pytest.approx(early, rel=0.02)
    assert problem.evaluate(order) == early


@pytest.mark.parametrize("seed", range(4))
def test_pieces_cost_no_more_than_what_they_load_and_store_again(seed: int) -> None:
    backend = chip(2_000_000)
    _, stream, whole = linked(random_function(seed), 20, backend)
    moved, least = (amounts(s, Kind.LOAD, Kind.STORE) for s in (stream, whole))
    extra = sum(moved) - sum(least)
    units = {unit.resource: unit for unit in backend.units}
    seconds = extra / units["load"].rate + (len(moved) - len(least)) * max(
        unit.startup_seconds for unit in backend.units
    )
    assert extra > 0
    spent = simulate(stream, backend).seconds - simulate(whole, backend).seconds
    assert spent <= 1.02 * seconds


def test_an_object_is_the_same_from_its_file() -> None:
    function = random_module(3, 30, parameters=0.4).body.block.first_op
    assert isinstance(function, func.FuncOp)
    backend = chip(2_000_000)
    graph, problem, _ = lowered_block(function.body.block, backend)
    cut = Cut(graph, problem, backend, [range(15), range(15, len(graph.ops))])
    for piece in range(2):
        made = compile_subgraph(cut.source(piece))
        assert StreamObject.from_bytes(made.to_bytes()) == made


@pytest.mark.parametrize("data", [b"", b"[]", b'{"format": 1}', b'{"format": 3, "events": [[9]]}'])
def test_other_files_are_no_objects(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an object of format 3"):
        StreamObject.from_bytes(data)
